"""How sessions begin and end on a relayed connection, and what is denied."""

from __future__ import annotations

from random import Random

import pytest

from amqpgate.bridge.v0_10.native.channels import MOST_DUE, RelayedChannel
from amqpgate.bridge.v0_10.native.cutting import Assembly
from amqpgate.bridge.v0_10.native.limits import MOST_UNSENT
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import HEARTBEAT, body_frames, encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command, Control
from tests.support.said_0_10 import Sent, Splitter
from tests.support.talk_0_10 import ATTACH, KEY, NAME, POINT, TRANSFER, B, E, b, command, control, e, frame
from tests.unit.bridge.v0_10.native.lab import Lab

DETACH, DETACHED = amqp10.SessionDetach(name=NAME), amqp10.SessionDetached(name=NAME, code=0)
ATTACHED = amqp10.SessionAttached(name=NAME)
DECLARE = amqp10.QueueDeclare(queue=b"q")
DELIVERED = (amqp10.DeliveryProperties(routing_key=b"key", exchange=b"amq.direct"),)


def attached(lab: Lab, channel: int = 0) -> Lab:
    """A session has begun."""
    said = control(ATTACH, channel) + control(POINT, channel)
    assert lab.from_client(said) == said
    answer = control(ATTACHED, channel) + control(POINT, channel)
    assert lab.from_broker(answer) == answer
    return lab


def heard(data: bytes) -> list[Command | Control]:
    return [one.control or one.command for one in Splitter(header=False).feed(data)]


def sent(data: bytes) -> list[Sent]:
    return list(Splitter(header=False).feed(data))


def denies_publishes(method: Method) -> bool:
    return isinstance(method, amqp.BasicPublish)


def names(passed: list[tuple[int, Method]]) -> list[str]:
    return [method.NAME for _, method in passed]


# -- what passes ---------------------------------------------------------------------------


def test_a_session() -> None:
    lab = attached(Lab())
    said = command(DECLARE) + command(TRANSFER, KEY, b"body") + command(amqp10.ExecutionSync(), sync=True)
    assert lab.from_client(said) == said
    done = control(amqp10.SessionCompleted(SequenceSet(((0, 2),))))
    assert lab.from_broker(done) == done
    assert lab.from_client(control(DETACH)) == control(DETACH)
    assert lab.from_broker(control(DETACHED)) == control(DETACHED)
    assert names(lab.up) == ["channel.open", "queue.declare", "basic.publish", "channel.close"]
    assert names(lab.down) == ["channel.open-ok", "queue.declare-ok", "channel.close-ok"]
    attached(lab)


def test_what_is_sent_behind_attach_and_connection_close() -> None:
    lab = Lab()
    said = b"".join(map(control, (ATTACH, POINT))) + command(DECLARE)
    assert lab.from_client(said + control(amqp10.ConnectionClose(reply_code=200))) == said + control(
        amqp10.ConnectionClose(reply_code=200)
    )
    assert lab.from_broker(control(amqp10.ConnectionCloseOk())) == control(amqp10.ConnectionCloseOk())


def test_the_next_session_may_be_asked_for_before_the_last_one_is_gone() -> None:
    lab = attached(Lab())
    again = control(amqp10.SessionAttach(name=b"next")) + control(POINT)
    assert lab.from_client(control(DETACH) + again + command(DECLARE)) == control(DETACH)
    assert lab.from_broker(control(DETACHED)) == control(DETACHED)
    assert lab.to_broker.endswith(again + command(DECLARE))


def test_sessions_that_wait_for_each_other_are_held_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many a client asks for ahead, each is looked at when it is its turn."""
    held: list[Assembly] = []
    hold = RelayedChannel.hold

    def counting(channel: RelayedChannel, assembly: Assembly) -> None:
        held.append(assembly)
        hold(channel, assembly)

    monkeypatch.setattr(RelayedChannel, "hold", counting)
    lab, again = Lab(), control(DETACH) + control(ATTACH) + command(DECLARE)
    lab.from_client(control(ATTACH) + again * 50)
    for _ in range(50):
        assert lab.from_broker(control(ATTACHED)) == control(ATTACHED)
        assert lab.from_broker(control(DETACHED)) == control(DETACHED)
    assert lab.from_broker(control(ATTACHED)) == control(ATTACHED)
    assert lab.to_broker == control(ATTACH) + again * 50
    assert len(held) == 150


def test_the_broker_refuses_a_session() -> None:
    lab = Lab()
    lab.from_client(control(ATTACH) + control(POINT))
    busy = control(amqp10.SessionDetached(name=NAME, code=1))
    assert lab.from_broker(busy) == busy
    assert names(lab.down) == ["channel.open-ok", "channel.close"]
    # A command of no session goes nowhere, and the next one may begin.
    assert lab.from_client(command(DECLARE)) == b""
    attached(lab)


def test_the_broker_ends_a_session_by_an_exception() -> None:
    lab = attached(Lab())
    lab.from_client(command(DECLARE))
    exception = command(amqp10.ExecutionException(error_code=404, command_id=0, description=b"no queue"))
    assert lab.from_broker(exception + control(DETACH)) == exception + control(DETACH)
    close = lab.down[-1][1]
    assert isinstance(close, amqp.ChannelClose)
    assert (close.reply_code, close.reply_text) == (404, "no queue")
    assert lab.from_client(command(DECLARE)) == b""
    assert lab.from_client(control(DETACHED)) == control(DETACHED)
    attached(lab)


def test_the_next_session_is_asked_for_in_one_piece_with_the_answer_to_a_detach() -> None:
    lab = attached(Lab())
    assert lab.from_broker(control(DETACH)) == control(DETACH)
    said = control(DETACHED) + control(amqp10.SessionAttach(name=b"next")) + control(POINT)
    # A broker that has not heard of the one takes no other.
    assert lab.from_client(said) == said
    answer = control(amqp10.SessionAttached(name=b"next")) + control(POINT)
    assert lab.from_broker(answer) == answer
    assert lab.from_client(command(DECLARE)) == command(DECLARE)


def test_both_detach_at_once() -> None:
    lab = attached(Lab())
    lab.client.from_peer(control(DETACH))
    assert lab.from_broker(control(DETACH)) == control(DETACH)
    assert lab.to_broker.endswith(control(DETACH))
    assert lab.from_client(control(DETACHED)) == control(DETACHED)
    assert lab.from_broker(control(DETACHED)) == control(DETACHED)
    attached(lab)


def test_a_second_attach_is_the_brokers_business() -> None:
    lab = attached(Lab())
    other = control(amqp10.SessionAttach(name=b"other"))
    assert lab.from_client(other) == other
    busy = control(amqp10.SessionDetached(name=b"other", code=2))
    assert lab.from_broker(busy) == busy
    assert lab.from_client(command(DECLARE)) == command(DECLARE)


def test_deliveries_and_what_is_done_with_them() -> None:
    lab = attached(Lab())
    lab.from_client(command(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0)))
    result = command(amqp10.ExecutionResult(command_id=0))
    transfer = command(
        amqp10.MessageTransfer(destination=b"d", accept_mode=0, acquire_mode=0), DELIVERED, b"body"
    )
    assert lab.from_broker(result + transfer * 3) == result + transfer * 3
    said = [method for _, method in lab.down[1:]]
    # It is there before anything is delivered to it, whether the broker has said so or not.
    assert said == [
        amqp.BasicConsumeOk("d"),
        *(amqp.BasicDeliver("d", tag, exchange="amq.direct", routing_key="key") for tag in (2, 3, 4)),
    ]
    ids = SequenceSet(((1, 2),))
    words = [
        amqp10.MessageAccept(transfers=SequenceSet(((2, 2), (7, 9)))),
        amqp10.MessageRelease(transfers=ids),
        amqp10.MessageReject(transfers=SequenceSet(((3, 3),))),
        amqp10.MessageAccept(transfers=SequenceSet(((0, 100),))),
    ]
    for word in words:
        assert lab.from_client(command(word)) == command(word)
    assert [method for _, method in lab.up[2:]] == [
        amqp.BasicAck(3),
        amqp.BasicNack(2, requeue=True),
        amqp.BasicNack(4, requeue=False),
    ]


def test_deliveries_without_acks_are_not_settled() -> None:
    lab = attached(Lab())
    transfer = command(amqp10.MessageTransfer(destination=b"d", accept_mode=1), DELIVERED, b"body")
    assert lab.from_broker(transfer) == transfer
    accept = command(amqp10.MessageAccept(transfers=SequenceSet(((0, 0),))))
    assert lab.from_client(accept) == accept
    assert names(lab.up) == ["channel.open"]


def test_heartbeats_go_each_way() -> None:
    lab = Lab()
    beat = control(amqp10.ConnectionHeartbeat())
    lab.client.from_peer(beat)
    assert lab.client.frames_for_gateway(100) == HEARTBEAT
    lab.broker.from_gateway(HEARTBEAT)
    assert lab.broker.bytes_for_peer() == beat


def test_a_large_message_in_small_frames_of_the_gateway() -> None:
    lab = attached(Lab(frame_max=4096))
    said = command(TRANSFER, KEY, bytes(50_000))
    assert lab.from_client(said) == said


def test_frames_that_the_other_peer_does_not_take_are_cut() -> None:
    lab = Lab(most_to_broker=4096, most_to_client=5000)
    lab.from_client(control(ATTACH))
    lab.from_broker(control(ATTACHED))
    for give, most in ((lab.from_client, 4096), (lab.from_broker, 5000)):
        data = give(command(TRANSFER, KEY, bytes(20_000)))
        assert b"".join(one.body for one in sent(data)) == bytes(20_000)
        assert int.from_bytes(data[-4096:][:0] or data[2:4], "big") <= most
    with pytest.raises(ProtocolViolation) as caught:
        lab.from_client(command(TRANSFER, (amqp10.MessageProperties(correlation_id=bytes(5000)),), b"body"))
    assert caught.value.code == 506


# -- what does not -------------------------------------------------------------------------


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_denied_transfer_ends_its_session(is_answered: bool) -> None:
    lab = attached(attached(Lab(denies_publishes)), 5)
    said = command(TRANSFER, KEY, b"secret") + command(DECLARE) + control(amqp10.SessionFlush(completed=True))
    assert lab.from_client(command(DECLARE) + said) == command(DECLARE) + control(DETACH)
    assert not lab.to_client.endswith(control(DETACH))
    done = control(amqp10.SessionCompleted(SequenceSet(((0, 0),))))
    told = lab.from_broker(done + control(DETACHED))
    assert told.startswith(done)
    exception, detach = heard(told[len(done) :])
    assert exception == amqp10.ExecutionException(403, 1, 4, 1, None, b"ACCESS_REFUSED - basic.publish")
    assert detach == DETACH
    # What it says before it has heard, and what it answers, is for nobody.
    assert lab.from_client(command(DECLARE) + control(DETACHED)) == b""
    assert b"secret" not in lab.to_broker
    # The other session goes on, and so may the first one's channel.
    assert lab.from_client(command(DECLARE, channel=5)) == command(DECLARE, channel=5)
    attached(lab)
    assert lab.from_client(command(DECLARE)) == command(DECLARE)


def test_transfers_that_are_like_others_pass_and_are_denied_like_the_first() -> None:
    denied = False
    lab = attached(Lab(lambda method: denied and isinstance(method, amqp.BasicPublish)))
    for body in (b"one", b"another", None):
        said = command(TRANSFER, KEY, body)
        assert lab.from_client(said * 2) == said * 2
    assert [method for _, method in lab.up][1:] == [lab.up[1][1]] * 6
    denied = True
    assert lab.from_client(command(TRANSFER, KEY, b"secret") * 2) == control(DETACH)
    exception = heard(lab.from_broker(control(DETACHED)))[0]
    assert exception == amqp10.ExecutionException(403, 6, 4, 1, None, b"ACCESS_REFUSED - basic.publish")
    denied = False
    assert lab.from_client(command(TRANSFER, KEY, b"of no session")) == b""
    # Behind an attach it waits for the session.
    said = control(DETACHED) + control(ATTACH) + command(TRANSFER, KEY, b"next")
    assert lab.from_client(said) == control(ATTACH) + command(TRANSFER, KEY, b"next")


def test_commands_are_numbered_from_command_point_on() -> None:
    lab = attached(Lab(denies_publishes))
    lab.from_client(control(amqp10.SessionCommandPoint(command_id=0xFFFFFFFF)))
    lab.from_broker(control(amqp10.SessionCommandPoint(command_id=7)))
    transfer = command(amqp10.MessageTransfer(destination=b"d", accept_mode=0), DELIVERED, b"body")
    lab.from_broker(transfer * 2)
    lab.from_client(command(amqp10.MessageAccept(transfers=SequenceSet(((8, 8),)))))
    assert [method for _, method in lab.up][1:] == [amqp.BasicAck(9)]
    lab.from_client(command(TRANSFER, KEY, b"secret"))
    lab.from_broker(control(DETACHED))
    exception = heard(lab.to_client)[-2]
    assert isinstance(exception, amqp10.ExecutionException)
    assert exception.command_id == 0


def test_what_waits_behind_a_denied_command_waits_for_ever() -> None:
    denied = [True]
    lab = attached(Lab(lambda method: isinstance(method, amqp.QueueDeclare) and denied.pop()))
    first, rest = (
        command(DECLARE),
        command(amqp10.ExecutionSync(), sync=True) + command(TRANSFER, KEY, b"more"),
    )
    assert lab.from_client(first + rest) == control(DETACH)


def test_deliveries_come_until_the_broker_has_detached() -> None:
    lab = attached(Lab(denies_publishes))
    lab.from_client(command(TRANSFER, KEY, b"secret"))
    transfer = command(amqp10.MessageTransfer(destination=b"d", accept_mode=1), DELIVERED, b"body")
    assert lab.from_broker(transfer) == transfer
    assert [type(one) for one in heard(lab.from_broker(control(DETACHED)))] == [
        amqp10.ExecutionException,
        amqp10.SessionDetach,
    ]


def test_a_denial_meets_the_clients_detach() -> None:
    lab = attached(Lab(denies_publishes))
    assert lab.from_client(command(TRANSFER, KEY, b"secret") + control(DETACH)) == control(DETACH)
    lab.from_broker(control(DETACHED))
    # The gateway answers the client's close, too, once it has been told why.
    told = lab.to_client
    lab.client.from_gateway(method_frame(1, amqp.ChannelCloseOk()))
    assert [type(one) for one in heard(told)][-1] is amqp10.ExecutionException
    assert heard(lab.client.bytes_for_peer()) == [DETACHED]


def test_a_denial_meets_the_brokers_detach() -> None:
    lab = attached(Lab(denies_publishes))
    lab.broker.from_peer(control(DETACH))
    lab.client.from_peer(command(TRANSFER, KEY, b"secret"))
    for part in (lab.client, lab.broker):
        assert part.has_frames
    lab.settle()
    assert b"secret" not in lab.to_broker
    exception = command(amqp10.ExecutionException(error_code=404))
    lab = attached(Lab(denies_publishes))
    lab.from_client(command(TRANSFER, KEY, b"secret"))
    lab.from_broker(exception + control(DETACH))
    assert heard(lab.to_broker)[-1] == DETACHED
    assert heard(lab.to_client)[-1] == DETACH


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (frame(B | E | b | e, 1, b"\x08\x01\x01\x00\x00\x80"), 503),
        (frame(B | E | b | e, 1, b"\x63\x01\x01\x00\x00\x00"), 503),
        (frame(B | E | b | e, 1, b"\x08"), 503),
        (command(DECLARE, KEY), 503),
        (command(DECLARE, None, b"body"), 503),
        (command(TRANSFER, (*KEY, *KEY), b"body"), 503),
        (command(amqp10.FileQos()), 540),
        (command(amqp10.StreamPublish(), KEY, b"body"), 540),
        (frame(B | E | b | e, 0, b"\x02\x07\x80"), 503),
    ],
)
def test_what_only_the_session_need_end_for(wrong: bytes, code: int) -> None:
    lab = attached(Lab())
    assert lab.from_client(command(DECLARE) + wrong + command(DECLARE)) == command(DECLARE) + control(DETACH)
    exception, detach = heard(lab.to_client)[-2:]
    assert isinstance(exception, amqp10.ExecutionException)
    assert (exception.error_code, detach) == (code, DETACH)
    late = command(amqp10.MessageTransfer(destination=b"d"), DELIVERED, b"body")
    assert lab.from_broker(late + control(DETACHED)) == b""
    assert lab.from_client(command(DECLARE) + control(DETACHED)) == b""
    attached(lab)


@pytest.mark.parametrize(
    "wrong",
    [
        control(ATTACH, 256),
        command(DECLARE, channel=256),
        control(amqp10.ConnectionTuneOk()),
        control(amqp10.ConnectionOpen()),
        control(amqp10.ConnectionHeartbeat(), 1),
        frame(B | E | b | e, 0, b"\x02\x63\0\0"),
        frame(B | E | b | e, 0, b"\x63\x01\0\0"),
        frame(B | E | b | e, 0, b"\x02"),
        frame(B | E | b | e, 0),
        frame(E | e, 3, b""),
    ],
)
def test_what_ends_the_connection(wrong: bytes) -> None:
    lab = attached(Lab())
    with pytest.raises(ProtocolViolation) as caught:
        lab.from_client(wrong)
    assert caught.value.code == 501


def test_a_connection_is_closed() -> None:
    lab = attached(Lab())
    lab.client.from_gateway(method_frame(0, amqp.ConnectionClose(541, "failed")))
    assert heard(lab.client.bytes_for_peer()) == [
        amqp10.ConnectionClose(reply_code=320, reply_text=b"541 failed")
    ]
    close = control(amqp10.ConnectionClose(reply_code=320, reply_text=b"connection-forced: bye"))
    assert lab.from_broker(close) == close


def test_an_unfinished_message_of_a_session_that_is_over() -> None:
    lab = attached(Lab())
    begun = frame(B | b | e, 1, command(TRANSFER)[12:]) + frame(E | b, 3, b"half")
    lab.from_client(begun)
    lab.from_broker(control(DETACH))
    assert lab.from_client(control(DETACHED)) == control(DETACHED)
    attached(lab)
    assert lab.from_client(command(DECLARE)) == command(DECLARE)


def test_a_client_is_not_read_while_too_much_waits() -> None:
    lab = attached(Lab())
    for _ in range(100):
        lab.client.from_peer(control(amqp10.SessionFlush(completed=True)) * 1000)
    assert lab.client.has_frames is False
    assert not lab.client.wants_bytes
    assert len(lab.broker.bytes_for_peer()) > MOST_UNSENT
    assert lab.client.wants_bytes


def test_nor_while_too_much_waits_for_a_copy() -> None:
    lab = attached(Lab())
    lab.client.from_peer(command(DECLARE))
    for _ in range(53):
        assert lab.client.wants_bytes
        lab.client.from_peer(control(amqp10.SessionFlush(completed=True)) * 1000)
    assert not lab.client.wants_bytes
    lab.settle()
    assert lab.client.wants_bytes
    assert len(lab.to_broker) > 53_000 * 16


def test_completion_that_nobody_asks_for_is_not_waited_for() -> None:
    lab = attached(Lab())
    lab.from_client(command(DECLARE) * 2000)
    assert names(lab.down).count("queue.declare-ok") == 2000 - MOST_DUE
    assert lab.from_client(control(DETACH)) == control(DETACH)
    lab.from_broker(control(DETACHED))
    assert names(lab.down).count("queue.declare-ok") == 2000


def test_a_changed_command_ends_its_session() -> None:
    lab = attached(Lab())
    lab.client.from_peer(command(DECLARE))
    assert lab.client.frames_for_gateway(1 << 20)
    lab.broker.from_gateway(method_frame(1, amqp.QueueDeclare(queue="other")))
    lab.settle()
    assert heard(lab.to_broker)[-1] == DETACH
    exception, detach = heard(lab.to_client)[-2:]
    assert isinstance(exception, amqp10.ExecutionException)
    assert (exception.error_code, exception.command_id, detach) == (540, 0, DETACH)
    assert lab.from_broker(control(DETACHED)) == b""
    assert lab.from_client(control(DETACHED)) == b""
    attached(lab)


def test_what_the_gateway_may_not_say() -> None:
    lab = attached(Lab())
    with pytest.raises(ValueError, match="no copy"):
        lab.broker.from_gateway(method_frame(1, amqp.QueuePurge(queue="q")))
    publish = method_frame(1, amqp.BasicPublish())
    header = encode_frame(2, 1, encode_header(ContentHeader(60, 0, amqp.BasicProperties())))
    with pytest.raises(ValueError, match="no copy"):
        lab.broker.from_gateway(publish + header)
    with pytest.raises(ValueError, match="no place"):
        lab.broker.from_gateway(method_frame(0, amqp.ConnectionBlocked()))


def test_a_changed_copy_changes_the_original() -> None:
    lab = attached(Lab())
    properties = amqp10.MessageProperties(
        content_type=b"text/plain",
        correlation_id=b"c",
        content_length=4,
        application_headers=amqp10.MessageProperties().application_headers,
    )
    structs = (amqp10.DeliveryProperties(routing_key=b"key", ttl=5), properties)
    lab.client.from_peer(command(TRANSFER, structs, b"body"))
    frames = lab.client.frames_for_gateway(1 << 20)
    size = int.from_bytes(frames[3:7], "big") + 8
    payload = frames[size + 7 : size + 7 + int.from_bytes(frames[size + 3 : size + 7], "big")]
    header = decode_header(payload)
    assert isinstance(header.properties, amqp.BasicProperties)
    changed = amqp.BasicProperties(
        content_type="text/plain",
        correlation_id="c",
        expiration="5",
        headers=Table((("traceparent", Field("S", "00-1")),)),
    )
    new = encode_frame(2, 1, encode_header(ContentHeader(60, 4, changed)))
    lab.broker.from_gateway(frames[:size] + new + b"".join(body_frames(1, b"body", 4096)))
    (one,) = sent(lab.broker.bytes_for_peer())
    assert one.command == TRANSFER
    assert one.body == b"body"
    delivery, message = one.structs or ()
    assert delivery == structs[0]
    assert isinstance(message, amqp10.MessageProperties)
    assert message.application_headers is not None
    assert [name for name, _ in message.application_headers.entries] == [b"traceparent"]
    assert (message.content_length, message.correlation_id) == (4, b"c")


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_said_nothing_denied_passes(seed: int) -> None:
    """Spoilt bytes end the session or the connection; secrets stay here."""
    random = Random(seed)
    parts = [
        control(ATTACH),
        control(POINT),
        command(DECLARE),
        command(TRANSFER, KEY, b"secret"),
        command(TRANSFER, (amqp10.DeliveryProperties(routing_key=b"key"),), b"secret" * 50),
        control(DETACH),
        control(DETACHED),
        command(amqp10.MessageAccept(transfers=SequenceSet(((0, 0x7FFFFFFF),)))),
        control(amqp10.SessionCommandPoint(command_id=0xFFFFFFFF)),
    ]
    answers = [
        control(ATTACHED),
        control(DETACH),
        control(DETACHED),
        control(POINT),
        control(amqp10.SessionCompleted(SequenceSet(((0, 3),)))),
        command(amqp10.MessageTransfer(destination=b"d"), DELIVERED, b"body"),
    ]
    for _ in range(40):
        lab = Lab(denies_publishes)
        try:
            for _ in range(60):
                said = bytearray(random.choice(parts))
                if random.random() < 0.1:
                    said[random.randrange(len(said))] = random.randrange(256)
                lab.from_client(bytes(said))
                if random.random() < 0.5:
                    lab.from_broker(random.choice(answers))
        except ProtocolViolation:
            pass
        assert b"secret" not in lab.to_broker
