"""The grammar of AMQP 0-10: what is read of it, and what is named that does not hold together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from amqpgate.codegen.__main__ import main, project_root
from amqpgate.codegen.loader import SpecError
from amqpgate.codegen.v0_10 import golden, render, render_tests
from amqpgate.codegen.v0_10.grammar import Grammar, StructField
from amqpgate.codegen.v0_10.loader import FILE, load

SPEC = project_root() / "spec/amqp"
GRAMMAR = load(SPEC)

SMALL = """
<amqp xmlns="http://www.amqp.org/schema/amqp.xsd" major="0" minor="10">
  <type name="uint8" code="0x02" fixed-width="1"/>
  <type name="sequence-no" fixed-width="4"/>
  <constant name="MIN-MAX-FRAME-SIZE" value="4096"/>
  <domain name="track" type="uint8"><enum><choice name="control" value="0"/></enum></domain>
  <class name="queue" code="0x8">
    <domain name="name" type="str8"/>
    <domain name="reason" type="uint16"><enum><choice name="gone" value="1"/></enum></domain>
    <struct name="inner" size="2" pack="1"><field name="global" type="track"/></struct>
    <command name="query" code="0x2">
      <implement role="server" handle="MUST"/>
      <field name="queue" type="name" required="true"/>
      <field name="inner" type="inner"/>
      <result><struct name="found" code="0x1" size="4" pack="4"><field name="a" type="bit"/></struct></result>
    </command>
    <command name="declare" code="0x1"/>
  </class>
  <class name="file" code="0x9">
    <domain name="reason" type="uint16"><enum><choice name="lost" value="2"/></enum></domain>
    <control name="open" code="0xa"><field name="queue" type="queue.name"/></control>
    <command name="stage" code="0x1"><segments><body/></segments></command>
  </class>
</amqp>
"""

Loader = Callable[[str, str], Grammar]


@pytest.fixture
def load_with(tmp_path: Path) -> Loader:
    """The small grammar with one text in the place of another."""

    def load_changed(old: str, new: str) -> Grammar:
        assert old in SMALL
        (tmp_path / FILE).write_text(SMALL.replace(old, new))
        return load(tmp_path)

    return load_changed


def test_all_that_a_grammar_says(load_with: Loader) -> None:
    grammar = load_with("amqp", "amqp")
    assert (grammar.version, grammar.header) == ("0-10", b"AMQP\x01\x01\x00\x0a")
    # sequence-no has no code, and stands in no map.
    assert [(spec.name, spec.code) for spec in grammar.types] == [("uint8", 2)]
    assert grammar.constants == (("MIN-MAX-FRAME-SIZE", 4096),)
    assert [(spec.name, spec.choices) for spec in grammar.enums] == [
        ("Track", (("control", 0),)),
        # Two classes have a domain of that name.
        ("QueueReason", (("gone", 1),)),
        ("FileReason", (("lost", 2),)),
    ]
    assert [(spec.python, spec.class_code, spec.code) for spec in grammar.structs] == [
        ("QueueDeclare", 8, 1),
        ("QueueQuery", 8, 2),
        ("Inner", 8, 0),
        ("Found", 8, 1),
        ("FileStage", 9, 1),
        ("FileOpen", 9, 10),
    ]
    inner = grammar.of_kind("struct")[0]
    assert (inner.size, inner.pack) == (2, 1)
    assert inner.fields == (StructField("global", "global_", "uint8"),)
    query = grammar.of_kind("command")[1]
    assert query.fields == (
        StructField("queue", "queue", "str8"),
        StructField("inner", "inner", "struct", "Inner"),
    )
    assert (query.result, query.has_segments, query.receivers) == ("Found", False, ("server",))
    assert grammar.of_kind("command")[2].has_segments
    assert grammar.of_kind("control")[0].fields == (StructField("queue", "queue", "str8"),)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</amqp>", "", "no element found"),
        ('major="0"', "", "'major'"),
        ('type="name"', 'type="odd"', "unknown type 'odd'"),
        ('type="queue.name"', 'type="queue.nobody"', "unknown type 'queue.nobody'"),
        ('name="stage" code="0x1"', 'name="stage" code="0x100"', "a code is one byte"),
        ('name="stage" code="0x1"', 'name="stage"', "'code'"),
        ('name="stage" code="0x1"', 'name="stage" code="0xa"', "a code occurs twice"),
        ('command name="stage"', 'command name="open"', "two structures have one name"),
        ('size="2" pack="1"', 'size="1" pack="1"', "has a size of 2 or 4 bytes"),
        ('size="2" pack="1"', 'size="2" pack="3"', "packing flags take"),
        ('size="4" pack="4"', 'size="2" pack="4"', "a result has a size of 4 bytes"),
        ('<field name="a" type="bit"/>', '<field name="a" type="bit"/>' * 2, "a field name occurs twice"),
        (
            '<field name="a" type="bit"/>',
            "".join(f'<field name="a{n}" type="bit"/>' for n in range(33)),
            "more fields",
        ),
        ("<segments>", '<result type="nobody"/><segments>', "no struct 'nobody'"),
    ],
)
def test_grammars_that_do_not_hold_together(load_with: Loader, old: str, new: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_with(old, new)


def test_an_unusable_grammar_is_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec/amqp").mkdir(parents=True)
    for path in SPEC.glob("*.xml"):
        (tmp_path / "spec/amqp" / path.name).write_text("<" if path.name == FILE else path.read_text())
    (tmp_path / "src/amqpgate/bridge").mkdir(parents=True)
    (tmp_path / "src/amqpgate/bridge/v0_9_1.py").touch()
    assert main(["--root", str(tmp_path), "--check"]) == 2
    assert FILE in capsys.readouterr().err


def test_the_small_grammar_makes_modules_that_work(load_with: Loader) -> None:
    """Packing flags of one and of four bytes, of which the standard has few or none."""
    grammar = load_with("amqp", "amqp")
    text = render.module(grammar)
    made: dict[str, type] = {"__name__": "made"}
    exec(compile(text, "made", "exec"), made)
    known = {spec.python: spec for spec in grammar.structs}
    for spec in grammar.structs:
        for vector in golden.vectors(spec, known):
            arguments = ", ".join(f"{name}={value}" for name, value in vector.arguments)
            value = eval(f"{spec.python}({arguments})".replace("wire.", ""), made)
            assert value.encode() == vector.encoded
            head = {"command": 4, "control": 2, "struct": 2 if spec.code else 0}[spec.kind]
            assert type(value).decode(vector.encoded, head, len(vector.encoded)) == value
    assert made["QueueQuery"].RESULT == 0x0801  # type: ignore[attr-defined]
    assert "FileStage" in render_tests.module(grammar)


def test_what_is_generated_of_the_whole() -> None:
    assert len(GRAMMAR.of_kind("control")) == 25
    assert len(GRAMMAR.of_kind("command")) == 59
    assert len(GRAMMAR.of_kind("struct")) == 17
    xid = next(spec for spec in GRAMMAR.structs if spec.python == "Xid")
    # The errata gave it a code, and a size of 32 bits.
    assert (xid.class_code, xid.code, xid.size) == (6, 4, 4)


def test_golden_bytes_are_worked_out_from_sizes() -> None:
    known = {spec.python: spec for spec in GRAMMAR.structs}
    flow = next(spec for spec in GRAMMAR.structs if spec.python == "MessageFlow")
    vectors = list(golden.vectors(flow, known))
    assert [vector.encoded.hex() for vector in vectors] == [
        "040a01000000",
        "040a01000700" + "0300ff00" + "80" + "80030405",
        "040a01000100" + "0300ff00",
        "040a01000200" + "80",
        "040a01000400" + "80030405",
    ]
