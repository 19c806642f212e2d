"""Which requests two policy sets answer differently, by example.

The requests are made of what the rules of both sets name, and of names near it: each text that a pattern
means, texts that it just does not mean, and one that nobody knows. The people are made of the subjects in
the same way. Every one is asked of both sets' own engines, so a difference that is shown is one; that none
is shown means that none was found among what was tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

import attrs

from amqpgate.policy.engine.access_rule import Rule
from amqpgate.policy.engine.conditions import Effect, TableConditions
from amqpgate.policy.engine.matching import Values
from amqpgate.policy.engine.operations import (
    OPERATIONS,
    Attribute,
    MessageContent,
    Operation,
    Principal,
    TlsIdentity,
    TokenIdentity,
)
from amqpgate.policy.engine.rules import Verdict, compile_rule
from amqpgate.policy.engine.scalars import ValueMatch
from amqpgate.policy.engine.subjects import NamePattern, Subject
from amqpgate.policy.engine.verdicts import SessionPolicy
from amqpgate.policy.engine.witnesses import STRANGER, examples_of, texts_for
from amqpgate.policy.kinds.access_document import AccessPolicy
from amqpgate.policy.kinds.user_groups import UserGroups
from amqpgate.policy.policy_set import PolicySet
from amqpgate.policy.tools.explain import settled

#: An address that is in no range which is not for all.
ANYWHERE = "192.0.2.1"

#: Requests that are tried at most.
MAX_REQUESTS = 100_000

#: Texts per attribute of a rule, and of one that it does not name.
_TEXTS, _OTHERS = 8, 4

#: People that are made of each subject at most, per attribute.
_PEOPLE = 8


@attrs.frozen
class Answered:
    """A verdict without what only the client is told."""

    effect: Effect
    by: str

    @classmethod
    def of(cls, verdict: Verdict) -> Answered:
        return cls(verdict.effect, verdict.name if verdict.policy is not None else verdict.rule)

    def __str__(self) -> str:
        return f"{self.effect} by {self.by}"


@attrs.define
class Difference:
    """Requests that two rules answer differently."""

    operation: str
    before: Answered
    after: Answered
    found: int = 0
    #: The first few.
    examples: list[Operation] = attrs.field(factory=list)


@attrs.frozen
class Comparison:
    """What was found, and among how many requests."""

    differences: tuple[Difference, ...]
    tried: int
    #: Whether there were more requests to try.
    cut: bool


def compare(before: PolicySet, after: PolicySet, *, shadow: bool = False, examples: int = 3) -> Comparison:
    """The differences between two sets; with ``shadow``, policies in mode shadow count as enforced."""
    before, after = settled(before, shadow=shadow), settled(after, shadow=shadow)
    found: dict[tuple[str, Answered, Answered], Difference] = {}
    tried = 0
    for principal, one, other, rules in _classes(before, after):
        seen = set()
        for operation in _operations(rules, principal):
            key = _key(operation)
            if key in seen:
                continue
            if tried == MAX_REQUESTS:
                return Comparison(tuple(found.values()), tried, True)
            seen.add(key)
            tried += 1
            first, second = one.decide(operation), other.decide(operation)
            if first.effect != second.effect:
                group = (operation.name, Answered.of(first), Answered.of(second))
                difference = found.setdefault(group, Difference(*group))
                difference.found += 1
                if len(difference.examples) < examples:
                    difference.examples.append(operation)
    return Comparison(tuple(found.values()), tried, False)


def _key(operation: Operation) -> tuple[object, ...]:
    return (
        operation.name,
        operation.exchange,
        operation.routing_key,
        operation.queue,
        operation.destination,
        operation.passive,
        str(operation.arguments),
        str(operation.content),
    )


def _classes(
    before: PolicySet, after: PolicySet
) -> Iterator[tuple[Principal, SessionPolicy, SessionPolicy, list[Rule]]]:
    """One person of each kind that some difference can be about, with the rules to make requests of."""
    old = {policy.metadata.name: policy for policy in before.access}
    new = {policy.metadata.name: policy for policy in after.access}
    seen: dict[tuple[int, int], tuple[SessionPolicy, SessionPolicy]] = {}
    for principal in _people(
        [*before.access, *after.access], [*before.membership.documents, *after.membership.documents]
    ):
        one, other = before.for_principal(principal), after.for_principal(principal)
        if (id(one), id(other)) in seen:
            continue
        seen[id(one), id(other)] = one, other  # kept, so that no other one gets its id
        mine = {name: old[name] for name in one.policies}
        theirs = {name: new[name] for name in other.policies}
        rules = [
            rule
            for name in dict.fromkeys([*mine, *theirs])
            if mine.get(name) != theirs.get(name)
            for rule in _changed(mine.get(name), theirs.get(name), principal)
        ]
        if rules or bool(mine) != bool(theirs):
            yield principal, one, other, rules


def _changed(before: AccessPolicy | None, after: AccessPolicy | None, principal: Principal) -> Iterator[Rule]:
    old = before.spec.rules if before is not None else ()
    new = after.spec.rules if after is not None else ()
    if principal.user is None:
        # Whether allow rules count depends on the subjects.
        yield from (*old, *new)
        return
    yield from (rule for rule in old if rule not in new)
    yield from (rule for rule in new if rule not in old)


def _people(policies: Iterable[AccessPolicy], groups: Iterable[UserGroups]) -> Iterator[Principal]:
    """People whom a subject fits, and their neighbours, who differ in one thing."""
    subjects = [subject for policy in policies for subject in policy.spec.subjects]
    users = _names(subject.user for subject in subjects)
    vhosts = _names(name for subject in subjects for name in subject.vhosts or ())
    listeners = _names(name for subject in subjects for name in subject.listeners or ())
    sources = [str(block.network[0]) for subject in subjects for block in subject.source_cidr or ()]
    members = _names(user for one in groups for users in one.spec.groups.values() for user in users)
    yield Principal(STRANGER, "/", ANYWHERE, STRANGER)
    for subject in subjects:
        person = _member(subject)
        yield person
        for user in users[:_PEOPLE]:
            yield attrs.evolve(person, user=user)
        for vhost in vhosts[:_PEOPLE]:
            yield attrs.evolve(person, vhost=vhost)
        for listener in listeners[:_PEOPLE]:
            yield attrs.evolve(person, listener=listener)
        for source in sources[:_PEOPLE]:
            yield attrs.evolve(person, source=source)
        for user in members[:_PEOPLE]:
            yield attrs.evolve(person, user=user, groups=frozenset())
        yield attrs.evolve(person, groups=frozenset())
        yield attrs.evolve(person, token=None)
        yield attrs.evolve(person, tls=None)
        yield attrs.evolve(person, client={})
        yield attrs.evolve(person, user=None)


def _member(subject: Subject) -> Principal:
    tls = None
    if subject.tls is not None:
        said = subject.tls
        names = [_name(said.san)] if said.san is not None else []
        if said.spiffe is not None:
            names.append("URI:" + _name(said.spiffe))
        common = _name(said.common_name) if said.common_name is not None else STRANGER
        tls = TlsIdentity(
            _name(said.subject) if said.subject is not None else f"CN={common}", common, tuple(names)
        )
    return Principal(
        _name(subject.user),
        _name(subject.vhosts[0]) if subject.vhosts else "/",
        str(subject.source_cidr[0].network[0]) if subject.source_cidr else ANYWHERE,
        _name(subject.listeners[0]) if subject.listeners else STRANGER,
        tls,
        {key: _name(pattern) for key, pattern in subject.client.items()},
        groups=frozenset(map(_name, subject.groups or ())),
        token=TokenIdentity(
            frozenset(map(_name, subject.scopes or ())),
            tuple(sorted((claim, (_name(pattern),)) for claim, pattern in subject.claims.items())),
        )
        if subject.scopes or subject.claims
        else None,
    )


def _name(pattern: NamePattern) -> str:
    return pattern.text + "x" if pattern.is_prefix and pattern.text else pattern.text or STRANGER


def _names(patterns: Iterable[NamePattern]) -> list[str]:
    return list(dict.fromkeys([STRANGER, *map(_name, patterns)]))


def _operations(rules: list[Rule], principal: Principal) -> Iterator[Operation]:
    """Requests near the rules, and one of each operation that no rule knows."""
    values = principal.values
    for kind in OPERATIONS.values():
        content = MessageContent() if kind.name == "basic.publish" else None
        yield attrs.evolve(
            Operation(principal, kind.name, content=content),
            exchange=STRANGER if "exchange" in kind.attributes else None,
            routing_key=STRANGER if "routing_key" in kind.attributes else None,
            queue=STRANGER if "queue" in kind.attributes else None,
            destination=STRANGER if "destination" in kind.attributes else None,
        )
    pools = _pools(rules, values)
    for rule in rules:
        for name in dict.fromkeys(name for pattern in rule.operations for name in pattern.names):
            if rule.applies_to(name):
                yield from _near(rule, name, pools, principal, values)


def _pools(rules: list[Rule], values: Values) -> dict[Attribute, list[str]]:
    """Texts for attributes that a rule does not name."""
    pools: dict[Attribute, list[str]] = {
        "exchange": [STRANGER, ""],
        "queue": [STRANGER],
        "destination": [STRANGER],
        "routing_key": [STRANGER, "#"],
    }
    for rule in rules:
        for attribute, match in rule.matches.items():
            text = next(texts_for(match, values), None)
            if text is not None and len(pools[attribute]) < _OTHERS:
                pools[attribute].append(text)
    return pools


def _near(
    rule: Rule, name: str, pools: Mapping[Attribute, list[str]], principal: Principal, values: Values
) -> Iterator[Operation]:
    kind = OPERATIONS[name]
    for variant in compile_rule("", rule, kind, values, on_denied="channel-close", disclosed=False):
        named = {check.attribute: list(texts_for(check.said, values))[:_TEXTS] for check in variant.checks}
        texts = [list(dict.fromkeys([*named.get(one, ()), *pools[one]])) for one in kind.attributes]
        tables: list[dict[str, object]] = [{}]
        if kind.arguments and rule.arguments is not None:
            tables += _tables(rule.arguments)
        contents: list[MessageContent | None] = [None]
        if name == "basic.publish":
            contents = [MessageContent(), *_contents(rule, values)]
        declares = (False, True) if rule.passive is not None else (False,)
        for chosen, table, content, passive in product(product(*texts), tables, contents, declares):
            names = dict(zip(kind.attributes, chosen, strict=True))
            arguments = {} if passive else table
            yield Operation(principal, name, arguments=arguments, content=content, passive=passive, **names)


def _tables(said: TableConditions) -> list[dict[str, object]]:
    """Tables that hold each thing that is spoken of: all that is wanted, and one more or other."""
    wanted: dict[str, object] = dict.fromkeys(said.require, STRANGER)
    wanted |= {name: found[0] for name, match in said.values.items() if (found := _values(match))}
    tables = [wanted] if wanted else []
    tables += [
        {**wanted, pattern.text or STRANGER: STRANGER} for pattern in (*said.deny, *(said.allow or ()))
    ]
    tables += [{**wanted, name: value} for name, match in said.values.items() for value in _values(match)]
    tables.append({**wanted, STRANGER: STRANGER})
    return tables


def _values(match: ValueMatch) -> list[object]:
    if match.literal is not None:
        return [match.literal, STRANGER]
    if match.prefix is not None:
        return [match.prefix + "x", STRANGER]
    if match.regex is not None:
        return [*examples_of(match.regex)[:2], STRANGER]
    bounds = [bound for bound in (match.min, match.max) if bound is not None]
    return [bounds[0], bounds[0] - 1, bounds[-1] + 1]


def _contents(rule: Rule, values: Values) -> Iterator[MessageContent]:
    """Messages that the rule means, and others that differ in one thing."""
    said = rule.properties
    if said is None:
        yield MessageContent(headers={"CC": [STRANGER]})
        return
    properties: dict[str, str | int] = {}
    for name, match in said.texts.items():
        properties[name] = next(texts_for(match, values), STRANGER)
    if said.delivery_mode is not None:
        properties["delivery_mode"] = int(said.delivery_mode)
    size = said.max_body_bytes or 0
    tables = _tables(said.headers) if said.headers is not None else [{}]
    for headers in tables:
        yield MessageContent(size, properties, headers)
    yield MessageContent(size + 1, properties, tables[0])
    yield MessageContent(size, {**properties, "delivery_mode": 3 - int(said.delivery_mode or 1)}, tables[0])
    for name in said.texts:
        yield MessageContent(size, {**properties, name: STRANGER}, tables[0])
        yield MessageContent(size, {key: one for key, one in properties.items() if key != name}, tables[0])
