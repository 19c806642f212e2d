"""A counting sink that speaks AMQP 0-10: as much of a broker as `tests.bench.translated` needs.

``python -m tests.bench.sink_0_10 PORT``. Transfers are counted and forgotten; what is asked to be told
(execution.sync, the sync bit, session.flush) is complete at once. A subscription gets messages as far as its
credit goes. It walks frames and decodes next to nothing, and serves each connection in a thread.
"""

from __future__ import annotations

import contextlib
import select
import socket
import sys
import threading

from amqpgate.protocol.v0_10.connection import Tuning
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.codec import decode_command, decode_control
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command
from amqpgate.wire.v0_10.types import Map, Value
from tests.support.broker_0_10 import START
from tests.support.talk_0_10 import command, control

BODY = b"x" * 16
BATCH = 100
INFINITE = 0xFFFF_FFFF
_TRANSFER = b"\4\1"
_COMMAND, _FIRST = 1, 0x8


def message(destination: bytes, *, accept_mode: int) -> bytes:
    """One delivery, with the properties that clients write."""
    headers = Map(((b"n", Value(TypeCode.INT32, 1)), (b"x", Value(TypeCode.STR16, b"k"))))
    transfer = amqp.MessageTransfer(destination=destination, accept_mode=accept_mode, acquire_mode=0)
    structs = (
        amqp.DeliveryProperties(exchange=b"amq.direct", routing_key=b"bench", delivery_mode=2),
        amqp.MessageProperties(
            content_length=len(BODY), content_type=b"text/plain", application_headers=headers
        ),
    )
    return command(transfer, structs, BODY)


class Connection:
    """One client's, with one session."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._rest = b""
        #: Commands that came, and those of the last chunk that want to be told.
        self._received = 0
        self._is_asked = False
        self._channel = 0
        self._messages = b""
        self._one = b""
        #: Messages that may be sent; `INFINITE` for any number.
        self._credit = 0
        self._flows: dict[bytes, int] = {}

    def serve(self) -> None:
        """Until it is gone."""
        with self._sock, contextlib.suppress(OSError):
            is_known = self._exactly(8) == PROTOCOL_HEADER
            self._say(PROTOCOL_HEADER)
            if not is_known:
                return
            self._say(control(START))
            while True:
                sends = self._one and self._credit
                readable, writable, _ = select.select([self._sock], [self._sock] if sends else [], [])
                if readable:
                    data = self._sock.recv(1 << 16)
                    if not data:
                        return
                    self._walk(data)
                elif writable:
                    self._deliver()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._sock.recv(size - len(data))
            if not more:
                raise ConnectionResetError
            data += more
        return data

    def _say(self, data: bytes) -> None:
        self._sock.sendall(data)

    def _deliver(self) -> None:
        if self._credit >= BATCH:
            self._say(self._messages)
            if self._credit != INFINITE:
                self._credit -= BATCH
        else:
            self._say(self._one * self._credit)
            self._credit = 0

    def _walk(self, data: bytes) -> None:
        data = self._rest + data
        at, end = 0, len(data)
        while at + 14 <= end:
            size = data[at + 2] << 8 | data[at + 3]
            if at + size > end:
                break
            kind = data[at + 1]
            if kind == 0:
                self._control(
                    data[at + 4] << 8 | data[at + 5],
                    data[at + 6] << 8 | data[at + 7],
                    data[at + 12 : at + size],
                )
            elif kind == _COMMAND and data[at] & _FIRST:
                self._received += 1
                if data[at + 15] & 1:
                    self._is_asked = True
                if data[at + 12 : at + 14] != _TRANSFER:
                    self._command(decode_command(data[at + 12 : at + size])[0])
            at += size
        self._rest = data[at:]
        if self._is_asked:
            self._is_asked = False
            ids = SequenceSet(((0, self._received - 1),)) if self._received else SequenceSet()
            self._say(control(amqp.SessionCompleted(commands=ids), self._channel))

    def _control(self, _reserved: int, channel: int, payload: bytes) -> None:
        match decode_control(payload):
            case amqp.ConnectionStartOk():
                self._say(control(Tuning(channel_max=2048).offer()))
            case amqp.ConnectionOpen():
                self._say(control(amqp.ConnectionOpenOk()))
            case amqp.ConnectionClose():
                self._say(control(amqp.ConnectionCloseOk()))
            case amqp.SessionAttach(name=name):
                self._channel = channel
                attached = control(amqp.SessionAttached(name=name), channel)
                point = amqp.SessionCommandPoint(command_id=0, command_offset=0)
                self._say(attached + control(point, channel))
            case amqp.SessionDetach(name=name):
                self._one = b""
                self._say(control(amqp.SessionDetached(name=name, code=0), channel))
            case amqp.SessionFlush():
                self._is_asked = True

    def _command(self, said: Command) -> None:
        match said:
            case amqp.MessageSubscribe(destination=destination, accept_mode=mode):
                self._one = message(destination or b"", accept_mode=mode or 0)
                self._messages = self._one * BATCH
            case amqp.MessageFlow(unit=0, value=value):
                more = INFINITE if value is None else value
                self._credit = INFINITE if INFINITE in (more, self._credit) else self._credit + more
            case amqp.MessageStop():
                self._credit = 0


def main() -> None:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
    print("ready", flush=True)
    while True:
        sock, _ = listener.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=Connection(sock).serve, daemon=True).start()


if __name__ == "__main__":
    main()
