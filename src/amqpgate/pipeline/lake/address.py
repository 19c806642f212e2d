"""Where tables of an open format are, as people write it.

``delta:FOLDER``, ``delta:s3://BUCKET/PREFIX``
    Tables of Delta Lake, each in a folder of its own name.
``iceberg:FOLDER``
    Tables of Iceberg, with a catalogue in SQLite beside them (``catalog.db``).
``iceberg://CATALOG/NAMESPACE``
    Tables of a catalogue that pyiceberg's own settings describe: REST, Glue, SQL, Hive.

A plain folder is taken for what is in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.pipeline.errors import PipelineError

Format: TypeAlias = Literal["delta", "iceberg"]

#: What a folder of Iceberg's has that any reader finds it by.
CATALOG: Final = "catalog.db"
_LOG: Final = "_delta_log"
_S3: Final = "s3://"


@attrs.frozen
class TableAddress:
    """A place with tables: a folder, a prefix of an object store, or a namespace of a catalogue."""

    format: Format
    place: str
    #: Of Iceberg: the catalogue's name in pyiceberg's settings. None: it is beside the tables.
    catalog: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.format}:{self.place}"
            if self.catalog is None
            else f"iceberg://{self.catalog}/{self.place}"
        )

    @property
    def folder(self) -> Path | None:
        """That of this machine."""
        return None if self.catalog is not None or self.place.startswith(_S3) else Path(self.place)


def address_of(text: str) -> TableAddress | None:
    """What somebody wrote; None of other folders. Raises ``PipelineError`` for half an address."""
    if text.startswith("delta:"):
        return TableAddress("delta", _place(text, text.removeprefix("delta:")))
    if text.startswith("iceberg://"):
        catalog, _, namespace = text.removeprefix("iceberg://").partition("/")
        if not catalog or not namespace or "/" in namespace:
            raise PipelineError(f"{text} is not like iceberg://CATALOG/NAMESPACE")
        return TableAddress("iceberg", namespace, catalog)
    if text.startswith("iceberg:"):
        if (place := _place(text, text.removeprefix("iceberg:"))).startswith(_S3):
            raise PipelineError(
                f"{text}: tables of Iceberg in an object store need a catalogue, iceberg://CATALOG/NAMESPACE"
            )
        return TableAddress("iceberg", place)
    return _found_in(text)


def _place(text: str, place: str) -> str:
    if place.startswith(_S3):
        parts = place.removeprefix(_S3).rstrip("/").split("/")
        if {"", ".", ".."}.intersection(parts) or "@" in place:
            raise PipelineError("delta:s3://...: expected delta:s3://BUCKET/PREFIX")
        return _S3 + "/".join(parts)
    if not place or "://" in place.removeprefix("file://"):
        raise PipelineError(f"{text} names no folder")
    return str(Path(place.removeprefix("file://")).absolute())


def _found_in(folder: str) -> TableAddress | None:
    if "://" in folder.removeprefix("file://"):
        return None
    root = Path(folder.removeprefix("file://")).absolute()
    if (root / CATALOG).is_file():
        return TableAddress("iceberg", str(root))
    if any((root / name / _LOG).is_dir() for name in ("events", "usage")):
        return TableAddress("delta", str(root))
    return None
