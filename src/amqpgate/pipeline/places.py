"""Where a folder of records is: its files on this machine, or an object store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from amqpgate.pipeline.errors import PipelineError

#: How a path of this machine begins.
LOCAL: Final = "file://"
#: How an address of an object store that is copied from begins.
SCHEME: Final = "s3://"


def is_address(folder: str) -> bool:
    """Whether it is one."""
    return folder.startswith(SCHEME)


def local_files(folder: str) -> list[Path] | None:
    """All files below it, or itself, sorted; without names that begin with ``_`` or ``.``, and what is below
    those. A link to a file is that file, which is there once; one to a folder is left alone: it may lead in
    circles. None of a folder elsewhere. Raises ``PipelineError`` if it is not there."""
    if (root := local_path(folder)) is None:
        return None
    if not root.exists():
        raise PipelineError(f"{folder}: no such file or folder")
    if root.is_file():
        return [root]
    files = sorted(path for path in _below(root) if path.is_file())
    # Those that are none first.
    links = sorted(files, key=Path.is_symlink)
    if not links or not links[-1].is_symlink():
        return files
    return sorted({path.resolve(): path for path in reversed(links)}.values())


def local_path(folder: str) -> Path | None:
    """Where it is on this machine, if it is."""
    parts = urlsplit(folder)
    if parts.scheme not in ("", "file"):
        return None
    return Path(unquote(parts.path) if parts.scheme else folder).absolute()


def local_size(path: str) -> int:
    """Bytes of a file of this machine; none of one that is gone."""
    try:
        return Path(path.removeprefix(LOCAL)).stat().st_size
    except FileNotFoundError:
        return 0


def _refuse(error: OSError) -> None:
    """A folder that cannot be listed: what is in it would be missing. One that is gone is as if it had never
    been."""
    if not isinstance(error, FileNotFoundError):
        raise PipelineError(f"{error.filename} cannot be listed: {error.strerror}") from error


def _below(root: Path) -> Iterator[Path]:
    """Whatever is there and no folder, without what readers pass over."""
    for folder, folders, names in os.walk(root, onerror=_refuse):
        folders[:] = [name for name in folders if name[0] not in "_."]
        yield from (Path(folder, name) for name in names if name[0] not in "_.")
