"""Access policies against an evaluator that goes rule by rule: names of any bytes, tables of all types; and
what is looked at of a publish decides as the whole of it would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from amqpgate.datapath import header_rules, scanner
from amqpgate.datapath.flows import Flow
from amqpgate.errors import ConfigError
from amqpgate.gateway.session.header_rules import as_told
from amqpgate.policy import Operation, Peek, Principal, SessionPolicy, Source, build
from amqpgate.policy.engine.conditions import ALWAYS_PEEKED
from amqpgate.policy.engine.from_method import content_of, entries_of
from amqpgate.policy.engine.operations import OPERATIONS
from amqpgate.policy.engine.verdicts import Admission
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table
from tests.fuzz.choices import Choices
from tests.fuzz.reference.patterns import UnsureError
from tests.fuzz.reference.policies import Request, is_allowed

MOST = 400
TOKENS = (b"\0\0\0\0", b"\xff\xff")
WORDS = ("a", "b", "ab", "*", "#", "", "amq", "gen-x", "é", "a\n", "\r", "\udcff", "bob", "{user}", "{vhost}")
#: Some names begin so.
LADDER = "amqpgate.delay."
FORMS = ("literal", "prefix", "topic", "within", "regex", "search")
#: None counts characters: bytes that are no text may be more or fewer.
REGEXES = ("a.*", ".*", "[ab]+", "a|b", r"(a|b)\..*", "{user}.*", r"amq\..+", "", ".*secret", "[^b]*")
NAMES = ("h", "x", "CC", "BCC", "x-dead-letter-exchange", "x-dead-letter-routing-key", "alternate-exchange")
PROPERTIES = ("contentType", "replyTo", "type", "userId", "appId", "messageId", "expiration", "correlationId")
REQUIRED = ("contentType", "deliveryMode", "priority", "timestamp", "userId")
BINDING = ("queue.bind", "queue.unbind", "exchange.bind", "exchange.unbind")
USUAL = ("basic.publish", "queue.bind", "queue.declare", "basic.consume", "exchange.bind")
PRINCIPALS = (
    Principal("bob", "prod", "10.0.0.1", "main"),
    Principal("a.b", "/", None, "main"),
    Principal(None, "prod", "10.0.0.1", None),
    Principal("*", "prod"),
)
SIZES = (0, 1, 10, 11, 1 << 40)


def seeds() -> Iterator[bytes]:
    """Some that make rules of each kind."""
    for step in range(24):
        yield bytes((1, 1, 0)) + bytes((step, 1, 3, 0, step, 5, 1, 2, 7, 0, 9, 1)) * 5


class Writer:
    """Turns decisions into documents and requests."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices

    def text(self) -> str:
        """A name or a key."""
        choices = self.choices
        what = choices.byte()
        text = ".".join(choices.pick(WORDS) for _ in range(what & 3))[:200]
        return LADDER + text if what >> 4 == 15 else text

    def pattern(self, *, exceptions: bool = True) -> Any:
        """As rules have it."""
        choices = self.choices
        form = choices.pick(FORMS)
        if form in ("regex", "search"):
            text = choices.pick(REGEXES)
        else:
            # Documents are UTF-8.
            text = self.text().replace("\udcff", "ÿ")
        if form == "prefix":
            text = text.rstrip("*")
        made: dict[str, Any] = {form: text}
        if exceptions and choices.below(4) == 3:
            made["unless"] = self.pattern(exceptions=False)
        return made

    def value(self) -> Any:
        """What a value of a table must be."""
        choices = self.choices
        what = choices.below(4)
        if what == 0:
            return choices.pick(("a", "", "a.b", "1", "true", "é"))
        if what == 1:
            return {"prefix": choices.pick(("a", "1", "", "t"))}
        if what == 2:
            return {"regex": choices.pick(("a.*", ".*", "[0-9]+", "true"))}
        return {choices.pick(("min", "max")): choices.below(16) - 3}

    def conditions(self, effect: str) -> dict[str, Any]:
        """On a table."""
        choices = self.choices
        made: dict[str, Any] = {}
        what = choices.below(4)
        if what == 1 or (what == 2 and effect == "deny"):
            made["require"] = [choices.pick(NAMES)]
        elif what == 2:
            made[choices.pick(("deny", "allow"))] = [choices.pick(("h", "x*", "*", "CC"))]
        if what != 1:
            made["values"] = {choices.pick(NAMES): self.value() for _ in range(1 + choices.below(2))}
        return made

    def rule(self, number: int) -> dict[str, Any]:
        """One rule."""
        choices = self.choices
        effect = choices.pick(("allow", "deny", "allow"))
        made: dict[str, Any] = {"id": f"r{number}", "effect": effect}
        name = choices.pick((*USUAL, *USUAL, *OPERATIONS))
        kind = OPERATIONS[name]
        made["operations"] = [choices.pick((name, name, name, "*", name.partition(".")[0] + ".*"))]
        what = choices.byte()
        for bit, key in enumerate(kind.attributes):
            if what >> bit & 1:
                made["routingKey" if key == "routing_key" else key] = self.pattern()
        free = [key for key in ("exchange", "routingKey") if key not in made]
        if kind.binds and free and what & 8:
            made["bindTo"] = [{choices.pick(free): self.pattern()} for _ in range(1 + choices.below(2))]
        if kind.declares and what >> 4 & 3 == 3:
            made["passive"] = choices.flag()
        if kind.arguments and what >> 6 & 1:
            made["arguments"] = self.conditions(effect)
        if name == "basic.publish" and what >> 7 & 1:
            made["properties"] = self.content(effect)
        return made

    def content(self, effect: str) -> dict[str, Any]:
        """Conditions on a content header."""
        choices = self.choices
        made: dict[str, Any] = {}
        what = choices.byte()
        if what & 1:
            made[choices.pick(PROPERTIES)] = self.pattern()
        if what & 4 and effect == "allow":
            made["maxBodyBytes"] = choices.pick((0, 10))
        if what >> 3 & 3 == 3:
            made["deliveryMode"] = choices.pick(("1", "2"))
        if what >> 5 & 3 == 3:
            made["require"] = [choices.pick(REQUIRED)]
        if what & 2 or not made:
            made["headers"] = self.conditions(effect)
        return made

    def document(self, number: int) -> dict[str, Any]:
        """A policy."""
        choices = self.choices
        subject: dict[str, Any] = {"user": choices.pick(("bob", "*", "a*", "a.b", "b*"))}
        if choices.rarely():
            subject["vhosts"] = [choices.pick(("prod", "p*", "/"))]
        spec: dict[str, Any] = {
            "subjects": [subject],
            "rules": [self.rule(index) for index in range(1 + choices.below(5))],
        }
        if choices.rarely():
            spec["mode"] = choices.pick(("shadow", "off", "enforce"))
        return {
            "apiVersion": "amqpgate.io/v1alpha1",
            "kind": "AccessPolicy",
            "metadata": {"name": f"p{number}"},
            "spec": spec,
        }

    def field(self, depth: int = 0) -> Field:
        """A value of a table, of any type."""
        choices = self.choices
        what = choices.below(12)
        number = choices.below(16) - 3
        if what < 4:
            text = self.text()
            try:
                return Field("S", text.encode().decode())
            except UnicodeEncodeError:
                return Field("S", text.encode("utf-8", "surrogateescape"))
        if what == 4:
            return Field("I", number)
        if what == 5:
            return Field("t", choices.flag())
        if what == 6:
            return Field("l", number << 33)
        if what == 7 and depth < 2:
            return Field("A", tuple(self.field(depth + 1) for _ in range(choices.below(3))))
        if what == 8:
            return Field("d", float(number))
        if what == 9:
            return Field("D", Decimal(max(0, number)).scaleb(-1))
        if what == 10:
            return Field("T", max(0, number))
        return Field("V", None) if choices.flag() else Field("F", Table((("h", Field("I", number)),)))

    def table(self) -> Table:
        """Headers or arguments."""
        choices = self.choices
        entries = []
        for _ in range(choices.below(4)):
            name = choices.pick(NAMES)
            field = self.field()
            if name in ("CC", "BCC") and field.tag == "S":
                # Without an array RabbitMQ refuses the message.
                field = Field("A", (field,))
            entries.append((name, field))
        return Table(tuple(entries))

    def request(self) -> Request:
        """What a client asks."""
        choices = self.choices
        name = choices.pick((*USUAL, *USUAL, *OPERATIONS))
        kind = OPERATIONS[name]
        names = {attribute: self.text() for attribute in kind.attributes}
        if "queue" in names and choices.below(4) == 3:
            names["queue"] = "amq.gen-x"
        passive = kind.declares and choices.rarely()
        properties, size = None, 0
        if name == "basic.publish":
            size = choices.pick(SIZES)
            properties = self.properties()
        return Request(
            name,
            **names,  # type: ignore[arg-type]
            arguments=self.table() if kind.arguments and not passive else Table(),
            passive=passive,
            foreign=names.get("queue", "").startswith("amq.gen-") and choices.flag(),
            properties=properties,
            body_size=size,
        )

    def properties(self) -> amqp.BasicProperties:
        """Of a message."""
        choices = self.choices
        what = choices.byte()
        return amqp.BasicProperties(
            content_type=self.text() if what & 1 else None,
            headers=self.table() if what & 2 else None,
            delivery_mode=choices.below(4) if what & 4 else None,
            priority=0 if what & 8 else None,
            reply_to=self.text() if what & 16 else None,
            type=self.text() if what & 32 else None,
            user_id=self.text() if what & 64 else None,
            app_id=self.text() if what & 128 else None,
        )


def check(data: bytes) -> None:
    """The gateway allows what the evaluator does."""
    choices = Choices(data)
    principal = choices.pick(PRINCIPALS)
    writer = Writer(choices)
    documents = [writer.document(number) for number in range(1 + choices.below(3))]
    try:
        policies = build([Source("p.yaml", "\n---\n".join(map(json.dumps, documents)).encode())])
    except ConfigError:
        return
    policy = policies.for_principal(principal)
    for _ in range(4):
        request = writer.request()
        got = is_let_through(policy, principal, request)
        try:
            wanted = is_allowed(documents, principal, request)
        except UnsureError:
            continue
        assert got == wanted, (got, principal, request, json.dumps(documents))


def is_let_through(policy: SessionPolicy, principal: Principal, request: Request) -> bool:
    """The gateway's answer, as its session asks for it."""
    operation = Operation(
        principal,
        request.name,
        exchange=request.exchange,
        routing_key=request.routing_key,
        queue=request.queue,
        destination=request.destination,
        arguments=entries_of(request.arguments),
        foreign=request.foreign,
        passive=request.passive,
    )
    if request.properties is None:
        return policy.decide(operation).allowed
    header = encode_header(ContentHeader(60, request.body_size, request.properties))
    admission = policy.admit(operation)
    if not admission.verdict.allowed:
        return False
    if admission.peek is None or not (admission.peek.always or flow_of(admission.peek)._trips(header)):
        return True
    if (
        admission.rules is not None
        and not flow_of(ALWAYS_PEEKED)._trips(header)
        and passes(admission, header)
    ):
        return True
    content = content_of(decode_header(header))
    return policy.decide(
        Operation(
            principal,
            request.name,
            exchange=request.exchange,
            routing_key=request.routing_key,
            content=content,
        )
    ).allowed


def passes(admission: Admission, header: bytes) -> bool:
    """Whether both engines of the data path let it pass by the rules on its header; they must agree."""
    assert admission.peek is not None
    told = as_told(admission.rules, None, admission.peek)
    answers = {made(*told).passes(header) for made in (header_rules.HeaderRules, scanner.HeaderRules)}
    assert len(answers) == 1, (answers, header)
    return answers.pop() >= 0


def flow_of(peek: Peek) -> Flow:
    """What looks for it on the data path."""
    return Flow(
        peek_flags=peek.flags,
        peek_headers=tuple(sorted(name.encode() for name in peek.headers)),
        peek_body=-1 if peek.max_body is None else peek.max_body,
        peek_mode_0=peek.mode_0,
    )
