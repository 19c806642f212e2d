"""What model clients of AMQP 0-10 have in common: a connection with one session, which comes again."""

from __future__ import annotations

from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.connection import Tuning, offered
from amqpgate.protocol.v0_10.endpoint import SessionConnection
from amqpgate.protocol.v0_10.events import (
    CommandsCompleted,
    ConnectionClosed,
    ConnectionControl,
    ConnectionEvent,
    ConnectionFailed,
    IncomingBody,
    IncomingCommand,
    IncomingHeader,
    PeerHeader,
    SessionBegun,
    SessionEnded,
    SessionFailed,
)
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.structs import Control, Struct, Unknown
from amqpgate.wire.v0_10.types import EMPTY_ARRAY, Map
from tests.simulation.client import FAIR, LOGIN, Client
from tests.simulation.connection import Line
from tests.simulation.entries import Lane
from tests.simulation.ledger import Violation

#: What may end a session: denied, not found, nacked, denied by new policies.
_FAIR_ENDS = {403, 404, 408, 506}


_Coming = tuple[int, amqp.MessageTransfer, tuple[Struct | Unknown, ...], list[bytes]]


class Session010:
    """One connection of a client's, and the sessions that it has one after the other."""

    def __init__(self, client: Client) -> None:
        self.client, self.world, self.random = client, client.world, client.random
        self.clock, self.ledger = client.world.clock, client.world.ledger
        self.name = f"{client.name}.{client.sessions}"
        self.link = SessionConnection(Role.CLIENT)
        self.connection: Line | None = None
        self.session: AttachedSession | None = None
        self.lane: Lane | None = None
        self.is_over = self.is_leaving = False
        self.heard_at = self.clock.now
        self.heartbeat = 0.0
        #: What is waited for, and since when.
        self.waits: dict[str, float] = {"the start": self.clock.now}
        self._count = 0
        #: The message whose content comes: its id, its command, what came of it.
        self._coming: _Coming | None = None

    # -- as a peer ---------------------------------------------------------------------------------

    def dial(self) -> None:
        plan = self.client.plan
        self.world.network.connect(self, plan.name, plan.source, self.world.listener)
        self.clock.after(LOGIN, self._has_logged_in)

    def connected(self, connection: Line) -> None:
        self.connection = connection
        if self.is_over:
            connection.close()
            return
        self.link.send_header()
        self.flush()

    def ended(self, why: str) -> None:
        if not self.is_over:
            self.is_over = True
            if self.lane is not None:
                self.lane.is_over = True
            self.waits.clear()
            self.client.over(self)

    def received(self, data: bytes) -> None:
        self.heard_at = self.clock.now
        for event in self.link.receive(data):
            if self.is_over:
                return
            self._hear(event)
        self.flush()
        if self.link.is_over:
            self.leave()

    def flush(self) -> None:
        """Say what is to be said."""
        data = self.link.take_output()
        if data and self.connection is not None:
            self.connection.send(data)

    def _hear(self, event: ConnectionEvent) -> None:
        match event:
            case PeerHeader(is_accepted=False, header=header):
                raise Violation(f"{self.name} heard the header {header!r}")
            case ConnectionControl(control=control):
                self._log_in(control)
            case ConnectionFailed(violation=violation) | SessionFailed(violation=violation):
                raise Violation(f"{self.name}: the gateway broke the protocol: {violation}")
            case ConnectionClosed(violation=violation):
                # A broker that is lost in answer to connection.open is 530 in 0-10 (protocol/v0_10/codes.py).
                is_lost = violation.code == 530 and violation.text.startswith("CONNECTION_FORCED")
                if violation.code not in FAIR and not is_lost:
                    raise Violation(f"{self.name} heard connection.close {violation.code} {violation.text!r}")
            case SessionBegun():
                self.waits.pop("a session", None)
                self.begin()
            case SessionEnded(code=code):
                self._ended(code)
            case IncomingCommand(command=amqp.ExecutionException() as exception):
                self._refused(exception)
            case IncomingCommand(command=amqp.MessageTransfer() as transfer, command_id=number):
                self._coming = number, transfer, (), []
                self._came(is_whole=not event.has_content)
            case IncomingHeader(structs=structs, has_body=has_body) if self._coming is not None:
                self._coming = *self._coming[:2], structs, []
                self._came(is_whole=not has_body)
            case IncomingBody(chunk=chunk, is_last=is_last) if self._coming is not None:
                self._coming[3].append(chunk)
                self._came(is_whole=is_last)
            case CommandsCompleted(commands=commands):
                for lower, upper in commands.ranges:
                    for number in range(lower, upper + 1):
                        self.completed(number)

    def _came(self, *, is_whole: bool) -> None:
        if is_whole and self._coming is not None:
            number, transfer, structs, chunks = self._coming
            self._coming = None
            self.heard(number, transfer, structs, b"".join(chunks))

    # -- for those who do something ----------------------------------------------------------------

    @property
    def is_working(self) -> bool:
        """Whether commands may be said."""
        if self.is_over or self.session is None or "detach" in self.waits:
            return False
        return self.lane is not None and not self.lane.is_over

    def begin(self) -> None:
        """The session is there."""

    def completed(self, number: int) -> None:
        """A command is complete."""

    def heard(
        self, number: int, transfer: amqp.MessageTransfer, structs: tuple[Struct | Unknown, ...], body: bytes
    ) -> None:
        """A message has come."""
        raise Violation(f"{self.name} heard {transfer}")

    def lost(self) -> None:
        """The session has ended, in whatever way."""

    def attach(self) -> None:
        """Begin a session."""
        if self.is_over or self.is_leaving or self.session is not None:
            return
        self._count += 1
        self.lane = self.ledger.lane(f"{self.name} session {self._count}")
        self.lane.is_session = True
        self.session = self.link.attach(0, f"{self.name}/{self._count}".encode())
        self.waits["a session"] = self.clock.now
        self.flush()

    def detach(self) -> None:
        """End the session in order."""
        if self.session is not None and "detach" not in self.waits:
            self.waits["detach"] = self.clock.now
            self.session.detach()
            self.flush()

    def part(self) -> None:
        """Close the connection in order."""
        self.is_leaving = True
        self.waits["close"] = self.clock.now
        self.link.close(200, "bye")
        self.flush()

    def leave(self) -> None:
        """Hang up."""
        if self.connection is not None:
            self.connection.close()
        self.ended("left")

    # -- the connection ----------------------------------------------------------------------------

    def _log_in(self, control: Control) -> None:
        plan = self.client.plan
        match control:
            case amqp.ConnectionStart():
                response = b"\0" + plan.user.encode() + b"\0secret"
                start_ok = amqp.ConnectionStartOk(
                    client_properties=Map(()), mechanism=b"PLAIN", response=response, locale=b"en_US"
                )
                self.link.send(start_ok)
            case amqp.ConnectionTune():
                self.heartbeat = float(plan.heartbeat)
                tuning = Tuning(channel_max=offered(control).channel_max, heartbeat=plan.heartbeat)
                self.link.send(tuning.answer(control))
                self.link.send(amqp.ConnectionOpen(virtual_host=b"/", capabilities=EMPTY_ARRAY))
                self.clock.after(self.heartbeat / 2, self._beat)
            case amqp.ConnectionOpenOk():
                self.waits.pop("the start", None)
                self.attach()

    def _has_logged_in(self) -> None:
        if not self.is_over and not self.heartbeat:
            self.leave()

    def _beat(self) -> None:
        if self.is_over or self.connection is None:
            return
        if self.clock.now - self.heard_at > 2 * self.heartbeat:
            self.world.tell(f"{self.name} has heard nothing for {2 * self.heartbeat:g} s, and hangs up")
            self.connection.reset()
            return
        self.link.send(amqp.ConnectionHeartbeat())
        self.flush()
        self.clock.after(self.heartbeat / 2, self._beat)

    # -- the session -------------------------------------------------------------------------------

    def _refused(self, exception: amqp.ExecutionException) -> None:
        code = exception.error_code or 0
        text = (exception.description or b"").decode()
        # A pool ends the sessions of a connection that it has lost.
        is_lost = code == 541 and text.startswith("320 ")
        is_fair = code in _FAIR_ENDS and self.world.may_deny(self.client.plan.user, code)
        if not is_lost and not is_fair:
            raise Violation(f"{self.name} heard the exception {code} {text!r}")
        self.world.tell(f"{self.name}: the session ends, {code} {text}")
        if self.lane is not None:
            self.lane.is_over = True

    def _ended(self, code: int) -> None:
        lane, self.lane, self.session = self.lane, None, None
        self.waits.pop("a session", None)
        if self.waits.pop("detach", None) is not None and lane is not None and not lane.is_over and not code:
            self.world.closed(lane)
        if lane is not None:
            lane.is_over = True
        self.lost()

    def oldest(self) -> tuple[float, str]:
        """Since when it waits for what; infinity: for nothing."""
        return min(((since, what) for what, since in self.waits.items()), default=(float("inf"), ""))
