"""Bytes that come in pieces, too slowly, too many, or without sense; and others that notice nothing of it."""

from __future__ import annotations

import contextlib
import random
import re
import resource
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trustme

from amqpgate.protocol.frames import Frame, encode_frame, method_frame
from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import CAPABILITIES, Gone, Talker

# -- splits --------------------------------------------------------------------------------------------------


def conversation(queue: str, body: bytes) -> list[tuple[bytes, int]]:
    """What a client says in one go, and how many frames it hears then."""
    start_ok = amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", plain_response("guest", "guest"), "en_US")
    properties = amqp.BasicProperties(content_type="text/plain", headers=amqp.Table.of({"n": 1}))
    publish = content_frames(1, amqp.BasicPublish(routing_key=queue), properties, body, 4096)
    frames_of_body = -(-len(body) // 4088)
    return [
        (amqp.PROTOCOL_HEADER, 1),
        (method_frame(0, start_ok), 1),
        (
            method_frame(0, amqp.ConnectionTuneOk(2047, 4096, 0)) + method_frame(0, amqp.ConnectionOpen("/")),
            1,
        ),
        (method_frame(1, amqp.ChannelOpen()) + method_frame(1, amqp.ConfirmSelect()), 2),
        (method_frame(1, amqp.QueueDeclare(queue=queue, exclusive=True)), 1),
        (publish, 1),
        (method_frame(1, amqp.BasicGet(queue=queue, no_ack=True)), 2 + frames_of_body),
        (method_frame(0, amqp.ConnectionClose(200, "bye")), 1),
    ]


def hold(port: int, queue: str, body: bytes, split: Callable[[bytes], Iterator[bytes]]) -> list[Frame]:
    heard = []
    with Talker.dial(port) as client:
        for data, answers in conversation(queue, body):
            for piece in split(data):
                client.raw(piece)
            heard += [client.frame() for _ in range(answers)]
    return heard


def whole(data: bytes) -> Iterator[bytes]:
    yield data


def single(data: bytes) -> Iterator[bytes]:
    for at in range(len(data)):
        yield data[at : at + 1]


def test_every_byte_by_itself(rabbitmq: RabbitMQ, gateway: Gateway) -> None:
    body = bytes(range(256)) * 40
    expected = hold(rabbitmq.port, "split", body, whole)
    assert hold(gateway.port, "split", body, whole) == expected
    assert hold(gateway.port, "split", body, single) == expected


def test_pieces_of_any_size(rabbitmq: RabbitMQ, gateway: Gateway) -> None:
    body = random.Random(5).randbytes(50_000)
    expected = hold(rabbitmq.port, "pieces", body, whole)
    for seed in range(20):
        dice = random.Random(seed)

        def pieces(data: bytes, dice: random.Random = dice) -> Iterator[bytes]:
            while data:
                size = dice.choice([1, 2, 7, 8, 100, 4095, 4096, 4097, 9000])
                yield data[:size]
                data = data[size:]

        assert hold(gateway.port, "pieces", body, pieces) == expected


# -- crowds --------------------------------------------------------------------------------------------------

CONFIG = """
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: rabbit, host: 127.0.0.1, port: BROKER}]
admin: {bind: "127.0.0.1:{admin_port}"}
limits: {handshakeTimeout: 1s, maxHandshakes: 20, closeTimeout: 1s}
"""


@pytest.fixture
def strict(rabbitmq: RabbitMQ) -> Iterator[Gateway]:
    """A gateway with narrow limits, which nothing here may make fail."""
    gateway = Gateway(config=CONFIG.replace("BROKER", str(rabbitmq.port)))
    gateway.start()
    yield gateway
    ended = gateway.stop()
    assert ended.code == 0, ended.log[-4000:]
    assert "Traceback" not in ended.log


@pytest.fixture
def bystander(strict: Gateway) -> Iterator[Callable[[], None]]:
    """A session from before; call it to see that it is served."""
    with Talker.dial(strict.port) as client:
        client.open()
        queue = client.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1).queue
        client.ask(amqp.BasicConsume(queue=queue, no_ack=True), amqp.BasicConsumeOk, 1)

        def use() -> None:
            body = secrets.token_bytes(50_000)
            client.publish(body, queue)
            assert client.expect_content(amqp.BasicDeliver).body == body

        use()
        yield use
        use()
        client.bye()


def outcomes(gateway: Gateway) -> dict[str, int]:
    text = gateway.get("/metrics")[1]
    found = re.findall(r'amqpgate_connections_total\{outcome="(\w+)"\} (\d+)\.0', text)
    return {outcome: int(count) for outcome, count in found if count != "0"}


def test_handshakes_that_never_end(strict: Gateway, bystander: Callable[[], None]) -> None:
    with contextlib.ExitStack() as crowd:
        slow = [crowd.enter_context(Talker.dial(strict.port)) for _ in range(20)]
        for number, talker in enumerate(slow):
            talker.raw(amqp.PROTOCOL_HEADER[: number % 9])
        eventually(lambda: gauge(strict, 'amqpgate_connections_open{state="handshake"}') == 20)
        # The next ones take the places of those that came first; who is in already is served.
        for _ in range(5):
            slow.append(crowd.enter_context(Talker.dial(strict.port)))
        bystander()
        for talker in slow:
            for _ in talker.all():
                pass
    eventually(lambda: outcomes(strict) == {"handshake_timeout": 20, "over_limit": 5})
    with Talker.dial(strict.port) as client:
        client.open()
        client.bye()


def gauge(gateway: Gateway, name: str) -> float:
    match = re.search(rf"^{re.escape(name)} (\S+)$", gateway.get("/metrics")[1], re.MULTILINE)
    assert match
    return float(match[1])


def test_a_frame_that_is_too_large_before_it_may_be(strict: Gateway, bystander: Callable[[], None]) -> None:
    """Nobody may make the gateway keep more than 4096 bytes before it has logged in."""
    for size in (4097, 1 << 20, 0xFFFF_FFFF):
        with Talker.dial(strict.port) as client:
            client.raw(amqp.PROTOCOL_HEADER)
            client.expect(amqp.ConnectionStart)
            client.raw(b"\1\0\0" + size.to_bytes(4, "big"))
            with pytest.raises(Gone):
                client.frame()
    bystander()
    eventually(lambda: outcomes(strict) == {"refused": 3})


def test_garbage_at_every_stage(strict: Gateway, bystander: Callable[[], None]) -> None:
    dice = random.Random(11)
    head = [data for data, _ in conversation("garbage", b"x")]

    def attack(number: int) -> None:
        garbage = dice.randbytes(dice.choice([1, 8, 100, 10_000]))
        if number % 3 == 0:
            garbage = encode_frame(dice.randrange(10), dice.randrange(3), garbage)
        with contextlib.suppress(OSError, Gone), Talker.dial(strict.port) as client:
            for data in head[: number % 6]:
                client.raw(data)
            client.raw(garbage)
            if number % 2:
                half = len(garbage) // 2
                client.raw(garbage[:half])
            client.sock.shutdown(socket.SHUT_WR)
            for _ in client.all():
                pass

    for first in range(0, 200, 10):
        crowd = [threading.Thread(target=attack, args=(number,)) for number in range(first, first + 10)]
        for thread in crowd:
            thread.start()
        bystander()
        for thread in crowd:
            thread.join()
    eventually(lambda: gauge(strict, 'amqpgate_sessions{route=""}') == 1)
    assert outcomes(strict).get("failed", 0) == 0
    assert gauge(strict, "amqpgate_datapath_failures_total") == 0


def test_no_room_for_more_sockets(strict: Gateway, bystander: Callable[[], None]) -> None:
    pid = strict.child.pid
    used = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 6, before[1]))
    try:
        with contextlib.ExitStack() as crowd:
            for _ in range(15):
                crowd.enter_context(Talker.dial(strict.port)).raw(amqp.PROTOCOL_HEADER)
            for _ in range(5):
                bystander()
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)

    def serves() -> bool:
        with contextlib.suppress(Exception), Talker.dial(strict.port) as client:
            client.open()
            client.bye()
            return True
        return False

    eventually(serves)


def test_five_hundred_that_say_nothing_keep_nobody_out(rabbitmq: RabbitMQ) -> None:
    """As many as `maxHandshakes`, from one address, some with a protocol header; and logins meanwhile."""
    config = CONFIG.replace("BROKER", str(rabbitmq.port)).replace(
        "handshakeTimeout: 1s, maxHandshakes: 20, ", "handshakeTimeout: 60s, "
    )
    gateway = Gateway(config=config)
    gateway.start()
    with contextlib.ExitStack() as crowd:
        for number in range(500):
            silent = crowd.enter_context(Talker.dial(gateway.port))
            silent.raw(amqp.PROTOCOL_HEADER[: number % 9])
        eventually(lambda: gauge(gateway, 'amqpgate_connections_open{state="handshake"}') >= 200)

        def log_in(_: int) -> None:
            with Talker.dial(gateway.port) as client:
                client.open()
                client.bye()

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(log_in, range(97)))
        # Eight at once at most, and one for the start: a header alone is no connection there.
        assert int(rabbitmq.eval("length(rabbit_networking:connections()).")) < 50
    ended = gateway.stop()
    # The first ones have a line each; then there is one with their number.
    assert len(ended.log.splitlines()) < 97 * 2 + 100, ended.log[-4000:]
    assert "more connections did not become sessions" in ended.log


def test_half_a_tls_handshake_leaves_nothing_behind(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    tls = f", tls: {{cert: {tmp_path}/cert.pem, key: {tmp_path}/key.pem}}}}]"
    config = CONFIG.replace("}]", tls, 1).replace("BROKER", str(rabbitmq.port))
    config = config.replace("maxHandshakes: 20", "handshakesPerAddress: 500")
    gateway = Gateway(config=config)
    gateway.start()
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100)

    def flood() -> float:
        with contextlib.ExitStack() as crowd:
            for _ in range(500):
                crowd.enter_context(Talker.dial(gateway.port)).raw(hello)
            eventually(lambda: gauge(gateway, 'amqpgate_connections_open{state="handshake"}') >= 400)
            peak = memory_of(gateway)
        eventually(lambda: gauge(gateway, 'amqpgate_connections_open{state="handshake"}') == 0)
        return peak

    flood()
    peak = flood()
    # A look a second; the half of it would be gone with the first.
    eventually(lambda: memory_of(gateway) < peak - (10 << 20))
    gateway.stop()


def memory_of(gateway: Gateway) -> int:
    """Resident bytes of its one process."""
    pages = Path(f"/proc/{gateway.child.pid}/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()
