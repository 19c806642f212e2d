"""One allow rule that is proposed, with the evidence for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from amqpgate.pipeline.jobs.bound_with import ProposedArguments
from amqpgate.pipeline.jobs.names import ProposedPattern, has_an_id
from amqpgate.pipeline.jobs.templates import WHYS, Why, looks_like_an_id, words_of
from amqpgate.pipeline.jobs.uses import Evidence

#: What a queue may be bound to: exchange and binding key.
Target: TypeAlias = "tuple[ProposedPattern, ProposedPattern]"


@attrs.frozen(kw_only=True)
class Grant:
    """One allow rule, and why it is there."""

    id: str
    operations: tuple[str, ...]
    evidence: Evidence
    exchange: ProposedPattern | None = None
    queue: ProposedPattern | None = None
    destination: ProposedPattern | None = None
    routing_key: ProposedPattern | None = None
    bind_to: tuple[Target, ...] = ()
    arguments: ProposedArguments | None = None
    passive: bool = False
    because: tuple[str, ...] = ()

    @property
    def why(self) -> Why:
        """Why it is as wide as its widest pattern."""
        given = [self.exchange, self.queue, self.destination, self.routing_key]
        given += [pattern for target in self.bind_to for pattern in target]
        whys = [one.why for one in (*given, self.arguments) if one is not None]
        return max(whys, key=WHYS.index, default="seen")

    @property
    def has_lone_id(self) -> bool:
        """Whether something stands for itself that looks like an id, as no other was seen in its place."""
        to_queues = self.exchange is not None and self.exchange.text == ""
        names = [self.exchange, self.queue, self.destination, *(exchange for exchange, _ in self.bind_to)]
        keys: list[ProposedPattern | None] = [key for _, key in self.bind_to]
        (names if to_queues else keys).append(self.routing_key)
        return any(has_an_id(text) for text in _literals(names)) or any(
            looks_like_an_id(word) for text in _literals(keys) for word in words_of(text)
        )


def _literals(patterns: Iterable[ProposedPattern | None]) -> Iterator[str]:
    return (one.text for one in patterns if one is not None and one.form == "literal")
