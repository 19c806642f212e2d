"""From what somebody did to the rules that allow just this.

One rule says what is done with one queue (or one pattern of names), its bindings by ``bindTo``; one what is
published by one exchange with one pattern of keys; one what is done with one exchange. Nothing is denied:
what no rule allows is. Operations that touch no resource need no rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeAlias, TypeVar

import attrs

from amqpgate.pipeline.jobs.bound_with import fold as fold_arguments
from amqpgate.pipeline.jobs.grant import Grant, Target
from amqpgate.pipeline.jobs.names import (
    GENERATED,
    Name,
    NameKind,
    ProposedPattern,
    literal,
    shape_of,
)
from amqpgate.pipeline.jobs.names import fold as fold_names
from amqpgate.pipeline.jobs.templates import (
    DEFAULT,
    WHYS,
    Template,
    TemplateBounds,
    Why,
    Words,
    escaped,
    expression_of,
    topic_of,
)
from amqpgate.pipeline.jobs.templates import fold as fold_keys
from amqpgate.pipeline.jobs.uses import Evidence, Use
from amqpgate.policy.engine.matching import compile_pattern
from amqpgate.policy.engine.operations import OPERATIONS, SERVER_NAMED

#: Queues that the broker has named for others, beyond which all of them are meant.
_FOREIGN = 10

#: What means them: only a rule that does not speak of the broker's names means those of others.
_OTHERS = ProposedPattern("search", rf"\Aamq\.gen-{NameKind.GENERATED.value[:-1]}\z", "values")
#: Likewise, where some have names of another form.
_ALL_OTHERS = ProposedPattern("prefix", "amq.", "values")

_EXCHANGES = ("exchange.declare", "exchange.delete")
_BINDS = tuple(name for name, kind in OPERATIONS.items() if kind.binds)

#: What speaks of an exchange.
_OF_EXCHANGES = frozenset((*_EXCHANGES, *_BINDS))

_T = TypeVar("_T")


def grants(uses: Collection[Use], bounds: TemplateBounds = DEFAULT) -> list[Grant]:
    """The rules for one user and vhost, in the order: publish, queues, exchanges."""
    uses = [use for use in uses if _is_named(use)]
    exchanges = _fold_exchanges(uses, bounds)
    found = [
        *_publishes([use for use in uses if use.operation == "basic.publish"], exchanges, bounds),
        *_queues([use for use in uses if use.queue is not None], exchanges, bounds),
        *_exchanges([use for use in uses if use.operation in _EXCHANGES], exchanges),
        *_feeds([use for use in uses if use.destination is not None], exchanges, bounds),
    ]
    return _named(found)


def _is_named(use: Use) -> bool:
    """Whether it says all that a rule would: of what a record does not name nothing is allowed."""
    if use.operation == "basic.publish":
        return use.exchange is not None and (use.key_name is not None or use.routing_key is not None)
    needs_exchange = use.destination is not None or use.operation in _OF_EXCHANGES
    return use.exchange is not None or not needs_exchange


def _fold_exchanges(uses: Iterable[Use], bounds: TemplateBounds) -> dict[str, ProposedPattern]:
    names = {name for use in uses for name in (use.exchange, use.destination) if name is not None}
    # Names that RabbitMQ gives to exchanges are few and well known.
    folded = _absorbed(fold_names([(name,) for name in names if not name.startswith("amq.")], bounds))
    return {name: folded.get((name,)) or literal(name) for name in names}


# -- publishing ------------------------------------------------------------------------------


def _publishes(
    uses: list[Use], exchanges: dict[str, ProposedPattern], bounds: TemplateBounds
) -> Iterator[Grant]:
    for exchange, of_exchange in _grouped(uses, lambda use: exchanges[use.exchange or ""]):
        keys = _key_patterns(of_exchange, bounds)
        of_keys: dict[ProposedPattern, list[Use]] = {}
        for use in of_exchange:
            of_keys.setdefault(keys[_key_of(use)], []).append(use)
        for key, of_key in sorted(of_keys.items(), key=lambda one: _order(one[0])):
            yield Grant(
                id="publish-" + (exchange.label or "to-queue"),
                operations=("basic.publish",),
                exchange=exchange,
                routing_key=key,
                evidence=_sum(of_key),
                because=tuple(dict.fromkeys(use.because for use in of_key if use.because is not None)),
            )


_Key: TypeAlias = "tuple[object, bool]"


def _key_of(use: Use) -> _Key:
    return (use.key_name if use.key_name is not None else use.routing_key), use.any_key


def _key_patterns(uses: list[Use], bounds: TemplateBounds) -> dict[_Key, ProposedPattern]:
    """The pattern of each key: none lies within another."""
    names = fold_names({use.key_name for use in uses if use.key_name is not None}, bounds)
    templates = _templates(uses, bounds)
    # Of these nobody knows which keys they stand for.
    wild = {templates[use.routing_key].words for use in uses if use.any_key and use.routing_key is not None}
    patterns: dict[_Key, ProposedPattern] = {}
    for use in uses:
        if use.key_name is not None:
            patterns[_key_of(use)] = names[use.key_name]
        elif use.routing_key is not None:
            template = templates[use.routing_key]
            pattern = _key_pattern(template, is_binding=False)
            if template.words in wild and pattern.topic is not None:
                pattern = ProposedPattern("topic", pattern.topic, pattern.why)
            patterns[_key_of(use)] = pattern
    return _absorbed(patterns)


def _templates(uses: list[Use], bounds: TemplateBounds) -> dict[Words, Template]:
    """The template of each routing key."""
    found = fold_keys({use.routing_key for use in uses if use.routing_key is not None}, bounds)
    whys: dict[Words, Why] = {}
    for use in uses:
        if use.routing_key is not None:
            template = found[use.routing_key]
            known = whys.get(template.words, template.why)
            whys[template.words] = max(known, use.key_why, key=WHYS.index)
    return {key: attrs.evolve(template, why=whys[template.words]) for key, template in found.items()}


def _key_pattern(template: Template, *, is_binding: bool) -> ProposedPattern:
    """A binding key is allowed as it is written, but for ids in it, and not what else it could catch."""
    if template.why == "seen" and (is_binding or all(isinstance(word, str) for word in template.words)):
        return literal(str(template))
    topic = topic_of(template.words)
    expression = expression_of(template.words, is_binding=is_binding)
    if expression is None or (is_binding and template.why != "ids"):
        return ProposedPattern("topic", topic, template.why)
    if is_binding:
        return ProposedPattern("search", rf"\A{expression}\z", template.why, topic)
    return ProposedPattern("regex", expression, template.why, topic)


def _absorbed(patterns: dict[_T, ProposedPattern]) -> dict[_T, ProposedPattern]:
    """Each pattern replaced by a wider one that is there as well."""
    alike: dict[tuple[str, str], ProposedPattern] = {}
    for pattern in patterns.values():
        known = alike.setdefault((pattern.form, pattern.text), pattern)
        alike[pattern.form, pattern.text] = max(known, pattern, key=lambda one: WHYS.index(one.why))
    wide = [pattern for pattern in alike.values() if pattern.form != "literal"]
    into: dict[ProposedPattern, ProposedPattern] = {}
    for one in alike.values():
        for other in wide:
            # One that is gone takes no other one in, so that of two that mean the same one stays.
            if other is not one and other not in into and _lies_within(one, other):
                into[one] = other
                break
    return {key: _end_of(into, alike[pattern.form, pattern.text]) for key, pattern in patterns.items()}


def _lies_within(one: ProposedPattern, other: ProposedPattern) -> bool:
    if other.text == "#" and other.form == "topic":
        return True
    if one.form == other.form == "prefix":
        return one.text.startswith(other.text)
    if one.form == "regex" and other.form == "prefix":
        return one.text.startswith(escaped(other.text))
    matcher = compile_pattern(other.form, other.text, {})
    assert matcher is not None
    if one.topic is not None:
        return other.form == "topic" and matcher.covers(one.topic)
    return one.form in ("literal", "topic") and matcher.covers(one.text)


def _end_of(into: dict[ProposedPattern, ProposedPattern], pattern: ProposedPattern) -> ProposedPattern:
    while pattern in into:
        pattern = into[pattern]
    return pattern


# -- queues ----------------------------------------------------------------------------------


def _queues(
    uses: list[Use], exchanges: dict[str, ProposedPattern], bounds: TemplateBounds
) -> Iterator[Grant]:
    own = _absorbed(
        fold_names({use.queue for use in uses if use.queue is not None and not use.foreign}, bounds)
    )
    others = {use.queue for use in uses if use.queue is not None and use.foreign}
    is_known = all(_is_generated(queue) for queue in others)
    all_others = _OTHERS if is_known else _ALL_OTHERS

    def pattern_of(use: Use) -> ProposedPattern:
        assert use.queue is not None
        if not use.foreign:
            return own[use.queue]
        text = "".join(part for part in use.queue if isinstance(part, str))
        exact = len(others) <= _FOREIGN and use.queue == (text,)
        return literal(text) if exact else all_others

    for queue, of_queue in _grouped(uses, pattern_of):
        plain = [use for use in of_queue if use.bound_with is None]
        yield from _of_queue(queue, plain, exchanges, bounds)
        for grant in _bound_with(of_queue, exchanges, bounds):
            yield attrs.evolve(grant, id=f"queue-{_own(queue)}-{grant.id}", queue=queue)


def _own(queue: ProposedPattern) -> str:
    return "own" if queue.label == SERVER_NAMED else queue.label


def _bound_with(
    uses: list[Use], exchanges: dict[str, ProposedPattern], bounds: TemplateBounds
) -> Iterator[Grant]:
    """What was bound with arguments, and taken back."""
    folded = fold_arguments({use.bound_with for use in uses if use.bound_with is not None}, bounds)
    bound = [use for use in uses if use.bound_with is not None]
    for (arguments, operation), alike in _grouped(
        bound, lambda use: (folded[use.bound_with], use.operation) if use.bound_with else (None, "")
    ):
        yield Grant(
            id=f"{operation.partition('.')[2]}-with",
            operations=(operation,),
            bind_to=_targets(alike, exchanges, bounds),
            arguments=arguments,
            evidence=_sum(alike),
        )


def _is_generated(queue: Name) -> bool:
    """Whether it has the form of the names that RabbitMQ gives."""
    text = "".join(part for part in queue if isinstance(part, str))
    return queue == GENERATED or (queue == (text,) and shape_of(text)[0] == shape_of(SERVER_NAMED)[0])


def _of_queue(
    queue: ProposedPattern, uses: list[Use], exchanges: dict[str, ProposedPattern], bounds: TemplateBounds
) -> Iterator[Grant]:
    targets = {
        operation: _targets([use for use in uses if use.operation == operation], exchanges, bounds)
        for operation in _BINDS
    }
    binding = [operation for operation, found in targets.items() if found]
    declares = [use for use in uses if use.operation == "queue.declare"]
    only_asks = bool(declares) and all(use.passive for use in declares)
    name = "queue-" + _own(queue)
    if only_asks:
        yield Grant(
            id=name + "-ask",
            operations=("queue.declare",),
            queue=queue,
            passive=True,
            evidence=_sum(declares),
        )
    plain = _ordered(
        use.operation
        for use in uses
        if use.operation not in _BINDS and not (only_asks and use.operation == "queue.declare")
    )
    # One rule says it all, unless bindings are taken back that were not made, or the other way round.
    together = [operation for operation in binding if targets[operation] == targets[binding[0]]]
    first = (*plain, *together)
    if first:
        yield Grant(
            id=name,
            operations=_ordered(first),
            queue=queue,
            bind_to=targets[together[0]] if together else (),
            evidence=_sum(use for use in uses if use.operation in first),
        )
    for operation in binding:
        if operation not in together:
            yield Grant(
                id=f"{name}-{operation.partition('.')[2]}",
                operations=(operation,),
                queue=queue,
                bind_to=targets[operation],
                evidence=_sum(use for use in uses if use.operation == operation),
            )


def _targets(
    uses: list[Use], exchanges: dict[str, ProposedPattern], bounds: TemplateBounds
) -> tuple[Target, ...]:
    found: list[Target] = []
    for exchange, of_exchange in _grouped(uses, lambda use: exchanges[use.exchange or ""]):
        templates = _templates(of_exchange, bounds)
        patterns = {key: _key_pattern(template, is_binding=True) for key, template in templates.items()}
        kept = dict.fromkeys(_absorbed(patterns).values())
        found += [(exchange, key) for key in sorted(kept, key=lambda one: (one.form, one.text))]
    return tuple(found)


# -- exchanges -------------------------------------------------------------------------------


def _exchanges(uses: list[Use], exchanges: dict[str, ProposedPattern]) -> Iterator[Grant]:
    for exchange, of_exchange in _grouped(uses, lambda use: exchanges[use.exchange or ""]):
        declares = [use for use in of_exchange if use.operation == "exchange.declare"]
        only_asks = bool(declares) and all(use.passive for use in declares)
        name = "exchange-" + (exchange.label or "default")
        if only_asks:
            yield Grant(
                id=name + "-ask",
                operations=("exchange.declare",),
                exchange=exchange,
                passive=True,
                evidence=_sum(declares),
            )
        rest = [use for use in of_exchange if not (only_asks and use.operation == "exchange.declare")]
        if rest:
            yield Grant(
                id=name,
                operations=_ordered(use.operation for use in rest),
                exchange=exchange,
                evidence=_sum(rest),
            )


def _feeds(uses: list[Use], exchanges: dict[str, ProposedPattern], bounds: TemplateBounds) -> Iterator[Grant]:
    for destination, of_destination in _grouped(uses, lambda use: exchanges[use.destination or ""]):
        for grant in _bound_with(of_destination, exchanges, bounds):
            yield attrs.evolve(grant, id=f"{grant.id}-{destination.label}", destination=destination)
        plain = [use for use in of_destination if use.bound_with is None]
        for operation, of_operation in _grouped(plain, lambda use: use.operation):
            yield Grant(
                id=f"{operation.partition('.')[2]}-{destination.label}",
                operations=(operation,),
                destination=destination,
                bind_to=_targets(of_operation, exchanges, bounds),
                evidence=_sum(of_operation),
            )


# -- all of them -----------------------------------------------------------------------------


def _grouped(uses: Iterable[Use], key: Callable[[Use], _T]) -> list[tuple[_T, list[Use]]]:
    groups: dict[_T, list[Use]] = {}
    for use in uses:
        groups.setdefault(key(use), []).append(use)
    return sorted(groups.items(), key=lambda one: _order(one[0]))


def _order(key: object) -> tuple[str, str]:
    return (key.text, key.form) if isinstance(key, ProposedPattern) else (str(key), "")


def _ordered(operations: Iterable[str]) -> tuple[str, ...]:
    found = set(operations)
    return tuple(name for name in OPERATIONS if name in found)


def _sum(uses: Iterable[Use]) -> Evidence:
    first, *rest = (use.evidence for use in uses)
    for one in rest:
        first |= one
    return first


def _named(found: list[Grant]) -> list[Grant]:
    """Each with an id of its own, of letters that need no quotes."""
    taken: set[str] = set()
    named = []
    for grant in found:
        base = re.sub(r"[^a-z0-9.-]+", "-", grant.id.lower())[:60].strip("-.")
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        taken.add(name)
        named.append(attrs.evolve(grant, id=name))
    return named
