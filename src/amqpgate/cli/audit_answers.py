"""Where the answer of a job goes: to standard output, into a file, or into a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from amqpgate.cli.failures import WRONG, Failure

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from amqpgate.cli.audit_options import Options

#: A form of text.
Text = Literal["table", "csv", "json"]


def put_frame(options: Options, frame: DataFrame, zone: tzinfo = UTC, name: str | None = None) -> None:
    """All rows, where and as the options say. ``name`` is the table's, if not the verb's own."""
    if _is_binary(options):
        from amqpgate.pipeline.frames import reader_of

        with reader_of(frame) as rows:
            _put_binary(options, rows, name)
        return
    from amqpgate.cli.audit_output import replaced, write

    with replaced(options.output) as out:
        write(frame, text_form(options), out, zone)


def put_rows(options: Options, rows: Iterable[Sequence[object]], names: Sequence[str]) -> None:
    """The same for rows that are here already."""
    if _is_binary(options):
        from amqpgate.pipeline.answers import table_of

        _put_binary(options, table_of(names, rows).to_reader(), None)
        return
    from amqpgate.cli.audit_output import replaced, write_rows

    with replaced(options.output) as out:
        write_rows(names, rows, text_form(options), out)


def check_answer(options: Options, *, follow: bool = False) -> None:
    """Raise ``Failure`` where the options say two things, or half of one, or a file that cannot be written.

    ``follow``: the output is a folder, which is made.
    """
    if options.to is not None:
        from amqpgate.pipeline.lake.address import address_of

        if options.output is not None or options.format != "table":
            raise Failure("amqpgate: --to is a table: leave out --output and --format", WRONG)
        if address_of(options.to) is None:
            raise Failure(
                f"amqpgate: --to {options.to} is no table: delta:FOLDER, delta:s3://BUCKET/PREFIX, "
                "iceberg:FOLDER or iceberg://CATALOG/NAMESPACE; for a file there is --format parquet",
                WRONG,
            )
    elif options.format == "parquet" and options.output is None:
        raise Failure("amqpgate: --format parquet needs --output FILE", WRONG)
    if options.output is not None and not follow:
        check_file("--output", Path(options.output))


def check_text(options: Options, what: str) -> None:
    """Raise ``Failure`` where the options ask for rows of an answer that has none: it is one text."""
    if options.to is not None or options.format != "table":
        raise Failure(f"amqpgate: {what} is a text and no rows: leave out --format and --to", WRONG)


def check_file(option: str, path: Path) -> None:
    """Raise ``Failure`` where no file can be written: before hours of work."""
    if not path.parent.is_dir():
        why = f"there is no folder {path.parent}"
    elif path.is_dir():
        why = "is a folder"
    elif path.exists() and not path.is_file():
        # It would be replaced.
        why = "is not a file"
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        why = f"nothing can be written into {path.parent}"
    else:
        return
    raise Failure(f"amqpgate: {option} {path}: {why}", WRONG)


def text_form(options: Options) -> Text:
    """That of text."""
    assert options.format != "parquet"
    return options.format


def answer_name(name: str | None = None) -> str:
    """The table of the verb that runs."""
    return (name or click.get_current_context().info_name or "answer").replace("-", "_")


def _is_binary(options: Options) -> bool:
    return options.to is not None or options.format == "parquet"


def _put_binary(options: Options, rows: pyarrow.RecordBatchReader, name: str | None) -> None:
    if options.to is not None:
        from amqpgate.pipeline.lake.address import address_of
        from amqpgate.pipeline.lake.answers import replace
        from amqpgate.pipeline.lake.opening import open_lake

        address = address_of(options.to)
        assert address is not None
        replace(open_lake(address), answer_name(name), rows)
        return
    from amqpgate.pipeline.answers import write_parquet

    assert options.output is not None
    path = Path(options.output)
    unfinished = path.with_name(f"_{path.name}.{os.getpid()}")
    try:
        write_parquet(rows, unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
