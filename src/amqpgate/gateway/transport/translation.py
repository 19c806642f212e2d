"""Between a real socket and a translator: the I/O, its back-pressure, and the bound on what it does at once.

`PlainTranslation` is made to be read; where it was compiled, ``_translation`` serves, which does the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
from collections.abc import Callable
from typing import Final

from amqpgate.bridge import Relayed, RelayedTranslator, Translator
from amqpgate.datapath.budgets import TURN
from amqpgate.datapath.engine import Bytes
from amqpgate.datapath.tls import has_ended, is_tls
from amqpgate.datapath.tls import would_block as nothing_now
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FRAME_HEAD, FRAME_OVERHEAD, HEARTBEAT

#: Bytes of one read.
READ: Final = 64 * 1024
#: Bytes of one send, a record of TLS: OpenSSL demands that a send that could not finish is repeated with the
#: same beginning, and unsent bytes only ever grow at their end.
RECORD: Final = 16 * 1024
#: Bytes, or one frame, that a translator is given at once; the clock is looked at after each.
PIECE: Final = 4 * 1024

#: What the system says where there is nothing now; asked once, for it looks at the locale each time.
AGAIN: Final = os.strerror(errno.EAGAIN)


class PlainTranslation:
    """All of a translated socket but what is the real socket's alone; see `TranslatedSocket`.

    ``most_unsent`` bytes may wait for the peer before it is not read any more.
    """

    def __init__(
        self,
        inner: socket.socket,
        translator: Translator,
        first: bytes,
        clock: Callable[[], float],
        most_unsent: int,
    ) -> None:
        self.inner = inner
        #: The one that it has now.
        self.translator = translator
        self._most_unsent = most_unsent
        #: The other socket of a session whose translators share what waits for their peers, and its own one.
        self._beside: PlainTranslation | None = None
        self._relayed: RelayedTranslator | None = None
        self._clock = clock
        #: Received, and not given to the translator yet.
        self._input = memoryview(first)
        #: For the peer, and not taken by the kernel yet.
        self._out = bytearray()
        #: Nothing more comes from the peer; why, or None where its stream has ended well.
        self._is_over = False
        self._why: Exception | None = None
        #: Why nothing can be sent any more.
        self._broken: OSError | None = None
        self._has_heard = self._has_said = False

    def close(self) -> None:
        """Close at once; what is unsent is dropped, and the translator is over. Idempotent."""
        self.inner.close()
        # Whatever fails in there, others are closed after this.
        with contextlib.suppress(Exception):
            self.translator.gateway_ended()
        self._forget()

    def relay_to(self, beside: PlainTranslation, relayed: Relayed) -> None:
        """From now on what the peer says goes to the broker at ``beside`` as it came, and back."""
        self._exchange(relayed.client, beside)
        beside._exchange(relayed.broker, self)

    def read_headers(self, is_read: bool) -> None:
        if self._relayed is not None:
            self._relayed.read_headers(is_read)

    def _exchange(self, end: tuple[RelayedTranslator, bytes], beside: PlainTranslation) -> None:
        self._take_bytes()
        self._relayed, rest = end
        self.translator = self._relayed
        self._input = memoryview(rest + bytes(self._input))
        self._beside = beside

    # -- from the peer -----------------------------------------------------------------------

    def recv(self, limit: int) -> bytes:
        """At most ``limit`` bytes of frames, cut anywhere; ``b""`` at the end. Raises as ``recv_into``, and
        ``BlockingIOError`` when there is nothing now."""
        data = self._heard_frames(limit)
        if data is None:
            raise would_block()
        return data

    def _heard_frames(self, limit: int) -> bytes | None:
        """As ``recv``; None where there is nothing now."""
        try:
            data = self._receive(limit)
        except Exception:
            self._fail()
            raise
        if data:
            return data
        if self.translator.has_frames or not self._is_over:
            return None
        if self._why is not None:
            raise anew(self._why)
        return data

    def recv_into(self, view: memoryview) -> int:
        data = self._heard_frames(len(view))
        if data is None:
            return -1
        size = len(data)
        view[:size] = data
        return size

    def pending(self) -> bool:
        if self.translator.has_frames or self._is_over:
            return True
        has_input = self._input or (is_tls(self.inner) and self.inner.pending())
        return bool(has_input) and self._wants_bytes()

    @property
    def is_full(self) -> bool:
        return not (self._wants_bytes() or self.translator.has_frames or self._is_over)

    def has_heard(self) -> bool:
        heard, self._has_heard = self._has_heard, False
        return heard

    def _wants_bytes(self) -> bool:
        """Whether the translator may be given more of the peer, where no frames wait."""
        return len(self._out) <= self._most_unsent and self.translator.wants_bytes

    def _receive(self, limit: int) -> bytes:
        """Frames as far as there are, and as far as a turn goes."""
        translator = self.translator
        until = self._clock() + TURN
        frames = b""
        more: list[bytes] = []
        room = limit
        goes_on = True
        while True:
            if translator.has_frames:
                if frames:
                    more.append(frames)
                frames = translator.frames_for_gateway(room)
                room -= len(frames)
                if not room or translator.has_frames:
                    break
            if self._is_over or not goes_on:
                break
            # Of who is gone nothing is left unheard; what it has sent is what the kernel has of it.
            if not (self._wants_bytes() or (not frames and hung_up(self.inner))):
                break
            goes_on = self._feed() and self._clock() < until
        if self._beside is not None:
            self._take_bytes()
            # What one peer has said may have to go to the other one at once.
            self._beside._try_to_flush()
        if self._out:
            self._send()
        return b"".join((*more, frames)) if more else frames

    def _feed(self) -> bool:
        """Give the translator the next piece, or the end; whether it may be given more at once."""
        if self._input:
            piece, self._input = bytes(self._input[:PIECE]), self._input[PIECE:]
            goes_on = True
        else:
            data = self._read()
            if data is None:
                return False
            # A socket that gave less than it was asked for has nothing more; TLS gives a record at a time.
            goes_on = len(data) == READ or is_tls(self.inner)
            piece = data
            if len(data) > PIECE:
                piece, self._input = data[:PIECE], memoryview(data)[PIECE:]
                goes_on = True
        try:
            if piece:
                self.translator.from_peer(piece)
            elif self._why is None:
                self.translator.peer_ended()
        except ProtocolViolation as violation:
            self._is_over, self._why = True, violation
        if self._beside is None:
            self._take_bytes()
        return goes_on

    def _read(self) -> bytes | None:
        """Read once; ``b""`` at the end, None where nothing has come."""
        try:
            data = self.inner.recv(READ)
        except nothing_now():
            return None
        except has_ended():
            data = b""
        except OSError as error:
            self._is_over, self._why = True, error
            return b""
        if data:
            self._has_heard = True
        else:
            self._is_over = True
        return data

    # -- to the peer ---------------------------------------------------------------------------

    def send(self, frames: Bytes, *, insists: bool = False) -> int:
        """As ``BufferedSocket.send``. Who ``insists`` does not ask whether the translator wants frames."""
        if self._out or self._broken is not None:
            self.flush()
            if self._out:
                raise would_block()
        until = self._clock() + TURN
        taken = 0
        try:
            with memoryview(frames) as view:
                size = len(view)
                while taken < size and (insists or self.translator.wants_frames):
                    stop = end_of_piece(view, taken)
                    self.translator.from_gateway(bytes(view[taken:stop]))
                    taken = stop
                    self._take_bytes()
                    if self._out:
                        self._send()
                    if taken == size or self._out or self._broken is not None or self._clock() >= until:
                        break
        except Exception:
            self._fail()
            raise
        if self._beside is not None:
            self._beside._try_to_flush()
        if not taken:
            raise would_block()
        return taken

    @property
    def takes_frames(self) -> bool:
        return not self._out and self._broken is None and self.translator.wants_frames

    @property
    def unsent(self) -> int:
        return len(self._out)

    def flush(self) -> None:
        try:
            self._take_bytes()
            broken = self._send()
        except Exception:
            self._fail()
            raise
        if broken is not None:
            raise anew(broken)

    def beat(self) -> None:
        if not self._has_said and not self._out:
            try:
                self.translator.from_gateway(HEARTBEAT)
            except Exception:
                self._fail()
                raise
            self.flush()
        self._has_said = False

    def end(self) -> None:
        """The gateway says nothing more; what the translator says last is there for ``flush``."""
        try:
            self.translator.gateway_ended()
            self._take_bytes()
        except Exception:
            self._fail()
            raise

    def _take_bytes(self) -> None:
        if self._beside is not None and len(self._out) > self._most_unsent:
            # They are the other peer's, which is not read while they wait.
            return
        data = self.translator.bytes_for_peer()
        if data and self._broken is None:
            self._out += data

    def _send(self) -> OSError | None:
        """Send what was taken, as far as the kernel takes it; why nothing can be sent any more."""
        if self._broken is not None:
            return self._broken
        # What was not taken for want of room is taken once there is some.
        is_short = len(self._out) > self._most_unsent and self._beside is not None
        while self._out:
            try:
                # Released both, for a traceback keeps what has failed: else nothing could be resized.
                with memoryview(self._out) as view, view[:RECORD] as piece:
                    sent = self.inner.send(piece)
            except nothing_now():
                break
            except OSError as error:
                self._broken = error
                self._out.clear()
                return error
            del self._out[:sent]
            self._has_said = True
            if is_short and not self._out:
                self._take_bytes()
        return None

    def _try_to_flush(self) -> None:
        """As ``flush``. What the peer has sent is heard, though nothing can be sent to it any more."""
        try:
            self._take_bytes()
            if self._out:
                self._send()
        except Exception:
            self._fail()
            raise

    def _fail(self) -> None:
        """What a translator cannot finish, for a fault of its own or want of memory, ends the connection."""
        self._forget()
        self._why = self._broken = failure()

    def _forget(self) -> None:
        """What it was leads nowhere any more, and so is no cycle."""
        self.translator, self._beside, self._relayed = Nothing(), None, None
        self._is_over, self._input = True, memoryview(b"")
        self._out.clear()


class Nothing:
    """What is left of a translator that has failed."""

    wants_bytes = wants_frames = has_frames = False

    def from_peer(self, data: bytes) -> None:
        """Nothing is understood any more."""

    def peer_ended(self) -> None:
        """Nothing follows."""

    def bytes_for_peer(self) -> bytes:
        return b""

    def from_gateway(self, frames: bytes) -> None:
        """Nothing can be said any more."""

    def gateway_ended(self) -> None:
        """Nothing follows."""

    def frames_for_gateway(self, limit: int) -> bytes:
        return b""


def hung_up(sock: socket.socket) -> bool:
    """Whether its connection is gone in both directions."""
    poll = select.poll()
    poll.register(sock, 0)
    return bool(poll.poll(0))


def failure() -> OSError:
    """What ends a connection whose translator has failed."""
    return OSError(errno.EPROTO, "a translator has failed")


def anew(error: Exception) -> Exception:
    """The same, to be raised. What is raised twice may have itself among its causes, which is a cycle."""
    return type(error)(*error.args) if isinstance(error, OSError) else error.with_traceback(None)


def would_block() -> BlockingIOError:
    """There is nothing now, or no room."""
    return BlockingIOError(errno.EAGAIN, AGAIN)


def end_of_piece(frames: memoryview, start: int) -> int:
    """Where those whole frames end that go to the translator at once: one, at least."""
    stop = start
    while stop < len(frames):
        end: int = stop + FRAME_HEAD.unpack_from(frames, stop)[2] + FRAME_OVERHEAD
        if stop > start and end - start > PIECE:
            break
        stop = end
    if stop > len(frames):
        raise ValueError("a frame is cut")
    return stop
