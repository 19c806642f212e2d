"""A rule, a conversation that tries it, and what may come of it.

A conversation ends in an *outcome*: a few words that say what the peer did, as ``peer.Peer.outcome`` gives
them. What the rule allows, and what RabbitMQ is known to do in its place, are patterns of such outcomes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal, Protocol, TypeAlias

import attrs

from amqpgate.conformance.talk import Talk
from amqpgate.conformance.versions import Name

#: ``obeys``: as the rule says. ``as RabbitMQ``: not so, but as RabbitMQ does. ``deviates``: neither.
#: ``untestable``: what the rule is about cannot be had from this peer.
Verdict: TypeAlias = Literal["obeys", "as RabbitMQ", "deviates", "untestable"]

VERDICTS: Final[tuple[Verdict, ...]] = ("obeys", "as RabbitMQ", "deviates", "untestable")

#: How much a rule asks: a deviation from a *should* counts with ``--strict`` alone.
Strength: TypeAlias = Literal["must", "should"]

Conversation: TypeAlias = Callable[[Talk], Awaitable[str]]


@attrs.frozen(kw_only=True, eq=False)
class ConformanceRule:
    """One rule, however it is tried."""

    #: Its path in the specification: class, method, field, and a name of its own.
    id: str
    #: What it asks for, in our words.
    title: str
    #: Where the specification has it.
    section: str
    strength: Strength
    versions: tuple[Name, ...]
    #: Patterns of outcomes, as of `fnmatch`.
    obeys: tuple[str, ...]
    #: What RabbitMQ does where it is something else, and why that is known.
    rabbitmq: tuple[str, ...] = ()

    def verdict(self, outcome: str) -> Verdict:
        """Of an outcome."""
        if _matches(outcome, self.obeys):
            return "obeys"
        return "as RabbitMQ" if _matches(outcome, self.rabbitmq) else "deviates"


@attrs.frozen(kw_only=True, eq=False)
class ConformanceCase(ConformanceRule):
    """A rule, and the conversation with a broker that tries it."""

    talk: Conversation


class RuleSection(Protocol):
    """Rules of one part of the specification, in order."""

    @property
    def name(self) -> str:
        """Chooses them."""

    @property
    def title(self) -> str:
        """What they are about."""

    @property
    def cases(self) -> Sequence[ConformanceRule]:
        """The rules."""


def _matches(outcome: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(outcome, pattern) for pattern in patterns)


@attrs.frozen(kw_only=True)
class CaseResult:
    """What came of a case."""

    case: ConformanceRule
    version: Name
    verdict: Verdict
    #: The outcome, or why there is none.
    said: str
    seconds: float


@attrs.define(eq=False)
class CaseSection:
    """Cases of one part of the specification, in order."""

    name: str
    title: str
    cases: list[ConformanceCase] = attrs.field(factory=list)

    def rule(
        self,
        path: str,
        title: str,
        *,
        section: str,
        obeys: str | tuple[str, ...],
        rabbitmq: str | tuple[str, ...] = (),
        versions: tuple[Name, ...] = ("0-9-1", "0-9", "0-8"),
        strength: Strength = "must",
    ) -> Callable[[Conversation], Conversation]:
        """Add a case, whose conversation is decorated."""

        def add(talk: Conversation) -> Conversation:
            case = ConformanceCase(
                id=path,
                title=title,
                section=section,
                strength=strength,
                versions=versions,
                talk=talk,
                obeys=_several(obeys),
                rabbitmq=_several(rabbitmq),
            )
            self.cases.append(case)
            return talk

        return add


def _several(patterns: str | tuple[str, ...]) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else patterns
