"""The recipes of CONTRIBUTING.md that add to what all users see: what is done here is what they say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import amqpgate
from amqpgate import cli

SOURCE = Path(amqpgate.__file__).parent
VERB = '''"""``amqpgate greet``: say a word."""

import click


@click.command(short_help="Say a word.")
def greet() -> None:
    """Say a word."""
    click.echo("hello")
'''


def test_new_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file, one line."""
    (tmp_path / "greet.py").write_text(VERB)
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    assert CliRunner().invoke(cli.main, ["greet"]).exit_code == 2
    monkeypatch.setitem(cli.VERBS, "greet", "greet")
    try:
        done = CliRunner().invoke(cli.main, ["greet"])
        assert (done.exit_code, done.output) == (0, "hello\n"), done.output
        assert "Say a word." in CliRunner().invoke(cli.main, ["--help"]).output
    finally:
        del cli.main.commands["greet"]
        del sys.modules["amqpgate.cli.greet"]


#: What a new column of all records takes: file, the text before which it goes, and the lines.
COLUMN = (
    (
        "records.py",
        "\n\n@frozen(kw_only=True, field_transformer=later_last)\nclass Record:",
        "\n    tenant: str | None = None",
    ),
    (
        "records.py",
        "\n\n@frozen(kw_only=True, field_transformer=later_last)\nclass Event(Record):",
        "\n    tenant: str | None = attrs.field(\n"
        '        default=None, metadata=_column("string", "of the user", null=True, later=True)\n'
        "    )",
    ),
    (
        "gateway/observers/audit/columns.py",
        "\n        amqp_version=version,",
        "\n        tenant='t-' + str(principal.user),",
    ),
)
#: Run with the changed source: writes both sorts, in both formats, and prints what readers find.
WRITE = """
import sys
from pathlib import Path
import pyarrow.parquet as pq
from amqpgate.gateway.observers.audit.columns import origin_of
from amqpgate.policy import Principal
from amqpgate.telemetry.audit.lines import lines_of
from amqpgate.telemetry.audit.parquet import ParquetSink
from amqpgate.telemetry.audit.pieces import Pieces, Waiting
from amqpgate.telemetry.audit.rows import AuditRow, Sums

origin = origin_of("s", Principal(user="bob", vhost="/"))
sums = Sums()
sums.add(AuditRow(origin=origin, operation="basic.publish"), 1, 1, 5, 1.0, 2.0)
sums.close(0.0, 10.0)
pieces = Pieces("gw", "0123456789ab")
made = [*pieces.of_usage(sums), pieces.of_events([Waiting(origin, "session.open", 1.0, {}, 1)])]
folder = Path(sys.argv[1])
sink = ParquetSink(folder, "gw", "0123456789ab", roll_records=1, roll_interval=1)
sink.start()
for piece in made:
    sink.write(piece)
sink.close()
for path in sorted(folder.glob("*/date=*/*.parquet")):
    table = pq.ParquetFile(path).read()
    print(table["tenant"].to_pylist())
for piece in made:
    print([b'"tenant":"t-bob"' in line for line in lines_of(piece)])
"""


def test_new_column(tmp_path: Path) -> None:
    """Two files. That readers get null of older files is in `pipeline/test_reading.py`."""
    package = tmp_path / "amqpgate"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for file, before, lines in COLUMN:
        text = (package / file).read_text()
        assert text.count(before) == 1, f"{file} is not as the recipe has it"
        (package / file).write_text(text.replace(before, lines + before))
    folder = tmp_path / "audit"
    folder.mkdir()
    told = subprocess.run(
        [sys.executable, "-c", WRITE, str(folder)],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    column = "['t-bob']\n"
    assert told.stdout == column * 2 + "[True]\n" * 2
