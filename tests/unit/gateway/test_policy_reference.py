"""The engine against a second writing of what policies mean, on what is on the wire (`policy_reference`)."""

from __future__ import annotations

from decimal import Decimal

import attrs
from hypothesis import event, given, settings
from hypothesis import strategies as st

from amqpgate.gateway.operations import content_of, operation_of
from amqpgate.policy import Operation, PolicySet, Principal, SessionPolicy, Source, build
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.table_codec import get_table, put_table
from amqpgate.wire.tables import Field, Table
from tests.unit.gateway.policy_reference import Asked, Said, SaidRule, may

USERS = ("u", "u.v", "*", "é")
HEAD = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: p}
spec:
  subjects: [{}]
  rules:
"""

NAMES = st.sampled_from(["", "x", "x.y", "u.q", "u.v.q", "x\n", "x\udcff", "é", "*.q", "amq.gen-x"])
KEYS = st.sampled_from(
    [
        "",
        "a",
        "a.b",
        "a.\n",
        "a.b\n",
        "a.\udcff",
        "a.\udcff\udcfe",
        "u.a",
        "u.v.a",
        "*",
        "a.*",
        "#",
        "é.a",
        "*.a",
        "b.a\nc",
    ]
)
PLAIN = st.sampled_from(
    [
        Said("literal", ""),
        Said("literal", "x"),
        Said("literal", "a.b"),
        Said("literal", "#"),
        Said("literal", "{user}.a"),
        Said("prefix", ""),
        Said("prefix", "a."),
        Said("prefix", "{user}."),
        Said("topic", "#"),
        Said("topic", "a.*"),
        Said("topic", "a.#"),
        Said("topic", "*.a"),
        Said("topic", "#.a"),
        Said("topic", "{user}.#"),
        Said("topic", "{user}.*"),
        Said("regex", "a[.].*"),
        Said("regex", "a.."),
        Said("regex", ".*"),
        Said("search", "^a.*b$"),
        Said("search", "[.]."),
    ]
)
PATTERNS = PLAIN | st.builds(lambda one, other: Said(one.form, one.text, other), PLAIN, PLAIN)
VALUES = st.sampled_from(
    [
        Said("literal", "7"),
        Said("literal", "v"),
        Said("literal", "true"),
        Said("literal", ""),
        Said("prefix", "v"),
        Said("regex", "v.*"),
        (5, 10),
        (-1, 0),
    ]
)
CONDITIONS = st.lists(
    st.tuples(st.sampled_from(["h", "k", "CC"]), VALUES), max_size=2, unique_by=lambda pair: pair[0]
)
ARGUMENTS = st.lists(
    st.tuples(st.sampled_from(["h", "x-dead-letter-exchange"]), VALUES),
    max_size=2,
    unique_by=lambda pair: pair[0],
)
EFFECTS = st.sampled_from(["allow", "allow", "deny"])


@st.composite
def publish_rules(draw: st.DrawFn) -> SaidRule:
    effect = draw(EFFECTS)
    is_allow = effect == "allow"
    return SaidRule(
        effect,
        "basic.publish",
        exchange=draw(st.none() | PATTERNS),
        routing_key=draw(st.none() | PATTERNS),
        values=tuple(draw(CONDITIONS)),
        require=tuple(draw(st.sampled_from([(), (), ("h",)]))),
        forbid=tuple(draw(st.sampled_from([(), (), ("k",)]))) if is_allow else (),
        max_body=draw(st.none() | st.just(10)) if is_allow else None,
        reply_to=draw(st.none() | PATTERNS),
    )


DECLARE_RULES = st.builds(
    lambda effect, queue, values: SaidRule(effect, "queue.declare", queue=queue, values=tuple(values)),
    EFFECTS,
    st.none() | PATTERNS,
    ARGUMENTS,
)

SCALARS = st.sampled_from(
    [
        *(
            Field("S", text)
            for text in ("7", "v", "v\n", "", "7.0", " 7", "true", "a.b", "x", "u.v.a", "1e1")
        ),
        *(Field("S", text) for text in (b"v\xff", b"a.\xff", b"x\xff")),
        *(Field("x", text) for text in (b"7", b"v", b"a.b", b"x", b"\xff")),
        *(Field(tag, 7) for tag in "bBsuIilLT"),
        Field("T", 2**62),
        Field("I", -1),
        Field("f", 7.5),
        Field("d", 7.0),
        Field("d", -0.5),
        Field("D", Decimal("7.00")),
        Field("D", Decimal("0.00")),
        Field("D", Decimal("7.25")),
        Field("t", True),
        Field("t", False),
        Field("V", None),
    ]
)


def nested(inner: st.SearchStrategy[Field]) -> st.SearchStrategy[Field]:
    """Arrays and tables of these."""
    arrays = st.lists(inner, max_size=3).map(lambda items: Field("A", tuple(items)))
    entries = st.lists(st.tuples(st.sampled_from(["h", "k"]), inner), max_size=3)
    return arrays | entries.map(lambda entries: Field("F", Table(tuple(entries))))


FIELDS = SCALARS | nested(SCALARS | nested(SCALARS))
HEADERS = st.lists(
    st.tuples(st.sampled_from(["h", "h", "k", "CC", "BCC", "cc", "\udcff"]), FIELDS), max_size=4
).map(lambda entries: Table(tuple(entries)))
TABLES = st.lists(
    st.tuples(
        st.sampled_from(["h", "x-dead-letter-exchange", "x-dead-letter-routing-key", "alternate-exchange"]),
        FIELDS,
    ),
    max_size=3,
).map(lambda entries: Table(tuple(entries)))

PUBLISHES = st.builds(
    lambda exchange, key, table, reply_to, body: Asked(
        "basic.publish", exchange, key, table=table, reply_to=reply_to, body=body
    ),
    NAMES,
    KEYS,
    HEADERS,
    st.none() | NAMES,
    st.sampled_from([0, 10, 11]),
)
DECLARES = st.builds(
    lambda queue, table: Asked("queue.declare", queue=queue or "q", table=table), NAMES, TABLES
)


def judged(rules: list[SaidRule]) -> PolicySet:
    lines = [f"  - {{{rule.yaml(number)}}}\n" for number, rule in enumerate(rules)]
    return build([Source("p.yaml", (HEAD + "".join(lines)).encode())])


def on_the_wire(table: Table) -> Table:
    """As it comes out of the decoder."""
    data = put_table(table)
    return get_table(data, 0, len(data))[0]


def operation(asked: Asked, who: Principal) -> Operation:
    table = on_the_wire(asked.table)
    if asked.operation == "queue.declare":
        return operation_of(amqp.QueueDeclare(queue=asked.queue, arguments=table), who, "")
    return operation_of(amqp.BasicPublish(exchange=asked.exchange, routing_key=asked.routing_key), who, "")


@settings(deadline=None, max_examples=300)
@given(
    st.tuples(
        st.lists(publish_rules() | DECLARE_RULES, max_size=5),
        st.sampled_from(
            [[], *[[SaidRule("allow", "basic.publish"), SaidRule("allow", "queue.declare")]] * 2]
        ),
    )
    .map(lambda pair: pair[0] + pair[1])
    .filter(bool),
    PUBLISHES | DECLARES,
    st.sampled_from(USERS),
)
def test_the_engine_agrees(rules: list[SaidRule], asked: Asked, user: str) -> None:
    session = judged(rules).for_principal(Principal(user, "v"))
    one = operation(asked, Principal(user, "v"))
    expected = may(rules, asked, user)
    event(f"{asked.operation}: {expected}")
    if asked.operation == "queue.declare":
        assert session.decide(one).allowed is expected
        return
    header = ContentHeader(
        60, asked.body, amqp.BasicProperties(headers=on_the_wire(asked.table), reply_to=asked.reply_to)
    )
    agree_on_a_publish(session, one, header, expected=expected)


def agree_on_a_publish(
    session: SessionPolicy, method: Operation, header: ContentHeader, *, expected: bool
) -> None:
    """By the method alone, the answer is the same, or the message is looked at."""
    content = content_of(header)
    assert session.decide(attrs.evolve(method, content=content)).allowed is expected
    admission = session.admit(method)
    if not admission.verdict.allowed:
        assert not expected
    elif admission.peek is not None and not admission.peek.catches(content):
        assert expected
