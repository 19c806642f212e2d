"""Rules on headers on the data path: what passes is what the policies allow, by the rule that they name.

The policy engine is the oracle. Both engines of the data path must say the same, whatever the bytes are.
"""

from __future__ import annotations

import struct
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.datapath import header_rules as plain
from amqpgate.datapath import scanner
from amqpgate.datapath.content_tests import HeaderPeek, RuleGroup
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.header_rules import as_told, header_rules
from amqpgate.policy import Operation, Peek, SessionPolicy, Source, build
from amqpgate.policy.engine.from_method import content_of
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table
from tests.unit.policy.build_set import BOB, document

ENGINES = (plain.HeaderRules, scanner.HeaderRules)
PUBLISH = Operation(BOB, "basic.publish", exchange="x", routing_key="k")
#: What is asked about in any case, so that rules decide, and no peek.
ALL = Peek(always=True)


def policy(*rules: str) -> SessionPolicy:
    said = [f"effect: {rule}" for rule in rules]
    return build([Source("p.yaml", document(*said).encode())]).for_principal(BOB)


def rule(effect: str, condition: str) -> str:
    return f"{effect}, operations: [basic.publish]" + (f", properties: {{{condition}}}" if condition else "")


def header(body: int = 3, **properties: object) -> bytes:
    headers = properties.pop("headers", None)
    table = None if headers is None else headers if isinstance(headers, Table) else Table.of(headers)
    made = amqp.BasicProperties(headers=table, **properties)  # type: ignore[arg-type]
    return encode_header(ContentHeader(60, body, made))


def passes(session: SessionPolicy, payload: bytes, peek: Peek | None = ALL) -> int:
    """By which rule; of both engines, and what the policies say must be the same."""
    admission = session.admit(PUBLISH)
    assert admission.verdict.allowed
    assert admission.rules is not None
    told = as_told(admission.rules, None, peek or admission.peek or Peek())
    answers = {made(*told).passes(payload) for made in ENGINES}
    assert len(answers) == 1, answers
    passed = answers.pop()
    if passed >= 0:
        verdict = judged(session, payload)
        assert verdict is not None, "what passes can be decoded"
        assert verdict.allowed
        if peek is ALL:
            allows = [one.content for one in session._rules["basic.publish"].allow.candidates(PUBLISH)]
            rules = list(session._rules["basic.publish"].allow.candidates(PUBLISH))
            assert allows[: len(admission.rules.allows)] == list(admission.rules.allows)
            assert verdict is rules[passed].verdict
    return passed


def judged(session: SessionPolicy, payload: bytes):  # type: ignore[no-untyped-def]
    try:
        content = content_of(decode_header(payload))
    except ProtocolViolation:
        return None
    return session.judge(Operation(BOB, "basic.publish", exchange="x", routing_key="k", content=content))


def entries(*pairs: tuple[str, Field]) -> Table:
    return Table(pairs)


#: A condition of an allow rule; headers by which it surely holds, surely does not, and those of which Python
#: is asked.
VALUES = [
    (
        "literal: '12'",
        [("I", 12), ("S", "12"), ("d", 12.0), ("D", Decimal(12)), ("T", 12), ("B", 12), ("x", b"12")],
        [
            ("I", 13),
            ("S", "012"),
            ("V", None),
            ("t", True),
            ("A", (Field("I", 12),)),
            ("d", -12.0),
            ("l", -12),
        ],
        [("d", 12.5), ("D", Decimal("12.0")), ("d", 1e300)],
    ),
    (
        "literal: '-7'",
        [("b", -7), ("s", -7), ("I", -7), ("l", -7), ("L", -7), ("f", -7.0)],
        [("u", 7), ("i", 7)],
        [],
    ),
    ("literal: '0'", [("d", -0.0), ("I", 0)], [("t", False), ("S", "")], []),
    ("literal: '18446744073709551615'", [("T", (1 << 64) - 1)], [("l", -1)], []),
    ("literal: 'true'", [("t", True), ("S", "true"), ("t", 7)], [("t", False), ("S", "True")], []),
    ("prefix: ab", [("S", "ab"), ("S", "abc"), ("x", b"ab\xff")], [("S", "a"), ("S", ""), ("I", 4)], []),
    ("prefix: ''", [("S", ""), ("I", 4)], [("V", None), ("F", Table(()))], []),
    ("prefix: é", [("S", "éa")], [("x", b"\xc3"), ("x", b"\xc3\xa8")], []),
    ("regex: '[a-c]+'", [("S", "abc"), ("x", b"a")], [("S", "abd"), ("I", 5), ("x", b"\xff")], []),
    ("regex: '[0-9]+'", [("I", 55), ("S", "5")], [("I", -5)], [("d", 5.5)]),
    (
        "{min: 3, max: 9}",
        [("I", 3), ("l", 9), ("d", 3.5), ("S", "7"), ("D", Decimal("8.999")), ("T", 5), ("B", 3)],
        [
            ("I", 2),
            ("d", 9.000001),
            ("S", "10"),
            ("t", True),
            ("S", "abc"),
            ("D", Decimal("9.001")),
            ("V", None),
            ("T", (1 << 64) - 1),
            ("S", "-7"),
            ("x", b"zz"),
        ],
        [
            ("S", "7.5"),
            ("S", " 7"),
            ("S", "inf"),
            ("S", "Infinity"),
            ("S", ""),
            ("S", "\u0667"),
            ("d", 1e17),
            ("S", "_7"),
        ],
    ),
    (
        "{min: -9223372036854775808}",
        [("l", -(1 << 63)), ("T", (1 << 64) - 1), ("d", -9e15), ("D", Decimal(0))],
        [("S", "nan")],
        [],
    ),
    ("{max: 9223372036854775807}", [("l", (1 << 63) - 1)], [("T", 1 << 63)], []),
]


@pytest.mark.parametrize(("condition", "yes", "no", "unsure"), VALUES)
def test_a_value_is_told_apart_as_the_policies_do(
    condition: str,
    yes: list[tuple[str, object]],
    no: list[tuple[str, object]],
    unsure: list[tuple[str, object]],
) -> None:
    said = condition if condition.startswith("{") else f"{{{condition}}}"
    allow = policy(rule("allow", f"headers: {{values: {{h: {said}}}}}"))
    deny = policy(rule("allow", ""), rule("deny", f"headers: {{values: {{h: {said}}}}}"))
    for wanted, values in ((1, yes), (0, no), (-1, unsure)):
        for tag, value in values:
            field = Field(tag, value)  # type: ignore[arg-type]
            other = ("other", Field("S", "12"))
            of_one = header(headers=entries(other, ("h", field), other))
            assert passes(allow, of_one) == (0 if wanted == 1 else -1), (condition, field)
            # A deny rule looks within arrays and tables, too.
            within = isinstance(value, tuple)
            assert passes(deny, of_one) == (0 if wanted == 0 and not within else -1), (condition, field)
            deep = Table(
                (("a", Field("A", (Field("V", None), Field("F", Table((("b", field),))), Field("V", None)))),)
            )
            nested = header(headers=entries(("h", Field("F", deep))))
            assert passes(allow, nested) == -1
            assert passes(deny, nested) == (0 if wanted == 0 and not within else -1), (condition, field)


def test_who_is_unsure_of_one_header_may_be_sure_of_another() -> None:
    deny = policy(rule("allow", ""), rule("deny", "headers: {values: {h: {min: 5}, g: a}}"))
    unsure = ("h", Field("S", " 7"))
    assert passes(deny, header(headers=entries(unsure, ("g", Field("S", "a"))))) == -1
    assert passes(deny, header(headers=entries(unsure, ("g", Field("S", "b"))))) == 0
    allow = policy(rule("allow", "headers: {values: {h: {min: 5}, g: a}}"))
    assert passes(allow, header(headers=entries(unsure))) == -1
    assert passes(allow, header(headers=entries(("h", Field("I", 5)), ("g", Field("S", "a"))))) == 0


@pytest.mark.parametrize(
    ("condition", "yes", "no"),
    [
        ("headers: {require: [h, g]}", {"headers": {"g": 1, "h": None}}, {"headers": {"h": 1}}),
        ("headers: {deny: [h, 'x-*']}", {"headers": {"hh": 1, "x": 1}}, {"headers": {"a": 1, "x-": 1}}),
        ("headers: {allow: [h, 'x-*']}", {"headers": {"h": 1, "x-y": 1}}, {"headers": {"h": 1, "hh": 1}}),
        ("headers: {allow: []}", {}, {"headers": {"": 1}}),
        ("contentType: a/b", {"content_type": "a/b"}, {"content_type": "a/bc"}),
        ("contentType: a/b", {}, {"content_type": ""}),
        ("contentType: {prefix: a/}", {"content_type": "a/", "app_id": "x"}, {"content_type": "a"}),
        ("appId: {topic: 'a.*'}", {"app_id": "a.b"}, {"app_id": "a.b.c"}),
        ("appId: {prefix: a, unless: ab}", {"app_id": "ac"}, {"app_id": "ab"}),
        ("userId: '{user}'", {"user_id": "bob"}, {"user_id": "bib"}),
        ("deliveryMode: '1'", {}, {"delivery_mode": 2}),
        ("deliveryMode: '2'", {"delivery_mode": 2, "headers": {"a": [1]}}, {"delivery_mode": 0}),
        ("require: [timestamp, messageId]", {"timestamp": 5, "message_id": ""}, {"timestamp": 5}),
        ("require: [deliveryMode]", {"delivery_mode": 0, "type": "t", "expiration": "5"}, {"priority": 3}),
        ("maxBodyBytes: 3", {"body": 3}, {"body": 4}),
        (
            "maxBodyBytes: 3, replyTo: q",
            {"reply_to": "q", "correlation_id": "c"},
            {"reply_to": "q", "body": 1 << 63},
        ),
    ],
)
def test_what_an_allow_rule_asks(condition: str, yes: dict[str, object], no: dict[str, object]) -> None:
    session = policy(rule("allow", condition))
    assert passes(session, header(**yes)) == 0  # type: ignore[arg-type]
    assert passes(session, header(**no)) == -1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("condition", "denied", "passing"),
    [
        ("contentType: a/b", {"content_type": "a/b"}, {}),
        (
            "contentType: a/b, appId: {prefix: x}",
            {"content_type": "a/b", "app_id": "xy"},
            {"content_type": "a/b"},
        ),
        ("require: [userId]", {"user_id": ""}, {"app_id": "b"}),
        ("headers: {require: [h]}", {"headers": {"h": None}}, {"headers": {"hh": 1}}),
        (
            "headers: {values: {h: a, g: b}}",
            {"headers": {"h": "a", "g": ["c", "b"]}},
            {"headers": {"h": "a"}},
        ),
        ("deliveryMode: '2'", {"delivery_mode": 2}, {"delivery_mode": 1}),
    ],
)
def test_what_a_deny_rule_asks(condition: str, denied: dict[str, object], passing: dict[str, object]) -> None:
    session = policy(rule("allow", ""), rule("deny", condition))
    assert passes(session, header(**denied)) == -1  # type: ignore[arg-type]
    assert passes(session, header(**passing)) == 0  # type: ignore[arg-type]


def test_of_several_with_one_name_each_counts() -> None:
    twice = entries(("h", Field("S", "a")), ("h", Field("S", "b")))
    assert passes(policy(rule("allow", "headers: {values: {h: a}}")), header(headers=twice)) == -1
    assert passes(policy(rule("allow", "headers: {values: {h: {regex: 'a|b'}}}")), header(headers=twice)) == 0
    deny = policy(rule("allow", ""), rule("deny", "headers: {values: {h: b}}"))
    assert passes(deny, header(headers=twice)) == -1
    assert passes(deny, header(headers={"h": "a"})) == 0


def test_the_first_rule_that_allows_is_told() -> None:
    said = [rule("allow", f"headers: {{values: {{h: {text}}}, require: [h]}}") for text in "abc"]
    session = policy(*said, rule("deny", "appId: z"))
    assert [passes(session, header(headers={"h": text})) for text in "abcd"] == [0, 1, 2, -1]
    assert passes(session, header(headers={"h": "b"}, app_id="z")) == -1


def test_who_has_nothing_that_is_looked_for_passes_by_the_rule_that_admits_all() -> None:
    session = policy(
        rule("allow", "contentType: a"), rule("allow", ""), rule("deny", "headers: {values: {h: b}}")
    )
    admission = session.admit(PUBLISH)
    assert admission.rules is not None
    assert admission.rules.admitted == 1
    assert passes(session, header(headers={"g": 1}), None) == 1
    # Nobody decodes that.
    cut = b"\0\x3c\0\0" + bytes(8) + b"\x08\0" + b"\x0fcut"
    told = as_told(admission.rules, None, admission.peek or Peek())
    assert [made(*told).passes(cut) for made in ENGINES] == [1, 1]
    assert passes(session, header(headers={"h": "a"}), None) == 0
    assert passes(session, header(headers={"h": "a"}, content_type="b"), None) == 1


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0\x3c\0\0" + bytes(8),
        b"\0\x3c\0\1" + bytes(8) + b"\0\0",
        b"\0\x3d\0\0" + bytes(8) + b"\0\0",
        b"\0\x3c\0\0" + bytes(8) + b"\x80\0\x05a",
        b"\0\x3c\0\0" + bytes(8) + b"\x80\0\x01ab",
        b"\0\x3c\0\0" + bytes(8) + b"\x20\0\0\0\0\x05\1hd\x7f\xf0",
        b"\0\x3c\0\0" + bytes(8) + b"\x20\0\0\0\0\x0b\1hd\x7f\xf0" + bytes(6),
    ],
)
def test_what_is_malformed_never_passes(payload: bytes) -> None:
    session = policy(rule("allow", ""), rule("deny", "headers: {values: {never: seen}}"))
    assert passes(session, payload) == -1


def test_a_header_that_asks_for_too_much_is_left_to_python() -> None:
    session = policy(rule("allow", ""), rule("deny", "headers: {values: {a: b, b: c, c: d, d: e}}"))
    several = [(f"{number}", Field("V", None)) for number in range(plain.STEPS // 4)]
    assert passes(session, header(headers=Table(tuple(several)))) == 0
    assert passes(session, header(headers=Table((*several, ("x", Field("V", None)))))) == -1
    deep = Field("A", (Field("V", None),) * (plain.STEPS - 4))
    assert passes(session, header(headers=entries(("a", deep)))) == 0
    deep = Field("A", (Field("V", None),) * (plain.STEPS - 3))
    assert passes(session, header(headers=entries(("a", deep)))) == -1


def test_a_pattern_that_fails_is_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    session = policy(rule("allow", "appId: {regex: a}"))
    admission = session.admit(PUBLISH)
    assert admission.rules is not None
    ((_, matcher),) = admission.rules.allows[0].texts  # type: ignore[union-attr]

    def fail(_: str) -> bool:
        raise RecursionError

    # Matchers are kept, and shared.
    monkeypatch.setattr(matcher, "matches", fail)
    for made in ENGINES:
        rules = made(*as_told(admission.rules, None, ALL))
        assert rules.weight == 1 + plain.CALL
        assert rules.passes(header(app_id="a")) == -1
        assert rules.passes(header()) == 0


def test_what_the_data_path_cannot_be_told_is_not_told() -> None:
    names = ", ".join(f"h{number}" for number in range(65))
    for condition in ("values: {h: {max: 9223372036854775808}}", f"require: [{names}]"):
        session = policy(rule("allow", f"headers: {{{condition}}}"))
        admission = session.admit(PUBLISH)
        assert header_rules(admission.rules, None, admission.peek or Peek()) is None
    assert header_rules(None, None, Peek()) is None
    for made in ENGINES:
        with pytest.raises(ValueError, match="no rule"):
            made((), 0, HeaderPeek())
        with pytest.raises(ValueError, match="no rule"):
            made((RuleGroup((), (None,)),), 1, HeaderPeek())
        with pytest.raises(ValueError, match="64"):
            made((RuleGroup((), (None,) * 65),), 0, HeaderPeek())


def test_policies_in_mode_shadow_are_asked_too() -> None:
    held = policy(rule("allow", "headers: {values: {h: {prefix: a}}}"))
    shadow = policy(rule("allow", "headers: {values: {h: ab}}"))
    admissions = [one.admit(PUBLISH) for one in (held, shadow)]
    for rules, expected in (
        ((admissions[0].rules, admissions[1].rules), [0, -1, -1]),
        ((None, admissions[1].rules), [0, -1, -1]),
        ((admissions[0].rules, None), [0, 0, -1]),
    ):
        for made in ENGINES:
            of_both = made(*as_told(*rules, ALL))
            assert [of_both.passes(header(headers={"h": text})) for text in ("ab", "ac", "b")] == expected


CONDITIONS = st.sampled_from(
    [
        "",
        "headers: {values: {h: a}}",
        "headers: {values: {h: {prefix: '1'}, g: {min: 2, max: 300}}}",
        "headers: {values: {g: {regex: '[0-9a]+'}}}",
        "headers: {require: [h]}",
        "headers: {values: {h: {min: -5}}, require: [g]}",
        "contentType: {prefix: a}",
        "appId: {regex: '[ab]*'}, deliveryMode: '2'",
        "require: [timestamp]",
        "userId: '{user}'",
    ]
)
SCALARS = st.one_of(
    st.sampled_from(["a", "1", "12", "-3", " 2", "inf", "nan", "", "é", "1e2"]).map(
        lambda text: Field("S", text)
    ),
    st.binary(max_size=3).map(lambda data: Field("x", data)),
    st.builds(Field, st.sampled_from("bs"), st.integers(-128, 127)),
    st.builds(Field, st.sampled_from("Il"), st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-5, 301)),
    st.builds(Field, st.just("T"), st.integers(0, (1 << 64) - 1)),
    st.builds(
        Field,
        st.just("d"),
        st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 301).map(float),
    ),
    st.builds(
        Field,
        st.just("D"),
        st.builds(lambda n, p: Decimal(n).scaleb(-p), st.integers(0, 3000), st.integers(0, 30)),
    ),
    st.sampled_from([Field("V", None), Field("t", True), Field("t", False)]),
)
NAMES = st.sampled_from(["h", "g", "x", "hh", "\udcff"])
FIELDS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: Field("A", tuple(items)))
        | st.lists(st.tuples(NAMES, inner), max_size=3).map(lambda pairs: Field("F", Table(tuple(pairs))))
    ),
    max_leaves=6,
)
HEADERS = st.builds(
    lambda table, kind, app, mode, time, user: header(
        headers=table, content_type=kind, app_id=app, delivery_mode=mode, timestamp=time, user_id=user
    ),
    st.none() | st.lists(st.tuples(NAMES, FIELDS), max_size=4).map(lambda pairs: Table(tuple(pairs))),
    st.sampled_from([None, "a", "b", "\udcff"]),
    st.sampled_from([None, "ab", "c"]),
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from([None, 5]),
    st.sampled_from([None, "bob", "eve"]),
)


@given(
    st.lists(CONDITIONS, min_size=1, max_size=3),
    st.lists(CONDITIONS.filter(bool), max_size=2),
    HEADERS,
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=2),
    st.booleans(),
)
@settings(max_examples=300)
def test_what_passes_is_what_the_policies_allow(
    allow: list[str], deny: list[str], payload: bytes, spoiled: list[tuple[int, int]], with_peek: bool
) -> None:
    damaged = bytearray(payload)
    for at, byte in spoiled:
        damaged[12 + at % (len(damaged) - 12)] = byte
    session = policy(*(rule("allow", one) for one in allow), *(rule("deny", one) for one in deny))
    admission = session.admit(PUBLISH)
    if admission.rules is None:
        assert not deny or not admission.verdict.allowed
        return
    for data in (payload, bytes(damaged)):
        if with_peek and data is not payload:
            continue  # What is not looked for is not decoded.
        passes(session, data, None if with_peek else ALL)


@given(CONDITIONS.filter(bool), HEADERS)
def test_python_is_asked_of_few(condition: str, payload: bytes) -> None:
    """Where no text is a number, and no float is a text, what the policies allow passes."""
    session = policy(rule("allow", condition))
    if any(struct.pack(">I", len(text)) + text in payload for text in (b" 2", b"inf", b"1e2", b"")):
        return
    if b"d" in payload or b"D" in payload or b"x\0" in payload:
        return
    verdict = judged(session, payload)
    assert verdict is not None
    assert (passes(session, payload) >= 0) is verdict.allowed
