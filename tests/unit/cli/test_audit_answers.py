"""Where the answer of a job goes: what cannot be is told before the job."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from amqpgate.cli import main
from amqpgate.cli.audit import audit

#: Every verb that has --output, with what else it needs.
VERBS: dict[str, tuple[str, ...]] = {
    "anomalies": (),
    "blast-radius": ("--queue", "q"),
    "denials": (),
    "drift": ("--before", "2026-11-01", "--after", "2026-11-02"),
    "export": (),
    "granted": ("--policies", "policies"),
    "preflight": ("--target", "4.3"),
    "recommend": (),
    "replay": ("--policies", "policies"),
    "report": (),
    "topology": (),
    "unused": (),
    "usage": (),
}

POLICY = """\
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: p}
spec: {subjects: [{user: alice}], rules: [{id: all, effect: allow, operations: [basic.publish]}]}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with policies and without records."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "p.yaml").write_text(POLICY)
    return tmp_path


def run(verb: str, *args: str) -> Result:
    # Whoever looks for the records first says that there are none.
    return CliRunner().invoke(main, ["audit", verb, "no-records", *VERBS[verb], *args])


def test_they_are_all_of_them() -> None:
    assert VERBS.keys() == {
        name
        for name, command in audit.commands.items()
        if any(parameter.name == "output" for parameter in command.params)
    }


@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_that_is_not_there_is_told_before_the_job(verb: str) -> None:
    result = run(verb, "-o", "none/answer")
    assert (result.exit_code, result.stderr) == (
        2,
        "amqpgate: --output none/answer: there is no folder none\n",
    )


@pytest.mark.parametrize(
    ("path", "why"), [("policies", "is a folder"), ("/dev/null", "is not a file"), ("file/x", "there is no")]
)
def test_what_is_no_place_for_a_file(path: str, why: str, folder: Path) -> None:
    (folder / "file").touch()
    result = run("usage", "-o", path, "--format", "parquet")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"amqpgate: --output {path}: {why}")


def test_the_state_of_recommend() -> None:
    result = run("recommend", "--state", "none/seen.parquet")
    assert (result.exit_code, result.stderr) == (
        2,
        "amqpgate: --state none/seen.parquet: there is no folder none\n",
    )


def test_definitions_are_not_looked_into_either(folder: Path) -> None:
    (folder / "definitions.json").write_text("{")
    command = ["audit", "preflight", "definitions.json", *VERBS["preflight"], "-o", "none/x"]
    result = CliRunner().invoke(main, command)
    assert (result.exit_code, result.stderr) == (2, "amqpgate: --output none/x: there is no folder none\n")


def test_follow_makes_its_folder(folder: Path) -> None:
    result = run("denials", "--follow", "--state", "state", "-o", "new/alerts")
    assert result.stderr == "amqpgate: no-records: no such file or folder\n"


@pytest.mark.parametrize("rows", [("--to", "delta:answers"), ("--format", "csv")])
@pytest.mark.parametrize(
    ("verb", "options", "what"),
    [
        ("topology", ("--graph", "html"), "--graph html"),
        ("granted", ("--diff",), "a diff"),
        ("recommend", (), "what is recommended"),
    ],
)
def test_a_text_is_no_table(verb: str, options: tuple[str, ...], what: str, rows: tuple[str, ...]) -> None:
    result = run(verb, *options, *rows)
    assert (result.exit_code, result.stderr) == (
        2,
        f"amqpgate: {what} is a text and no rows: leave out --format and --to\n",
    )


@pytest.mark.parametrize("verb", ["denials", "topology", "report"])
def test_a_dash_is_standard_output(verb: str, folder: Path) -> None:
    pytest.importorskip("duckdb")
    (folder / "records").mkdir()
    (folder / "records" / "events.jsonl").touch()
    command = ["audit", verb, "records", "--engine", "local"]
    results = [CliRunner().invoke(main, [*command, *more]) for more in ((), ("-o", "-"))]
    assert results[0].stdout == results[1].stdout != ""
    assert not (folder / "-").exists()
