"""README's commands, links, keys, metrics and paths exist."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path
from urllib.parse import unquote

import click
import pytest
import trio

from amqpgate.cli import main
from amqpgate.config import describe, parse
from amqpgate.gateway.server import Gateway
from amqpgate.policy import PolicySet, Source, build
from tests.unit.telemetry.shipped import metrics_table

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BEGIN, END = "<!-- made by: python -m amqpgate.config -->\n", "<!-- end -->"
METRICS = "<!-- made by: python -m tests.unit.test_readme -->\n", "<!-- end of metrics -->"

PROSE = re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE)
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
#: Commands in console blocks, and whatever stands in backquotes.
COMMANDS = [
    *(
        line[2:]
        for kind, text in BLOCKS
        if kind == "console"
        for line in text.splitlines()
        if line[:2] == "$ "
    ),
    *re.findall(r"`((?:amqpgate|make) [^`]+)`", PROSE),
]


def test_the_table_of_settings_is_that_of_the_code() -> None:
    """Repair it with: python -m tests.unit.test_readme"""
    assert README.partition(BEGIN)[2].partition(END)[0].strip() == describe().strip()


def test_the_table_of_metrics_is_that_of_the_code() -> None:
    """Repair it with: python -m tests.unit.test_readme"""
    assert README.partition(METRICS[0])[2].partition(METRICS[1])[0].strip() == metrics_table().strip()


@pytest.mark.parametrize("command", [text for text in COMMANDS if text.startswith("amqpgate ")])
def test_every_amqpgate_command_exists_with_its_options(command: str) -> None:
    _, verb, *words = shlex.split(command)
    assert verb in main.commands
    found = main.commands[verb]
    words = list(itertools.takewhile(lambda word: word not in ("<", "|"), words))
    alone = not words or words[0].startswith("-")
    if isinstance(found, click.Group) and not (alone and found.invoke_without_command):
        found = found.commands[words[0]]
    known = {name for parameter in found.params for name in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known


def test_the_commands_of_every_verb_are_shown() -> None:
    shown = {shlex.split(text)[1] for text in COMMANDS if text.startswith("amqpgate ")}
    assert shown >= set(main.commands) - {"demo"}
    assert any(text.startswith("make run") for text in COMMANDS)


@pytest.mark.parametrize("command", [text for text in COMMANDS if text.startswith("make ")])
def test_every_make_target_exists(command: str) -> None:
    target = command.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_make_target_that_has_a_description_is_shown() -> None:
    described = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    shown = {text.split()[1] for text in COMMANDS if text.startswith("make ")}
    assert set(described) - {"help"} <= shown


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)]+)\)", PROSE))
def test_every_link_leads_somewhere(target: str) -> None:
    if target.startswith("https://"):
        return
    path, _, anchor = unquote(target).partition("#")
    assert (ROOT / path).exists()
    if anchor:
        headings = re.findall(r"^#+ (.*)$", (ROOT / path or README).read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}


def test_every_key_that_the_prose_names_exists() -> None:
    known = {
        line.split("`")[1].replace("[]", "") for line in describe().splitlines() if line.startswith("| `")
    }
    named = set(re.findall(r"`((?:limits|admin|listeners|upstreams|log)\.[A-Za-z.]+)`", PROSE))
    assert named
    assert named <= known


def test_every_metric_exists(metrics_text: str) -> None:
    named = set(re.findall(r"\bamqpgate_[a-z_]+", PROSE))
    assert len(named) >= 10
    for name in named:
        assert f"\n# TYPE {name} " in f"\n{metrics_text}", name


@pytest.fixture
def metrics_text() -> str:
    settings = parse("listeners: [{name: a, bind: 'localhost:0'}]\nupstreams: [{name: b, host: b}]\n", {})
    gateway = Gateway(settings, PolicySet.empty(), "0")
    try:
        return trio.run(gateway.metrics_text).decode()
    finally:
        gateway.pump.close()


def test_every_admin_path_exists() -> None:
    from amqpgate.admin.http import application

    settings = parse("listeners: [{name: a, bind: 'localhost:0'}]\nupstreams: [{name: b, host: b}]\n", {})
    gateway = Gateway(settings, PolicySet.empty(), "0")
    gateway.pump.close()
    paths = {getattr(route, "path", None) for route in application(gateway, None, over=trio.Event()).routes}
    named = set(re.findall(r"`GET (/[a-z]+)`", PROSE))
    assert named
    assert named <= paths


@pytest.mark.parametrize("text", [text for kind, text in BLOCKS if kind == "yaml" and "listeners:" in text])
def test_examples_of_settings_are_accepted(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("token").write_text("open sesame")
    Path("policies").mkdir()
    assert parse(text, {}).listeners


@pytest.mark.parametrize(
    "text", [text for kind, text in BLOCKS if kind == "yaml" and text.startswith("apiVersion: amqpgate")]
)
def test_examples_of_policies_are_accepted(text: str) -> None:
    accepted = build([Source("README.md", text.encode())])
    assert accepted.policies or accepted.rates or accepted.routes or accepted.traces


def test_every_room_of_the_layout_exists() -> None:
    (layout,) = [text for _, text in BLOCKS if text.startswith("src/amqpgate/\n")]
    rooms = [line.split()[0] for line in layout.splitlines()]
    inside = [line.split()[0] for line in layout.splitlines() if line.startswith("  ")]
    for name in rooms:
        path = ROOT / "src" / "amqpgate" / name if name in inside else ROOT / name
        assert path.is_dir() if name.endswith("/") else path.is_file(), name
    code = {path.name for path in (ROOT / "src" / "amqpgate").iterdir() if (path / "__init__.py").exists()}
    assert code <= {name.rstrip("/") for name in inside}


def test_every_kind_of_example_was_found() -> None:
    """The patterns above find something: none of those tests runs over nothing."""
    assert {kind for kind, _ in BLOCKS} == {"console", "text", "yaml"}
    assert len([text for kind, text in BLOCKS if kind == "yaml"]) >= 4
    assert len(COMMANDS) > 10


if __name__ == "__main__":
    text = README
    for begin, end, table in ((BEGIN, END, describe()), (*METRICS, metrics_table())):
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    (ROOT / "README.md").write_text(text)
