"""Model to a generated test module: fixed bytes and round trips for every method and property."""

from __future__ import annotations

from amqpgate.codegen import golden, names
from amqpgate.codegen.model import FieldSpec, Spec
from amqpgate.codegen.pieces import stamp, version_name

#: Strategies in ``tests/unit/wire/strategies.py``.
_STRATEGIES: dict[str, str] = {
    "bit": "values.BIT",
    "octet": "values.OCTET",
    "short": "values.SHORT",
    "long": "values.LONG",
    "longlong": "values.LONGLONG",
    "timestamp": "values.LONGLONG",
    "shortstr": "values.SHORTSTR",
    "longstr": "values.LONGSTR",
    "table": "values.TABLE",
}

#: As ruff formats the tests of the project.
WIDTH = 110


def module(spec: Spec, name: str) -> str:
    """The text of ``tests/unit/wire/generated/test_roundtrip_<version>.py``."""
    lines = stamp(spec.files)
    lines += [
        f'"""Bytes and round trips of every method and property of AMQP {version_name(spec)}."""',
        "",
        "from __future__ import annotations",
        "",
        "import pytest",
        "from hypothesis import given",
        "from hypothesis import strategies as st",
        "",
        f"from amqpgate.wire.generated import {name} as wire",
        "from amqpgate.wire.method import Method, Properties",
        "from amqpgate.wire.tables import Table",
        "from tests.unit.wire import checks",
        "from tests.unit.wire import strategies as values",
        "",
        "#: Worked out from the sizes of the fields by another piece of code than the one under test.",
        "METHOD_BYTES: list[tuple[Method, str]] = [",
    ]
    for cls in spec.classes:
        for method in cls.methods:
            vector = golden.method(cls, method)
            lines += _entry(names.class_name(cls.name, method.name), vector)
    lines += ["]", "", "#: Every property set.", "PROPERTY_BYTES: list[tuple[Properties, str]] = ["]
    content = [cls for cls in spec.classes if cls.has_content]
    for cls in content:
        lines += _entry(f"{names.class_name(cls.name)}Properties", golden.properties(cls))
    lines += ["]", "", "METHODS: dict[str, st.SearchStrategy[Method]] = {"]
    for cls in spec.classes:
        for method in cls.methods:
            class_name = names.class_name(cls.name, method.name)
            lines += _strategy(f"{cls.name}.{method.name}", class_name, method.fields, "{}")
    lines += ["}", "", "PROPERTIES: dict[str, st.SearchStrategy[Properties]] = {"]
    for cls in content:
        lines += _strategy(
            cls.name, f"{names.class_name(cls.name)}Properties", cls.properties, "st.none() | {}"
        )
    lines += ["}", ""]
    lines += _TESTS
    return "\n".join(lines) + "\n"


def _entry(class_name: str, vector: golden.Golden) -> list[str]:
    arguments = [f"{name}={value}" for name, value in vector.arguments]
    lines = ["    ("]
    lines += call_lines(f"wire.{class_name}", arguments, " " * 8)
    encoded = vector.encoded.hex()
    if len(encoded) + 11 <= WIDTH:
        lines.append(f'        "{encoded}",')
    else:
        lines += [f'        "{encoded[at : at + 96]}"' for at in range(0, len(encoded), 96)]
        lines[-1] += ","
    return [*lines, "    ),"]


def call_lines(function: str, arguments: list[str], indent: str) -> list[str]:
    """One call with a comma after it, broken as ruff would."""
    line = f"{indent}{function}({', '.join(arguments)}),"
    if len(line) <= WIDTH:
        return [line]
    middle = f"{indent}    {', '.join(arguments)}"
    if len(middle) <= WIDTH:
        return [f"{indent}{function}(", middle, f"{indent}),"]
    return [f"{indent}{function}(", *(f"{indent}    {argument}," for argument in arguments), f"{indent}),"]


def _strategy(key: str, class_name: str, fields: list[FieldSpec], form: str) -> list[str]:
    arguments = [f"wire.{class_name}"]
    for field in fields:
        strategy = form.format(_STRATEGIES[field.type])
        if field.optional:
            strategy = f"st.none() | {strategy}"
        arguments.append(f"{field.attr}={strategy}")
    return strategy_lines(key, arguments)


def strategy_lines(key: str, arguments: list[str]) -> list[str]:
    """An entry of a dict of strategies."""
    lines = call_lines("st.builds", arguments, " " * 4)
    first = f'    "{key}": {lines[0].strip()}'
    if len(first) > WIDTH:
        # It fits a line of its own, but not behind the key.
        return [f'    "{key}": st.builds(', f"        {', '.join(arguments)}", "    ),"]
    return [first, *lines[1:]]


_TESTS = [
    "",
    '@pytest.mark.parametrize(("method", "encoded"), METHOD_BYTES, ids=checks.name)',
    "def test_method_bytes(method: Method, encoded: str) -> None:",
    "    checks.check_method_bytes(method, bytes.fromhex(encoded), wire.METHODS)",
    "",
    "",
    '@pytest.mark.parametrize(("properties", "encoded"), PROPERTY_BYTES, ids=checks.name)',
    "def test_property_bytes(properties: Properties, encoded: str) -> None:",
    "    checks.check_property_bytes(properties, bytes.fromhex(encoded), wire.PROPERTIES)",
    "",
    "",
    '@pytest.mark.parametrize("name", METHODS)',
    "@given(data=st.data())",
    "@checks.quick",
    "def test_method_round_trip(name: str, data: st.DataObject) -> None:",
    "    checks.check_method_round_trip(data.draw(METHODS[name]), wire.METHODS)",
    "",
    "",
    '@pytest.mark.parametrize("name", PROPERTIES)',
    "@given(data=st.data())",
    "@checks.quick",
    "def test_property_round_trip(name: str, data: st.DataObject) -> None:",
    "    checks.check_property_round_trip(data.draw(PROPERTIES[name]), wire.PROPERTIES)",
    "",
    "",
    "def test_every_method_is_tested() -> None:",
    "    assert sorted(METHODS) == sorted(method.NAME for method in wire.METHODS.values())",
    "    assert [method.INDEX for method, _ in METHOD_BYTES] == list(wire.METHODS)",
]
