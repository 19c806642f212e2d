"""What a command of 0-10 is made of: questions to the broker, one after the other.

A command is a generator. It yields each `Call` and is sent the broker's answer, or it yields a `Wait`; what
it returns is the command's result, None for most. It raises `ProtocolViolation` where the command is refused,
which ends the session. So a command reads from top to bottom, though it does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

from attrs import frozen

from amqpgate.bridge.v0_10.channels import ChannelUse
from amqpgate.bridge.v0_10.codes import violation_of_channel_close
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.structs import Struct


@frozen
class Call:
    """A question on one of the session's channels.

    The answer is one of the method's ``REPLIES``, or channel.close on channel "ask", which is open again
    when it is needed next. On other channels channel.close ends the session. A method without replies answers
    itself: it is said, and nobody waits.
    """

    use: ChannelUse
    method: Method


@frozen
class Wait:
    """Nothing is asked: something in another session of the connection is to happen first. ``is_over`` is
    looked at after whatever the connection hears.
    """

    is_over: Callable[[], bool]


@frozen
class Answer:
    """What the broker said, with the message where it carries one."""

    method: Method
    #: Payload of the message's header frame.
    header: bytes = b""
    body: bytes = b""


T = TypeVar("T")

#: A part of a command, which comes to a ``T``.
Part: TypeAlias = Generator[Call | Wait, Answer, T]
#: A command, which comes to its result.
Steps: TypeAlias = Part[Struct | None]


def ask(method: Method) -> Part[Method]:
    """Ask on channel "ask": the answer, or the broker's channel.close."""
    answer = yield Call(ChannelUse.ASK, method)
    return answer.method


def insist(method: Method) -> Part[Method]:
    """The same; a channel.close is raised as the violation that it tells of."""
    answer = yield from ask(method)
    if isinstance(answer, amqp.ChannelClose):
        raise violation_of_channel_close(answer)
    return answer


def says(reply: Method, code: int) -> bool:
    """Whether it is a channel.close with that code."""
    return isinstance(reply, amqp.ChannelClose) and reply.reply_code == code


def text_of(name: bytes | None, what: str) -> str:
    """A peer's name as text; absent is empty. Violation 542 if it is not UTF-8: RabbitMQ ends the whole
    connection for that.
    """
    try:
        return (name or b"").decode()
    except UnicodeDecodeError:
        raise ProtocolViolation(542, f"the name of {what} is not UTF-8") from None


def name_of(name: bytes | None, what: str) -> str:
    """The same; an empty one is 542, too: to RabbitMQ it means something else."""
    return _some(text_of(name, what), what, 542)


def queue_of(name: bytes | None) -> str:
    """The name of a queue that is read or purged. As above; an empty one is 531, as with qpidd."""
    return _some(text_of(name, "the queue"), "the queue", 531)


def _some(text: str, what: str, code: int) -> str:
    if not text:
        raise ProtocolViolation(code, f"{what} has no name")
    return text
