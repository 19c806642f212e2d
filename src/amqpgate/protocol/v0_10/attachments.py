"""The sessions of one connection, by channel (AMQP 0-10, class "session", control "attach").

What comes on a channel, and what is done with it; as in qpidd, but for long names and who is evicted by
force:

==================================  ===========================================================
attach, the name is free            attached, command-point
attach, the name is in use          detached, session-busy
the same with ``force``             attached; who had it is detached, session-busy
attach, another session is here     detached, transport-busy
attach, this session is here        attached
a longer name than `MOST_NAME`      the connection is closed, 320
control without a session           detached without a name, not-attached; once for each read
detached without a session          nothing, or two peers would go on for ever
command without a session           nothing
==================================  ===========================================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.attachment import SessionState
from amqpgate.protocol.v0_10.events import ConnectionEvent, SessionBegun, SessionFailed
from amqpgate.protocol.v0_10.frames import BODY, CONTROL, HEADER
from amqpgate.protocol.v0_10.names import Evict, SessionNames
from amqpgate.protocol.v0_10.segments import Assembler, AssemblyEvent, CommandIn, ControlIn
from amqpgate.protocol.v0_10.session import MOST_NAME, AttachedSession
from amqpgate.protocol.v0_10.writer import FrameWriter
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import DetachCode
from amqpgate.wire.v0_10.structs import Control


class Attachments:
    """See the module. ``events`` is where events for the owner go.

    ``wake`` is called when a session lost its name to another connection: there is something to send, and an
    event, though nothing was read.
    """

    __slots__ = (
        "_assembler",
        "_events",
        "_evicts",
        "_names",
        "_role",
        "_user",
        "_wake",
        "_writer",
        "sessions",
        "strays",
    )

    def __init__(
        self,
        role: Role,
        assembler: Assembler,
        writer: FrameWriter,
        events: deque[ConnectionEvent],
        names: SessionNames,
        wake: Callable[[], None],
    ) -> None:
        self.sessions: dict[int, AttachedSession] = {}
        self._role = role
        self._assembler = assembler
        self._writer = writer
        self._events = events
        self._names = names
        self._wake = wake
        #: Who logged in: names are scoped to the user.
        self._user = b""
        #: What the sessions' names are held with, by channel.
        self._evicts: dict[int, Evict] = {}
        #: Channels that have been told that no session is there.
        self.strays: set[int] = set()

    def log_in(self, user: bytes) -> None:
        """Names are this user's from now on."""
        self._user = user

    def attach(self, channel: int, name: bytes, *, force: bool) -> AttachedSession:
        """Ask for a session (client). :class:`ValueError` if there is one on the channel."""
        if channel in self.sessions:
            raise ValueError(f"channel {channel} has a session")
        session = self._add(channel, name)
        session.begin(force=force)
        return session

    def receive(self, event: AssemblyEvent) -> None:
        """What came for a channel. Violations are of the session's, if their code can end one."""
        channel = event.channel
        session = self.sessions.get(channel)
        if session is None:
            if isinstance(event, ControlIn):
                self._receive_without_session(channel, event.control)
            return
        told: ConnectionEvent | None
        if isinstance(event, CommandIn):
            told = session.receive_command(event)
        elif isinstance(event, ControlIn):
            told = session.receive(event.control)
            if session.state is SessionState.DETACHED:
                self._drop(channel)
        else:
            told = session.receive_content(event)
        if told is not None:
            self._events.append(told)

    def fail(self, channel: int, segment_type: int, violation: ProtocolViolation) -> None:
        """What came in a segment on a channel was wrong: end its session."""
        session = self.sessions.get(channel)
        if session is None:
            if segment_type == CONTROL:
                self._stray(channel)
        elif session.is_attached:
            blamed = (
                None if segment_type == CONTROL else session.blamed(is_content=segment_type in (HEADER, BODY))
            )
            session.fail(violation, blamed)
            self._events.append(SessionFailed(channel, violation))

    def read(self) -> None:
        """All of a read has been looked at."""
        self.strays.clear()

    def clear(self) -> None:
        """The connection is over, and so are its sessions."""
        for channel, session in list(self.sessions.items()):
            session.lose()
            self._drop(channel)

    def _receive_without_session(self, channel: int, control: Control) -> None:
        if isinstance(control, amqp.SessionAttach) and self._role is Role.SERVER:
            self._accept(channel, control.name or b"", force=control.force)
        elif not isinstance(control, amqp.SessionDetached):
            self._stray(channel)

    def _accept(self, channel: int, name: bytes, *, force: bool) -> None:
        if len(name) > MOST_NAME:
            raise ProtocolViolation(
                320, f"the name of a session has {MOST_NAME} bytes at most", channel=channel
            )
        evict = partial(self._evict, channel)
        if not self._names.claim(self._user, name, evict, force=force):
            busy = amqp.SessionDetached(name=name, code=DetachCode.SESSION_BUSY)
            self._writer.control(channel, busy)
            return
        self._evicts[channel] = evict
        self._add(channel, name).begin()
        self._events.append(SessionBegun(channel, name))

    def _add(self, channel: int, name: bytes) -> AttachedSession:
        session = self.sessions[channel] = AttachedSession(channel, name, self._role, self._writer)
        self.strays.discard(channel)
        return session

    def _evict(self, channel: int) -> None:
        self._events.append(self.sessions[channel].lose(DetachCode.SESSION_BUSY))
        self._drop(channel)
        self._wake()

    def _drop(self, channel: int) -> None:
        session = self.sessions.pop(channel)
        self._assembler.abandon(channel)
        evict = self._evicts.pop(channel, None)
        if evict is not None:
            self._names.release(self._user, session.name, evict)

    def _stray(self, channel: int) -> None:
        if channel not in self.strays:
            self.strays.add(channel)
            answer = amqp.SessionDetached(name=b"", code=DetachCode.NOT_ATTACHED)
            self._writer.control(channel, answer)
