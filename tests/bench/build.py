"""Compiles the load tool and the sink, anew only when their source has changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import attrs

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent.parent / ".cache" / "bench"

_FLAGS = ("-std=c11", "-O2", "-g", "-Wall", "-Wextra")
_SINK = ("sink.c", "common.c")
_LOAD = ("load.c", "link.c", "phases.c", "steps.c", "storm.c", "histogram.c", "common.c")


class BuildError(Exception):
    """The tools cannot be built; the text says why."""


@attrs.frozen
class Tools:
    """The two programs."""

    load: Path
    sink: Path
    #: Whether the load tool speaks TLS.
    tls: bool


def build(folder: Path = CACHE) -> Tools:
    """Compile into ``folder``. Without OpenSSL's headers the load tool is built without TLS."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise BuildError("no C compiler (Debian: apt-get install gcc libc6-dev)")
    sources = sorted((HERE / "tools").glob("*.[ch]"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    place = folder / digest
    for tls in (True, False):
        tools = Tools(place / ("load-tls" if tls else "load"), place / "sink", tls)
        if tools.load.exists() and tools.sink.exists():
            return tools
        place.mkdir(parents=True, exist_ok=True)
        extra = ("-DWITH_TLS", "-lssl", "-lcrypto") if tls else ()
        _compile(compiler, _SINK, tools.sink)
        try:
            _compile(compiler, _LOAD, tools.load, *extra)
        except BuildError as error:
            if tls and "openssl/" in str(error):
                continue
            raise
        return tools
    raise AssertionError("unreachable")


def _compile(compiler: str, names: tuple[str, ...], to: Path, *extra: str) -> None:
    paths = [str(HERE / "tools" / name) for name in names]
    with tempfile.TemporaryDirectory(dir=to.parent) as scratch:
        out = Path(scratch) / to.name
        done = subprocess.run(
            [compiler, *_FLAGS, *paths, "-o", str(out), *extra], capture_output=True, text=True
        )
        if done.returncode:
            raise BuildError(done.stderr)
        out.replace(to)
