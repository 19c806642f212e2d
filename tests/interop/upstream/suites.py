"""The libraries' suites: where their tests come from, and how to run them against an address."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from tests.support.environments import call, environment

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CACHE = ROOT / ".cache" / "acceptance"

#: A checkout of pika, or a repository to clone: its source distributions have not held its tests.
PIKA_SOURCE = "AMQPGATE_PIKA_SOURCE"
PIKA_REPOSITORY = "https://github.com/pika/pika"


@attrs.frozen
class Address:
    """Where a suite finds its broker: ports on 127.0.0.1, and a daemon that passes for Docker's."""

    plain: int
    tls: int
    docker: str
    #: Folder with `ca_certificate.pem` of the TLS port, and a client's certificate and key.
    certificates: Path

    def environment(self) -> dict[str, str]:
        return {
            "DOCKER_HOST": self.docker,
            "RABBITMQ_HOST": "127.0.0.1",
            "RABBITMQ_5672_TCP": str(self.plain),
            "RABBITMQ_5671_TCP": str(self.tls),
            "AMQP_PORT_MAP": f"5672={self.plain},5671={self.tls}",
        }


@attrs.frozen
class Play:
    """How a test ended (passed, failed, skipped), and when it ran, in seconds since the epoch."""

    outcome: str
    began: float
    ended: float


@attrs.frozen
class Suite:
    """One library's acceptance tests."""

    package: str
    #: Files or folders of tests in the source tree.
    paths: tuple[str, ...]
    #: Further arguments of pytest.
    options: tuple[str, ...] = ()
    #: What of it is quick enough for every run: an expression of pytest's `-k`.
    quick: str | None = None

    @property
    def version(self) -> str:
        """The version that the interop suites use, so that it is the same library."""
        return importlib.metadata.version(self.package)

    def source(self) -> Path:
        """The unpacked source tree. `NotHere` if it cannot be had."""
        if self.package == "pika":
            return _pika(self.version)
        return _sdist(self.package, self.version)

    def run(self, at: Address, *, only: Iterable[str] = (), quick: bool = False) -> dict[str, str]:
        """Outcome (passed, failed, skipped) of each test, by node id. `NotHere` if it cannot be had."""
        return {test: play.outcome for test, play in self.play(at, only=only, quick=quick).items()}

    def play(self, at: Address, *, only: Iterable[str] = (), quick: bool = False) -> dict[str, Play]:
        """The same, with the times."""
        source, python = self.source(), _python()
        _certificates(source, at)
        options = [
            "-p",
            "no:cacheprovider",
            "-o",
            "log_cli=false",
            "--tb=short",
            "--timeout=120",
            *self.options,
        ]
        options += only or self.paths
        if quick and self.quick:
            options += ["-k", self.quick]
        environment = at.environment() | {"PYTHONPATH": str(HERE)}
        return play([python, "-m", "pytest", "-p", "outcomes"], options, source, environment, self.package)


def play(
    pytest: Iterable[object], options: Iterable[str], folder: Path, environment: Mapping[str, str], name: str
) -> dict[str, Play]:
    """Run pytest, with the plugin `outcomes`, in a folder; what it writes is in the log of that name."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    CACHE.mkdir(parents=True, exist_ok=True)
    log = CACHE / f"{name}.log"
    with tempfile.NamedTemporaryFile("r") as outcomes, log.open("w") as output:
        subprocess.run(
            [*map(str, pytest), "-qq", *options],
            cwd=folder,
            env=inherited | environment | {"ACCEPTANCE_OUTCOMES": outcomes.name},
            stdout=output,
            stderr=output,
            timeout=3 * 3600,
        )
        lines = [json.loads(line) for line in outcomes]
    if not lines:
        raise RuntimeError(f"{name}'s tests did not start:\n{log.read_text()[-3000:]}")
    return {line["test"]: Play(line["outcome"], line["began"], line["ended"]) for line in lines}


SUITES: Mapping[str, Suite] = {
    suite.package: suite
    for suite in (
        Suite(
            "pika",
            ("tests/acceptance",),
            ("-o", "python_files=*_test.py *_tests.py"),
            quick="blocking_adapter_test.py or (async_adapter_tests.py and test_with_select_epoll)",
        ),
        Suite(
            "aio-pika",
            ("tests",),
            quick="test_amqp.py and TestCaseAmqp and not NoConfirms and not connect_robust",
        ),
        Suite("aiormq", ("tests",), ("-p", "broker_fixtures")),
        # Two of py-amqp's tests talk to a host on the internet.
        Suite(
            "amqp",
            ("t/integration",),
            ("--deselect=t/integration/test_rmq.py::test_tls_default_certs",)
            + ("--deselect=t/integration/test_rmq.py::test_tls_no_default_certs_fails",),
            quick="plain or test_integration.py",
        ),
        Suite("kombu", ("t/integration/test_py_amqp.py",)),
    )
}


def _sdist(package: str, version: str) -> Path:
    folder = CACHE / f"{package.replace('-', '_')}-{version}"
    if not folder.is_dir():
        archive = folder.with_name(f"{folder.name}.tar.gz")
        command = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package]
        call(
            [_python(), *command, "--dest", CACHE, f"{package}=={version}"],
            f"{package}'s source distribution",
        )
        with tarfile.open(archive) as tar:
            tar.extractall(CACHE, filter="data")
    return folder


def _pika(version: str) -> Path:
    if not (_sdist("pika", version) / "tests").is_dir():
        folder = CACHE / f"pika-{version}-repository"
        source = os.environ.get(PIKA_SOURCE, PIKA_REPOSITORY)
        if not folder.is_dir():
            command = ["git", "clone", "--quiet", "--depth", "1", "--branch", version, source, folder]
            call(
                command,
                f"pika's tests are not in its source distribution, and its repository"
                f" (tag {version}; {PIKA_SOURCE} names another place)",
            )
        return folder
    return _sdist("pika", version)


def _python() -> Path:
    """The interpreter of a virtual environment with the libraries and what their tests import."""
    wanted = [f"{suite.package}=={suite.version}" for suite in SUITES.values()]
    return environment(CACHE, (HERE / "requirements.txt").read_text() + "\n".join(wanted) + "\n")


def _certificates(source: Path, at: Address) -> None:
    """py-amqp's sdist leaves out the certificates of its tests: put some where they look for them."""
    if (source / "t").is_dir():
        shutil.copytree(at.certificates, source / "t" / "certs", dirs_exist_ok=True)
