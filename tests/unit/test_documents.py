"""What README.md and docs/ say exists: commands, links, keys, metrics, paths; their examples are accepted."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from pathlib import Path
from urllib.parse import unquote

import attrs
import click
import pytest
import trio
import yaml
from click.testing import CliRunner

from amqpgate.admin.application import application
from amqpgate.admin.http import endpoints_of
from amqpgate.admin.paths import Path as AdminPath
from amqpgate.cli import VERBS, main
from amqpgate.cli.audit_metrics import MetricsFile
from amqpgate.cli.audit_told import RunFacts
from amqpgate.config import describe, parse
from amqpgate.gateway.server import assembly
from amqpgate.kubernetes.metrics import OperatorMetrics
from amqpgate.operator.single import SingleGateway
from amqpgate.policy import PolicySet, Source, build
from tests.unit.telemetry.shipped import gateway, metrics_table

ROOT = Path(__file__).parents[2]
CONFIGURATION = ROOT / "docs/configuration.md"
OBSERVABILITY = ROOT / "docs/observability.md"
ADMIN = ROOT / "docs/admin-api.md"
BEGIN, END = "<!-- made by: python -m amqpgate.config -->\n", "<!-- end -->"
PATHS = "<!-- made by: python -m tests.unit.test_documents -->\n", "<!-- end of paths -->"
METRICS = "<!-- made by: python -m tests.unit.test_documents -->\n", "<!-- end of metrics -->"
AT_HOME = re.compile("^https://github.com/amqpgate/amqpgate/(?:blob|raw)/main/")
_FENCE = re.compile(r"^([ ]*)```(\w*)\n(.*?)^[ ]*```$", re.DOTALL | re.MULTILINE)


@attrs.frozen
class Document:
    """One file of Markdown, cut into prose and blocks."""

    path: Path
    text: str
    prose: str
    #: Language and text of each fenced block.
    blocks: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, path: Path) -> Document:
        text = path.read_text()
        blocks = tuple(
            (kind, re.sub(f"^{indent}", "", body, flags=re.MULTILINE))
            for indent, kind, body in _FENCE.findall(text)
        )
        return cls(path, text, _FENCE.sub("", text), blocks)

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def anchors(self) -> set[str]:
        """Those that GitHub and the site make of the headings, and those that are written out."""
        headings = re.findall(r"^#+ (.*)$", self.prose, re.MULTILINE)
        made = {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}
        return made | set(re.findall(r'<a id="([^"]+)">', self.prose))

    @property
    def links(self) -> list[str]:
        """Targets, of images too; a link in backquotes is none. README.md's are absolute, for PyPI."""
        written = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", self.prose))
        return [AT_HOME.sub("", target) for target in written] if self.name == "README.md" else written


README = Document.read(ROOT / "README.md")
DOCUMENTS = [README, *map(Document.read, sorted((ROOT / "docs").glob("**/*.md")))]
#: All that stands beside them, too, has links that lead somewhere.
LINKING = [
    *DOCUMENTS,
    *(
        Document.read(path)
        for path in sorted(
            [
                *ROOT.glob("*.md"),
                *(ROOT / "policies").glob("*.md"),
                *(ROOT / "spec").glob("**/*.md"),
                *(ROOT / "tests").glob("**/*.md"),
            ]
        )
        if path != README.path
    ),
]
PROSE = "\n".join(document.prose for document in DOCUMENTS)
BLOCKS = [block for document in DOCUMENTS for block in document.blocks]
YAML = [text for kind, text in BLOCKS if kind == "yaml"]
SETTINGS = [text for text in YAML if re.search("^listeners:", text, re.MULTILINE)]
DOCUMENTS_OF_POLICIES = [text for text in YAML if re.search("^apiVersion: amqpgate", text, re.MULTILINE)]
POLICIES = [text for text in DOCUMENTS_OF_POLICIES if "\nkind: PolicyTest\n" not in text]
#: Settings that are shown in part: they are accepted with what a file needs beside them.
PARTS = [
    text for text in YAML if re.match("(audit|upstreams|admin|tracing|otlp|metrics|limits|identity):", text)
]
#: What others read, and the test that has them read it.
ELSEWHERE = {
    "# Chart.yaml": "here",
    "# values.yaml": "tests/unit/chart/test_shown_values.py",
    "# gateway.yaml": "tests/unit/chart/test_shown_values.py",
    "# For prometheus-adapter:": "here",
    "rule_files:": "here",
    "# move.yaml": "tests/unit/cli/test_move.py",
    "# audit-alerts.yaml": "tests/unit/cli/test_audit_told.py",
    "# prices.yaml": "tests/unit/pipeline/jobs/test_prices.py",
    "apiVersion: apps/v1": "tests/unit/inject/test_manifests.py",
    "initContainers:": "tests/unit/inject/test_manifests.py",
}
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


def table(document: Path, begin: str, end: str) -> str:
    """What stands between two marks, which are there once."""
    text = document.read_text()
    assert text.count(begin) == 1
    return text.partition(begin)[2].partition(end)[0].strip()


def admin_paths() -> list[AdminPath]:
    """Those of the admin interface that are for programs."""
    settings = parse("listeners: [{name: a, bind: 'localhost:0'}]\nupstreams: [{name: b, host: b}]\n", {})
    gateway = assembly.build(settings, PolicySet.empty(), "0")
    gateway.pump.close()
    subject = SingleGateway(gateway)
    routes = application(subject, endpoints_of(subject), None, over=trio.Event()).routes
    found = [route for route in routes if isinstance(route, AdminPath)]
    return [route for route in found if route.path != "/" and not route.path.startswith("/page/")]


def paths_table() -> str:
    """Every path, what it may be asked with, and what it is, as ``docs/admin-api.md`` has them."""
    rows = []
    for route in sorted(admin_paths(), key=lambda route: (route.path, route.method)):
        properties = (route.body or {}).get("properties", {})
        assert isinstance(properties, dict)
        keys = [*(one.name for one in route.parameters), *properties]
        shown = ", ".join(f"`{key}`" for key in keys)
        rows.append(f"| `{route.method} {route.path}` | {shown} | {route.about} |")
    return "\n".join(["| path | keys | |", "|---|---|---|", *rows])


def test_the_readme_is_read_in_minutes_and_leads_to_every_page() -> None:
    assert len(README.text.splitlines()) <= 150
    reached = {target.partition("#")[0] for target in README.links}
    assert {document.name for document in DOCUMENTS} - {"README.md"} <= reached


def test_the_table_of_settings_is_that_of_the_code() -> None:
    """Repair it with: python -m tests.unit.test_documents"""
    assert table(CONFIGURATION, BEGIN, END) == describe().strip()


def test_the_table_of_metrics_is_that_of_the_code() -> None:
    """Repair it with: python -m tests.unit.test_documents"""
    assert table(OBSERVABILITY, *METRICS) == metrics_table().strip()


@pytest.mark.parametrize("command", [text for text in COMMANDS if text.startswith("amqpgate ")])
def test_every_amqpgate_command_exists_with_its_options(command: str) -> None:
    _, verb, *words = shlex.split(command)
    found = main.get_command(click.Context(main), verb)
    assert found is not None
    words = list(itertools.takewhile(lambda word: word not in ("<", "|"), words))
    alone = not words or words[0].startswith("-")
    if isinstance(found, click.Group) and not (alone and found.invoke_without_command):
        found = found.commands[words[0]]
    known = {name for parameter in found.params for name in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known


def test_the_commands_of_every_verb_are_shown() -> None:
    shown = {shlex.split(text)[1] for text in COMMANDS if text.startswith("amqpgate ")}
    assert shown >= set(VERBS) - {"demo"}
    assert any(text.startswith("make run") for text in COMMANDS)


@pytest.mark.parametrize("command", [text for text in COMMANDS if text.startswith("make ")])
def test_every_make_target_exists(command: str) -> None:
    target = command.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_make_target_that_has_a_description_is_shown() -> None:
    described = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    shown = {text.split()[1] for text in COMMANDS if text.startswith("make ")}
    assert set(described) - {"help"} <= shown


@pytest.mark.parametrize(
    ("document", "target"),
    [
        pytest.param(document, target, id=f"{document.name}: {target}")
        for document in LINKING
        for target in document.links
    ],
)
def test_every_link_leads_somewhere(document: Document, target: str) -> None:
    if target.startswith("https://"):
        return
    path, _, anchor = unquote(target).partition("#")
    found = document.path.parent / path if path else document.path
    assert found.exists()
    assert found.resolve().is_relative_to(ROOT)
    if anchor:
        assert found.suffix == ".md"
        assert anchor in Document.read(found).anchors


def test_every_file_that_the_prose_names_exists() -> None:
    """By the end of its path: `session/session.py`, `test_versions.py`."""
    there = [str(path) for folder in ("src", "tests", "tools") for path in (ROOT / folder).glob("**/*.p*")]
    named = {
        (document.name, name)
        for document in LINKING
        for name in re.findall(r"`([a-z_0-9/.]+\.(?:py|pyx|pxi))`", document.prose)
    }
    assert len(named) > 50
    assert not [found for found in named if not any(path.endswith(f"/{found[1]}") for path in there)]


def test_the_site_leads_to_every_page() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = re.findall(r"(\S+\.md)$", nav, re.MULTILINE)
    assert len(named) == len(set(named))
    pages = {document.name.removeprefix("docs/") for document in DOCUMENTS} - {"README.md"}
    assert pages <= set(named)
    assert all((ROOT / name).is_file() for name in set(named) - pages - {"index.md"})


def test_no_anchor_is_ambiguous() -> None:
    for document in DOCUMENTS:
        headings = re.findall(r"^#+ (.*)$", document.prose, re.MULTILINE)
        assert len(headings) == len({text.lower() for text in headings}), document.name
        assert headings
        assert re.findall("^# ", document.prose, re.MULTILINE) == ["# "], document.name


def test_the_table_of_paths_is_that_of_the_code() -> None:
    """Repair it with: python -m tests.unit.test_documents"""
    assert table(ADMIN, *PATHS) == paths_table().strip()


def test_every_key_that_the_prose_names_exists() -> None:
    known = {
        line.split("`")[1].replace("[]", "") for line in describe().splitlines() if line.startswith("| `")
    }
    named = set(re.findall(r"`((?:limits|admin|listeners|upstreams|log)\.[A-Za-z.]+)`", PROSE))
    assert named
    assert named <= known


def test_every_metric_exists(metrics_text: str, tmp_path: Path) -> None:
    facts = RunFacts("usage", "audit")
    facts.has_ended(None)
    MetricsFile(tmp_path / "job").ends(facts)
    there = metrics_text + (tmp_path / "job").read_text() + OperatorMetrics().text().decode()
    named = set(re.findall(r"\bamqpgate_[a-z_]+", PROSE))
    assert len(named) >= 10
    for name in named:
        assert f"\n# TYPE {name} " in f"\n{there}", name


@pytest.fixture
def metrics_text() -> str:
    with gateway() as made:
        return made.metrics.text().decode()


def test_every_admin_path_exists() -> None:
    paths = {route.path for route in admin_paths()}
    named = set(re.findall(r"`GET (/[a-z]+)`", PROSE))
    assert named
    assert named <= paths


@pytest.mark.parametrize("text", SETTINGS)
def test_examples_of_settings_are_accepted(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("token").write_text("open sesame")
    Path("policies").mkdir()
    assert parse(text, {}).listeners


@pytest.mark.parametrize("text", PARTS)
def test_parts_of_settings_are_accepted(text: str, tmp_path: Path) -> None:
    text = text.replace("/var/lib/amqpgate/audit", str(tmp_path))
    rest = "listeners: [{name: a, bind: 'localhost:0'}]\n"
    if not text.startswith("upstreams:"):
        rest += "upstreams: [{name: b, host: b}]\n"
    assert parse(f"{text}\n{rest}", {"SEARCH_PASSWORD": "x", "EVENTS_PASSWORD": "x"}).listeners


@pytest.mark.parametrize("text", POLICIES)
def test_examples_of_policies_are_accepted(text: str) -> None:
    accepted = build([Source("example.yaml", text.encode())])
    assert accepted.documents


def test_the_policy_of_the_tutorial_passes_its_own_test(tmp_path: Path) -> None:
    tutorial = Document.read(ROOT / "docs/tutorial.md")
    policy, tests = [text for kind, text in tutorial.blocks if kind == "yaml"]
    (tmp_path / "orders.yaml").write_text(policy)
    (tmp_path / "tests.yaml").write_text(tests)
    done = CliRunner().invoke(main, ["policy", "test", str(tmp_path)])
    assert done.exit_code == 0, done.output
    (tmp_path / "tests.yaml").write_text(tests.replace("expect: deny", "expect: allow"))
    assert CliRunner().invoke(main, ["policy", "test", str(tmp_path)]).exit_code == 1


def test_the_picture_of_the_planes_names_what_there_is() -> None:
    (picture,) = [text for kind, text in Document.read(ROOT / "docs/concepts.md").blocks if kind == "mermaid"]
    rooms, of_gateway = (
        {path.stem for path in (ROOT / folder).iterdir() if not path.name.startswith("_")}
        for folder in ("src/amqpgate", "src/amqpgate/gateway")
    )
    named = {
        name
        for words in re.findall(r'\w\["([^":]+)[:"]', picture)
        for name in words.split(", ")
        if words not in ("around them", "control plane", "data path")
    }
    assert named <= rooms | of_gateway, named - rooms - of_gateway
    assert {"datapath", "gateway", "policy", "protocol", "wire", "bridge"} | of_gateway <= named


def test_the_index_template_is_one() -> None:
    (block,) = [text for kind, text in BLOCKS if kind == "console" and "_index_template" in text]
    template = json.loads(block.partition("-d '")[2].rpartition("'")[0])
    assert template["template"]["mappings"]["date_detection"] is False
    assert {"@timestamp", "raw_data", "unmapped"} < set(template["template"]["mappings"]["properties"])


def test_what_the_examples_name_exists() -> None:
    (chart,) = [yaml.safe_load(text) for text in YAML if text.startswith("# Chart.yaml")]
    (named,) = chart["dependencies"]
    shipped = yaml.safe_load((ROOT / "helm/amqpgate/Chart.yaml").read_text())
    assert named == {
        "name": shipped["name"],
        "version": shipped["version"],
        "repository": "file://../amqpgate",
    }
    (prometheus,) = [yaml.safe_load(text) for text in YAML if text.startswith("rule_files:")]
    assert all((ROOT / path).is_file() for path in prometheus["rule_files"])
    (adapter,) = [yaml.safe_load(text) for text in YAML if text.startswith("# For prometheus-adapter:")]
    for rule in adapter["rules"]:
        assert f"`{rule['seriesQuery'].partition('{')[0]}" in metrics_table()


def test_every_example_in_yaml_is_read_by_somebody() -> None:
    for text in YAML:
        if not re.search(r"^ *\.\.\.$", text, re.MULTILINE):  # else an excerpt
            assert isinstance(yaml.safe_load(text), dict)
        kinds = [text in kind for kind in (SETTINGS, PARTS, DOCUMENTS_OF_POLICIES)]
        kinds.append(text.lstrip().startswith(tuple(ELSEWHERE)))
        assert sum(kinds) == 1, text
    for reader in set(ELSEWHERE.values()) - {"here"}:
        assert (ROOT / reader).is_file()


def test_every_room_of_the_layout_exists() -> None:
    (layout,) = [text for _, text in BLOCKS if text.startswith("src/amqpgate/\n")]
    rooms = [line.split()[0] for line in layout.splitlines()]
    inside = [line.split()[0] for line in layout.splitlines() if line.startswith("  ")]
    for name in rooms:
        path = ROOT / "src" / "amqpgate" / name if name in inside else ROOT / name
        assert path.is_dir() if name.endswith("/") else path.is_file(), name
    source = ROOT / "src" / "amqpgate"
    packages = {str(path.parent.relative_to(source)) for path in source.glob("*/__init__.py")}
    for room in ("gateway", "policy"):
        packages |= {str(path.parent.relative_to(source)) for path in source.glob(f"{room}/*/__init__.py")}
    assert packages <= {name.rstrip("/") for name in inside}


def test_where_to_look_names_what_there_is() -> None:
    _, _, rest = Document.read(ROOT / "docs/architecture.md").text.partition("\n## Where to look\n")
    paths = re.findall(r"`([a-z_]+/[a-z_/.]+)`", rest.partition("\n## ")[0].replace("`src/amqpgate`", ""))
    assert len(paths) >= 8
    assert all((ROOT / "src/amqpgate" / path).is_file() for path in paths), paths


def test_examples_in_python_name_what_there_is() -> None:
    from amqpgate import pipeline

    examples = [text for kind, text in BLOCKS if kind == "python"]
    named = set().union(*(re.findall(r"\bpipeline\.(\w+)", text) for text in examples))
    assert named <= set(pipeline.__all__)
    for text in examples:
        compile(text, "example", "exec")


def test_every_kind_of_example_was_found() -> None:
    """The patterns above find something: none of those tests runs over nothing."""
    assert {kind for kind, _ in BLOCKS} == {"console", "text", "yaml", "mermaid", "python"}
    assert len(SETTINGS) >= 3
    assert len(PARTS) >= 2
    assert len(POLICIES) >= 5
    assert len(COMMANDS) > 10
    assert len(DOCUMENTS) > 10


if __name__ == "__main__":
    for path, begin, end, made in (
        (CONFIGURATION, BEGIN, END, describe()),
        (OBSERVABILITY, *METRICS, metrics_table()),
        (ADMIN, *PATHS, paths_table()),
    ):
        before, _, rest = path.read_text().partition(begin)
        path.write_text(f"{before}{begin}\n{made.strip()}\n\n{end}{rest.partition(end)[2]}")
