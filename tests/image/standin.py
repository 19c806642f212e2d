"""Images without a registry or a daemon: stand-ins for Python's own, of Debian's packages, ours on top."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).parents[2]
#: Debian 12 has the Python that the Dockerfile names.
SUITE = "bookworm"
_COMMON = ("apt", "python3", "python-is-python3", "passwd", "ca-certificates", "netbase", "tzdata")
#: What Python's image has, and its slim one has not.
_TO_BUILD = ("python3-venv", "python3-pip", "python3-dev", "gcc", "libc6-dev")
#: A folder that every Debian system has: no trace of it is in an image.
WHEELS_AT = "/mnt"


class ImpossibleError(Exception):
    """It cannot be done here; says in one line why."""


def missing() -> str | None:
    """What is not there that this needs; None if all is."""
    lacks = [tool for tool in ("buildah", "mmdebstrap", "unshare") if shutil.which(tool) is None]
    if lacks:
        return f"{' and '.join(lacks)} (Debian: apt-get install buildah mmdebstrap util-linux)"
    return None if os.geteuid() == 0 else "root"


def requirements(extras: str) -> list[str]:
    """What is needed to build the image with ``extras``, which have commas between them."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*said["build-system"]["requires"], "wheel", *said["project"]["dependencies"]]
    optional = said["project"]["optional-dependencies"]
    todo = [extra for extra in extras.split(",") if extra]
    while todo:
        for requirement in optional[todo.pop()]:
            if requirement.startswith("amqpgate["):
                todo += requirement.removeprefix("amqpgate[").rstrip("]").split(",")
            else:
                wanted.append(requirement)
    return wanted


@attrs.define
class Builder:
    """buildah with a store of its own below ``folder``, removed at the end."""

    folder: Path

    def __attrs_post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, *words: str) -> str:
        """Run one buildah command; its output without the newline at its end."""
        store = ["--root", str(self.folder / "storage"), "--runroot", str(self.folder / "run")]
        environ = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
        done = subprocess.run(
            ["buildah", *store, *words], env=environ, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ImpossibleError(f"buildah {words[0]}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout.strip()

    def stand_in(self, name: str, *, to_build: bool) -> None:
        """Make ``name`` of Debian's packages, which are asked for once."""
        archive = self.folder / ("build.tar" if to_build else "slim.tar")
        if not archive.exists():
            packages = _COMMON + (_TO_BUILD if to_build else ())
            new = archive.with_suffix(".new.tar")
            command = ["mmdebstrap", "--mode=root", "--variant=essential", f"--include={','.join(packages)}"]
            # The places that this machine's own packages come from.
            lists = [*Path("/etc/apt").glob("sources.list"), *Path("/etc/apt/sources.list.d").glob("debian*")]
            done = subprocess.run(
                [*command, SUITE, str(new), *map(str, lists)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise ImpossibleError(f"mmdebstrap: {done.stderr.strip().splitlines()[-1]}")
            new.rename(archive)
        container = self("from", "scratch")
        self("add", "--quiet", container, str(archive), "/")
        if to_build:
            config = self.folder / "pip.conf"
            config.write_text(f"[global]\nno-index = true\nfind-links = {WHEELS_AT}\n")
            self("copy", "--quiet", container, str(config), "/etc/pip.conf")
            config = self.folder / "uv.toml"
            config.write_text(f'no-index = true\nfind-links = ["{WHEELS_AT}"]\n')
            self("copy", "--quiet", container, str(config), "/etc/uv/uv.toml")
        self("commit", "--quiet", container, name)
        self("rm", container)

    def wheels(self, extras: str) -> Path:
        """The folder with all that is needed to build the image, fetched by this machine's own pip."""
        folder = self.folder / "wheels"
        wanted = requirements(extras)
        # pip takes hashes for what it is given by name only; the build checks them.
        pins = self.folder / "pins.txt"
        locks = [(ROOT / name).read_text() for name in ("constraints.txt", "tools/uv.txt")]
        pins.write_text("\n".join(re.sub(r" \\\n.*--hash=\S+", "", lock) for lock in locks))
        # A virtual environment of uv's has no pip.
        python = getattr(sys, "_base_executable", sys.executable)
        command = [python, "-m", "pip", "download", "--quiet", "--dest", str(folder)]
        done = subprocess.run(
            [*command, "--constraint", str(pins), *wanted, "uv"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ImpossibleError(f"pip download: {done.stderr.strip().splitlines()[-1]}")
        return folder

    def build(self, name: str, context: Path, extras: str) -> None:
        """The image of the Dockerfile in ``context``, on what is here under the names in it."""
        self(
            "build",
            "--quiet",
            "--pull-never",
            "--format=docker",
            f"--volume={self.wheels(extras)}:{WHEELS_AT}:ro",
            f"--build-arg=EXTRAS={extras}",
            f"--tag={name}",
            str(context),
        )

    def inspect(self, name: str) -> dict[str, Any]:
        """The image's configuration, as Docker has it."""
        found: dict[str, Any] = json.loads(self("inspect", "--type=image", name))
        return found

    def remove(self) -> None:
        """The store, with all that is in it. The archives and wheels stay."""
        for container in self("containers", "--quiet").split():
            self("umount", container)
        self("rm", "--all")
        self("rmi", "--all", "--force")
        for name in ("storage", "run"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
