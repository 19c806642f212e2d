"""Where a folder of records is: its files on this machine, or an object store."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from amqpgate.pipeline.errors import PipelineError

#: How an address of an object store that is copied from begins.
SCHEME: Final = "s3://"


def is_address(folder: str) -> bool:
    """Whether it is one."""
    return folder.startswith(SCHEME)


def local_files(folder: str) -> list[Path] | None:
    """All files below it, or itself, sorted; without names that begin with ``_`` or ``.``, and what is below
    those. None of a folder elsewhere. Raises ``PipelineError`` if it is not there."""
    parts = urlsplit(folder)
    if parts.scheme not in ("", "file"):
        return None
    root = Path(unquote(parts.path) if parts.scheme else folder).absolute()
    if not root.exists():
        raise PipelineError(f"{folder}: no such file or folder")
    found = [root] if root.is_file() else (path for path in root.rglob("*") if path.is_file())
    return sorted(path for path in found if all(part[0] not in "_." for part in path.relative_to(root).parts))
