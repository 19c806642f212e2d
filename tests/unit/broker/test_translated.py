"""Clients of AMQP 0-10, on streams."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from random import Random

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair, memory_stream_pair, wait_all_tasks_blocked

from amqpgate.bridge.v0_10.client import ClientTranslator
from amqpgate.broker import VERSIONS, EmbeddedBroker, translated
from amqpgate.broker.amqp.events import ContentReceived
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import HEARTBEAT
from amqpgate.protocol.header import HEADER_0_8_AMQPLIB, HEADER_0_10, HEADER_1_0
from amqpgate.wire.dialects import HEADER_0_8, HEADER_0_9, HEADER_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.codec import decode_struct32
from amqpgate.wire.v0_10.structs import Command, Control, Struct
from amqpgate.wire.v0_10.types import Map, Value
from tests.support.said_0_10 import Sent, Splitter
from tests.support.talk_0_10 import ATTACH, POINT, TRANSFER, command, control
from tests.unit.bridge.v0_10.test_hostile import spoilt, spoken

from .test_server import TrioClient

START_OK = amqp10.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0guest\0guest", locale=b"en_US")


class Client010:
    """Just enough of a client."""

    def __init__(self, stream: trio.abc.HalfCloseableStream) -> None:
        self.stream = stream
        self._splitter = Splitter()
        self._heard: list[Sent] = []

    async def open(self, heartbeat: int | None = None, vhost: bytes = b"") -> amqp10.ConnectionStart:
        await self.stream.send_all(HEADER_0_10)
        start = await self.control(amqp10.ConnectionStart)
        await self.say(START_OK)
        await self.control(amqp10.ConnectionTune)
        tune_ok = amqp10.ConnectionTuneOk(channel_max=64, heartbeat=heartbeat)
        await self.say(tune_ok, amqp10.ConnectionOpen(virtual_host=vhost))
        await self.control(amqp10.ConnectionOpenOk)
        assert isinstance(start, amqp10.ConnectionStart)
        return start

    async def attach(self) -> None:
        await self.say(ATTACH, POINT)
        await self.control(amqp10.SessionAttached)

    async def say(self, *said: Control | Command) -> None:
        await self.stream.send_all(
            b"".join(control(one) if isinstance(one, Control) else command(one, sync=True) for one in said)
        )

    async def transfer(self, key: bytes, body: bytes) -> None:
        structs = (amqp10.DeliveryProperties(routing_key=key),)
        await self.stream.send_all(command(amqp10.MessageTransfer(), structs, body, sync=True))

    async def query(self, queue: bytes) -> Struct:
        await self.say(amqp10.QueueQuery(queue=queue))
        result = (await self.sent(amqp10.ExecutionResult)).command
        assert isinstance(result, amqp10.ExecutionResult)
        return decode_struct32(result.value)

    async def control(self, kind: type[Control]) -> Control:
        """The next control of that kind; all before it is passed over."""
        found = (await self.sent(kind)).control
        assert found is not None
        return found

    async def sent(self, kind: type[Control] | type[Command]) -> Sent:
        while True:
            sent = await self.next()
            assert sent is not None, f"hung up on while waiting for {kind.NAME}"
            if isinstance(sent.control or sent.command, kind):
                return sent

    async def next(self) -> Sent | None:
        """The next control or command; None if the broker has hung up."""
        while not self._heard:
            data = await self.stream.receive_some()
            if not data:
                return None
            self._heard += self._splitter.feed(bytes(data))
        return self._heard.pop(0)

    async def rest(self) -> list[Sent]:
        """All that comes before the broker hangs up."""
        found = []
        while (sent := await self.next()) is not None:
            found.append(sent)
        return found


def _connected(nursery: trio.Nursery, broker: EmbeddedBroker) -> Client010:
    ours, theirs = memory_stream_pair()
    nursery.start_soon(broker.serve_stream, theirs)
    return Client010(ours)


async def test_messages_cross_between_the_versions() -> None:
    """On sockets, as clients come."""
    broker = EmbeddedBroker()
    async with trio.open_nursery() as nursery:
        port = await nursery.start(broker.serve)
        new = Client010(await trio.open_tcp_stream("127.0.0.1", port))
        old = TrioClient(await trio.open_tcp_stream("127.0.0.1", port))
        async with new.stream, old.stream:
            await new.open()
            await new.attach()
            await old.open()
            await old.ask(amqp.QueueDeclare(queue="q"))
            await new.transfer(b"q", b"from 0-10")
            await new.control(amqp10.SessionCompleted)
            await old.send(amqp.BasicGet(queue="q", no_ack=True))
            got = await old.event()
            assert isinstance(got, ContentReceived)
            assert got.body == b"from 0-10"
            await old.publish("q", b"from 0-9-1")
            await new.say(
                amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=1, acquire_mode=0),
                amqp10.MessageFlow(destination=b"d", unit=0, value=1),
                amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF),
            )
            assert (await new.sent(amqp10.MessageTransfer)).body == b"from 0-9-1"
            await new.say(amqp10.ConnectionClose(reply_code=200))
            await new.control(amqp10.ConnectionCloseOk)
            assert await new.next() is None
        nursery.cancel_scope.cancel()


async def test_all_bindings_are_known(autojump_clock: MockClock) -> None:
    """Those of others, too; only queues count."""
    broker = EmbeddedBroker()
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.serve_stream, theirs)
        old, new = TrioClient(ours), _connected(nursery, broker)
        await old.open()
        for queue in ("q", "r"):
            await old.ask(amqp.QueueDeclare(queue=queue))
        await old.ask(amqp.QueueBind(0, "q", "amq.topic", "k"))
        arguments = Table.of({"x-match": "any", "a": "1", "b": "2"})
        await old.ask(amqp.QueueBind(0, "q", "amq.match", "", arguments=arguments))
        await old.ask(amqp.ExchangeBind(0, "amq.fanout", "amq.topic", "of no queue"))
        await new.open()
        await new.attach()

        async def bound(exchange: bytes, **asked: bytes | Map) -> set[str]:
            """What does not match."""
            await new.say(amqp10.ExchangeBound(exchange=exchange, **asked))
            result = (await new.sent(amqp10.ExecutionResult)).command
            assert isinstance(result, amqp10.ExecutionResult)
            found = decode_struct32(result.value)
            return {name for name in ("queue", "key", "args") if getattr(found, f"{name}_not_matched")}

        def words(**words: bytes) -> Map:
            return Map(
                tuple((name.replace("_", "-").encode(), Value(0x95, word)) for name, word in words.items())
            )

        assert await bound(b"amq.topic", queue=b"q") == set()
        assert await bound(b"amq.topic", queue=b"q", binding_key=b"k") == set()
        assert await bound(b"amq.topic", queue=b"q", binding_key=b"l") == {"key"}
        assert await bound(b"amq.topic", queue=b"r") == {"queue"}
        assert await bound(b"amq.topic", queue=b"r", binding_key=b"k") == {"queue"}
        assert await bound(b"amq.topic", binding_key=b"k") == set()
        assert await bound(b"amq.topic", binding_key=b"of no queue") == {"key"}
        assert await bound(b"amq.match", arguments=words(b=b"2", a=b"1", x_match=b"any")) == set()
        assert await bound(b"amq.match", queue=b"q", arguments=words(x_match=b"any", a=b"1")) == {"args"}
        await old.ask(amqp.QueueUnbind(0, "q", "amq.topic", "k"))
        assert await bound(b"amq.topic", queue=b"q") == {"queue"}
        nursery.cancel_scope.cancel()


async def test_it_says_what_it_is_and_what_it_lacks() -> None:
    async with trio.open_nursery() as nursery:
        start = await _connected(nursery, EmbeddedBroker()).open()
        assert start.server_properties is not None
        said = {name: value.value for name, value in start.server_properties.entries}
        assert said[b"product"] == b"amqpgate embedded broker"
        assert b"browsing" in said[b"lacks"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "one",
    [
        amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=1, acquire_mode=1),
        amqp10.MessageSubscribe(
            queue=b"q",
            destination=b"d",
            accept_mode=1,
            acquire_mode=0,
            arguments=Map(((b"x-filter-jms-selector", Value(0x95, b"a = 1")),)),
        ),
        amqp10.QueueDeclare(queue=b"l", arguments=Map(((b"qpid.last_value_queue_key", Value(0x95, b"k")),))),
        amqp10.DtxSelect(),
        amqp10.MessageResume(destination=b"d", resume_id=b"r"),
        amqp10.FileQos(),
        amqp10.StreamQos(),
    ],
    ids=lambda one: one.NAME,
)
async def test_what_it_lacks_is_refused(one: Command) -> None:
    async with trio.open_nursery() as nursery:
        client = _connected(nursery, EmbeddedBroker())
        await client.open()
        await client.attach()
        await client.say(amqp10.QueueDeclare(queue=b"q"), one)
        why = (await client.sent(amqp10.ExecutionException)).command
        assert isinstance(why, amqp10.ExecutionException)
        assert (why.error_code, why.command_id) == (540, 1)
        assert why.description
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("versions", "header", "answer"),
    [
        (VERSIONS, HEADER_1_0, HEADER_0_9_1),
        (VERSIONS, HEADER_0_8, HEADER_0_9_1),
        (("0-9-1",), HEADER_0_10, HEADER_0_9_1),
        (("0-10",), HEADER_0_9_1, HEADER_0_10),
        (("0-10",), HEADER_0_9, HEADER_0_10),
        (("0-10",), HEADER_0_8_AMQPLIB, HEADER_0_10),
        (("0-10",), b"GET / HT", HEADER_0_10),
    ],
)
async def test_who_speaks_another_version_is_told_which(
    versions: Sequence[str], header: bytes, answer: bytes
) -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(EmbeddedBroker(versions=versions).serve_stream, theirs)
        await ours.send_all(header + b"and more")
        assert await ours.receive_some() == answer
        assert await ours.receive_some() == b""
        await ours.aclose()


@pytest.mark.parametrize(("versions", "named"), [(("0-9",), "0-9"), ((), "none"), (("0-10", "x"), "x")])
def test_versions_that_it_does_not_have(versions: Sequence[str], named: str) -> None:
    with pytest.raises(ValueError, match=f"some of 0-9-1, 0-10, and not {named}"):
        EmbeddedBroker(versions=versions)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 20, 10_000])
async def test_a_login_may_be_cut_anywhere_and_come_at_once(size: int) -> None:
    data = HEADER_0_10 + control(START_OK)
    async with trio.open_nursery() as nursery:
        client = _connected(nursery, EmbeddedBroker(versions=["0-10"]))
        for at in range(0, len(data), size):
            await client.stream.send_all(data[at : at + size])
        await client.control(amqp10.ConnectionTune)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("begun", [b"", HEADER_0_10[:7], HEADER_0_10, HEADER_0_10 + control(START_OK)])
async def test_a_handshake_takes_ten_seconds_at_most(autojump_clock: MockClock, begun: bytes) -> None:
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        client = _connected(nursery, EmbeddedBroker())
        await client.stream.send_all(begun)
        await client.rest()
    assert trio.current_time() - start == 10


async def test_a_wrong_password_is_told() -> None:
    async with trio.open_nursery() as nursery:
        client = _connected(nursery, EmbeddedBroker())
        await client.stream.send_all(HEADER_0_10)
        wrong = amqp10.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0guest\0wrong", locale=b"en_US")
        await client.say(wrong)
        close = await client.control(amqp10.ConnectionClose)
        assert isinstance(close, amqp10.ConnectionClose)
        assert close.reply_code == 320
        await client.say(amqp10.ConnectionCloseOk())
        assert await client.next() is None
        await client.stream.aclose()


@pytest.mark.parametrize("is_open", [False, True])
async def test_who_breaks_the_protocol_is_told_and_hung_up_on(is_open: bool) -> None:
    broker = EmbeddedBroker()
    async with trio.open_nursery() as nursery:
        client = _connected(nursery, broker)
        if is_open:
            await client.open()
            await client.attach()
            await client.say(amqp10.QueueDeclare(queue=b"mine", exclusive=True, auto_delete=True))
            assert (await client.query(b"mine")).queue == b"mine"
        else:
            await client.stream.send_all(HEADER_0_10)
        await client.stream.send_all(b"\xff" * 100 + control(START_OK))
        told = [sent.control for sent in await client.rest()]
        assert isinstance(told[-1], amqp10.ConnectionClose)
        assert told[-1].reply_code == 501
        # Who has a close may say no more, or more; it is passed over.
        await client.stream.send_all(b"more" * 10_000)
        await client.stream.aclose()
    assert not broker._state.vhosts["/"].queues


async def test_a_client_that_vanishes_leaves_nothing_behind() -> None:
    broker = EmbeddedBroker()
    async with trio.open_nursery() as nursery:
        leaving, staying = _connected(nursery, broker), _connected(nursery, broker)
        for client in (leaving, staying):
            await client.open()
            await client.attach()
        await leaving.say(
            amqp10.QueueDeclare(queue=b"mine", exclusive=True, auto_delete=True),
            amqp10.QueueDeclare(queue=b"q"),
            amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0, acquire_mode=0),
            amqp10.MessageFlow(destination=b"d", unit=0, value=1),
            amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF),
        )
        await leaving.transfer(b"q", b"m")
        await leaving.sent(amqp10.MessageTransfer)
        assert (await staying.query(b"q")).message_count == 0
        # In the middle of a message, too.
        await leaving.stream.send_all(command(TRANSFER, (), b"half")[:-2])
        await leaving.stream.aclose()
        await wait_all_tasks_blocked()
        assert (await staying.query(b"q")).message_count == 1
        assert (await staying.query(b"mine")).queue is None
        assert len(nursery.child_tasks) == 1
        nursery.cancel_scope.cancel()


async def test_cancelling_tells_the_clients() -> None:
    async with trio.open_nursery() as nursery:
        client = _connected(nursery, EmbeddedBroker())
        await client.open()
        nursery.cancel_scope.cancel()
    (close,) = [sent.control for sent in await client.rest()]
    assert isinstance(close, amqp10.ConnectionClose)
    assert close.reply_code == 320


async def test_a_client_in_a_hurry_is_not_told_half_a_frame() -> None:
    """Cancelled in the middle of sending what the translator answers by itself."""
    ours, theirs = lockstep_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(EmbeddedBroker().serve_stream, theirs)
        client = Client010(ours)
        await client.open()
        await client.say(amqp10.SessionAttach(name=b"n" * 255), POINT)
        begun = await ours.receive_some(20)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    data = bytearray(begun)
    while more := await ours.receive_some():
        data += more
    assert b"shutdown" not in data


async def test_heartbeats(autojump_clock: MockClock) -> None:
    """One is sent per half interval of silence; two intervals without any byte, and it is given up."""
    async with trio.open_nursery() as nursery:
        client = _connected(nursery, EmbeddedBroker())
        await client.open(heartbeat=10)
        start = trio.current_time()
        times = []
        for _ in range(3):
            await client.control(amqp10.ConnectionHeartbeat)
            times.append(trio.current_time() - start)
        assert times == [5, 10, 15]
        await client.say(amqp10.ConnectionHeartbeat())
        await client.rest()
        assert trio.current_time() - start == 15 + 20


async def test_bytes_that_become_no_frame_are_signs_of_life(autojump_clock: MockClock) -> None:
    """A large message, slowly."""
    async with trio.open_nursery() as nursery:
        client = _connected(nursery, EmbeddedBroker())
        await client.open(heartbeat=10)
        await client.attach()
        transfer = command(
            amqp10.MessageTransfer(), (amqp10.DeliveryProperties(routing_key=b"q"),), b"x" * 1000
        )
        for at in range(0, len(transfer), 100):
            await client.stream.send_all(transfer[at : at + 100])
            await trio.sleep(15)
        assert (await client.query(b"q")).queue is None
        nursery.cancel_scope.cancel()


async def test_a_client_that_does_not_read_is_not_read_from(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for dead either, and goes on once it reads."""
    monkeypatch.setattr(translated, "MOST_UNSENT", 10_000)
    ours, theirs = lockstep_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(EmbeddedBroker().serve_stream, theirs)
        client = Client010(ours)
        await client.open(heartbeat=10)
        await client.attach()
        flush = control(amqp10.SessionFlush(completed=True))
        sent = 0

        async def ask() -> None:
            nonlocal sent
            while sent < 2000:
                await ours.send_all(flush)
                sent += 1

        nursery.start_soon(ask)
        await trio.sleep(1000)
        # The one that comes in the meantime is read, and no answer is shorter than a frame's header.
        assert 100 < sent < 10_000 / 12 + 2
        while sent < 2000:
            assert await client.next() is not None
        assert (await client.query(b"q")).queue is None
        nursery.cancel_scope.cancel()


async def test_a_client_that_is_gone_while_it_is_not_read_from(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translated, "MOST_UNSENT", 1000)
    ours, theirs = lockstep_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(EmbeddedBroker().serve_stream, theirs)
        client = Client010(ours)
        await client.open(heartbeat=0)
        with trio.move_on_after(1000) as patience:
            while True:
                await client.say(amqp10.SessionFlush(completed=True))
        assert patience.cancelled_caught
        await ours.aclose()


class Moody(ClientTranslator):
    """Wants nothing more of its client until it hears of the broker."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = b""

    @property
    def wants_bytes(self) -> bool:
        return not self.heard

    def from_peer(self, data: bytes) -> None:
        self.heard += data

    def from_gateway(self, frames: bytes) -> None:
        self.heard = b""


async def test_who_wants_something_again_is_given_it() -> None:
    """Whatever has changed its mind has said nothing."""
    ours, theirs = memory_stream_pair()
    translator = Moody()
    stream = translated.TranslatedStream(theirs, translator, b"first", lambda: None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.receive_some)
        nursery.start_soon(stream.send_answers)
        await ours.send_all(b"second")
        await wait_all_tasks_blocked()
        assert translator.heard == b"first"
        await stream.send_all(HEARTBEAT)
        await wait_all_tasks_blocked()
        assert translator.heard == b"second"
        nursery.cancel_scope.cancel()


async def test_deliveries_that_are_not_read_wait_in_their_queue(autojump_clock: MockClock) -> None:
    ours, theirs = lockstep_stream_pair()
    broker = EmbeddedBroker()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.serve_stream, theirs)
        client, other = Client010(ours), _connected(nursery, broker)
        for one in (client, other):
            await one.open()
            await one.attach()
        await client.say(
            amqp10.QueueDeclare(queue=b"q"),
            amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=1, acquire_mode=0),
            amqp10.MessageFlow(destination=b"d", unit=0, value=0xFFFFFFFF),
            amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF),
        )
        assert (await client.query(b"q")).queue == b"q"
        for _ in range(100):
            await other.transfer(b"q", b"x" * 50_000)
        await trio.sleep(1000)
        waiting = (await other.query(b"q")).message_count
        assert waiting > 50
        for _ in range(100):
            await client.sent(amqp10.MessageTransfer)
        assert (await other.query(b"q")).message_count == 0
        nursery.cancel_scope.cancel()


async def test_a_translator_that_fails_ends_its_own_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = EmbeddedBroker()
    take = ClientTranslator.from_peer

    def fail(self: ClientTranslator, data: bytes) -> None:
        if b"fail" in data:
            raise RuntimeError("as if")
        take(self, data)

    monkeypatch.setattr(ClientTranslator, "from_peer", fail)
    async with trio.open_nursery() as nursery:
        failing, staying = _connected(nursery, broker), _connected(nursery, broker)
        for client in (failing, staying):
            await client.open()
            await client.attach()
        await failing.say(amqp10.QueueQuery(queue=b"fail"))
        assert not any(sent.command for sent in await failing.rest())
        assert "a translator has failed" in caplog.text
        assert (await staying.query(b"q")).queue is None
        nursery.cancel_scope.cancel()


async def test_a_translator_hears_nothing_more_of_who_breaks_the_protocol(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[bytes] = []

    def refuse(self: ClientTranslator, data: bytes) -> None:
        if data:
            heard.append(data)
            raise ProtocolViolation(501, "as if")

    monkeypatch.setattr(ClientTranslator, "from_peer", refuse)
    monkeypatch.setattr(ClientTranslator, "peer_ended", lambda self: heard.append(b"its end"))
    async with trio.open_nursery() as nursery:
        client = _connected(nursery, EmbeddedBroker())
        await client.stream.send_all(HEADER_0_10 + b"once")
        assert (await client.control(amqp10.ConnectionStart)).NAME == "connection.start"
        assert await client.next() is None
        await client.stream.send_all(b"twice")
        await client.stream.aclose()
    assert heard == [b"once", b"its end"]


@pytest.mark.parametrize("seed", range(20))
async def test_no_bytes_end_the_broker(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    """What real clients said, spoilt, before and after the login."""
    caplog.set_level(logging.ERROR)
    random = Random(seed)
    broker = EmbeddedBroker()
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            client = _connected(nursery, broker)
            if random.random() < 0.3:
                await client.stream.send_all(HEADER_0_10)
            else:
                await client.open(heartbeat=random.choice((0, 1)))
            for piece in random.choice(spoken()):
                data = spoilt(piece, random) if random.random() < 0.1 else piece
                at = random.randrange(len(data))
                await client.stream.send_all(data[:at])
                await client.stream.send_all(data[at:])
            if random.random() < 0.5:
                await trio.sleep(random.random())
                await client.stream.aclose()
        witness = _connected(nursery, broker)
        await witness.open(heartbeat=0)
        await witness.attach()
        assert (await witness.query(b"no such queue")).queue is None
        nursery.cancel_scope.cancel()
    assert not caplog.records
