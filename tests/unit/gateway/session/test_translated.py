"""Sessions of a whole gateway whose peers speak another protocol: what each side hears, in its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.bridge import Interpreter
from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.protocol.frames import Frame, method_frame
from amqpgate.protocol.methods import Role
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.support.talker import Talker
from tests.support.translators import BROKEN, RECORD, Reframing, messages, record, records
from tests.unit.gateway.conftest import Stage

PUBLISH = content_frames(
    1, amqp.BasicPublish(routing_key="q"), amqp.BasicProperties(), b"x" * 300_000, 131072
)
CLOSE_OK = records(method_frame(0, amqp.ConnectionCloseOk()))


@pytest.fixture
def translated(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A stage where each client that has said its header speaks records from then on."""
    speak = MethodStream.speak

    def translate(stream: MethodStream, interpreter: Interpreter) -> None:
        speak(stream, interpreter)
        if stream.peer is Role.CLIENT and stream.translated is None:
            stream.translate(Reframing(frame_max=131072))

    monkeypatch.setattr(MethodStream, "speak", translate)
    return stage


class Odd:
    """A client that speaks records."""

    def __init__(self, talker: Talker) -> None:
        self.talker = talker
        self._data = b""

    def say(self, frames: bytes) -> None:
        self.talker.raw(records(frames))

    def hear(self) -> Frame:
        while True:
            if len(self._data) >= RECORD.size:
                size, kind, channel = RECORD.unpack_from(self._data)
                if len(self._data) >= RECORD.size + size:
                    payload = self._data[RECORD.size : RECORD.size + size]
                    self._data = self._data[RECORD.size + size :]
                    return Frame(kind, channel, payload)
            data = self.talker.sock.recv(65536)
            if not data:
                raise EOFError
            self._data += data

    def expect(self, method: type[object]) -> object:
        found = decode_method(self.hear().payload)
        assert isinstance(found, method), found
        return found


def opened(stage: Stage) -> tuple[Odd, Talker]:
    stage.forget()
    talker = stage.client()
    talker.raw(amqp.PROTOCOL_HEADER)
    broker = stage.broker()
    broker.greet()
    client = Odd(talker)
    client.expect(amqp.ConnectionStart)
    start_ok = amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US")
    client.say(method_frame(0, start_ok))
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    client.expect(amqp.ConnectionTune)
    client.say(method_frame(0, amqp.ConnectionTuneOk(2047, 131072, 0)))
    client.say(method_frame(0, amqp.ConnectionOpen("/")))
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    client.say(method_frame(1, amqp.ChannelOpen()))
    broker.expect(amqp.ChannelOpen, 1)
    broker.say(amqp.ChannelOpenOk(), 1)
    client.expect(amqp.ChannelOpenOk)
    return client, broker


def test_a_session_from_login_to_close(translated: Stage) -> None:
    client, broker = opened(translated)
    client.say(PUBLISH)
    assert broker.expect_content(amqp.BasicPublish).body == b"x" * 300_000
    broker.content(amqp.BasicDeliver("c"), b"d" * 200_000)
    said = [client.hear()]
    while sum(len(one.payload) for one in said if one.type == 3) < 200_000:
        said.append(client.hear())
    assert messages([tuple(one) for one in said])[-1] == (3, 1, b"d" * 200_000)  # type: ignore[misc]
    (session,) = translated.running.gateway.sessions.values()
    assert session.relay.endpoints[0].sock.getpeername()[1] == client.talker.sock.getsockname()[1]
    client.say(method_frame(0, amqp.ConnectionClose(200, "bye")))
    broker.expect(amqp.ConnectionClose)
    broker.say(amqp.ConnectionCloseOk())
    client.expect(amqp.ConnectionCloseOk)
    with pytest.raises(EOFError):
        client.hear()
    client.talker.close()
    broker.close()
    translated.running.wait_idle()
    assert translated.running.outcomes() == {"closed": 1}


def test_a_violation_is_answered_in_the_peers_own_protocol(translated: Stage) -> None:
    client, broker = opened(translated)
    client.talker.raw(records(PUBLISH) + record(BROKEN) + records(PUBLISH))
    close = client.expect(amqp.ConnectionClose)
    assert isinstance(close, amqp.ConnectionClose)
    assert (close.reply_code, close.reply_text) == (503, "COMMAND_INVALID - a broken record")
    assert broker.expect_content(amqp.BasicPublish).body == b"x" * 300_000
    assert broker.expect(amqp.ConnectionClose).reply_text == "CONNECTION_FORCED - client broke the protocol"
    broker.say(amqp.ConnectionCloseOk())
    client.talker.raw(CLOSE_OK)
    for talker in (client.talker, broker):
        talker.close()
    translated.running.wait_idle()
    assert translated.running.outcomes() == {"violation": 1}
    assert translated.running.gateway.pump.counters.failures == 0


@pytest.mark.parametrize("leave", [Talker.close, Talker.reset])
def test_a_client_that_vanishes(translated: Stage, leave: Callable[[Talker], None]) -> None:
    client, broker = opened(translated)
    client.say(PUBLISH)
    assert broker.expect_content(amqp.BasicPublish).body == b"x" * 300_000
    leave(client.talker)
    close = broker.expect(amqp.ConnectionClose)
    assert close.reply_text == "CONNECTION_FORCED - client closed its connection"
    broker.say(amqp.ConnectionCloseOk())
    broker.close()
    translated.running.wait_idle()
    assert translated.running.outcomes() == {"client_gone": 1}


def test_what_the_broker_said_before_it_vanished_arrives(translated: Stage) -> None:
    """What waits for a slow client comes before the close."""
    client, broker = opened(translated)
    for _ in range(5):
        broker.content(amqp.BasicDeliver("c"), b"d" * 300_000)
    broker.close()
    said = []
    while not said or said[-1].channel:
        said.append(client.hear())
    bodies = [payload for kind, _, payload in messages([tuple(one) for one in said]) if kind == 3]  # type: ignore[misc]
    assert bodies == [b"d" * 300_000] * 5
    close = decode_method(said[-1].payload)
    assert isinstance(close, amqp.ConnectionClose)
    assert close.reply_code == 320
