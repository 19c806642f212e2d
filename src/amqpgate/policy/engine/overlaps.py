"""Denials that take a part of what another rule allows, each with a request that both mean.

Most are meant: an exception is written as a deny. The request is asked of the compiled rules, so what is
shown is so; some overlaps may not be found.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from amqpgate.policy.engine.access_rule import Rule
from amqpgate.policy.engine.conditions import Match
from amqpgate.policy.engine.operations import OPERATIONS, Attribute, MessageContent, Operation, Principal
from amqpgate.policy.engine.rules import CompiledRule, compile_rule
from amqpgate.policy.engine.witnesses import STRANGER, texts_for

_SOMEBODY = Principal("some-user", "/", "192.0.2.1", "some-listener")
_VALUES = _SOMEBODY.values

#: Texts that are tried per attribute.
_TEXTS = 10


def common_request(allow: Rule, deny: Rule, operation: str) -> Operation | None:
    """A request of this operation that both rules match, as far as names go; None where none is found."""
    for one, other in product(_variants(allow, operation), _variants(deny, operation)):
        for request in _requests(one, other, operation):
            if one.matches(request) and other.matches(request):
                return request
    return None


def _variants(rule: Rule, operation: str) -> list[CompiledRule]:
    kind = OPERATIONS[operation]
    return compile_rule("", rule, kind, _VALUES, on_denied="channel-close", disclosed=False)


def _requests(one: CompiledRule, other: CompiledRule, operation: str) -> Iterator[Operation]:
    kind = OPERATIONS[operation]
    said: dict[Attribute, list[Match]] = {attribute: [] for attribute in kind.attributes}
    for check in (*one.checks, *other.checks):
        said[check.attribute].append(check.said)
    texts = [list(dict.fromkeys(_texts(said[attribute]))) or [STRANGER] for attribute in kind.attributes]
    for chosen in product(*texts):
        names = dict(zip(kind.attributes, chosen, strict=True))
        yield Operation(
            _SOMEBODY,
            operation,
            exchange=names.get("exchange"),
            routing_key=names.get("routing_key"),
            queue=names.get("queue"),
            destination=names.get("destination"),
            content=MessageContent() if operation == "basic.publish" else None,
        )


def _texts(matches: list[Match]) -> Iterator[str]:
    """Texts that one of the patterns means; wildcards of topics stand for words of the others, too."""
    for match in matches:
        yield from list(texts_for(match, _VALUES))[:_TEXTS]
    words = {word for match in matches for word in match.given[1].split(".")} - {"*", "#"}
    for match in matches:
        form, text = match.given
        if form in ("topic", "within"):
            for filling in sorted(words)[:_TEXTS]:
                yield ".".join(filling if word in ("*", "#") else word for word in text.split("."))
