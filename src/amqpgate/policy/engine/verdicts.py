"""Verdicts: deny overrides, default deny, order-free.

A policy selects a session if one of its subjects fits. A session that no policy selects may do everything,
or, where ``defaultAccess`` is ``deny``, nothing, not even open its connection. Else an operation is denied
if any deny rule of the selected policies matches, allowed if any allow rule does, and denied by default; but
what touches no resource (`OperationType.free`) is allowed by default.

A session whose user the gateway does not know is selected, to be safe, by every policy whose user it
could be: their deny rules hold for it, and their allow rules only if the policy is for any user.

Some operations lead to others, which must be allowed as well: a queue's dead letters and what an exchange
cannot route are published to other exchanges; the headers CC and BCC are more routing keys.

What begins with `DELAY_LADDER` leads to every exchange that delays: only a rule that names it so allows it.

`SessionPolicy` is made once per set of selected policies and shared by all sessions with that set; a
decision costs the same for ten rules and for ten thousand (`rules`).

A denied client reads what RabbitMQ 3.10.8 writes for the same denial, word for word
(rabbit_access_control:check_resource_access and check_topic_access): neither it nor the person who reads its
log can tell who denied it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import attrs

from amqpgate.policy.engine.access_rule import DEFAULT_ACCESS, DEFAULT_RULE, OnDenied
from amqpgate.policy.engine.conditions import ALWAYS_PEEKED, CompiledConditions, ContentRules, Peek
from amqpgate.policy.engine.operations import (
    DELAY_LADDER,
    OPERATIONS,
    SERVER_NAMED,
    Attribute,
    Operation,
    OperationType,
    every,
    text_of,
)
from amqpgate.policy.engine.rules import CompiledRule, RuleIndex, Verdict
from amqpgate.values import frozen

#: What a session that no policy selects hears.
UNRESTRICTED = Verdict("allow", None, DEFAULT_RULE)

#: What it hears where the default is to deny.
UNSELECTED = Verdict("deny", None, DEFAULT_ACCESS)

#: Forms of patterns that name the queues that they mean, whoever has them.
_NAMING: Final = ("literal", "search")

#: Forms of patterns whose text says how the names begin that they mean.
_BEGINNING: Final = ("literal", "prefix", "topic", "within")

#: Arguments of a declare that make messages go to another exchange: the exchange, and its routing key.
_LEADS_TO = {
    "queue.declare": ("x-dead-letter-exchange", "x-dead-letter-routing-key"),
    "exchange.declare": ("alternate-exchange", None),
}

#: The default exchange, whose name is empty, as RabbitMQ's permissions know it.
DEFAULT_EXCHANGE: Final = "amq.default"

#: Answers to publishes that are kept, of each set of policies that select: clients choose the names in them,
#: of 255 bytes each.
MOST_ADMITTED: Final = 64

#: The reply code by which a channel is closed where an operation is denied; and that of what closes the
#: connection, or would (AMQP 0-9-1, section 1.2).
DENIED: Final = 403
DENIED_CONNECTIONS: Final[Mapping[str, int]] = dict.fromkeys(
    ("connection.open", "connection.update-secret", "channel.open"), 530
)

#: Exchanges of one declare that are judged each for itself.
_MOST_EXCHANGES: Final = 4


@frozen
class Admission:
    """The answer to a publish of which only the method has come."""

    verdict: Verdict
    #: Of a message that is allowed: when it must be judged again, with its content header.
    peek: Peek | None = None
    #: How that comes out, but for what `ALWAYS_PEEKED` means; None: no rule asks for the content header.
    rules: ContentRules | None = None


def _means_others(rule: CompiledRule, operation: Operation) -> bool:
    """Whether an allow rule that matches a server-named queue means those of other connections, too.

    What a pattern (prefix, topic, regex) allows for the names that the broker gives is meant for one's own.
    A rule that names the queue, or that does not speak of such names at all, means everybody's.
    """
    # As the rule says it: an exception makes no name of a pattern. ``search`` means what RabbitMQ's does.
    if any(check.attribute == "queue" and check.said.given[0] in _NAMING for check in rule.checks):
        return True
    return rule.matches(attrs.evolve(operation, queue="amq.", foreign=False))


def _of_ladder(operation: Operation) -> tuple[Attribute, ...]:
    """The attributes with a name of the delay ladder's. A message may take its routing key to a queue of that
    name later: when it is a dead letter."""
    key = operation.routing_key if operation.name == "basic.publish" else None
    names: tuple[tuple[Attribute, str | None], ...] = (
        ("exchange", operation.exchange),
        ("queue", operation.queue),
        ("destination", operation.destination),
        ("routing_key", key),
    )
    return tuple([attribute for attribute, name in names if name and name.startswith(DELAY_LADDER)])


def _means_ladder(rule: CompiledRule, attributes: tuple[Attribute, ...]) -> bool:
    """Whether an allow rule means names of the delay ladder's, and not only any names."""
    patterns = {check.attribute: check.said.given for check in rule.checks}
    said = [patterns.get(attribute, ("", "")) for attribute in attributes]
    return all(form in _BEGINNING and text.startswith(DELAY_LADDER) for form, text in said)


class OperationRules:
    """The rules that speak of one operation."""

    def __init__(self, kind: OperationType, deny: list[CompiledRule], allow: list[CompiledRule]) -> None:
        self.kind = kind
        self.deny = RuleIndex(deny, "deny")
        self.allow = RuleIndex(allow, "allow")
        #: Whether all of them are allowed: no rule speaks of them, none needs to, and they name nothing.
        self.is_free = kind.free and not (kind.attributes or deny or allow)
        # Made with the rest, which happens off the data path's thread; a first denial is no time for it.
        self._partial = [
            RuleIndex(_first_checks(self.allow.rules, kind.attributes[: position + 1]), "allow")
            for position in range(len(kind.attributes))
        ]

    def denied_attribute(self, operation: Operation) -> Attribute | None:
        """The first attribute, in RabbitMQ's order, at which no allow rule is left."""
        for attribute, index in zip(self.kind.attributes, self._partial, strict=True):
            if not any(rule.names_match(operation) for rule in index.candidates(operation)):
                return attribute
        return self.kind.attributes[0] if self.kind.attributes else None


def _first_checks(rules: Iterable[CompiledRule], attributes: Sequence[Attribute]) -> list[CompiledRule]:
    """The rules with their checks of these attributes alone, each once."""
    found = {}
    for rule in rules:
        checks = tuple([check for check in rule.checks if check.attribute in attributes])
        found[rule.passive, *(check.key for check in checks)] = attrs.evolve(
            rule, checks=checks, arguments=None, content=None
        )
    return list(found.values())


@frozen(eq=False)
class SessionPolicy:
    """What one session may do."""

    #: Names of the policies that selected the session, sorted.
    policies: tuple[str, ...]
    _rules: dict[str, OperationRules]
    #: What happens to a publish that no rule allows, and whether the client is told so.
    _on_denied: OnDenied = "channel-close"
    _disclosed: bool = False
    #: Every decision, where no policy selects the session.
    _unselected: Verdict = UNRESTRICTED
    #: What was answered to publishes lately, by exchange and routing key: each session asks it anew.
    _admitted: dict[tuple[str | None, str | None], Admission] = attrs.field(
        factory=dict, init=False, repr=False
    )

    @property
    def unrestricted(self) -> bool:
        """No policy selects the session, and none need: every decision is allow."""
        return not self.policies and self._unselected.allowed

    def is_free(self, operation: str) -> bool:
        """Whether all operations of that name are allowed, with nothing to tell of it."""
        if not self.policies:
            return self._unselected.allowed
        rules = self._rules.get(operation)
        return rules is not None and rules.is_free

    def may_ever(self, operations: Iterable[str]) -> bool:
        """Whether there is a rule that allows one of these operations of anything."""
        return not self.policies or any(self._rules[name].allow.rules for name in operations)

    def decide(self, operation: Operation) -> Verdict:
        """May the session do this? What `OPERATIONS` does not list is denied if any policy selects.

        A publish without its content header is judged as a message of which nothing is known: see `admit`.
        """
        if not self.policies:
            return self._unselected
        if self.is_free(operation.name):
            return UNRESTRICTED
        for one in chain([operation], further(operation)):
            verdict = self.judge(one)
            if not verdict.allowed:
                return verdict if one is operation else attrs.evolve(verdict, about=one)
            if one is operation:
                first = verdict
        return first

    def admit(self, operation: Operation) -> Admission:
        """The answer to a publish of which only the method has come: its exchange and its routing key."""
        if operation.any_key:
            return self._admit(operation)
        key = operation.exchange, operation.routing_key
        known = self._admitted.get(key)
        if known is None:
            known = self._admit(operation)
            if len(self._admitted) >= MOST_ADMITTED:
                self._admitted.clear()
            self._admitted[key] = known
        return known

    def _admit(self, operation: Operation) -> Admission:
        if not self.policies:
            return Admission(self._unselected)
        rules = self._rules[operation.name]
        ambiguous = self._ambiguous(operation)
        if ambiguous is not None:
            return Admission(ambiguous)
        peek = ALWAYS_PEEKED
        denies: list[CompiledConditions] = []
        for rule in rules.deny.candidates(operation):
            if rule.names_match(operation):
                if rule.content is None:
                    return Admission(rule.verdict)
                peek |= rule.content.peek
                denies.append(rule.content)
        conditional: CompiledRule | None = None
        allows: list[CompiledConditions | None] = []
        ladder = _of_ladder(operation)
        for rule in rules.allow.candidates(operation):
            if rule.names_match(operation) and (not ladder or _means_ladder(rule, ladder)):
                allows.append(rule.content)
                if rule.content is None:
                    asked = ContentRules(tuple(denies), tuple(allows), len(allows) - 1) if denies else None
                    return Admission(rule.verdict, peek, asked)
                conditional = conditional or rule
        if conditional is None or conditional.content is None:
            return Admission(self._denial(ladder[0]) if ladder else self._default(operation, rules))
        peek |= conditional.content.peek
        return Admission(conditional.verdict, peek, ContentRules(tuple(denies), tuple(allows), 0))

    def judge(self, operation: Operation) -> Verdict:
        """The verdict on this alone, whatever it leads to."""
        if not self.policies:
            return self._unselected
        rules = self._rules.get(operation.name)
        if rules is None:
            return self._denial(None)
        operation = as_judged(operation)
        ambiguous = self._ambiguous(operation)
        if ambiguous is not None:
            return ambiguous
        for rule in rules.deny.candidates(operation):
            if rule.matches(operation):
                return rule.verdict
        ladder = _of_ladder(operation)
        for rule in rules.allow.candidates(operation):
            if not rule.matches(operation) or (operation.foreign and not _means_others(rule, operation)):
                continue
            if not ladder or _means_ladder(rule, ladder):
                return rule.verdict
        return self._denial(ladder[0]) if ladder else self._default(operation, rules)

    def _default(self, operation: Operation, rules: OperationRules) -> Verdict:
        return UNRESTRICTED if rules.kind.free else self._denial(rules.denied_attribute(operation))

    def _denial(self, attribute: Attribute | None) -> Verdict:
        return Verdict("deny", None, DEFAULT_RULE, attribute, None, self._on_denied, self._disclosed)

    def _ambiguous(self, operation: Operation) -> Verdict | None:
        """A name with CR or LF in it: RabbitMQ strips them in some methods, so it would use another name."""
        names: tuple[tuple[Attribute, str | None], ...] = (
            ("exchange", operation.exchange),
            ("queue", operation.queue),
            ("destination", operation.destination),
        )
        for attribute, name in names:
            if name and ("\n" in name or "\r" in name):
                return self._denial(attribute)
        return None


def as_judged(operation: Operation) -> Operation:
    """The operation with the names that rules are asked about."""
    if operation.queue == "" and operation.name == "queue.declare":
        return attrs.evolve(operation, queue=SERVER_NAMED)
    return operation


def further(operation: Operation) -> Iterator[Operation]:
    """The publishes that an operation leads to."""
    if operation.content is not None:
        for more in operation.content.more_keys:
            yield attrs.evolve(operation, routing_key=more)
    elif operation.name in _LEADS_TO and operation.arguments:
        exchange_name, key_name = _LEADS_TO[operation.name]
        exchanges: list[str] | list[None] = _texts(operation.arguments, exchange_name)
        keys = _texts(operation.arguments, key_name) if key_name is not None else []
        key = keys[0] if len(keys) == 1 else None
        # Brokers differ in which of several counts. A declare with many is judged as one to any exchange.
        for exchange in exchanges if len(exchanges) <= _MOST_EXCHANGES else [None]:
            yield Operation(
                operation.principal,
                "basic.publish",
                exchange=exchange,
                routing_key="#" if key is None else key,
                any_key=key is None,
                any_content=True,
            )


def _texts(arguments: Mapping[str, object], name: str) -> list[str]:
    """The names or keys that an argument gives. RabbitMQ rejects the declare where it is of another type."""
    texts = (text_of(value) for value in every(arguments, name))
    return list(dict.fromkeys(text for text in texts if text is not None))


def denial_text(operation: Operation, verdict: Verdict) -> str:
    """The reply text of channel.close 403, without the ``ACCESS_REFUSED - `` in front."""
    operation = verdict.about or operation
    vhost = operation.principal.vhost
    kind = OPERATIONS.get(operation.name)
    attribute = verdict.attribute or (kind.attributes[0] if kind is not None and kind.attributes else None)
    exchange = f"exchange '{operation.exchange or DEFAULT_EXCHANGE}' in vhost '{vhost}'"
    if attribute == "queue":
        what = f"queue '{operation.queue or SERVER_NAMED}' in vhost '{vhost}'"
    elif attribute == "destination":
        what = f"exchange '{operation.destination or DEFAULT_EXCHANGE}' in vhost '{vhost}'"
    elif attribute == "exchange":
        what = exchange
    elif attribute == "routing_key":
        what = f"topic '{operation.routing_key or ''}' in {exchange}"
    elif operation.name == "connection.open":
        what = f"vhost '{vhost}'"
    else:
        what = f"{operation.name} in vhost '{vhost}'"
    why = f" by {verdict.name}" if verdict.disclosed else ""
    return f"access to {what} refused for user '{operation.principal.user or ''}'{why}"
