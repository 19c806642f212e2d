"""A rule, a conversation that tries it, and what may come of it.

A conversation ends in an *outcome*: a few words that say what the peer did, as ``peer.Peer.outcome`` gives
them. What the rule allows, and what RabbitMQ is known to do in its place, are patterns of such outcomes. In
0-10, which RabbitMQ does not speak, Qpid's broker has its place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import Final, Generic, Literal, Protocol, TypeAlias, TypeVar

import attrs

from amqpgate.conformance.setting import CaseSetting
from amqpgate.conformance.versions import ALL, Name

#: ``obeys``: as the rule says. ``as RabbitMQ``, ``as Qpid``: not so, but as RabbitMQ does, or Qpid's broker.
#: ``deviates``: none of these. ``untestable``: what the rule is about cannot be had from this peer.
Verdict: TypeAlias = Literal["obeys", "as RabbitMQ", "as Qpid", "deviates", "untestable"]

VERDICTS: Final[tuple[Verdict, ...]] = ("obeys", "as RabbitMQ", "as Qpid", "deviates", "untestable")

#: Otherwise, as a broker does that clients are written for.
KNOWN: Final[tuple[Verdict, ...]] = ("as RabbitMQ", "as Qpid")

#: How much a rule asks: a deviation from a *should* counts with ``--strict`` alone.
Strength: TypeAlias = Literal["must", "should"]

T = TypeVar("T", bound=CaseSetting)
Conversation: TypeAlias = Callable[[T], Awaitable[str]]


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
    #: The same of Qpid's broker.
    qpid: tuple[str, ...] = ()

    def verdict(self, outcome: str) -> Verdict:
        """Of an outcome."""
        if _matches(outcome, self.obeys):
            return "obeys"
        if _matches(outcome, self.rabbitmq):
            return "as RabbitMQ"
        return "as Qpid" if _matches(outcome, self.qpid) else "deviates"


@attrs.frozen(kw_only=True, eq=False)
class ConformanceCase(ConformanceRule):
    """A rule, and the conversation with a broker that tries it."""

    talk: Conversation[CaseSetting]


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
class BrokerSection:
    """Cases of one part of the specification, in order, whatever their conversations are."""

    name: str
    title: str
    cases: list[ConformanceCase] = attrs.field(factory=list, init=False)


@attrs.define(eq=False)
class CaseSection(BrokerSection, Generic[T]):
    """A section whose conversations are of one kind."""

    kind: type[T]
    #: Those that its cases are played in, unless one says otherwise.
    versions: tuple[Name, ...] = ALL

    def rule(
        self,
        path: str,
        title: str,
        *,
        section: str,
        obeys: str | tuple[str, ...],
        rabbitmq: str | tuple[str, ...] = (),
        qpid: str | tuple[str, ...] = (),
        versions: tuple[Name, ...] | None = None,
        strength: Strength = "must",
    ) -> Callable[[Conversation[T]], Conversation[T]]:
        """Add a case, whose conversation is decorated."""

        def add(talk: Conversation[T]) -> Conversation[T]:
            async def of_its_kind(setting: CaseSetting) -> str:
                assert isinstance(setting, self.kind)
                return await talk(setting)

            case = ConformanceCase(
                id=path,
                title=title,
                section=section,
                strength=strength,
                versions=self.versions if versions is None else versions,
                talk=of_its_kind,
                obeys=_several(obeys),
                rabbitmq=_several(rabbitmq),
                qpid=_several(qpid),
            )
            self.cases.append(case)
            return talk

        return add


def _several(patterns: str | tuple[str, ...]) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else patterns
