"""Regular expressions by RE2."""

from __future__ import annotations

import pytest

from amqpgate.policy.engine.regular_expressions import RegexError, escaped, of_bytes, of_text


def test_a_dot_is_any_character() -> None:
    assert of_text("secret.*").fullmatch("secret\n.x") is not None


def test_bytes_need_not_be_text() -> None:
    found = of_bytes("\\xff+").search(b"a\xff\xffb")
    assert found is not None
    assert found.group() == b"\xff\xff"


@pytest.mark.parametrize("make", [of_text, of_bytes])
@pytest.mark.parametrize("text", ["(", "(a)\\1", "(?=a)", "x{0,9999}"])
def test_what_is_none_of_re2_is_told(make: object, text: str) -> None:
    assert callable(make)
    with pytest.raises(RegexError, match="not a regular expression of RE2"):
        make(text)


def test_a_text_that_means_itself() -> None:
    assert of_text(escaped("a.b{1}")).fullmatch("a.b{1}") is not None
    assert of_text(escaped("a.b")).fullmatch("axb") is None
