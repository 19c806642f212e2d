"""What both formats do for the rest: a table is a version, and a version is a list of Parquet files.

Files are written first, under names that nobody knows, and one commit makes them the table's. A commit
that meets another since the version was looked at is a ``Conflict``, and changes nothing: whoever commits
looks again. So a process that dies leaves files that no version names, which ``expire`` removes later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Final, Protocol
from uuid import uuid4

import attrs
import pyarrow as pa

from amqpgate.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from amqpgate.pipeline.lake.address import TableAddress

#: The property of a table that has the version of its records.
VERSION: Final = "amqpgate.schema-version"


class Conflict(PipelineError):
    """Somebody else changed the table since it was looked at."""


@attrs.frozen(eq=False)
class TableFile:
    """A file of a version. ``known`` is what the format's own library has of it."""

    path: str
    records: int
    size: int
    day: date | None
    known: object = None


@attrs.frozen(eq=False)
class NewFile:
    """A file that was written and is of no version yet; ``bounds`` are the least and the greatest values of
    some columns."""

    path: str
    records: int
    size: int
    day: date | None
    bounds: Mapping[str, tuple[str, str]] = attrs.field(factory=dict)


class LakeTable(Protocol):
    """A table at the version of when it was loaded."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns, as files that come to it have them."""

    @property
    def properties(self) -> Mapping[str, str]:
        """What its maker noted."""

    def files(self) -> list[TableFile]:
        """Those of its version. Raises ``PipelineError`` where some of their rows do not count any more."""

    def path_for(self, day: date | None) -> str:
        """Where a new file goes."""

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file to write."""

    def open(self, path: str) -> pa.NativeFile:
        """Open a file to read, at any place."""

    def address_of(self, file: TableFile) -> str:
        """For whoever reads files by themselves."""

    def remove(self, path: str) -> None:
        """Take away a file that is of no version."""

    def commit(
        self,
        added: Sequence[NewFile],
        removed: Sequence[TableFile] = (),
        *,
        rearranged: bool = False,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Make the next version, with notes for who reads the table's history.

        ``rearranged``: it has the same rows in other files. Raises ``Conflict``.
        """

    def evolve(self, schema: pa.Schema) -> None:
        """Have all columns of this schema: those that come are null in older rows."""

    def expire(self, before: datetime) -> int:
        """Forget versions that were replaced before that moment, and remove files that no version has: how
        many."""


class Lake(Protocol):
    """A place with tables."""

    @property
    def address(self) -> TableAddress:
        """As it is written."""

    def load(self, name: str) -> LakeTable | None:
        """The table as it is now, if there is one."""

    def create(
        self, name: str, schema: pa.Schema, day_of: str | None, properties: Mapping[str, str]
    ) -> LakeTable:
        """A new table, with a part for each day of that column."""


def name_of_file() -> str:
    """One that no file has."""
    return f"{uuid4().hex}.parquet"
