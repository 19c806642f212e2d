"""Tables of Delta Lake, by deltalake."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from math import ceil
from typing import Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.lake.address import TableAddress
from amqpgate.pipeline.lake.table import Conflict, NewFile, TableFile, name_of_file

#: The column of its own that says the day, as folders of Delta do.
DAY: Final = "date"
#: Two commits at once are told apart by this application's number.
_APPLICATION: Final = "amqpgate"
#: Features of tables whose files are not simply the table's rows.
_OTHER_ROWS: Final = frozenset({"deletionVectors", "columnMapping"})


class DeltaLake:
    """Tables of Delta Lake, each in a folder of its name."""

    def __init__(self, address: TableAddress) -> None:
        self.address = address
        self._options = _store_options() if address.folder is None else None

    def load(self, name: str) -> DeltaRecords | None:
        """The table as it is now, if there is one."""
        with _explained(self._uri(name)):
            try:
                return DeltaRecords(
                    DeltaTable(self._uri(name), storage_options=self._options),
                    self._uri(name),
                )
            except TableNotFoundError:
                return None

    def create(
        self, name: str, schema: pa.Schema, day_of: str | None, properties: Mapping[str, str]
    ) -> DeltaRecords:
        """A new table, with a part for each day."""
        if self.address.folder is not None:
            self.address.folder.mkdir(parents=True, exist_ok=True)
        columns = schema if day_of is None else schema.append(pa.field(DAY, pa.date32()))
        with _explained(self._uri(name)):
            made = DeltaTable.create(
                self._uri(name),
                columns,
                mode="error",
                partition_by=[] if day_of is None else [DAY],
                configuration=dict(properties),
                storage_options=self._options,
                raise_if_key_not_exists=False,
            )
        return DeltaRecords(made, self._uri(name))

    def _uri(self, name: str) -> str:
        return f"{self.address.place}/{name}"


class DeltaRecords:
    """A table at one version."""

    def __init__(self, table: DeltaTable, place: str) -> None:
        self._table = table
        self._store = _store_at(place)
        self._place = place

    @property
    def schema(self) -> pa.Schema:
        """Its columns, as files that come to it have them: days are in the names of folders."""
        schema = pa.schema(self._table.schema().to_arrow())
        return schema.remove(schema.get_field_index(DAY)) if self._has_days else schema

    @property
    def properties(self) -> Mapping[str, str]:
        """What its maker noted."""
        return self._table.metadata().configuration

    @property
    def _has_days(self) -> bool:
        return self._table.metadata().partition_columns == [DAY]

    def files(self) -> list[TableFile]:
        """Those of its version."""
        if others := _OTHER_ROWS.intersection(self._table.protocol().reader_features or ()):
            raise PipelineError(
                f"{self._place} has {' and '.join(sorted(others))}, which only Delta's own "
                "readers know: have them written anew (REORG TABLE ... APPLY (PURGE))"
            )
        actions = pa.table(self._table.get_add_actions(flatten=True)).to_pylist()
        return [
            TableFile(
                one["path"], one["num_records"] or 0, one["size_bytes"], one.get(f"partition.{DAY}"), one
            )
            for one in sorted(actions, key=lambda one: str(one["path"]))
        ]

    def path_for(self, day: date | None) -> str:
        """Where a new file goes."""
        return name_of_file() if day is None else f"{DAY}={day}/{name_of_file()}"

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file to write."""
        folder = path.rpartition("/")[0]
        if folder and self._place.startswith("/"):
            self._store.create_dir(folder)
        return self._store.open_output_stream(path)

    def open(self, path: str) -> pa.NativeFile:
        """Open a file to read, at any place."""
        return self._store.open_input_file(path)

    def remove(self, path: str) -> None:
        """Take away a file that is of no version."""
        self._store.delete_file(path)

    def address_of(self, file: TableFile) -> str:
        """For whoever reads files by themselves."""
        return f"{self._place}/{file.path}"

    def commit(
        self,
        added: Sequence[NewFile],
        removed: Sequence[TableFile] = (),
        *,
        rearranged: bool = False,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Make the next version."""
        now = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [_add(file, now, not rearranged) for file in added]
        actions += [
            RemoveAction(file.path, not rearranged, now, file.size, _partition(file.day)) for file in removed
        ]
        # Whoever has the same number and comes second is told, whatever both have added.
        following = self._table.version() + 1
        properties = CommitProperties(
            custom_metadata=dict(notes or {}),
            max_commit_retries=0,
            app_transactions=[Transaction(_APPLICATION, following)],
        )
        parts = [DAY] if self._has_days else None
        with _explained(self._place):
            self._table.create_write_transaction(
                actions, "append", self._table.schema(), parts, commit_properties=properties
            )
            self._table.update_incremental()

    def evolve(self, schema: pa.Schema) -> None:
        """Have all columns of this schema."""
        known = self.schema.names
        if missing := [field for field in schema if field.name not in known]:
            fields = Schema.from_arrow(pa.schema(missing)).fields
            with _explained(self._place):
                self._table.alter.add_columns([Field(one.name, one.type, nullable=True) for one in fields])
                self._table.update_incremental()

    def expire(self, before: datetime) -> int:
        """Forget versions that were replaced before that moment, and remove files that no version has."""
        hours = max(0, ceil((datetime.now(UTC) - before).total_seconds() / 3600))
        with _explained(self._place):
            gone = self._table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
            self._table.update_incremental()
            self._table.create_checkpoint()
            self._table.cleanup_metadata()
        return len(gone)


def _add(file: NewFile, now: int, is_change: bool) -> AddAction:
    stats = {
        "numRecords": file.records,
        "minValues": {name: least for name, (least, _) in file.bounds.items()},
        "maxValues": {name: greatest for name, (_, greatest) in file.bounds.items()},
    }
    return AddAction(file.path, file.size, _partition(file.day), now, is_change, json.dumps(stats))


def _partition(day: date | None) -> dict[str, str | None]:
    return {} if day is None else {DAY: str(day)}


def _store_at(place: str) -> FileSystem:
    if place.startswith("/"):
        return SubTreeFileSystem(place, LocalFileSystem())
    store, path = FileSystem.from_uri(place)
    return SubTreeFileSystem(path, store)


def _store_options() -> dict[str, str]:
    """What deltalake does not see in the environment by itself: that a store may be spoken with in clear."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    return {"AWS_ALLOW_HTTP": "true"} if endpoint.startswith("http://") else {}


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except CommitFailedError as error:
        raise Conflict(f"{what} was changed by somebody else") from error
    except (DeltaError, OSError) as error:
        raise PipelineError(f"{what}: {str(error).partition(chr(10))[0]}") from error
