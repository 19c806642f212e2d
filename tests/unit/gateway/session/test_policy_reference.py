"""The engine against a second writing of what policies mean, on what is on the wire (`policy_reference`)."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import attrs
import pytest

from amqpgate.policy import Operation, PolicySet, Principal, SessionPolicy, Source, build
from amqpgate.policy.engine.from_method import content_of, operation_of
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.table_codec import get_table, put_table
from amqpgate.wire.tables import Field, Table
from tests.unit.gateway.policy_reference import Asked, Said, SaidRule, may

#: What is doubtful stands here more often.
USERS = ("u", "u.v", "u.v", "*", "é")
HEAD = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: p}
spec:
  subjects: [{}]
  rules:
"""

NAMES = ["", "x", "a.b", "u.a", "u.v.a", "u.v.a", "a.\n", "a.\udcff", "*.a"]
KEYS = [
    "",
    "a",
    "a.b",
    "a.\n",
    "a.b\n",
    "a.\udcff",
    "a.\udcff\udcfe",
    "u.a",
    *["u.v.a"] * 3,
    "*",
    "a.*",
    "#",
    "é.a",
    "*.a",
    "b.a\nc",
]
PLAIN = [
    Said("literal", ""),
    Said("literal", "x"),
    Said("literal", "a.b"),
    Said("literal", "#"),
    Said("literal", "{user}.a"),
    Said("prefix", ""),
    Said("prefix", "a."),
    *[Said("prefix", "{user}.")] * 3,
    Said("topic", "#"),
    Said("topic", "a.*"),
    Said("topic", "a.#"),
    Said("topic", "*.a"),
    Said("topic", "#.a"),
    *[Said("topic", "{user}.#")] * 3,
    Said("topic", "{user}.*"),
    Said("regex", "a[.].*"),
    Said("regex", "a.."),
    Said("regex", ".*"),
    Said("search", "^a.*b$"),
    Said("search", "[.]."),
]
VALUES: list[Said | tuple[int, int]] = [
    Said("literal", "7"),
    Said("literal", "v"),
    Said("literal", "true"),
    Said("literal", ""),
    Said("prefix", "v"),
    Said("regex", "v.*"),
    (5, 10),
    (-1, 0),
]
SCALARS = [
    *(Field("S", text) for text in ("7", "v", "v\n", "", "7.0", " 7", "true", "a.b", "x", "u.v.a", "1e1")),
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


class Dice:
    """Rules and requests at random. Most rules ask one thing, so that something is left to decide."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.of = self.random.choice

    def some(self, most: int) -> range:
        return range(self.random.randint(0, most))

    def pattern(self) -> Said:
        one, other = self.of(PLAIN), self.of(PLAIN)
        return one if self.random.random() < 0.7 else Said(one.form, one.text, other)

    def rule(self) -> SaidRule:
        effect = self.of(["allow", "deny"])
        values = ((self.of(["h", "h", "k"]), self.of(VALUES)),)
        if self.random.random() < 0.2:
            return SaidRule(effect, "queue.declare", queue=self.pattern())
        if self.random.random() < 0.2:
            return SaidRule(effect, "queue.declare", values=values)
        asks: dict[str, object] = {}
        for _ in range(self.of([1, 1, 2])):
            name = self.of(["exchange", "routing_key", "values", "require", "reply_to", "forbid", "max_body"])
            if name in ("exchange", "routing_key", "reply_to"):
                asks[name] = self.pattern()
            elif name in ("values", "require"):
                asks[name] = values if name == "values" else ("h",)
            elif effect == "allow":
                asks[name] = 10 if name == "max_body" else ("k",)
        return SaidRule(effect, "basic.publish", **asks)  # type: ignore[arg-type]

    def rules(self) -> list[SaidRule]:
        everything = [SaidRule("allow", "basic.publish"), SaidRule("allow", "queue.declare")]
        return [self.rule() for _ in range(self.random.randint(1, 3))] + self.of([[], everything, everything])

    def field(self, depth: int = 0) -> Field:
        if depth == 2 or self.random.random() < 0.7:
            return self.of(SCALARS)
        if self.random.random() < 0.6:
            return Field("A", tuple(self.field(depth + 1) for _ in self.some(3)))
        return Field("F", self.table(["h", "k"], depth + 1))

    def table(self, names: list[str], depth: int = 0) -> Table:
        return Table(tuple((self.of(names), self.field(depth)) for _ in self.some(3)))

    def keys(self) -> Field:
        """Of CC or BCC."""
        return Field(
            "A", tuple(self.of([*(Field("S", key) for key in KEYS), self.field()]) for _ in self.some(2))
        )

    def request(self) -> Asked:
        if self.random.random() < 0.3:
            names = ["h", "x-dead-letter-routing-key", "alternate-exchange"]
            leads = tuple(
                ("x-dead-letter-exchange", self.of([Field("S", self.of(NAMES)), self.of(SCALARS)]))
                for _ in self.some(2)
            )
            table = Table((*self.table(names), *leads))
            return Asked("queue.declare", queue=self.of(NAMES) or "q", table=table)
        table = self.table(["h", "h", "k", "cc", "\udcff"])
        for _ in self.of([(), (), (1,), (1, 2)]):
            table = Table((*table, (self.of(["CC", "BCC"]), self.keys())))
        return Asked(
            "basic.publish",
            self.of(NAMES),
            self.of(KEYS),
            table=table,
            reply_to=self.of([None, *NAMES]),
            body=self.of([0, 10, 11]),
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


@pytest.mark.parametrize("seed", range(8))
def test_the_engine_agrees(seed: int) -> None:
    dice = Dice(seed)
    answers: Counter[tuple[str, bool]] = Counter()
    for _ in range(60):
        rules, user = dice.rules(), dice.of(USERS)
        who = Principal(user, "v")
        session = judged(rules).for_principal(who)
        for asked in [dice.request() for _ in range(25)]:
            method = operation(asked, who)
            expected = may(rules, asked, user)
            answers[asked.operation, expected] += 1
            if asked.operation == "queue.declare":
                assert session.decide(method).allowed is expected, (rules, asked, user)
            else:
                assert agrees(session, method, asked, expected=expected), (rules, asked, user)
    assert min(answers.values()) > 50, "each answer to each is often given"
    assert len(answers) == 4


def agrees(session: SessionPolicy, method: Operation, asked: Asked, *, expected: bool) -> bool:
    """By the method alone, the answer is the same, or the message is looked at."""
    properties = amqp.BasicProperties(headers=on_the_wire(asked.table), reply_to=asked.reply_to)
    content = content_of(ContentHeader(60, asked.body, properties))
    if session.decide(attrs.evolve(method, content=content)).allowed is not expected:
        return False
    admission = session.admit(method)
    if not admission.verdict.allowed:
        return not expected
    return expected or (admission.peek is not None and admission.peek.catches(content))
