"""An object store of one's own that speaks S3: OpenStack Swift, from PyPI, unpacked by `make test-tools`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs
from pyarrow import fs

from .missing import missing
from .ports import free_port, refuses
from .processes import Child

_BIN = Path(__file__).parents[2] / ".tools/swift/bin"

_COMMON = """
[swift-hash]
swift_hash_path_suffix = amqpgate
[storage-policy:0]
name = one
default = yes
"""

# A disk of which less than one hundredth is free is "full" to Swift as it comes: some tests' machines are so.
_STORAGE = """
[DEFAULT]
swift_dir = {folder}
devices = {folder}/disks
mount_check = false
fallocate_reserve = 0
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
recon_cache_path = {folder}
"""

_PROXY = """
[DEFAULT]
swift_dir = {folder}
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}
[pipeline:main]
pipeline = catch_errors s3api tempauth slo proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:s3api]
use = egg:swift#s3api
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = {secret} .admin
user_test_stranger = {secret}
[filter:slo]
use = egg:swift#slo
[app:{kind}-server]
use = egg:swift#proxy
account_autocreate = true
"""


@attrs.define(eq=False)
class Swift:
    """One of each server, on one disk. `key` may do everything; test:stranger, same secret, nothing."""

    key: str = "test:tester"
    secret: str = "very-secret"
    port: int = attrs.field(factory=free_port)
    _folder: Path = attrs.field(factory=lambda: Path(tempfile.mkdtemp(prefix="amqpgate-swift-")))
    _children: list[Child] = attrs.field(factory=list)

    @staticmethod
    def is_here() -> bool:
        """Whether it can be started."""
        return (_BIN / "swift-proxy-server").exists()

    def start(self) -> None:
        if not self.is_here():
            missing("Swift is not there (make test-tools gets it from PyPI)")
        (self._folder / "disks/disk").mkdir(parents=True)
        (self._folder / "swift.conf").write_text(_COMMON)
        for kind in ("account", "container", "object"):
            port = free_port()
            self._ring(kind, ["create", "2", "1", "1"])
            where = ["--region", "1", "--zone", "1", "--ip", "127.0.0.1", "--port", str(port)]
            self._ring(kind, ["add", *where, "--device", "disk", "--weight", "1"])
            self._ring(kind, ["rebalance"])
            self._serve(kind, _STORAGE, port)
        self._serve("proxy", _PROXY, self.port)
        self._children[-1].wait_until(self._answers, timeout=60, what="Swift")

    def environment(self) -> dict[str, str]:
        """What tells S3's clients where it is, and who asks."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def upload(self, folder: Path, to: str) -> None:
        """All files below a folder, under their names below `BUCKET/PREFIX`."""
        client = self.client()
        client.create_dir(to)
        fs.copy_files(str(folder), to, destination_filesystem=client)

    def client(self) -> fs.FileSystem:
        """One that may do everything."""
        return fs.S3FileSystem(
            access_key=self.key,
            secret_key=self.secret,
            region="us-east-1",
            scheme="http",
            endpoint_override=f"127.0.0.1:{self.port}",
            allow_bucket_creation=True,
        )

    def _ring(self, kind: str, words: Sequence[str]) -> None:
        command = [_BIN / "swift-ring-builder", self._folder / f"{kind}.builder", *words]
        subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=60)

    def _serve(self, kind: str, config: str, port: int) -> None:
        file = self._folder / f"{kind}.conf"
        user = self._folder.owner()
        file.write_text(
            config.format(folder=self._folder, kind=kind, port=port, user=user, secret=self.secret)
        )
        log = self._folder / f"{kind}.log"
        child = Child([_BIN / f"swift-{kind}-server", file], log=log)
        self._children.append(child)
        # Who is asked before it listens is soon not asked again for a minute.
        child.wait_until(lambda: not refuses(port), timeout=60, what=f"Swift's {kind} server")

    def _answers(self) -> bool:
        try:
            self.client().create_dir("ready")
        except OSError:
            return False
        return True

    def destroy(self) -> None:
        for child in self._children:
            child.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
