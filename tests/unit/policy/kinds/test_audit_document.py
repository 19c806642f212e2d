"""What an audit document may say."""

from __future__ import annotations

import pytest

from amqpgate.errors import ConfigError
from amqpgate.policy.engine.regular_expressions import of_bytes
from amqpgate.policy.kinds.audit_document import REDACTED
from tests.unit.policy.audits import CARDS, policies, policy


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (CARDS % (9, '{regex: "(?=a)"}'), "not a regular expression of RE2"),
        (CARDS % (9, '{regex: "a*"}'), "matches the empty text"),
        ("operations: ['*'], level: headers, redact: {bodyPatterns: [{regex: a}]}", "has no bodies"),
        ("operations: [basic.publish], queue: q, level: none", "would never match"),
        ("operations: ['*'], level: all", "one of none, metadata, headers, body"),
        ("operations: ['*'], level: none, mode: shadow", "unknown key 'mode'"),
        ("operations: ['*'], level: body, maxBodyBytes: 2Mi", "must be between 1 and 1048576"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(rule: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        policies(policy(rule))
    assert said in str(caught.value)
    assert (caught.value.file, caught.value.line) == ("p.yaml", 7)


def test_what_stands_there_unless_it_is_said() -> None:
    (document,) = policies(
        policy("operations: ['*'], level: body, redact: {bodyPatterns: [{regex: a}]}")
    ).audits
    (made,) = document.spec.rules
    (pattern,) = made.redact.body_patterns
    assert (int(made.max_body_bytes), pattern.replacement) == (4096, REDACTED)
    assert (made.redact.headers, made.redact.properties) == ((), ())


@pytest.mark.parametrize("subjects", ["", "{user: 'a*b'}"])
def test_a_document_is_about_somebody(subjects: str) -> None:
    with pytest.raises(ConfigError) as caught:
        policies(policy("operations: ['*'], level: none", subjects=subjects))
    assert (caught.value.file, caught.value.line) == ("p.yaml", 5)


def test_two_rules_of_one_id() -> None:
    with pytest.raises(ConfigError, match="two rules of this policy have the id 'x'"):
        policies(policy(*["id: x, operations: ['*'], level: none"] * 2))


@pytest.mark.parametrize(
    ("regex", "body", "found"),
    [
        # Byte by byte, whatever text the body is or is not.
        (".", b"\xff", b"\xff"),
        (r"\xff", b"a\xffb", b"\xff"),
        ("\u00e9", "caf\u00e9".encode(), "\u00e9".encode()),
        ("[0-9]{4}", b"\xf0\x281234", b"1234"),
    ],
)
def test_a_pattern_is_for_bytes(regex: str, body: bytes, found: bytes) -> None:
    match = of_bytes(regex).search(body)
    assert match is not None
    assert match.group() == found


@pytest.mark.parametrize("regex", ["(((a{1000}){1000}){1000})", f"({'a' * 100}){{1000}}"])
def test_a_pattern_that_would_take_much_memory_is_refused(regex: str) -> None:
    with pytest.raises(ConfigError, match="not a regular expression of RE2"):
        policies(policy(CARDS % (9, f"{{regex: '{regex}'}}")))
