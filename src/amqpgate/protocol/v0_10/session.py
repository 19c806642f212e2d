"""One session: its two streams of commands, and what is said about them (AMQP 0-10, class "session").

`attachment` says how it comes to its channel and leaves it. What a peer may say in between:

=================  ===================================================================================
control            what is done
=================  ===================================================================================
command-point      the id of the peer's next command is set; an offset other than 0 is 501
completed          those of our commands are done; with timely-reply, known-completed is owed
known-completed    those of the peer's commands are told no more
flush              completed, expected or confirmed is owed, even if there is nothing in it
expected           nothing: it is information, and qpidd is one off with confirmed
confirmed          nothing, likewise
request-timeout    timeout 0 is owed
timeout            nothing
gap                540: nobody sends it
=================  ===================================================================================

What is owed is written by `AttachedSession.answer`, once for each read, whatever was asked how often. No
session outlives its attachment, therefore timeout is always 0 and nothing is kept of a command but its id;
attaching a name again begins a new session (decision 0035).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from amqpgate.errors import ProtocolViolation, cut_reply
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.attachment import SPEAKERS, TRANSITIONS, SessionState, step
from amqpgate.protocol.v0_10.codes import TO_ERROR_CODE
from amqpgate.protocol.v0_10.events import (
    CommandsCompleted,
    IncomingBody,
    IncomingCommand,
    IncomingHeader,
    SessionBegun,
    SessionEnded,
    SessionEvent,
)
from amqpgate.protocol.v0_10.receiving import CommandReceiver
from amqpgate.protocol.v0_10.segments import BodyIn, CommandIn, HeaderIn
from amqpgate.protocol.v0_10.sending import CommandSender
from amqpgate.protocol.v0_10.writer import FrameWriter
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import DetachCode, ErrorCode
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command, Control, Struct, Unknown

#: The longest name of a session, in bytes. Those that clients make up have about 40.
MOST_NAME: Final = 255

#: Commands that are finished when they have come.
_FINISHED: Final = (amqp.ExecutionResult, amqp.ExecutionException)


class AttachedSession:
    """A session at its channel, in either role. What it says goes to the connection's writer."""

    __slots__ = (
        "_asked",
        "_body",
        "_current",
        "_is_heard",
        "_last_words",
        "_role",
        "_writer",
        "channel",
        "is_attached",
        "name",
        "receiver",
        "sender",
        "state",
    )

    def __init__(self, channel: int, name: bytes, role: Role, writer: FrameWriter) -> None:
        self.channel = channel
        self.name = name
        self.state = SessionState.DETACHED
        #: Towards clients in order, towards brokers out of order: see `receiving`.
        self.receiver = CommandReceiver(is_in_order=role is Role.SERVER)
        self.sender = CommandSender()
        self._role = role
        self._writer = writer
        #: Whether the peer may send commands.
        self._is_heard = False
        #: Whether commands may be sent.
        self.is_attached = False
        #: The id of the peer's command whose content is coming; None if it is dropped.
        self._current: int | None = None
        #: Whether the first piece of a body of ours is due, or a later one; None if no body is.
        self._body: bool | None = None
        #: What is said before session.detach, once the body is complete.
        self._last_words: Command | None = None
        #: What was asked and is not answered yet.
        self._asked: set[type[Control]] = set()

    # Attaching and detaching.

    def begin(self, *, force: bool = False) -> None:
        """Ask for attachment, with ``force`` if need be (client), or attach as the client asked (server).

        A client's commands may follow at once; they are dropped if it is refused.
        """
        if self._role is Role.CLIENT:
            self._enter(SessionState.ATTACHING)
            self._say(amqp.SessionAttach(name=self.name, force=force))
        else:
            self._enter(SessionState.ATTACHED)
            self._say(amqp.SessionAttached(name=self.name))
        self._say(self.sender.point())

    def lose(self, code: DetachCode | None = None) -> SessionEnded:
        """Somebody else has the session's name or channel, as the peer is told by ``code``; or, without one,
        the connection is over, and nothing more is said.
        """
        if code is not None:
            self._say(amqp.SessionDetached(name=self.name, code=code))
        return self._over(code or DetachCode.NORMAL)

    def detach(self) -> None:
        """End the session, once the body that is being sent is complete. Nothing happens if it is over."""
        self._end(None)

    def fail(
        self,
        violation: ProtocolViolation,
        command_id: int | None = None,
        command: type[Command] | None = None,
    ) -> None:
        """End the session with an execution.exception, which names the command that it is about, if any.

        What is complete is told before. Nothing happens if the session is over.
        """
        class_code, code = violation.class_id, violation.method_id
        if command is not None:
            class_code, code = command.CLASS_CODE, command.CODE
        self._end(
            amqp.ExecutionException(
                error_code=TO_ERROR_CODE.get(violation.code, ErrorCode.INTERNAL_ERROR),
                command_id=command_id,
                class_code=class_code or None,
                command_code=code or None,
                description=cut_reply(violation.text).encode(),
            )
        )

    # What the peer sends.

    def receive(self, control: Control) -> SessionEvent | None:
        """A control of class "session" on the session's channel."""
        match control:
            case amqp.SessionAttach(name=name) if (name or b"") != self.name:
                name = (name or b"")[:MOST_NAME]
                self._say(amqp.SessionDetached(name=name, code=DetachCode.TRANSPORT_BUSY))
                return None
            case amqp.SessionDetach(name=name) if (name or b"") != self.name:
                name = (name or b"")[:MOST_NAME]
                self._say(amqp.SessionDetached(name=name, code=DetachCode.NOT_ATTACHED))
                return None
        before = self.state
        following = step(before, self._role.peer, control.NAME)
        if following is None:
            return None
        if isinstance(control, amqp.SessionDetach):
            self.answer()
        self._enter(following)
        match control:
            case amqp.SessionAttach():
                self._say(amqp.SessionAttached(name=self.name))
            case amqp.SessionAttached():
                return SessionBegun(self.channel, self.name) if before is SessionState.ATTACHING else None
            case amqp.SessionDetach():
                self._say(amqp.SessionDetached(name=self.name, code=DetachCode.NORMAL))
                self._enter(TRANSITIONS[following][self._role, "session.detached"])
                if self.state is SessionState.DETACHED:
                    return self._over(DetachCode.NORMAL)
            case amqp.SessionDetached(code=code):
                return self._over(DetachCode.NORMAL if code is None else code)
            case _:
                return self._receive_of_commands(control)
        return None

    def _receive_of_commands(self, control: Control) -> SessionEvent | None:
        match control:
            case amqp.SessionCommandPoint(command_id=command_id, command_offset=offset):
                if offset:
                    raise ProtocolViolation(501, "command-point amid a command")
                if command_id is None:
                    raise ProtocolViolation(503, "command-point without an id")
                self.receiver.start(command_id)
            case amqp.SessionCompleted():
                news = self.sender.completed(control)
                if self.sender.is_due:
                    self._writer.owe(self)
                if news.ranges:
                    return CommandsCompleted(self.channel, news)
            case amqp.SessionKnownCompleted():
                self.receiver.forget(control.commands or SequenceSet())
            case amqp.SessionFlush():
                if control.completed:
                    self.receiver.ask()
                if control.expected:
                    self._asked.add(amqp.SessionExpected)
                if control.confirmed:
                    self._asked.add(amqp.SessionConfirmed)
                self._writer.owe(self)
            case amqp.SessionRequestTimeout():
                self._asked.add(amqp.SessionTimeout)
                self._writer.owe(self)
            case amqp.SessionGap():
                raise ProtocolViolation(540, "session.gap")
        return None

    def receive_command(self, event: CommandIn) -> IncomingCommand | None:
        """A command; None if it is dropped, and its content with it."""
        self._current = None
        if not self._is_heard:
            return None
        _, command, sync, has_content = event
        if has_content and not command.CONTENT:
            raise ProtocolViolation(503, f"{command.NAME} has no header and no body")
        command_id = self.receiver.take(sync=sync)
        self._current = command_id
        if command_id is None:
            if self.receiver.is_due:
                self._writer.owe(self)
            return None
        if isinstance(command, _FINISHED) or (
            isinstance(command, amqp.ExecutionSync) and self._role is Role.SERVER
        ):
            self.finish(command_id)
        return IncomingCommand(self.channel, command_id, command, sync, has_content)

    def receive_message(self, *, sync: bool) -> int | None:
        """A transfer, with all of its content: its id. None, and nothing has changed, where `receive_command`
        has to say what is done with it."""
        if not self._is_heard:
            return None
        command_id = self.receiver.take_next(sync=sync)
        if command_id is not None:
            self._current = command_id
        return command_id

    def receive_content(self, event: HeaderIn | BodyIn) -> IncomingHeader | IncomingBody | None:
        """A header or a piece of a body; None if its command was dropped."""
        command_id = self._current
        if command_id is None or not self._is_heard:
            return None
        if isinstance(event, HeaderIn):
            return IncomingHeader(self.channel, command_id, event.structs, event.has_body)
        return IncomingBody(self.channel, command_id, event.chunk, event.is_last)

    def blamed(self, *, is_content: bool) -> int | None:
        """The id of a command that could not be taken, or of the one whose content could not."""
        return self._current if is_content else self.receiver.upcoming

    # What the owner sends and finishes.

    def send(
        self,
        command: Command,
        structs: Sequence[Struct | Unknown] | None = None,
        body: bytes = b"",
        *,
        sync: bool = False,
        goes_on: bool = False,
    ) -> int:
        """Send a command, with a header and a body if it has them; its id.

        With ``goes_on`` no body is given: `send_body` follows, and nothing else is sent before its last
        piece. Violation 506 if the command or its header is too large for a frame of the peer's.
        :class:`ValueError` if the session is over or a body is not complete.
        """
        if not self.is_attached or self._body is not None:
            raise ValueError(f"{command.NAME} cannot be sent now")
        if goes_on:
            self._writer.begin(self.channel, command, structs, sync=sync)
            self._body = True
        else:
            self._writer.command(self.channel, command, structs, body, sync=sync)
        return self.sender.take()

    def send_message(self, command: bytes, header: bytes, body: bytes = b"", *, goes_on: bool = False) -> int:
        """Send a command with a header, both of them encoded, and with a body if there is any; its id.

        As `send` else.
        """
        if not self.is_attached or self._body is not None:
            raise ValueError("a message cannot be sent now")
        if goes_on:
            self._writer.begin_segments(self.channel, command, header)
            self._body = True
        else:
            self._writer.segments(self.channel, command, header, body)
        return self.sender.take()

    def send_body(self, chunk: bytes | memoryview, *, is_last: bool) -> None:
        """Send a piece of the body of the command that went on. It is dropped if the session is detached.

        A session that was to end ends after the last piece.
        """
        if self._body is None:
            return
        self._writer.body(self.channel, chunk, is_first=self._body, is_last=is_last)
        if chunk:
            self._body = False
        if is_last:
            self._body = None
            if not self.is_attached:
                self._say_last_words()

    def finish(self, first: int, last: int | None = None, *, tell: bool = False) -> None:
        """The peer's commands from ``first`` to ``last`` are done. It hears of it if it asked, or to
        ``tell``.

        Nothing happens if the session is over. Errors as in `CommandReceiver.finish`.
        """
        if self._is_heard:
            self.receiver.finish(first, last)
            if tell:
                self.receiver.ask()
            if self.receiver.is_due:
                self._writer.owe(self)

    def tell(self) -> None:
        """Write what is owed, and what is complete, whether the peer asked for that or not: the end comes."""
        if self.receiver.is_untold:
            self.receiver.ask()
        self.answer()

    def answer(self) -> None:
        """Write what is owed."""
        if not self.is_attached:
            return
        if self._asked or self.sender.is_due:
            self._answer_questions(self._writer.most_ranges)
        if self.receiver.is_due:
            completed = self.receiver.tell_range()
            if completed is None:
                self._say(self.receiver.tell(self._writer.most_ranges))
            else:
                self._writer.completed(self.channel, completed)

    def _answer_questions(self, most: int) -> None:
        asked, self._asked = self._asked, set()
        if amqp.SessionTimeout in asked:
            self._say(amqp.SessionTimeout(timeout=0))
        if self.sender.is_due:
            self._say(self.sender.reply(most))
        if amqp.SessionExpected in asked:
            self._say(amqp.SessionExpected(commands=self.receiver.expected))
        if amqp.SessionConfirmed in asked:
            # What is complete is confirmed (rule "completed-implies-confirmed"); nothing else is.
            self._say(amqp.SessionConfirmed(commands=self.receiver.owed(most)))

    def _enter(self, state: SessionState) -> None:
        self.state = state
        self._is_heard = self._role.peer in SPEAKERS[state]
        self.is_attached = self._role in SPEAKERS[state]

    def _end(self, last_words: Command | None) -> None:
        if not self.is_attached:
            return
        self.tell()
        self._enter(TRANSITIONS[self.state][self._role, "session.detach"])
        self._last_words = last_words
        if self._body is None:
            self._say_last_words()

    def _say_last_words(self) -> None:
        if self._last_words is not None:
            self._writer.command(self.channel, self._last_words, None, b"", sync=False)
        self._say(amqp.SessionDetach(name=self.name))

    def _over(self, code: int) -> SessionEnded:
        self._enter(SessionState.DETACHED)
        self._body = None
        return SessionEnded(self.channel, code)

    def _say(self, control: Control) -> None:
        self._writer.control(self.channel, control)
