"""Grammar to a generated test module: fixed bytes and round trips of every control, command and struct."""

from __future__ import annotations

from amqpgate.codegen import names
from amqpgate.codegen.pieces import stamp
from amqpgate.codegen.render_tests import WIDTH, call_lines, strategy_lines
from amqpgate.codegen.v0_10 import golden
from amqpgate.codegen.v0_10.grammar import Grammar, StructField, StructSpec


def module(grammar: Grammar) -> str:
    """The text of ``tests/unit/wire/generated/test_roundtrip_v0_10.py``."""
    known = {spec.python: spec for spec in grammar.structs}
    # Fields are of structs, so these come first.
    ordered = [*grammar.of_kind("struct"), *grammar.of_kind("control"), *grammar.of_kind("command")]
    lines = [
        *stamp([grammar.file]),
        f'"""Bytes and round trips of every control, command and struct of AMQP {grammar.version}."""',
        "",
        "from __future__ import annotations",
        "",
        "import pytest",
        "from hypothesis import given",
        "from hypothesis import strategies as st",
        "",
        "from amqpgate.wire.generated import v0_10 as wire",
        "from amqpgate.wire.v0_10.sequences import SequenceSet",
        "from amqpgate.wire.v0_10.types import Array, Map, Value",
        "from tests.unit.wire.v0_10 import checks",
        "from tests.unit.wire.v0_10 import strategies as values",
        "from tests.unit.wire.v0_10.checks import Packed",
        "",
        "#: Without fields, with all of them, with each alone. The bytes are worked out from the sizes of",
        "#: fields, by other code than that under test.",
        "VECTORS: dict[str, list[tuple[Packed, str]]] = {",
    ]
    for spec in ordered:
        lines.append(f'    "{spec.full_name}": [')
        for vector in golden.vectors(spec, known):
            lines += _entry(spec, vector)
        lines.append("    ],")
    lines += ["}", "", "STRATEGIES: dict[str, st.SearchStrategy[Packed]] = {"]
    for spec in ordered:
        arguments = [f"wire.{spec.python}", *(_of_field(spec, field, known) for field in spec.fields)]
        lines += strategy_lines(spec.full_name, arguments)
    return "\n".join([*lines, "}", *_TESTS]) + "\n"


def _entry(spec: StructSpec, vector: golden.Vector) -> list[str]:
    arguments = [f"{name}={value}" for name, value in vector.arguments]
    encoded = f'"{vector.encoded.hex()}"'
    line = f"        (wire.{spec.python}({', '.join(arguments)}), {encoded}),"
    if len(line) <= WIDTH:
        return [line]
    lines = ["        (", *call_lines(f"wire.{spec.python}", arguments, " " * 12)]
    if len(encoded) + 13 <= WIDTH:
        lines.append(f"            {encoded},")
    else:
        encoded = vector.encoded.hex()
        lines += [f'            "{encoded[at : at + 92]}"' for at in range(0, len(encoded), 92)]
        lines[-1] += ","
    return [*lines, "        ),"]


def _of_field(spec: StructSpec, field: StructField, structs: dict[str, StructSpec]) -> str:
    """An argument with its strategy in ``tests/unit/wire/v0_10/strategies.py``."""
    name = f"values.{names.constant(structs[field.struct].name if field.struct else field.type)}"
    always = field.type == "bit" or not spec.pack
    return f"{field.attr}={name}" if always else f"{field.attr}=st.none() | {name}"


_TESTS = [
    "",
    "",
    '@pytest.mark.parametrize("name", VECTORS)',
    "def test_bytes(name: str) -> None:",
    "    for value, encoded in VECTORS[name]:",
    "        checks.check_bytes(value, bytes.fromhex(encoded))",
    "",
    "",
    '@pytest.mark.parametrize("name", STRATEGIES)',
    "@given(data=st.data())",
    "@checks.quick",
    "def test_round_trip(name: str, data: st.DataObject) -> None:",
    "    checks.check_round_trip(data.draw(STRATEGIES[name]))",
    "",
    "",
    "def test_everything_is_tested() -> None:",
    "    known = [*wire.CONTROLS.values(), *wire.COMMANDS.values(), *wire.STRUCTS.values()]",
    "    assert {cls.NAME for cls in known} <= set(VECTORS)",
    "    assert VECTORS.keys() == STRATEGIES.keys()",
    "    assert all(name == value.NAME for name, vectors in VECTORS.items() for value, _ in vectors)",
]
