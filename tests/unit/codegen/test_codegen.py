"""The generator: committed files are what it makes, and bad input is named."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from amqpgate.codegen import names
from amqpgate.codegen.__main__ import generate, main, project_root, stale
from amqpgate.codegen.layout import Run, Single, steps
from amqpgate.codegen.loader import SpecError, SpecSource, load, sources
from amqpgate.codegen.model import FieldSpec

ROOT = project_root()
SPEC = ROOT / "spec" / "amqp"
SOURCES = sources(ROOT)


def test_committed_files_are_up_to_date() -> None:
    files = generate(ROOT)
    # Those of AMQP 0-10 are three: it has a module for the codes of types, too.
    assert len(files) == 2 + 2 * len(SOURCES) + 3
    assert stale(ROOT, files) == {}


def test_each_version_of_the_bridge_is_generated(tmp_path: Path) -> None:
    """The module of a version, and its specification, are all that codegen needs."""
    bridge, spec = tmp_path / "src/amqpgate/bridge", tmp_path / "spec/amqp"
    bridge.mkdir(parents=True)
    spec.mkdir(parents=True)
    (bridge / "versions.py").touch()
    with pytest.raises(SpecError, match="no module"):
        sources(tmp_path)
    (bridge / "v0_10.py").touch()
    with pytest.raises(SpecError, match=r"v0_10.py has no specification amqp0-10.xml"):
        sources(tmp_path)
    (spec / "amqp0-10.xml").write_text('<amqp major="0" minor="10"/>')
    (spec / "a.overlay.xml").write_text('<overlay base="*"/>')
    (spec / "b.overlay.xml").write_text('<overlay base="amqp0-10.xml"/>')
    (spec / "c.overlay.xml").write_text('<overlay base="amqp0-9.xml"/>')
    assert sources(tmp_path) == (
        SpecSource(
            "v0_10", (0, 10, 0), b"AMQP\x01\x01\x00\x0a", "amqp0-10.xml", ("b.overlay.xml", "a.overlay.xml")
        ),
    )


def test_output_is_the_same_every_time_and_in_every_process() -> None:
    code = (
        "import hashlib; from amqpgate.codegen.__main__ import generate, project_root;"
        "files = generate(project_root());"
        "print(hashlib.sha256(repr(sorted((str(p), t) for p, t in files.items())).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_generated_modules_say_so_and_where_they_are_from() -> None:
    for path, text in generate(ROOT).items():
        if path.name == "__init__.py":
            continue
        assert text.startswith("# DO NOT EDIT. Made by `python -m amqpgate.codegen` from spec/amqp:\n"), path
        if "v0_10" in path.stem:
            assert text.splitlines()[1] == "#   amqp0-10.qpid-errata.xml"
            continue
        source = next(
            source for source in SOURCES if path.stem.removeprefix("test_roundtrip_") == source.module
        )
        assert source.base in text
        assert all(overlay in text for overlay in source.overlays)


def test_generated_code_is_straight() -> None:
    for path, text in generate(ROOT).items():
        if path.parts[0] != "src":
            continue
        assert max(map(len, text.splitlines())) <= 110, path
        loops = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.For | ast.While)]
        assert loops == [], path


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A project folder with everything that codegen reads and writes, up to date."""
    shutil.copytree(SPEC, tmp_path / "spec" / "amqp")
    for path in (tmp_path / "spec" / "amqp").iterdir():
        path.chmod(0o644)
    bridge = tmp_path / "src/amqpgate/bridge"
    bridge.mkdir(parents=True)
    for source in SOURCES:
        (bridge / f"{source.module}.py").touch()
    assert main(["--root", str(tmp_path)]) == 0
    return tmp_path


def test_check_passes_and_writes_nothing(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["--root", str(copy), "--check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_check_names_a_file_that_was_edited(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edited = copy / "src/amqpgate/wire/generated/v0_9_1.py"
    text = edited.read_text().replace("FRAME_END: Final = 206", "FRAME_END: Final = 207")
    edited.write_text(text)
    capsys.readouterr()
    assert main(["--root", str(copy), "--check"]) == 1
    out, err = capsys.readouterr()
    assert "-FRAME_END: Final = 207" in out.splitlines()
    assert "+FRAME_END: Final = 206" in out.splitlines()
    assert "v0_9_1.py (committed)" in out
    assert "1 stale" in err
    assert edited.read_text() == text


def test_check_names_files_that_are_missing(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / "src/amqpgate/wire/generated/v0_8.py").unlink()
    (copy / "tests/unit/wire/generated/__init__.py").unlink()
    assert main(["--root", str(copy), "--check"]) == 1
    out, err = capsys.readouterr()
    assert "v0_8.py (generated)" in out
    assert "tests/unit/wire/generated/__init__.py is missing" in out
    assert "2 stale" in err
    # A long difference is not poured out whole.
    assert len(out.splitlines()) < 200


def test_a_changed_specification_makes_files_stale(copy: Path) -> None:
    overlay = copy / "spec/amqp/rabbitmq-0-9-1.overlay.xml"
    overlay.write_text(overlay.read_text().replace('index="202"', 'index="203"'))
    assert main(["--root", str(copy), "--check"]) == 1
    assert main(["--root", str(copy)]) == 0
    assert "METHOD_ID: ClassVar[int] = 203" in (copy / "src/amqpgate/wire/generated/v0_9_1.py").read_text()


def test_unusable_xml_is_an_exit_code(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / "spec/amqp/amqp0-9.xml").write_text("<amqp>")
    assert main(["--root", str(copy), "--check"]) == 2
    assert "amqp0-9.xml" in capsys.readouterr().err


SMALL = """
<amqp>
  <constant name="reply success" value="200"/>
  <domain name="access ticket" type="short"/>
  <class name="basic" index="60">
    <field name="priority" type="octet"/>
    <method name="get" index="70" synchronous="1">
      <response name="get-ok"/>
      <field name="ticket" domain="access ticket"/>
    </method>
    <method name="get-ok" index="71" synchronous="1" content="1"/>
  </class>
</amqp>
"""
SMALL_SOURCE = SpecSource("v0_8", (0, 8, 0), b"AMQP\x01\x01\x08\x00", "base.xml", ("more.xml",))

Loader = Callable[[str], object]


@pytest.fixture
def load_with(tmp_path: Path) -> Loader:
    """The small specification with entries of an overlay."""

    def load_small(entries: str, base: str = SMALL) -> object:
        (tmp_path / "base.xml").write_text(base)
        (tmp_path / "more.xml").write_text(f'<overlay extension="x">{entries}</overlay>')
        return load(SMALL_SOURCE, tmp_path)

    return load_small


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ('<constant name="a" value="1"/>', "'source'"),
        ('<constant name="a" value="200" source="s"/>', "constant occurs twice"),
        ('<class name="basic"><method name="new" index="5"/></class>', "'source'"),
        ('<class name="basic"><method name="new" index="70" source="s"/></class>', "occurs twice"),
        (
            '<class name="basic"><method name="new" index="5" source="s">'
            '<response name="no"/></method></class>',
            "unknown response 'no'",
        ),
        (
            '<class name="basic"><method name="new" index="5" source="s">'
            '<field name="a" type="odd"/></method></class>',
            "unknown type 'odd'",
        ),
        (
            '<class name="basic"><method name="new" index="5" source="s">'
            '<field name="a" type="content"/></method></class>',
            "no overlay says",
        ),
        (
            '<class name="basic"><method name="new" index="5" source="s">'
            '<field name="a" type="table" optional="1"/><field name="b" type="bit"/></method></class>',
            "may be optional",
        ),
        (
            '<class name="basic"><method name="new" index="5" source="s">'
            '<field name="a b" type="bit"/><field name="a-b" type="bit"/></method></class>',
            "field name occurs twice",
        ),
        ('<rename class="basic" method="get" field="nope" to="x" source="s"/>', "no field 'nope'"),
        ("<surprise/>", "unknown entry <surprise>"),
    ],
)
def test_overlays_that_do_not_fit(load_with: Loader, entries: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_with(entries)


def test_an_overlay_adds_renames_and_changes(load_with: Loader) -> None:
    spec = load_with(
        '<rename class="basic" method="get-ok" to="got" source="s"/>'
        '<rename class="basic" method="get" field="ticket" to="pass" source="s"/>'
        '<lenient class="basic" method="got" source="s"/>'
        '<class name="tx" index="90"><method name="select" index="10" source="s"/></class>'
    )
    assert isinstance(spec, type(load(SOURCES[0], SPEC)))
    basic = spec.cls("basic")
    assert basic.method("get").responses == ["got"]
    assert [field.attr for field in basic.method("get").fields] == ["pass_"]
    assert basic.method("got").lenient
    assert spec.cls("tx").method("select").extension == "x"
    assert basic.method("get").extension == ""


def test_every_overlay_entry_has_a_source() -> None:
    entries = 0
    for path in SPEC.glob("*.overlay.xml"):
        for node in ET.parse(path).getroot():
            for entry in node.findall("method") if node.tag == "class" else [node]:
                assert entry.get("source"), (path.name, entry.attrib)
                entries += 1
    assert entries > 30


def test_the_readme_lists_every_specification_file() -> None:
    text = (SPEC / "README.md").read_text()
    for path in SPEC.glob("*.xml"):
        assert f"`{path.name}`" in text
    for source in SOURCES:
        assert f"`{source.module}.py`" in text


def test_specifications_keep_their_licence() -> None:
    for name in ("amqp0-8.xml", "amqp0-9.xml", "amqp0-9-1.extended.xml"):
        assert "Redistributions of source code must retain the above copyright" in (SPEC / name).read_text()


@pytest.mark.parametrize(
    ("name", "attribute", "class_name", "constant"),
    [
        ("access ticket", "access_ticket", "AccessTicket", "ACCESS_TICKET"),
        ("routing-key", "routing_key", "RoutingKey", "ROUTING_KEY"),
        ("global", "global_", "Global", "GLOBAL"),
        ("bytes", "bytes_", "Bytes", "BYTES"),
        ("nowait", "no_wait", "NoWait", "NO_WAIT"),
        ("no-wait", "no_wait", "NoWait", "NO_WAIT"),
        ("type", "type", "Type", "TYPE"),
    ],
)
def test_names(name: str, attribute: str, class_name: str, constant: str) -> None:
    assert names.attribute(name) == attribute
    assert names.class_name(name) == class_name
    assert names.constant(name) == constant


def fields(*types: str) -> list[FieldSpec]:
    return [FieldSpec(f"f{n}", f"f{n}", kind) for n, kind in enumerate(types)]


def test_neighbours_of_fixed_size_share_a_struct() -> None:
    first, text, last = steps(fields("short", "long", "bit", "shortstr", "longlong", "octet"))
    assert isinstance(first, Run)
    assert (first.format, first.size) == ("HIB", 7)
    assert isinstance(text, Single)
    assert isinstance(last, Run)
    assert (last.format, last.size) == ("QB", 9)


def test_bits_share_a_byte_until_something_else_comes() -> None:
    (run,) = steps(fields(*["bit"] * 9, "octet", "bit"))
    assert isinstance(run, Run)
    assert run.format == "BBBB"
    assert [len(cell.fields) for cell in run.cells] == [8, 1, 1, 1]
    assert [cell.is_bits for cell in run.cells] == [True, True, False, True]
