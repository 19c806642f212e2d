"""What somebody did, as `grants` makes rules of it: one request, or many alike, with the evidence."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, TypeAlias

import attrs

from amqpgate.pipeline.jobs.bound_with import ProposedArguments
from amqpgate.pipeline.jobs.names import Name
from amqpgate.pipeline.jobs.templates import Why, Words

Confidence: TypeAlias = Literal["high", "medium", "low"]


@attrs.frozen
class Evidence:
    """How often, and when."""

    requests: int
    messages: int
    first: datetime
    last: datetime
    #: Different requests.
    kinds: int = 1

    def __or__(self, other: Evidence) -> Evidence:
        return Evidence(
            self.requests + other.requests,
            self.messages + other.messages,
            min(self.first, other.first),
            max(self.last, other.last),
            self.kinds + other.kinds,
        )

    def confidence(self, why: Why) -> Confidence:
        """How sure it is that the same will be asked again, and nothing else.

        High: a hundred times and more over a week and more, and at most ids are folded. Low: less than ten
        times, or keys that have little in common had to be folded. Medium: the rest.
        """
        if self.requests < 10 or why == "keys":
            return "low"
        steady = self.requests >= 100 and self.last - self.first >= timedelta(days=7)
        return "high" if steady and why in ("seen", "ids") else "medium"


@attrs.frozen(kw_only=True)
class Use:
    """One operation on one set of names."""

    user: str
    vhost: str
    operation: str
    evidence: Evidence
    exchange: str | None = None
    destination: str | None = None
    queue: Name | None = None
    #: Of the default exchange, routing keys are names of queues: `key_name`.
    routing_key: Words | None = None
    key_name: Name | None = None
    #: Why the routing key has wildcards that nobody wrote.
    key_why: Why = "seen"
    #: Of a binding, its arguments; None where it has none.
    bound_with: ProposedArguments | None = None
    passive: bool = False
    #: The queue was named by the broker for somebody else.
    foreign: bool = False
    #: The routing key stands for all that it catches: a template of the gateway's, any key of dead letters.
    any_key: bool = False
    #: Why this was needed, where it was not asked for: ``dead letters of queue 'orders'``.
    because: str | None = None
