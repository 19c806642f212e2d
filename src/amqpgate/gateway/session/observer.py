"""Who looks on at a session: what it is told, and what it may ask for.

::

    publish ── miss ──▶ admits: what must be shown ──▶ meters, samplers: the flow is installed
            ── shown ─▶ samplers, shows ──▶ its header ──▶ released, or denied, or rejected ──▶ content
                                                ──▶ or it passes, and many are told at once: captured
    deliver ── likewise ──▶ content
    get-ok, return ──▶ came ──▶ content
    other methods ───▶ allowed ──▶ passed ──▶ asked ──▶ answered; or denied

All of it happens in upcalls: what the data path passes by itself is told to nobody. Observers are told in the
order of the session's tuple; of those that change frames each gets what the one before it has made.

An observer never harms its session. Where one of its methods raises, the fault is counted
(`telemetry.faults`), and the session goes on as if that method did nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from enum import Flag, auto
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

from amqpgate.datapath.captures import Captured
from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import Side
from amqpgate.gateway.limits.sampler import Sampler
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.gateway.session.operation_limits import Happened, Turn
from amqpgate.gateway.session.publish_denial import HeldPublish
from amqpgate.policy import Operation, Peek, SharedLimit, Verdict
from amqpgate.policy.engine.naming import NotTransformedError
from amqpgate.policy.engine.verdicts import UNRESTRICTED
from amqpgate.telemetry.faults import FAULTS
from amqpgate.values import frozen
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

ObserverT = TypeVar("ObserverT", bound="SessionObserver")

#: A rule of a policy: the policy's kind and name, and the rule's id. Of an access policy the name is None
#: where no rule has decided.
RuleKey: TypeAlias = "tuple[str, str | None, str]"

#: Messages that the broker sends to the client.
Sent = amqp.BasicDeliver | amqp.BasicGetOk | amqp.BasicReturn
#: The same, as it is asked of each method of a broker's: of a union that takes Python ten times as long.
SENT: Final = (amqp.BasicDeliver, amqp.BasicGetOk, amqp.BasicReturn)


class Sees(Flag):
    """What an observer must see, beside what others want to see."""

    NOTHING = 0
    #: The first publish of each kind, and what of it `SessionObserver.admits` and the samplers want.
    PUBLISHES = auto()
    #: The first delivery of each kind, likewise.
    DELIVERIES = auto()
    #: Messages that were got and returned, with their headers.
    CONTENT = auto()
    #: What the client acknowledges, where the observer has the data path show it.
    SETTLES = auto()


@frozen
class Message:
    """A publish or a delivery: the first one of its kind, or one that is shown."""

    channel: int
    method: amqp.BasicPublish | amqp.BasicDeliver
    #: None: it is a delivery.
    operation: Operation | None
    verdict: Verdict = UNRESTRICTED


@frozen
class Denial:
    """An operation that does not pass: a policy denies it, or a limit rejects it."""

    channel: int
    #: None: it is not known, or the policies have changed since the client asked.
    method: Method | None
    operation: Operation
    verdict: Verdict
    #: What the client reads of it; empty where a limit of rates rejects it.
    text: str
    #: A publish whose header had to be seen, and the frame of that.
    held: HeldPublish | None = None
    header: memoryview | None = None
    #: Whether a limit rejects it.
    is_limit: bool = False
    #: Whether the client's channel, or its connection, is closed for it.
    closes: bool = True


@frozen
class Release:
    """A publish that was held, and goes on."""

    channel: int
    held: HeldPublish
    verdict: Verdict
    #: The client's header frame.
    frame: memoryview
    #: None: nobody had to read it.
    header: ContentHeader | None


def _contained(part: str, hook: Callable[..., Any], idle: Callable[..., Any]) -> Callable[..., Any]:  # type: ignore[explicit-any]
    """The observer's method; where it raises that is counted, and it is as if it were ``idle``."""

    @functools.wraps(hook)
    def called(*args: object) -> object:
        try:
            return hook(*args)
        except Exception:
            FAULTS.caught(part, hook.__qualname__)
            return idle(*args)

    return called


class SessionObserver:
    """Looks on at one session. Each method does nothing: a subclass has those that it needs."""

    __slots__ = ()

    #: Its name in the metric of internal errors. A session has at most one observer of each part.
    part: ClassVar[str]
    #: Whether it is asked of each of the client's methods if that must wait (`holds_up`).
    may_hold_up: ClassVar[bool] = False
    #: The methods below that its class has. Who asks it of each session looks here first.
    hooks: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        for name, idle in _HOOKS.items():
            hook = cls.__dict__.get(name)
            # Attrs makes a class with slots from one that has been here.
            if hook is not None and not hasattr(hook, "__wrapped__"):
                setattr(cls, name, _contained(cls.part, hook, idle))
        cls.hooks = frozenset(name for name, idle in _HOOKS.items() if getattr(cls, name) is not idle)

    # -- the session -------------------------------------------------------------------------

    def sees(self) -> Sees:
        """What it must see under the policies in force. Who sees nothing is told nothing of messages."""
        return Sees.NOTHING

    def opened(self) -> None:
        """The session is on the data path."""

    def moved(self) -> None:
        """The session has another connection to the broker, with confirms that are numbered anew."""

    def ended(self) -> None:
        """The session has left the data path, or the observer leaves the session."""

    def closed(self, outcome: str) -> None:
        """The session and its sockets are gone; ``outcome`` is the metric's label."""

    # -- what is decided ---------------------------------------------------------------------

    def holds_up(self, method: Method) -> bool:
        """Whether the client's method must wait, and all behind it, until the session is retried."""
        return False

    def turned(self, channel: int, method: Method, turn: Turn) -> None:
        """A client's method waits for a limit, or a limit rejects it."""

    def limited(self, limit: SharedLimit, happened: Happened) -> None:
        """A limit did something, or would have."""

    def allowed(self, operation: Operation, verdict: Verdict) -> None:
        """A policy allows an operation, or those publishes that are like it."""

    def used(self, rule: RuleKey) -> None:
        """A rule of another kind than access has decided about a request, or about all messages of a flow."""

    def carries(self, rule: RuleKey, flow: Flow) -> None:
        """A rule has decided about all messages of a flow, which is about to be installed."""

    def would_differ(self, operation: Operation, verdict: Verdict) -> None:
        """A policy that is not enforced would have decided so."""

    def denied(self, denial: Denial) -> None:
        """A policy denies an operation."""

    def rejected(self, denial: Denial) -> None:
        """A limit rejects a message."""

    def not_transformed(self, channel: int, method: Method, why: NotTransformedError) -> None:
        """A transform policy denies what it cannot, or may not, change."""

    def adapted(self, channel: int, method: Method, policy: str, result: Adapted) -> None:
        """A compatibility policy changes a client's method, which is allowed and passes next."""

    # -- messages ----------------------------------------------------------------------------

    def admits(self, message: Message) -> Peek | None:
        """Which messages like this one must be shown."""
        return None

    def meters(self, message: Message, flow: Flow) -> None:
        """The flow of messages like this one is about to be installed."""

    def samplers(self, message: Message, flow: Flow) -> Sequence[Sampler]:
        """Who chooses among the messages of a flow."""
        return ()

    def shows(self, message: Message, flow: Flow, weight: int, samplers: Sequence[Sampler]) -> bool:
        """A message is shown, and its header comes next. Whether that of a publish must be read.

        It stands for ``weight`` messages among which ``samplers``, of all observers, choose; 0: they do not.
        """
        return False

    def released(self, release: Release, frames: bytes) -> bytes:
        """A publish goes on. The frames of its method and header, as the broker gets them."""
        return frames

    def came(
        self,
        channel: int,
        method: amqp.BasicGetOk | amqp.BasicReturn,
        queue: str | None,
        flow: Flow | None,
    ) -> Flow | None:
        """A message was got, from ``queue`` where that is known, or is returned. The flow that counts it.

        The header comes next if the flow shows it.
        """
        return flow

    def content(self, side: Side, channel: int, frame: memoryview) -> bool:
        """A header or body that is shown passes. Whether it was shown for this observer alone."""
        return False

    def captured(self, side: Side, messages: Sequence[Captured]) -> None:
        """These messages have passed, whose flows capture them (`Flow.capture`), perhaps for others."""

    # -- other methods -----------------------------------------------------------------------

    def passed(self, channel: int, method: Method) -> None:
        """A client's method, which is no publish, is allowed and passes. What follows from it is not done."""

    def asked(self, channel: int, method: Method, last_queue: str, is_answered: bool) -> None:
        """It goes to the broker, whose answer will be heard or not.

        ``last_queue`` is the queue that an empty name means.
        """

    def settled(self, channel: int, method: Method) -> None:
        """The client says basic.ack, nack or reject, or something else that needs no decision."""

    def answered(self, channel: int, method: Method) -> None:
        """The broker says something without content, with the names that the client uses."""


_HOOKS: Final[dict[str, Callable[..., Any]]] = {  # type: ignore[explicit-any]
    name: method
    for name, method in vars(SessionObserver).items()
    if callable(method) and not name.startswith("_")
}


def find(observers: Iterable[SessionObserver], kind: type[ObserverT]) -> ObserverT | None:
    """The observer of this class."""
    for one in observers:
        if isinstance(one, kind):
            return one
    return None
