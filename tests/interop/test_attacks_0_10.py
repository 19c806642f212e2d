"""What broke brokers of AMQP 0-10, and what none of them should take: raw frames, before and after the login,
through the gateway to RabbitMQ, while others are served. With either engine of the data path.
"""

from __future__ import annotations

import os
import random
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from struct import pack

import attrs
import pika
import pytest

from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.v0_10.codec import encode_command, encode_control, encode_header
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command, Control, Struct
from amqpgate.wire.v0_10.types import Map, Value
from tests.support.client_0_10 import Client010
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ
from tests.support.said_0_10 import Sent, Splitter
from tests.support.talk_0_10 import ALONE, ATTACH, POINT, TRANSFER, B, E, b, command, control, e, frame

CONFIG = """
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: rabbit, host: 127.0.0.1, port: BROKER}]
admin: {bind: "127.0.0.1:{admin_port}"}
limits: {handshakeTimeout: 10s, handshakesPerAddress: 1000, closeTimeout: 1s}
"""
#: Runs first in every Python that finds it: a machine without a compiler has no such modules.
PLAIN = """
for name in ("_pump", "_scan"):
    sys.modules[f"amqpgate.datapath.{name}"] = None
"""
START_OK = amqp.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0guest\0guest", locale=b"en_US")
OPEN = control(amqp.ConnectionTuneOk(channel_max=64)) + control(amqp.ConnectionOpen())
SYNC = amqp.ExecutionSync()
KEY = amqp.DeliveryProperties(routing_key=b"nowhere")


class Raw:
    """A peer that says bytes, and reads what it is told."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.splitter = Splitter()
        self.heard: list[Sent] = []
        #: Bytes that came.
        self.size = 0

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def say(self, *said: bytes | Control | Command) -> None:
        data = b"".join(
            one if isinstance(one, bytes) else control(one) if isinstance(one, Control) else command(one)
            for one in said
        )
        # It may have hung up already.
        with suppress(ConnectionError):
            self.sock.sendall(data)

    def until(self, is_it: Callable[[Sent], bool]) -> Sent:
        """The first that is so, read up to now or later."""
        seen = 0
        while True:
            for one in self.heard[seen:]:
                if is_it(one):
                    return one
            seen = len(self.heard)
            self.read()

    def read(self) -> None:
        data = self.sock.recv(1 << 16)
        if not data:
            raise EOFError(self.heard[-3:])
        self.size += len(data)
        self.heard += self.splitter.feed(data)

    def hear(self, kind: type[Control | Command]) -> Control | Command:
        found = self.until(lambda one: isinstance(one.control or one.command, kind))
        said = found.control or found.command
        assert said is not None
        return said

    def open(self) -> Raw:
        self.say(PROTOCOL_HEADER, START_OK)
        self.hear(amqp.ConnectionTune)
        self.say(OPEN)
        self.hear(amqp.ConnectionOpenOk)
        self.say(ATTACH, POINT)
        self.hear(amqp.SessionAttached)
        self.heard.clear()
        return self

    def all(self) -> list[Sent]:
        """What comes before the end."""
        with suppress(EOFError, ConnectionError):
            while True:
                self.read()
        return self.heard


# -- a gateway, and others ----------------------------------------------------------------------------------


@attrs.define(eq=False)
class Bystander:
    """Plays ping-pong until it is stopped, a few times at least; what goes wrong is told then."""

    turn: Callable[[], None]
    turns: int = 0
    failure: BaseException | None = None
    is_over: bool = False
    thread: threading.Thread = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            while not (self.is_over and self.turns > 10):
                self.turn()
                self.turns += 1
        except BaseException as error:
            self.failure = error

    def end(self) -> None:
        self.is_over = True
        self.thread.join(60)
        assert not self.thread.is_alive()
        assert self.failure is None, self.failure


def of_0_9_1(port: int) -> tuple[Callable[[], None], Callable[[], None]]:
    parameters = pika.ConnectionParameters("127.0.0.1", port, blocked_connection_timeout=30, heartbeat=0)
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.confirm_delivery()

    def turn() -> None:
        channel.basic_publish("", queue, b"ping", mandatory=True)
        while (got := channel.basic_get(queue, auto_ack=True))[0] is None:
            pass
        assert got[2] == b"ping"

    return turn, connection.close


def of_0_10(port: int) -> tuple[Callable[[], None], Callable[[], None]]:
    client = Client010.opened(port)
    session = client.session()
    name = f"beside-{os.urandom(4).hex()}"
    session.declare(name, exclusive=True, auto_delete=True)
    session.subscribe(name)

    def turn() -> None:
        session.publish(b"ping", name)
        message = session.get()
        assert message.body == b"ping"
        session.accept(message)

    def close() -> None:
        with client:
            client.end()

    return turn, close


@pytest.fixture(scope="module", params=["compiled", pytest.param("plain", marks=pytest.mark.slow)])
def attacked(request: pytest.FixtureRequest, rabbitmq: RabbitMQ, tmp_path_factory) -> Iterator[Gateway]:
    """A gateway that serves two others all the time, has no fault, and keeps no memory."""
    env = None
    if request.param == "plain":
        folder = tmp_path_factory.mktemp("plain")
        (folder / "sitecustomize.py").write_text(PLAIN)
        env = {**os.environ, "PYTHONPATH": str(folder)}
    gateway = Gateway(config=CONFIG.replace("BROKER", str(rabbitmq.port)), env=env)
    gateway.start()
    others = [of_0_9_1(gateway.port), of_0_10(gateway.port)]
    bystanders = [Bystander(turn) for turn, _ in others]
    before = resident(gateway)
    yield gateway
    for one in bystanders:
        one.end()
    grown = resident(gateway) - before
    for _, close in others:
        close()
    ended = gateway.stop()
    assert ended.code == 0, ended.log[-4000:]
    assert "Traceback" not in ended.log, ended.log[-4000:]
    assert grown < 64 << 20


def resident(gateway: Gateway) -> int:
    pages = Path(f"/proc/{gateway.child.pid}/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


# -- after the login ----------------------------------------------------------------------------------------


def raw(class_code: int, code: int, fields: bytes = b"", flags: int = 0) -> bytes:
    """A command with its fields in bytes; flags as they stand in the specification, little-endian."""
    return frame(ALONE, 1, bytes((class_code, code, 1, 0)) + pack("<H", flags) + fields)


def accept(ids: bytes) -> bytes:
    return raw(4, 2, ids, 1)


def ranges(*pairs: tuple[int, int]) -> bytes:
    return pack(">H", 8 * len(pairs)) + b"".join(pack(">II", *pair) for pair in pairs)


def declare(arguments: bytes) -> bytes:
    """A queue with such arguments."""
    return raw(8, 1, b"\1q" + arguments, 1 | 1 << 6)


def nested(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        entries = b"\1k\xa8" + inner if inner else b""
        body = pack(">I", int(bool(inner))) + entries
        inner = pack(">I", len(body)) + body
    return inner


def content(header: bytes = b"", body: bytes | None = None, *, of: Command = TRANSFER) -> bytes:
    pieces = [frame(B | b | e, 1, encode_command(of))]
    pieces.append(frame((0 if body is not None else E) | b | e, 2, header))
    if body is not None:
        pieces.append(frame(E | b | e, 3, body))
    return b"".join(pieces)


def of_struct(struct: Struct) -> bytes:
    return encode_header([struct])


VOIDS = pack(">I", 13) + b"\1k\xaa" + pack(">I", 5) + b"\xf0" + b"\xff" * 4
FLUSH = encode_control(amqp.SessionFlush(completed=True))

#: What ends the session, and its code. The connection goes on.
EXCEPTIONS = {
    "set that goes down": (accept(ranges((5, 4))), 503),
    "set of no whole ranges": (accept(b"\0\7" + bytes(7)), 503),
    "set of all there is": (accept(ranges((0, 0xFFFFFFFF))), 503),
    "set that is cut": (accept(b"\0\x10" + bytes(8)), 503),
    "completed that was never sent": (control(amqp.SessionCompleted(SequenceSet(((7, 9),)))), 542),
    "known-completed ahead": (control(amqp.SessionKnownCompleted(SequenceSet(((7, 9),)))), 542),
    "command-point ahead": (command(SYNC) + control(amqp.SessionCommandPoint(9, 0)), 542),
    "gap": (control(amqp.SessionGap()), 540),
    "header of a sync": (content(of_struct(KEY), of=SYNC), 503),
    "body of a sync": (frame(B | b | e, 1, encode_command(SYNC)) + frame(E | b | e, 3, b"x"), 503),
    "unknown class": (raw(0x63, 1), 503),
    "unknown command": (raw(4, 0x63), 503),
    "unknown control": (frame(ALONE, 0, b"\2\x63\0\0"), 503),
    "half a control": (frame(ALONE, 0, b"\2"), 503),
    "half a command": (frame(ALONE, 1, b"\4\2\1"), 503),
    "session header of size 0": (frame(ALONE, 1, b"\3\1\0\0\0"), 503),
    "flag of no field": (raw(3, 1, b"", 0x8000), 503),
    "bytes behind a command": (raw(3, 1, b"more"), 503),
    "fragment": (content(of_struct(amqp.FragmentProperties(first=True))), 540),
    "two delivery-properties": (content(of_struct(KEY) * 2), 503),
    "struct longer than its header": (content(b"\0\0\xff\xff\4\1\0\0"), 503),
    "map longer than its frame": (declare(b"\xff\xff\xff\xff\0\0\0\1"), 503),
    "map of more entries than bytes": (declare(b"\0\0\0\x08\xff\xff\xff\xff\1k\xf0\0"), 503),
    "map that goes beyond its end": (declare(pack(">II", 6, 1) + b"\x09k"), 503),
    "array of nothing without end": (declare(pack(">II", 4 + len(VOIDS) - 4, 1) + VOIDS[4:]), 506),
    "map in a map": (declare(nested(300)), 506),
    "map in a map, as deep as a frame": (declare(nested(5900)), 506),
    "immediate": (content(of_struct(amqp.DeliveryProperties(immediate=True))), 540),
    "no subscription": (command(amqp.MessageFlow(destination=b"none", unit=0, value=1)), 404),
    "no name": (command(amqp.QueueDeclare(queue=b"")), 542),
    "name that is no text": (command(amqp.QueueDeclare(queue=b"\xff\xfe")), 542),
    "no number": (
        content(
            of_struct(amqp.MessageProperties(application_headers=Map(((b"n", Value(0x33, float("inf"))),))))
        ),
        542,
    ),
    "commit of nothing": (command(amqp.TxCommit()), 409),
    "dtx": (command(amqp.DtxSelect()), 540),
    "file": (command(amqp.FileQos()), 540),
    "resume": (command(amqp.MessageResume(destination=b"d")), 540),
}

#: What ends the connection, and its code.
CLOSES = {
    "header without a command": (frame(E | b | e, 2, of_struct(KEY)), 501),
    "body without a command": (frame(E | b | e, 3, b"x"), 501),
    "continuation without a first frame": (frame(B | E | e, 1, encode_command(SYNC)), 501),
    "command-offset": (control(amqp.SessionCommandPoint(0, 1)), 501),
    "frame of 11 bytes": (frame(ALONE, 1, encode_command(SYNC), size=11), 501),
    "frame of no byte": (frame(ALONE, 1, size=0), 501),
    "reserved flags": (frame(ALONE | 0x10, 1, encode_command(SYNC)), 501),
    "version of framing": (frame(ALONE | 0x40, 1, encode_command(SYNC)), 501),
    "segment type 9": (frame(ALONE, 9, encode_command(SYNC)), 501),
    "channel above channel-max": (command(SYNC, channel=64), 501),
    "the last channel": (command(SYNC, channel=65535), 501),
    "second tune-ok": (control(amqp.ConnectionTuneOk()), 501),
    "second start-ok": (control(START_OK), 501),
    "second open": (control(amqp.ConnectionOpen()), 501),
    "start": (control(amqp.ConnectionStart()), 501),
    "unknown control of the connection": (frame(ALONE, 0, b"\1\x63"), 501),
    "heartbeat on another channel": (control(amqp.ConnectionHeartbeat(), 3), 501),
    "name of 256 bytes": (control(amqp.SessionAttach(name=b"n" * 256), 1), 320),
    "command amid a transfer": (frame(B | b | e, 1, encode_command(TRANSFER)) + command(SYNC), 501),
    "command amid a transfer, on another track": (
        frame(B | b | e, 1, encode_command(TRANSFER))
        + frame(B | b | e, 1, encode_command(TRANSFER), track=0)
        + frame(E | b | e, 2, of_struct(KEY)),
        501,
    ),
    "no AMQP": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
}

#: What is as it should be, or nobody's: it is complete.
TAKEN = {
    "accept of what was never sent": accept(ranges((5, 9))),
    "accept of half of all ids": accept(ranges((0, 0x7FFFFFFE))),
    "release of half of all ids": raw(4, 3, ranges((0, 0x7FFFFFFE)), 1),
    "accept of 8000 ranges": accept(ranges(*((at, at) for at in range(0, 16000, 2)))),
    "command in two frames": frame(B | E | b, 1, encode_command(SYNC)[:2])
    + frame(B | E | e, 1, encode_command(SYNC)[2:]),
    "control in two frames": frame(B | E | b, 0, FLUSH[:2]) + frame(B | E | e, 0, FLUSH[2:]),
    "header in two frames": frame(B | b | e, 1, encode_command(TRANSFER))
    + frame(E | b, 2, of_struct(KEY)[:3])
    + frame(E | e, 2, of_struct(KEY)[3:]),
    "command on track 2": frame(ALONE, 1, encode_command(SYNC), track=2),
    "command on the track of controls": frame(ALONE, 1, encode_command(SYNC), track=0),
    "control on the track of commands": frame(ALONE, 0, FLUSH, track=1),
    "control and another channel amid a transfer": frame(B | b | e, 1, encode_command(TRANSFER))
    + control(amqp.SessionFlush(completed=True))
    + command(SYNC, channel=5)
    + frame(E | b | e, 2, of_struct(KEY)),
    "header of a struct that nobody knows": content(pack(">I", 4) + b"\x63\1\0\0"),
    "pieces of nothing": frame(B | b | e, 1, encode_command(TRANSFER))
    + frame(b | e, 2, of_struct(KEY))
    + frame(E | b, 3, b"")
    + frame(E, 3, b"") * 5000
    + frame(E | e, 3, b"x"),
    "attach of nobody's name": control(amqp.SessionDetach(name=b"other")),
    "control without a session": control(amqp.SessionFlush(), 7) * 100,
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_session_ends_alone(attacked: Gateway, name: str) -> None:
    said, code = EXCEPTIONS[name]
    with Raw(attacked.port).open() as peer:
        peer.say(said)
        exception = peer.hear(amqp.ExecutionException)
        assert isinstance(exception, amqp.ExecutionException)
        assert exception.error_code == code, exception
        assert len(exception.description or b"") <= 255
        peer.hear(amqp.SessionDetach)
        peer.say(amqp.SessionDetached(name=b"session", code=0), ATTACH, POINT, command(SYNC, sync=True))
        peer.hear(amqp.SessionAttached)
        assert completes(peer, 0)


def completes(peer: Raw, number: int) -> bool:
    """Once it is told that a command is complete."""

    def is_it(sent: Sent) -> bool:
        assert not isinstance(sent.command, amqp.ExecutionException) or number == 0, sent
        said = sent.control
        return isinstance(said, amqp.SessionCompleted) and any(
            lower <= number <= upper for lower, upper in (said.commands or SequenceSet()).ranges
        )

    return peer.until(is_it) is not None


@pytest.mark.parametrize("name", CLOSES)
def test_connection_is_closed(attacked: Gateway, name: str) -> None:
    said, code = CLOSES[name]
    with Raw(attacked.port).open() as peer:
        peer.say(said)
        close = peer.hear(amqp.ConnectionClose)
        assert isinstance(close, amqp.ConnectionClose)
        assert close.reply_code == code, close
        peer.say(amqp.ConnectionCloseOk())
        peer.all()


@pytest.mark.parametrize("name", TAKEN)
def test_connection_and_session_go_on(attacked: Gateway, name: str) -> None:
    with Raw(attacked.port).open() as peer:
        peer.say(TAKEN[name], command(amqp.QueueQuery(queue=b"none"), sync=True))
        result = peer.hear(amqp.ExecutionResult)
        assert isinstance(result, amqp.ExecutionResult)
        assert completes(peer, result.command_id or 0)
        peer.say(amqp.ConnectionClose(reply_code=200))
        peer.hear(amqp.ConnectionCloseOk)


# -- before the login ---------------------------------------------------------------------------------------


def start_ok(properties: bytes) -> bytes:
    """With properties in bytes."""
    return frame(ALONE, 0, b"\1\2" + pack("<H", 1) + properties)


#: Said instead of start-ok, with code: all of it ends the connection.
EARLY = {
    **{f"{name}, before the login": (said, 501) for name, (said, _) in EXCEPTIONS.items()},
    **{
        f"{name}, before the login": (said, 501)
        for name, (said, _) in CLOSES.items()
        if "start-ok" not in name
    },
    "gap before attach": (control(amqp.SessionGap()), 501),
    "attach": (control(ATTACH), 501),
    "tune-ok": (control(amqp.ConnectionTuneOk()), 501),
    "open": (control(amqp.ConnectionOpen()), 501),
    "secure-ok": (control(amqp.ConnectionSecureOk(response=b"x")), 501),
    "map longer than its frame": (start_ok(b"\xff\xff\xff\xff\0\0\0\1"), 501),
    "map in a map": (start_ok(nested(300)), 320),
    "array of nothing without end": (start_ok(pack(">II", len(VOIDS), 1) + VOIDS[4:]), 320),
    "frame above 4096 bytes": (frame(B | E | b, 0, b"", size=4097), 501),
    "PLAIN without NULs": (control(attrs.evolve(START_OK, response=b"guest")), 320),
    "PLAIN with too many": (control(attrs.evolve(START_OK, response=b"\0a\0b\0c")), 320),
    "wrong password": (control(attrs.evolve(START_OK, response=b"\0guest\0wrong")), 320),
    "mechanism that nobody knows": (control(attrs.evolve(START_OK, mechanism=b"NONE")), 320),
    "mechanism that is no text": (control(attrs.evolve(START_OK, mechanism=b"\xff\xfe")), 320),
    "start-ok twice": (control(START_OK) * 2, 501),
    "garbage behind start-ok": (control(START_OK) + b"\xff" * 200, 501),
    # More than may wait, or what no control is: whichever is seen first.
    "much behind start-ok": (control(START_OK) + frame(ALONE, 0, bytes(4000)) * 20, {320, 501}),
    "tune-ok beyond the offer": (
        control(START_OK)
        + control(amqp.ConnectionTuneOk(channel_max=65535))
        + control(amqp.ConnectionOpen()),
        320,
    ),
    "garbage behind open": (control(START_OK) + OPEN + b"\xff" * 200, 501),
    "no such virtual host": (
        control(START_OK)
        + control(amqp.ConnectionTuneOk())
        + control(amqp.ConnectionOpen(virtual_host=b"no such")),
        320,
    ),
    "virtual host that is no text": (
        control(START_OK) + control(amqp.ConnectionTuneOk()) + control(amqp.ConnectionOpen(b"\xff\xfe")),
        320,
    ),
}


@pytest.mark.parametrize("name", EARLY)
def test_nobody_is_let_in(attacked: Gateway, name: str) -> None:
    said, code = EARLY[name]
    with Raw(attacked.port) as peer:
        peer.say(PROTOCOL_HEADER)
        peer.hear(amqp.ConnectionStart)
        peer.say(said)
        close = peer.hear(amqp.ConnectionClose)
        assert isinstance(close, amqp.ConnectionClose)
        assert close.reply_code in (code if isinstance(code, set) else {code}), close
        peer.say(amqp.ConnectionCloseOk())
        assert all(one.control is not None and one.control.CLASS_CODE == 1 for one in peer.all())


def test_a_client_is_no_link_of_a_federation(attacked: Gateway, rabbitmq: RabbitMQ) -> None:
    """CVE-2012-3467, -4446: properties that make qpidd treat a client otherwise."""
    entries = ((b"qpid.fed_link", Value(0x95, b"x")), (b"qpid.federation_tag", Value(0x95, b"x")))
    said = Map((*entries, (b"product", Value(0x95, b"linked"))))
    with Raw(attacked.port) as peer:
        peer.say(PROTOCOL_HEADER, attrs.evolve(START_OK, client_properties=said))
        peer.hear(amqp.ConnectionTune)
        peer.say(OPEN)
        peer.hear(amqp.ConnectionOpenOk)
        shown = rabbitmq.ctl("list_connections", "client_properties")
        assert "linked" in shown
        assert "fed_link" not in shown
        assert "federation_tag" not in shown


# -- floods -------------------------------------------------------------------------------------------------

FLOODS = {
    "flush": control(amqp.SessionFlush(completed=True, expected=True, confirmed=True)),
    "request-timeout": control(amqp.SessionRequestTimeout()),
    "sync": command(SYNC, sync=True),
    "completed": control(amqp.SessionCompleted(SequenceSet(), timely_reply=True)),
    "attach again": control(ATTACH),
    "controls without a session": b"".join(control(amqp.SessionFlush(), channel) for channel in range(1, 60)),
    "accept of many ranges": accept(ranges(*((at, at) for at in range(0, 400, 2)))),
    "heartbeats": control(amqp.ConnectionHeartbeat()),
    "query": command(amqp.QueueQuery(queue=b"none"), sync=True),
}


@pytest.mark.parametrize("name", FLOODS)
def test_flood_gets_less_than_ten_times_its_bytes(attacked: Gateway, name: str) -> None:
    count = 200 if name == "query" else max(10, 200_000 // len(FLOODS[name]))
    said = FLOODS[name] * count
    with Raw(attacked.port).open() as peer:
        before = peer.size
        sender = threading.Thread(target=peer.say, args=(said,))
        sender.start()
        with closing(peer.sock):
            sent = said.count(encode_command(SYNC, True)) + said.count(b"none")
            if "accept" in name:
                sent = count
            while sender.is_alive():
                peer.sock.settimeout(0.1)
                with suppress(TimeoutError):
                    peer.read()
            sender.join()
            peer.sock.settimeout(60)
            peer.say(command(SYNC, sync=True))
            assert completes(peer, sent)
            assert peer.size - before < 10 * len(said)


def test_segments_in_parts_are_bounded(attacked: Gateway) -> None:
    """Seventeen that are begun, on as many channels; the last one is too many, for its own session."""
    with Raw(attacked.port).open() as peer:
        for channel in range(1, 18):
            peer.say(control(amqp.SessionAttach(name=b"%d" % channel), channel), control(POINT, channel))
            peer.say(frame(B | E | b, 1, encode_command(SYNC)[:2], channel=channel))
        found = peer.until(lambda one: isinstance(one.command, amqp.ExecutionException))
        assert isinstance(found.command, amqp.ExecutionException)
        assert (found.channel, found.command.error_code) == (17, 506)


def test_sessions_that_come_and_go(attacked: Gateway) -> None:
    """Each asks something, and is gone before it is answered."""
    with Raw(attacked.port).open() as peer:
        for number in range(300):
            name = b"%d" % number
            peer.say(
                control(amqp.SessionAttach(name=name), 1),
                control(POINT, 1),
                command(amqp.QueueQuery(queue=b"none"), channel=1),
                command(TRANSFER, (KEY,), b"m", channel=1),
                control(amqp.SessionDetach(name=name), 1),
            )
        peer.say(command(amqp.QueueQuery(queue=b"none"), sync=True))
        found = peer.until(lambda one: isinstance(one.command, amqp.ExecutionResult) and one.channel == 0)
        assert found.command is not None
        assert not any(isinstance(one.command, amqp.ExecutionException) for one in peer.heard)


def test_what_a_client_does_not_read_stops_it_alone(attacked: Gateway) -> None:
    """It publishes and asks, and never reads."""
    with Raw(attacked.port).open() as peer:
        said = (command(SYNC, sync=True) + control(amqp.SessionRequestTimeout())) * 40
        peer.sock.settimeout(3)
        with suppress(TimeoutError):
            for _ in range(2000):
                peer.sock.sendall(said)
        assert resident(attacked) < 400 << 20


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_bad_handshakes_leave_nothing_behind(rabbitmq: RabbitMQ, record_property) -> None:
    """``AMQPGATE_HANDSHAKES`` of them: 100,000 took 0.6 MiB, of 97."""
    gateway = Gateway(config=CONFIG.replace("BROKER", str(rabbitmq.port)))
    gateway.start()
    dice = random.Random(1)
    every = [said for said, _ in EARLY.values()]

    def fail(number: int) -> None:
        said = every[number % len(every)]
        with suppress(OSError), Raw(gateway.port) as peer:
            match number % 5:
                case 0:
                    peer.say(PROTOCOL_HEADER, said)
                case 1:
                    peer.say(PROTOCOL_HEADER, said[: dice.randrange(len(said))])
                case 2:
                    peer.say(PROTOCOL_HEADER, dice.randbytes(200))
                case 3:
                    peer.say(PROTOCOL_HEADER[: dice.randrange(9)])
                case _:
                    peer.say(PROTOCOL_HEADER, said)
                    peer.sock.recv(1 << 16)

    for number in range(1000):
        fail(number)
    before = resident(gateway)
    for number in range(int(os.environ.get("AMQPGATE_HANDSHAKES", "5000"))):
        fail(number)
    after = resident(gateway)
    record_property("before", before)
    record_property("after", after)
    ended = gateway.stop()
    assert "Traceback" not in ended.log
    assert after - before < 8 << 20
