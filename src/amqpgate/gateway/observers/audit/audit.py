"""The audit of one gateway: windows of usage, and events that are no session's.

::

    upcalls ──▶ AuditObserver (of a session) ── events ─────────────────────▶ AuditLog ──▶ its thread
                    │                                                        ▲
                    └─ rows ─▶ meters ── counted by the data path ─▶ book ───┘ at the end of each window

A meter puts itself into the book when it first counts, so that a window's end looks at those alone that have
counted. The book holds them: what a flow has counted is not lost with the flow, nor with the session.

When the log is full, a client's method that may cause an event, or a row, waits, and all that the client
sends behind it; new connections wait before their handshake. What has begun goes to its end, and the end of
a session is always told: so what is taken beyond the log's limit is bounded by the connections and channels
that there are.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Final, Protocol

import attrs
import trio

from amqpgate.config import Audit
from amqpgate.datapath.scanner import CaptureGate, Meter
from amqpgate.datapath.tables import Side
from amqpgate.gateway.observers.audit.columns import MESSAGES, json_of, origin_of
from amqpgate.gateway.observers.audit.limits import LimitCounts
from amqpgate.gateway.observers.audit.logins import RefusedLogin, RefusedLogins
from amqpgate.gateway.observers.audit.session import AuditObserver
from amqpgate.gateway.observers.audit.writer import PART, AuditWriter
from amqpgate.gateway.session.dispatch import UP, Do
from amqpgate.gateway.session.observer import SessionObserver
from amqpgate.gateway.session.operation_limits import Happened, Report
from amqpgate.gateway.session.session import Session
from amqpgate.policy import Operation, PolicySet, Principal, SharedLimit, Verdict
from amqpgate.telemetry.audit.log import AuditLog, open_log
from amqpgate.telemetry.audit.messages import WaitingMessages
from amqpgate.telemetry.audit.rows import AuditRow
from amqpgate.telemetry.faults import FAULTS, contained
from amqpgate.wire.method import Method

#: Meters in the book, at most; with more the window ends early.
MOST_BOOKED: Final = 100_000

#: What may cause an event.
_EVENTFUL: Final = frozenset({Do.DECIDE, Do.CHANNEL_OPEN})

#: Seconds that the last records may take.
LAST: Final = 10.0


class PolicyReading(Protocol):
    """What is in force, and what the last reading of policies found."""

    @property
    def status(self) -> str:
        """Its outcome."""

    @property
    def digest(self) -> str:
        """Of what is in force."""

    @property
    def error(self) -> str | None:
        """What was wrong with what was read, in ``file`` and ``line``."""

    @property
    def file(self) -> str | None: ...

    @property
    def line(self) -> int | None: ...


@attrs.define(eq=False)
class AuditTrail:
    """The audit of one gateway, and the factory of its observers."""

    part = PART

    log: AuditLog
    #: Seconds.
    window: float
    #: Called when those may go on who were told to wait.
    on_room: Callable[[], None]
    #: Meters that have counted since the last window.
    book: list[Meter] = attrs.field(factory=list, init=False)
    #: Open while there is room for messages that the data path captures.
    gate: CaptureGate = attrs.field(factory=CaptureGate, init=False)
    limits: LimitCounts = attrs.field(factory=LimitCounts, init=False)
    logins: RefusedLogins = attrs.field(factory=RefusedLogins, init=False)
    #: Of the policies in force.
    digest: str = attrs.field(default="", init=False)
    #: When the window began, in epoch seconds.
    _since: float = attrs.field(factory=time.time, init=False)
    _room: trio.Event = attrs.field(factory=trio.Event, init=False)
    _token: trio.lowlevel.TrioToken | None = attrs.field(default=None, init=False)

    @classmethod
    def of(cls, settings: Audit, on_room: Callable[[], None]) -> AuditTrail:
        """As the settings say; not started."""

        def made_room() -> None:
            auditing._made_room()

        auditing = cls(open_log(settings, made_room), settings.window, on_room)
        return auditing

    # -- windows -----------------------------------------------------------------------------

    def start(self, state: PolicyReading) -> None:
        """Start the log. Raises ``OSError`` where nothing can be written."""
        self._token = trio.lowlevel.current_trio_token()
        self.log.start()
        self._since = time.time()
        self.policies(state)

    def stop(self) -> None:
        """Hand over the last window and wait until all is written, for `LAST` seconds at most."""
        self._token = None
        self.close_window(is_last=True)
        self.log.stop(LAST)

    async def run(self) -> None:
        """Close a window after the other."""
        while True:
            await trio.sleep(self.window)
            try:
                self.close_window()
            except Exception:
                FAULTS.caught("audit", "the end of a window")

    def close_window(self, *, is_last: bool = False) -> None:
        """Hand over what has been counted. What limits did is summed on while there is no room for it."""
        now = time.time()
        # The data path's clock is another one.
        offset = now - time.monotonic()
        # Whoever counts meanwhile counts for the next window.
        book = self.book.copy()
        self.book.clear()
        for meter in book:
            try:
                _sum(self.log, meter, self._since, offset)
            except Exception:
                # That row, and no other.
                FAULTS.caught("audit", "the sums of a window")
                self.log.lose("usage")
        self._hand_over(now, is_last=is_last)
        self._since = now

    def _hand_over(self, now: float, *, is_last: bool) -> None:
        """What is not handed over now is with the next window."""
        try:
            if is_last or self.log.has_room:
                self.limits.tell(self.log, self.digest)
                self.logins.tell(self.log, self.digest)
        except Exception:
            FAULTS.caught("audit", "what limits did, and refused logins")
        try:
            self.log.close_window(self._since, now)
        except Exception:
            FAULTS.caught("audit", "the end of a window")

    # -- room --------------------------------------------------------------------------------

    def has_room(self, method: Method) -> bool:
        """Whether the client's method may be dealt with now. If not, ``on_room`` is called when it may."""
        if UP.get(method.INDEX) not in _EVENTFUL:
            return True
        if len(self.book) >= MOST_BOOKED:
            self.close_window()
        return self.log.has_room

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more records."""
        return not self.log.has_room

    async def room(self) -> None:
        """Wait until there is some."""
        while not self.log.has_room:
            await self._room.wait()

    def messages(self, waiting: WaitingMessages) -> None:
        """Record messages that were captured. Without room for more of them at once, those that follow are
        shown, one by one."""
        if waiting.messages:
            self.log.messages(waiting)
        if not self.log.has_room_for_bulk:
            self.gate.shut()

    def _made_room(self) -> None:
        """There is some again; called by the log's thread."""
        token = self._token
        if token is not None:
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(self._tell_room, idempotent=True)

    def _tell_room(self) -> None:
        if self.log.has_room_for_bulk:
            self.gate.open()
        self._room.set()
        self._room = trio.Event()
        self.on_room()

    # -- sessions ----------------------------------------------------------------------------

    def looks_on(self, policies: PolicySet) -> bool:
        """Sums of each session are written down, whatever the policies are."""
        return True

    def observer_for(
        self, session: Session, policies: PolicySet, before: SessionObserver | None
    ) -> SessionObserver:
        """The audit of a session."""
        observer = before if isinstance(before, AuditObserver) else None
        if observer is None:
            origin = origin_of(session.id, session.principal, session.facts.version(Side.CLIENT))
            writer = AuditWriter(self, origin, session.principal)
            observer = AuditObserver(session, writer)
        observer.follow(policies)
        return observer

    @contained("audit", None)
    def denied(
        self, session: str, principal: Principal, policies: PolicySet, verdict: Verdict, operation: Operation
    ) -> None:
        """A policy denies a client what would have made it a session."""
        writer = AuditWriter(self, origin_of(session, principal), principal)
        writer.follow(policies)
        writer.denied(verdict, operation)

    @contained("audit", None)
    def refused(
        self, session: str, principal: Principal, upstream: str | None, reply_code: int | None, why: str
    ) -> None:
        """A login was refused, by the broker, or here for its token. ``principal`` is who it claims to be."""
        how = RefusedLogin(upstream, reply_code, why)
        self.logins.note(self.log, self.digest, origin_of(session, principal), how)

    def reporting(self, report: Report) -> Report:
        """``report`` that is told of limits, and this: of connections that are no sessions yet."""

        def told(limit: SharedLimit, happened: Happened) -> None:
            report(limit, happened)
            self._note(limit, happened)

        return told

    @contained("audit", None)
    def _note(self, limit: SharedLimit, happened: Happened) -> None:
        self.limits.note(None, limit, happened.value)

    # -- what is no session's ----------------------------------------------------------------

    @contained("audit", None)
    def policies(self, state: PolicyReading) -> None:
        """Policies were read: they are in force, or were refused."""
        self.digest = state.digest
        where = {name: value for name, value in (("file", state.file), ("line", state.line)) if value}
        self.log.event(
            None,
            "policies",
            outcome=state.status,
            reason=state.error,
            policy_digest=state.digest,
            detail=json_of(where) if where else None,
        )

    @contained("audit", None)
    def admin(self, action: str, **detail: str) -> None:
        """An operator has done something, such as ``reload``; ``detail`` says with what, and who it was."""
        told = json_of({"action": action, **detail})
        self.log.event(None, "admin", policy_digest=self.digest, detail=told)


def _sum(log: AuditLog, meter: Meter, since: float, offset: float) -> None:
    """Tell what a meter has counted since then; ``offset`` leads from the data path's clock to the time."""
    count, byte_count, first, last, largest = meter.read()
    row = meter.row
    assert isinstance(row, AuditRow)
    if count:
        messages = count if row.operation in MESSAGES else 0
        first = max(first + offset, since)
        log.usage(row, count, messages, byte_count, first, max(first, last + offset), largest)
