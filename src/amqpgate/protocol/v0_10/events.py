"""What a connection tells its owner. All that happens to a session names its channel."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from attrs import field, frozen

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command, Control, Struct, Unknown

#: Controls that carry a password or a token, which must not end up in a log.
_SECRETIVE: Final = frozenset({"connection.start-ok", "connection.secure-ok"})


def _safe_repr(control: Control) -> str:
    return f"<{control.NAME}>" if control.NAME in _SECRETIVE else repr(control)


@frozen
class PeerHeader:
    """The peer's protocol header. A server owes connection.start now; if it is not accepted, all is said."""

    header: bytes
    is_accepted: bool


@frozen
class ConnectionControl:
    """A control of the connection's, legal where it stands, for the owner to answer. Heartbeats are none."""

    control: Control = field(repr=_safe_repr)


@frozen
class ConnectionClosed:
    """The peer has sent connection.close, and was answered. ``violation`` is what it means in 0-9-1: a
    refused login is 403.
    """

    violation: ProtocolViolation = field(eq=str)


@frozen
class ConnectionFailed:
    """The peer broke the protocol: connection.close is on its way, and nothing but its answer is read."""

    violation: ProtocolViolation = field(eq=str)


@frozen
class SessionBegun:
    """A session is attached. To a server: the client asked for it, and was told."""

    channel: int
    name: bytes


@frozen
class SessionFailed:
    """The peer broke the protocol: the exception and session.detach are on their way, and what comes until
    the peer answers is dropped.
    """

    channel: int
    violation: ProtocolViolation = field(eq=str)


@frozen
class SessionEnded:
    """A session is attached no more, for whatever reason; its channel is free. ``code`` is as in
    `DetachCode`.
    """

    channel: int
    code: int


class IncomingCommand(NamedTuple):
    """A command. The owner tells the session when it is finished, once all of its content has come.

    Exceptions and results are finished already, and so is execution.sync towards clients: what is finished
    in order waits for all before it.
    """

    channel: int
    command_id: int
    command: Command
    sync: bool
    #: A header or a body follows.
    has_content: bool


class IncomingHeader(NamedTuple):
    """The header of a command."""

    channel: int
    command_id: int
    structs: tuple[Struct | Unknown, ...]
    #: A body follows; without one the command is complete.
    has_body: bool


class IncomingBody(NamedTuple):
    """A piece of a command's body; the command is complete with the last one."""

    channel: int
    command_id: int
    chunk: bytes
    is_last: bool


class IncomingMessage(NamedTuple):
    """A command with a header, and a body if there is one, all of it at once.

    The header is not decoded. Who cannot decode it ends the session for the violation, and names the command.
    """

    channel: int
    command_id: int
    command: Command
    header: bytes
    body: bytes


class CommandsCompleted(NamedTuple):
    """The peer has completed commands that were sent to it, each told once."""

    channel: int
    commands: SequenceSet


SessionEvent: TypeAlias = (
    SessionBegun
    | SessionEnded
    | IncomingCommand
    | IncomingHeader
    | IncomingBody
    | IncomingMessage
    | CommandsCompleted
)
ConnectionEvent: TypeAlias = (
    PeerHeader | ConnectionControl | ConnectionClosed | ConnectionFailed | SessionFailed | SessionEvent
)
