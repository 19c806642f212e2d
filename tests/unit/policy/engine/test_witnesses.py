"""Examples of what patterns mean."""

from __future__ import annotations

import pytest

from amqpgate.policy.engine.witnesses import examples_of


@pytest.mark.parametrize(
    ("regex", "found"),
    [
        ("^abc$", ["abc"]),
        ("a|bc", ["a", "bc"]),
        ("a(b|c)d", ["abd", "acd"]),
        (r"a\.b+", ["a.b", "a.bb"]),
        ("[xyz]{3}", ["xxx"]),
        ("[^x]", ["_"]),
        (r"[\]a]", ["]"]),
        ("(?i)(?:ab)?c", ["abc", "c"]),
        (r"\x7buser}", ["{user}"]),
        (".*", ["x", ""]),
        ("(", [""]),
        ("[", []),
    ],
)
def test_examples_of_regular_expressions(regex: str, found: list[str]) -> None:
    assert examples_of(regex) == found
