"""A listener before RabbitMQ that is as strict towards old clients as RabbitMQ 4.1 and later.

It takes the protocol header of 0-9-1 alone, and no frame-max under 8192 in tune-ok. All else it relays octet
by octet, so that whatever is behind it answers. RabbitMQ 4 still serves the header `AMQP 1 1 0 9`; this
listener does not, so that a client of it must speak 0-9-1 by name.
"""

from __future__ import annotations

import contextlib
import socket
import threading

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import Frame, FrameDecoder, method_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp

MIN_FRAME_MAX = 8192

#: Seconds that a peer may take for one step before it counts as stuck.
PATIENCE = 60.0

_READ = 256 * 1024
_TUNE_OK = b"\x00\x0a\x00\x1f"


class StrictListener:
    """Listens on `host`:`port` until `close`, and relays to a port of 127.0.0.1."""

    host = "127.0.0.1"

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._listener = socket.create_server((self.host, 0))
        self.port: int = self._listener.getsockname()[1]
        #: What was refused, in order: a protocol header, or the frame-max of a tune-ok.
        self.refused: list[bytes | int] = []
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, name="strict listener", daemon=True).start()

    def close(self) -> None:
        """Stop listening and end every connection."""
        # Closing alone does not wake a thread that waits in accept.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in list(self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(
                target=self._serve, args=(client,), name="strict connection", daemon=True
            ).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError, ProtocolViolation):
            client.settimeout(PATIENCE)
            header = _exactly(client, 8)
            if header != amqp.PROTOCOL_HEADER:
                if header:
                    self.refused.append(header)
                    client.sendall(amqp.PROTOCOL_HEADER)
                return
            with socket.create_connection((self.host, self._upstream_port)) as broker:
                self._open |= {client, broker}
                try:
                    self._relay(client, broker, header)
                finally:
                    self._open -= {client, broker}

    def _relay(self, client: socket.socket, broker: socket.socket, header: bytes) -> None:
        for sock in (client, broker):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        broker.sendall(header)
        back = threading.Thread(target=_copy, args=(broker, client), name="strict answers", daemon=True)
        back.start()
        try:
            if self._shaken(client, broker):
                client.settimeout(None)
                _copy(client, broker)
        finally:
            # What ends one way ends both.
            with contextlib.suppress(OSError):
                broker.shutdown(socket.SHUT_RDWR)
            back.join(PATIENCE)

    def _shaken(self, client: socket.socket, broker: socket.socket) -> bool:
        """Relay the client's frames up to tune-ok; whether that was let through."""
        decoder = FrameDecoder(0)
        while data := client.recv(_READ):
            decoder.feed(data)
            while (frame := decoder.next()) is not None:
                if not frame.payload.startswith(_TUNE_OK):
                    broker.sendall(_bytes(frame))
                    continue
                tune_ok = decode_method(frame.payload)
                assert isinstance(tune_ok, amqp.ConnectionTuneOk)
                # 0 is no number under the minimum, and the broker's own affair.
                if 0 < tune_ok.frame_max < MIN_FRAME_MAX:
                    self.refused.append(tune_ok.frame_max)
                    self._refuse(client, decoder, tune_ok.frame_max)
                    return False
                broker.sendall(_bytes(frame) + decoder.take_rest())
                return True
        return False

    @staticmethod
    def _refuse(client: socket.socket, decoder: FrameDecoder, frame_max: int) -> None:
        """RabbitMQ's answer to a frame-max under its minimum; what comes before close-ok is thrown away."""
        text = (
            f"NOT_ALLOWED - negotiated frame_max = {frame_max} is lower than the minimum allowed value"
            f" ({MIN_FRAME_MAX})"
        )
        close = amqp.ConnectionClose(reply_code=530, reply_text=text, class_id=10, method_id=30)
        client.sendall(method_frame(0, close))
        close_ok = method_frame(0, amqp.ConnectionCloseOk())
        while True:
            while (frame := decoder.next()) is not None:
                if _bytes(frame) == close_ok:
                    return
            data = client.recv(_READ)
            if not data:
                return
            decoder.feed(data)


def _bytes(frame: Frame) -> bytes:
    head = frame.type.to_bytes(1, "big") + frame.channel.to_bytes(2, "big")
    return head + len(frame.payload).to_bytes(4, "big") + bytes(frame.payload) + b"\xce"


def _exactly(sock: socket.socket, count: int) -> bytes:
    """So many bytes, or what came before the end."""
    data = b""
    while len(data) < count and (piece := sock.recv(count - len(data))):
        data += piece
    return data


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Bytes until `source` ends; then `sink` hears the end, too."""
    with contextlib.suppress(OSError):
        while data := source.recv(_READ):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
