"""A pool that keeps no promise: clients share one connection per vhost, and frames get other channel numbers.

What is left out here is what pooling is about; the tests of this folder must notice it.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

import attrs

from amqpgate.protocol.frames import encode_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import Gone, Talker, Unexpected


@attrs.define(eq=False)
class _Guest:
    talker: Talker
    #: Channel numbers of the link by those of the client.
    numbers: dict[int, int] = attrs.field(factory=dict)
    gone: bool = False


@attrs.define(eq=False)
class _Link:
    talker: Talker
    lock: threading.Lock = attrs.field(factory=threading.Lock)
    seats: dict[int, tuple[_Guest, int]] = attrs.field(factory=dict)

    def send(self, kind: int, number: int, payload: bytes) -> None:
        with self.lock, contextlib.suppress(OSError):
            self.talker.raw(encode_frame(kind, number, payload))

    def relay(self) -> None:
        """Down to the clients, until the end."""
        with contextlib.suppress(Gone, OSError):
            while True:
                frame = self.talker.frame()
                if frame.channel == 0:
                    # Whoever it is for, everybody hears it.
                    for guest in {id(guest): guest for guest, _ in list(self.seats.values())}.values():
                        with contextlib.suppress(OSError):
                            guest.talker.raw(encode_frame(frame.type, 0, frame.payload))
                    continue
                seat = self.seats.get(frame.channel)
                if frame.type == amqp.FRAME_METHOD and frame.payload[:4] == b"\0\x14\0\x29":
                    self.seats.pop(frame.channel, None)
                if seat is not None and not seat[0].gone:
                    with contextlib.suppress(OSError):
                        seat[0].talker.raw(encode_frame(frame.type, seat[1], frame.payload))


class Careless:
    """Listens at `port` before the broker at `target`."""

    def __init__(self, target: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self._target = target
        self._links: dict[str, _Link] = {}
        self._lock = threading.Lock()
        self._guests: list[_Guest] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for talker in [guest.talker for guest in self._guests] + [
            link.talker for link in self._links.values()
        ]:
            with contextlib.suppress(OSError):
                talker.sock.shutdown(socket.SHUT_RDWR)
            talker.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                guest = _Guest(Talker(sock, timeout=600))
                self._guests.append(guest)
                threading.Thread(target=self._serve, args=(guest,), daemon=True).start()

    def _link(self, vhost: str) -> _Link:
        with self._lock:
            link = self._links.get(vhost)
            if link is None:
                talker = Talker.dial(self._target, timeout=600)
                talker.open(vhost=vhost, channels=0)
                link = self._links[vhost] = _Link(talker)
                threading.Thread(target=link.relay, daemon=True).start()
            return link

    def _serve(self, guest: _Guest) -> None:
        link = None
        try:
            _, _, opened = guest.talker.accept()
            link = self._link(opened.virtual_host)
            while True:
                frame = guest.talker.frame()
                if frame.channel == 0:
                    method = decode_method(frame.payload)
                    if isinstance(method, amqp.ConnectionClose):
                        guest.talker.say(amqp.ConnectionCloseOk())
                    if isinstance(method, (amqp.ConnectionClose, amqp.ConnectionCloseOk)):
                        guest.talker.sock.shutdown(socket.SHUT_WR)
                    continue
                if frame.payload[:4] == b"\0\x14\0\x0a" or frame.channel not in guest.numbers:
                    free = next(number for number in range(1, 2000) if number not in link.seats)
                    guest.numbers[frame.channel] = free
                    link.seats[free] = guest, frame.channel
                link.send(frame.type, guest.numbers[frame.channel], frame.payload)
                if frame.payload[:4] == b"\0\x14\0\x29":
                    link.seats.pop(guest.numbers.pop(frame.channel), None)
        except (Gone, Unexpected, OSError):
            pass
        finally:
            guest.gone = True
            if link is not None:
                for number in set(guest.numbers.values()):
                    if link.seats.get(number, (None,))[0] is guest:
                        link.send(amqp.FRAME_METHOD, number, amqp.ChannelClose(200, "gone").encode())
            guest.talker.close()
