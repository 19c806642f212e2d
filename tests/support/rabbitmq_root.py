"""Another RabbitMQ than the machine's, in a folder that holds a Debian of its own.

    mmdebstrap --variant=apt --include=rabbitmq-server forky FOLDER

`AMQPGATE_RABBITMQ_ROOT` names it: then it is the RabbitMQ of all tests; `AMQPGATE_RABBITMQ_CONFIG` has lines
for its rabbitmq.conf. Those that need version 4 take it from `.tools/rabbitmq-4` otherwise, where
`tools/test-tools.sh` puts it.

Its programs run as they are there, in a mount namespace of their own, so root is needed. Nothing is mounted
that outlives them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from .missing import missing

#: In the environment: the folder, and lines of configuration.
ROOT = "AMQPGATE_RABBITMQ_ROOT"
CONFIG = "AMQPGATE_RABBITMQ_CONFIG"

#: Lines by which a node of version 4 denies what later versions deny.
DENYING = tuple(
    f"deprecated_features.permit.{name} = false" for name in ("transient_nonexcl_queues", "global_qos")
)

_MADE = Path(__file__).parents[2] / ".tools/rabbitmq-4"

#: The first argument is the folder, the second one that for temporary files, the others are the command.
#: Everything ends in exec: the process that is started is the program itself.
_ENTER = """
set -e
root=$1 temporary=$2
shift 2
mount --bind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p "$root$temporary"
mount --bind "$temporary" "$root$temporary"
touch "$root/etc/hosts"
mount --bind /etc/hosts "$root/etc/hosts"
exec chroot "$root" "$@"
"""


def named_root() -> Path | None:
    """The folder that the environment names."""
    named = os.environ.get(ROOT)
    return Path(named).resolve() if named else None


def named_config() -> list[str]:
    """The lines that the environment names."""
    return os.environ.get(CONFIG, "").splitlines()


def root_of_4() -> Path:
    """The folder of a RabbitMQ 4. The test is skipped where there is none."""
    root = named_root() or _MADE
    if not (root / "usr/lib/rabbitmq/bin/rabbitmq-server").is_file():
        missing("no RabbitMQ 4 is here (Debian, as root: apt-get install mmdebstrap; tools/test-tools.sh)")
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        missing("RabbitMQ 4 is in a folder of its own, which root alone may enter")
    return root


def entering(root: Path) -> list[str]:
    """What stands before a command that is to run there."""
    return ["unshare", "--mount", "sh", "-c", _ENTER, "sh", str(root), tempfile.gettempdir()]
