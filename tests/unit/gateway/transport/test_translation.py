"""A translated socket by itself: what both pumps make of it is in `tests/unit/datapath/test_buffered.py`."""

from __future__ import annotations

import itertools
import socket
import ssl
import sys
from collections.abc import Iterator

import pytest

from amqpgate.datapath.budgets import TURN
from amqpgate.datapath.engine import BufferedSocket
from amqpgate.gateway.transport.translated_socket import MOST_UNSENT, TranslatedSocket, Translation
from amqpgate.gateway.transport.translation import PlainTranslation
from amqpgate.protocol.frames import HEARTBEAT, encode_frame, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.translators import Answering, Asking, Reframing, Withholding, record, records

DECLARE = method_frame(1, amqp.QueueDeclare(queue="q"))
ACK = method_frame(1, amqp.BasicAck(1))
LARGE = encode_frame(3, 1, b"b" * 10_000)


class Noting(Reframing):
    """It notes what it is given at once."""

    def __init__(self) -> None:
        super().__init__(piece=1 << 20)
        self.given: list[int] = []

    def from_peer(self, data: bytes) -> None:
        self.given.append(len(data))
        super().from_peer(data)

    def from_gateway(self, frames: bytes) -> None:
        self.given.append(len(frames))
        super().from_gateway(frames)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    far, near = socket.socketpair()
    with far, near:
        far.setblocking(False)
        near.setblocking(False)
        yield far, near


@pytest.fixture(params=dict.fromkeys((Translation, PlainTranslation)), autouse=True)
def translation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is of both."""
    bases = (request.param, BufferedSocket)
    body = {"__init__": lambda self, *args, clock: request.param.__init__(self, *args, clock, MOST_UNSENT)}
    monkeypatch.setattr(sys.modules[__name__], "TranslatedSocket", type("TranslatedSocket", bases, body))


def still(near: socket.socket, toy: Reframing, first: bytes = b"") -> TranslatedSocket:
    """One for which no turn is over."""
    return TranslatedSocket(near, toy, first, clock=lambda: 0.0)


Ends = tuple[socket.socket, socket.socket]


def test_a_translator_gets_whole_frames_a_few_at_a_time(ends: Ends) -> None:
    toy = Noting()
    sock = still(ends[1], toy)
    frames = ACK * 400 + LARGE + ACK
    assert sock.send(frames) == len(frames)
    assert toy.given == [4095, 4095, 210, len(LARGE), len(ACK)]
    assert ends[0].recv(1 << 20) == records(frames, 1 << 20)
    with pytest.raises(ValueError, match="a frame is cut"):
        sock.send(ACK[:-1])


def test_a_turn_is_bounded_both_ways(ends: Ends) -> None:
    times = itertools.count()
    toy = Noting()
    sock = TranslatedSocket(ends[1], toy, b"", clock=lambda: next(times) * TURN)
    ends[0].send(records(ACK * 1000))
    got = 0
    for turn in range(1, 4):
        got += len(sock.recv(1 << 20))
        assert toy.given == [4096] * turn
        assert sock.pending()
    toy.given.clear()
    assert sock.send(ACK * 1000) == 4095
    assert toy.given == [4095]
    while got < 1000 * len(ACK):
        got += len(sock.recv(1 << 20))
    assert not sock.pending()
    with pytest.raises(BlockingIOError):
        sock.recv(1)


def test_frames_come_out_as_they_are_asked_for_and_no_more_goes_in_meanwhile(ends: Ends) -> None:
    toy = Noting()
    sock = still(ends[1], toy)
    ends[0].send(records(ACK * 1000))
    got = sock.recv(10)
    assert (len(got), len(toy.given), sock.pending(), sock.is_full) == (10, 1, True, False)
    view = memoryview(bytearray(20))
    assert sock.recv_into(view) == 20
    assert got + bytes(view) == (ACK * 3)[:30]
    assert len(toy.given) == 1


def test_it_is_full_while_the_translator_waits_for_the_gateway(ends: Ends) -> None:
    sock = still(ends[1], Asking(), records(DECLARE + ACK))
    assert (sock.pending(), sock.is_full) == (True, False)
    assert sock.recv(1000) == DECLARE
    assert (sock.pending(), sock.is_full) == (False, True)
    sock.send(method_frame(1, amqp.QueueDeclareOk(queue="q")))
    assert (sock.pending(), sock.is_full) == (True, False)
    assert sock.recv(1000) == ACK


def test_what_a_translator_does_not_want_is_not_taken_but_from_who_insists(ends: Ends) -> None:
    toy = Withholding()
    sock = still(ends[1], toy)
    frames = ACK * 1000
    taken = sock.send(frames)
    assert (taken % len(ACK), taken < len(frames), sock.takes_frames, sock.unsent) == (0, True, False, 0)
    with pytest.raises(BlockingIOError):
        sock.send(frames[taken:])
    assert sock.send(frames[taken:], insists=True) == len(frames) - taken
    sock.beat()
    assert ends[0].recv(1000) == record(8)


def test_its_own_bytes_keep_their_order_and_frames_wait_for_them(ends: Ends) -> None:
    far, near = ends
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    sock = still(near, Answering(), records(ACK * 1000))
    assert len(sock.recv(1 << 20)) == 1000 * len(ACK)
    assert sock.unsent > 0
    assert not sock.takes_frames
    with pytest.raises(BlockingIOError):
        sock.send(LARGE)
    heard = bytearray()
    while sock.unsent:
        heard += far.recv(1 << 20)
        sock.flush()
    heard += far.recv(1 << 20)
    assert len(heard) == 1000 * len(record(20, 1, b"0000"))
    assert sock.takes_frames


def test_heartbeats_are_sent_where_nothing_was(ends: Ends) -> None:
    sock = still(ends[1], Reframing())
    sock.beat()
    assert ends[0].recv(1000) == record(8)
    sock.send(ACK)
    assert ends[0].recv(1000) == records(ACK)
    sock.beat()
    with pytest.raises(BlockingIOError):
        ends[0].recv(1000)
    sock.beat()
    assert ends[0].recv(1000) == record(8)
    assert not sock.has_heard()
    ends[0].send(record(8)[:3])
    with pytest.raises(BlockingIOError):
        sock.recv(1000)
    assert (sock.has_heard(), sock.has_heard()) == (True, False)
    ends[0].send(record(8)[3:])
    assert sock.recv(1000) == HEARTBEAT


class Counted(socket.socket):
    """It counts how often it is asked."""

    reads = 0

    def recv(self, *args: int) -> bytes:
        self.reads += 1
        return super().recv(*args)


def test_a_socket_that_gave_less_than_it_has_room_for_is_not_asked_again(ends: Ends) -> None:
    with Counted(fileno=ends[1].detach()) as near:
        near.setblocking(False)
        sock = still(near, Reframing())
        for count in (1, 100, 2):
            ends[0].send(records(ACK * count))
            before, got = near.reads, b""
            while len(got) < len(ACK) * count:
                got += sock.recv(1 << 20)
            assert near.reads == before + 1
        with pytest.raises(BlockingIOError):
            sock.recv(1)
        ends[0].send(records(ACK))
        ends[0].shutdown(socket.SHUT_WR)
        assert sock.recv(1 << 20) == ACK
        assert sock.recv(1 << 20) == b""


class Ending(socket.socket):
    """What it sends fails as by `ssl`: the traceback keeps what was to be sent."""

    def send(self, data: memoryview, *_: object) -> int:  # type: ignore[override]
        raise ssl.SSLEOFError(8, "EOF occurred in violation of protocol")


def test_a_peer_that_is_gone_while_it_is_sent_to_is_the_end_and_no_fault(ends: Ends) -> None:
    """Found by the simulator: the bytes could not be dropped, and the session failed."""
    with Ending(fileno=ends[1].detach()) as near:
        near.setblocking(False)
        sock = still(near, Reframing())
        sock.send(ACK)
        with pytest.raises(ssl.SSLEOFError):
            sock.flush()
        assert not sock.unsent


class Failing(Reframing):
    """It notes its end, and fails in it."""

    ends = 0

    def gateway_ended(self) -> None:
        self.ends += 1
        raise MemoryError


def test_one_that_is_closed_has_no_translator_and_whoever_asks_it_still_is_told_of_an_end(ends: Ends) -> None:
    """Its translator is told that it is over, whatever that does: others are closed after it."""
    toy = Failing()
    sock = still(ends[1], toy, records(ACK))
    sock.close()
    sock.close()
    assert (toy.ends, sock.translator is toy, sys.getrefcount(toy)) == (1, False, 2)
    assert (sock.pending(), sock.is_full, sock.unsent, sock.takes_frames) == (True, False, 0, False)
    assert sock.recv(1000) == b""
    with pytest.raises(BlockingIOError):
        sock.send(ACK)
    sock.beat()
    sock.flush()
    sock.end()


def test_what_has_broken_it_is_told_anew_each_time(ends: Ends) -> None:
    """Else what came of it the first time is what it comes of the second time: a cycle."""
    sock = still(ends[1], Reframing())
    ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.send(ACK)
    ends[0].close()
    causes = []
    for _ in range(2):
        with pytest.raises(ConnectionResetError, match="reset by peer") as caught:
            sock.recv(1000)
        causes.append(caught.value)
    assert causes[0] is not causes[1]
    assert causes[0].errno == causes[1].errno
