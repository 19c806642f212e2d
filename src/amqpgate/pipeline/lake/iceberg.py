"""Tables of Apache Iceberg, by pyiceberg, in any catalogue that it knows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from operator import attrgetter
from typing import Final
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.io.pyarrow import parquet_file_to_data_file, schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, TableProperties
from pyiceberg.transforms import DayTransform

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.lake.address import CATALOG, TableAddress
from amqpgate.pipeline.lake.table import Conflict, NewFile, TableFile, name_of_file

#: Of a place without a catalogue of its own.
_NAMESPACE: Final = "audit"
_DAY: Final = "day"
_EPOCH: Final = date(1970, 1, 1)
#: Who has written a file knows its fields by number.
_ID: Final = b"PARQUET:field_id"


class IcebergLake:
    """The tables of one namespace."""

    def __init__(self, address: TableAddress) -> None:
        self.address = address
        self._namespace = _NAMESPACE if address.catalog is None else address.place
        with _explained(str(address)):
            self._catalog = _catalog(address)

    def load(self, name: str) -> IcebergRecords | None:
        """The table as it is now, if there is one."""
        with _explained(f"{self.address}"):
            try:
                return IcebergRecords(self._catalog.load_table(f"{self._namespace}.{name}"))
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def create(
        self, name: str, schema: pa.Schema, day_of: str | None, properties: Mapping[str, str]
    ) -> IcebergRecords:
        """A new table, with a part for each day of that column."""
        with _explained(f"{self.address}"):
            self._catalog.create_namespace_if_not_exists(self._namespace)
            with self._catalog.create_table_transaction(
                f"{self._namespace}.{name}", schema, properties=dict(properties)
            ) as making:
                if day_of is not None:
                    with making.update_spec() as parts:
                        parts.add_field(day_of, DayTransform(), _DAY)
        made = self.load(name)
        assert made is not None
        return made


class IcebergRecords:
    """A table at one snapshot."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def schema(self) -> pa.Schema:
        """Its columns, with their numbers."""
        return pa.schema(
            [
                pa.field(field.name, _small(field.type), field.nullable, {_ID: field.metadata[_ID]})
                for field in schema_to_pyarrow(self._table.schema(), include_field_ids=True)
            ]
        )

    @property
    def properties(self) -> Mapping[str, str]:
        """What its maker noted."""
        return self._table.properties

    def files(self) -> list[TableFile]:
        """Those of its snapshot."""
        found = []
        with _explained(self._table.location()):
            for task in self._table.scan().plan_files():
                if task.delete_files:
                    raise PipelineError(
                        f"{self._table.location()} has rows that were deleted beside their files: "
                        "have those written anew (rewrite_data_files)"
                    )
                file = task.file
                found.append(
                    TableFile(
                        file.file_path, file.record_count, file.file_size_in_bytes, self._day(file), file
                    )
                )
        return sorted(found, key=attrgetter("path"))

    def _day(self, file: DataFile) -> date | None:
        """Of a part by days; a table of others has its own."""
        spec = self._table.specs()[file.spec_id]
        if len(spec.fields) != 1 or not isinstance(spec.fields[0].transform, DayTransform):
            return None
        return _EPOCH + timedelta(days=file.partition[0])

    def path_for(self, day: date | None) -> str:
        """Where a new file goes."""
        folder = f"{self._table.location().rstrip('/')}/data"
        return f"{folder}/{name_of_file()}" if day is None else f"{folder}/{_DAY}={day}/{name_of_file()}"

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file to write."""
        return self._table.io.new_output(path).create()

    def open(self, path: str) -> pa.NativeFile:
        """Open a file to read, at any place."""
        return self._table.io.new_input(path).open()

    def remove(self, path: str) -> None:
        """Take away a file that is of no snapshot."""
        self._table.io.delete(path)

    def address_of(self, file: TableFile) -> str:
        """For whoever reads files by themselves."""
        return file.path

    def commit(
        self,
        added: Sequence[NewFile],
        removed: Sequence[TableFile] = (),
        *,
        rearranged: bool = False,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Make the next snapshot."""
        with _explained(self._table.location()):
            # Its own second try would not look again at what the other has added.
            self._table.metadata.properties[TableProperties.COMMIT_NUM_RETRIES] = "0"
            change = self._table.transaction()
            update = change.update_snapshot(dict(notes or {}))
            with update.overwrite() if removed else update.fast_append() as snapshot:
                for new in added:
                    snapshot.append_data_file(
                        parquet_file_to_data_file(self._table.io, self._table.metadata, new.path)
                    )
                for old in removed:
                    assert isinstance(old.known, DataFile)
                    snapshot.delete_data_file(old.known)
            self._table = change.commit_transaction()

    def evolve(self, schema: pa.Schema) -> None:
        """Have all columns of this schema."""
        known = self.schema.names
        if missing := [field.with_nullable(True) for field in schema if field.name not in known]:
            with _explained(self._table.location()), self._table.update_schema() as update:
                update.union_by_name(pa.schema(missing))

    def expire(self, before: datetime) -> int:
        """Forget snapshots that were made before that moment, and remove files that no snapshot has."""
        with _explained(self._table.location()):
            self._table.maintenance.expire_snapshots().older_than(before).commit()
            self._table.refresh()
            return self._sweep(before)

    def _sweep(self, before: datetime) -> int:
        """pyiceberg leaves the files of snapshots. What is younger may be a writer's that goes on."""
        named = self._named()
        store, root = _store_of(self._table)
        gone = 0
        for folder in ("data", "metadata"):
            below = fs.FileSelector(f"{root}/{folder}", recursive=True, allow_not_found=True)
            for info in store.get_file_info(below):
                if info.is_file and info.path not in named and info.mtime < before:
                    store.delete_file(info.path)
                    gone += 1
        return gone

    def _named(self) -> set[str]:
        """All files that any snapshot has, by their paths in the store."""
        metadata = self._table.metadata
        found = {self._table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
        found |= {one.statistics_path for one in metadata.statistics}
        for snapshot in metadata.snapshots:
            found.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(self._table.io):
                if manifest.manifest_path not in found:
                    found.add(manifest.manifest_path)
                    entries = manifest.fetch_manifest_entry(self._table.io, discard_deleted=True)
                    found |= {entry.data_file.file_path for entry in entries}
        return {_key(path) for path in found}


def _catalog(address: TableAddress) -> Catalog:
    if address.catalog is not None:
        return load_catalog(address.catalog, **_store_properties())
    folder = address.folder
    assert folder is not None
    folder.mkdir(parents=True, exist_ok=True)
    return load_catalog(
        "amqpgate", type="sql", uri=f"sqlite:///{folder / CATALOG}", warehouse=f"file://{folder}"
    )


def _store_properties() -> dict[str, str]:
    """What AWS's own tools take from the environment, and pyiceberg does not."""
    said = {
        "s3.endpoint": os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"),
        "s3.region": os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
    }
    return {name: value for name, value in said.items() if value}


def _store_of(table: Table) -> tuple[fs.FileSystem, str]:
    """Where its files are."""
    location = urlsplit(table.location())
    store: fs.FileSystem = table.io.fs_by_scheme(location.scheme, location.netloc)  # type: ignore[attr-defined]
    return store, _key(table.location().rstrip("/"))


def _key(path: str) -> str:
    parts = urlsplit(path)
    return f"{parts.netloc}{parts.path}" if parts.netloc else parts.path


def _small(kind: pa.DataType) -> pa.DataType:
    """Texts and bytes as records have them."""
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except CommitFailedException as error:
        raise Conflict(f"{what} was changed by somebody else") from error
    except PipelineError:
        raise
    except Exception as error:
        # Catalogues raise errors of many libraries, such as those of HTTP and of databases.
        raise PipelineError(f"{what}: {str(error).partition(chr(10))[0]}") from error
