"""The comparison sees what it must see, and nothing else."""

from __future__ import annotations

import pytest

from amqpgate.protocol.frames import Frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

from .transcript import Transcript


class FakeLine:
    """A connection on which these came."""

    def __init__(self, *received: Method | Frame) -> None:
        self.received = [f if isinstance(f, Frame) else Frame(1, 1, f.encode()) for f in received]
        self.own: set[int] = set()
        self.refusal = b""


def _lines(*received: Method | Frame, in_place: bool = False) -> list[str]:
    return Transcript(confirms_in_place=in_place).lines("A", FakeLine(*received))  # type: ignore[arg-type]


_MADE, _OTHER = (amqp.QueueDeclareOk("amq.gen-" + letter * 22) for letter in "ab")
_CLOSE = amqp.ChannelClose(404, "NOT_FOUND - no queue", 50, 10)
_DELIVER = amqp.BasicDeliver("t", 1)
_RETURN = amqp.BasicReturn(312, "NO_ROUTE")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((_MADE,), (_OTHER,)),
        ((_MADE, _OTHER), (_OTHER, _MADE)),
        ((amqp.BasicAck(1), amqp.BasicAck(2)), (amqp.BasicAck(2, True),)),
        ((amqp.BasicAck(1), _DELIVER), (_DELIVER, amqp.BasicAck(1))),
        (
            (amqp.ConnectionStart(0, 9, Table(), b"PLAIN AMQPLAIN"),),
            (amqp.ConnectionStart(0, 9, Table.of({"product": "x"}), b"AMQPLAIN PLAIN"),),
        ),
    ],
)
def test_the_same(one: tuple[Method, ...], other: tuple[Method, ...]) -> None:
    assert _lines(*one) == _lines(*other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((_MADE, _MADE), (_MADE, _OTHER)),
        ((_CLOSE,), (amqp.ChannelClose(404, "NOT_FOUND - no queue", 60, 10),)),
        ((_CLOSE,), (amqp.ChannelClose(404, "NOT_FOUND - no queues", 50, 10),)),
        ((_CLOSE,), ()),
        ((amqp.BasicAck(1),), (amqp.BasicNack(1),)),
        ((amqp.BasicAck(1),), ()),
        ((amqp.BasicAck(3, True),), (amqp.BasicAck(3),)),
        ((_DELIVER, _RETURN), (_RETURN, _DELIVER)),
        ((Frame(3, 1, b"ab"),), (Frame(3, 1, b"a"), Frame(3, 1, b"b"))),
        ((Frame(3, 1, b"ab"),), (Frame(3, 2, b"ab"),)),
        (
            (Frame(2, 1, encode_header(ContentHeader(60, 1, amqp.BasicProperties()))),),
            (Frame(2, 1, encode_header(ContentHeader(60, 1, amqp.BasicProperties(priority=0)))),),
        ),
    ],
)
def test_not_the_same(one: tuple[Method | Frame, ...], other: tuple[Method | Frame, ...]) -> None:
    assert _lines(*one) != _lines(*other)


def test_confirms_in_place() -> None:
    assert _lines(_RETURN, amqp.BasicAck(1), in_place=True) != _lines(
        amqp.BasicAck(1), _RETURN, in_place=True
    )


def test_generated_names_keep_their_kind() -> None:
    names = ("amq.gen-" + "a" * 22, "amq.ctag-" + "b" * 22, "amq.rabbitmq.reply-to.YQ==.Yg+/==")
    text = "\n".join(_lines(*(amqp.QueueDeclareOk(name) for name in names)))
    assert "<amq.gen 1>" in text
    assert "<amq.ctag 2>" in text
    assert "<reply-to 3>" in text
    assert "aaaa" not in text
