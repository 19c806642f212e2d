"""Virtual environments with other packages than the project's, made once and kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_UV = Path(__file__).parents[2] / ".tools" / "bin" / "uv"


class NotHere(Exception):
    """What a test needs cannot be had here; the text says why."""


def environment(folder: Path, requirements: str) -> Path:
    """The interpreter of the environment in ``folder``, which has these requirements, one a line.

    Raises `NotHere`.
    """
    python = folder / "venv" / "bin" / "python"
    installed = folder / "installed.txt"
    if not (installed.exists() and installed.read_text() == requirements):
        shutil.rmtree(folder / "venv", ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        listed = folder / "requirements.txt"
        listed.write_text(requirements)
        if _UV.exists():
            call([_UV, "venv", "--quiet", "--seed", "--python", sys.executable, folder / "venv"], "a venv")
            install = [_UV, "pip", "install", "--quiet", "--python", python, "-r", listed]
        else:
            call([sys.executable, "-m", "venv", folder / "venv"], "a venv")
            install = [python, "-m", "pip", "install", "--quiet", "-r", listed]
        call(install, f"what is to be in {folder.name}")
        installed.write_text(requirements)
    return python


def call(command: list[object], what: str) -> None:
    """Run a command that gets something. Raises `NotHere`."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotHere(f"{what} cannot be had: {error}") from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise NotHere(f"{what} cannot be had: {' '.join(last)}")
