# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled half of a translated socket. Its contract, name by name, is ``translation``; read that first."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport EAGAIN, EINTR, errno
from libc.string cimport memcpy

import os
import socket

from amqpgate.datapath.budgets import TURN as _TURN
from amqpgate.datapath.tls import has_ended, is_tls, would_block
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.transport.translation import (
    AGAIN, PIECE as _PIECE, READ as _READ, RECORD as _RECORD, Nothing, anew, failure, hung_up,
)
from amqpgate.protocol.frames import FRAME_HEAD, FRAME_OVERHEAD, HEARTBEAT

cdef extern from "<sys/socket.h>" nogil:
    ssize_t recv(int fd, void* into, size_t size, int flags)
    ssize_t send(int fd, const void* data, size_t size, int flags)
    enum:
        MSG_NOSIGNAL

cdef enum:
    READ = 65536
    #: Bytes of a frame of AMQP 0-9-1 before its payload, and those and its end.
    HEAD = 7
    OVERHEAD = 8

cdef double TURN = _TURN
cdef Py_ssize_t PIECE = _PIECE
cdef Py_ssize_t RECORD = _RECORD
cdef object PLAIN = socket.socket
assert (_READ, FRAME_HEAD.size, FRAME_OVERHEAD) == (READ, HEAD, OVERHEAD)

#: What a read of a plain socket goes into; nothing is in there from one call to the next.
cdef unsigned char[READ] received


cdef inline Py_ssize_t end_of_piece(const unsigned char* frames, Py_ssize_t size, Py_ssize_t start) except -1:
    """See ``translation.end_of_piece``."""
    cdef Py_ssize_t stop = start
    cdef Py_ssize_t end
    while stop < size:
        if size - stop < HEAD:
            raise ValueError("a frame is cut")
        end = stop + OVERHEAD + (
            <Py_ssize_t>frames[stop + 3] << 24 | frames[stop + 4] << 16 | frames[stop + 5] << 8 | frames[stop + 6]
        )
        if stop > start and end - start > PIECE:
            break
        stop = end
    if stop > size:
        raise ValueError("a frame is cut")
    return stop


cdef class Translation:
    """See ``translation.PlainTranslation``."""

    cdef readonly object inner
    cdef readonly object translator
    cdef Translation beside
    cdef object relayed, clock, why, broken
    cdef bytes input
    cdef Py_ssize_t at, most_unsent
    cdef bytearray out
    cdef bint is_tls_, is_plain, is_over, heard, said
    #: Whether the translator has frames: nothing but what is called here changes that.
    cdef bint has_frames

    def __init__(self, inner, translator, bytes first, clock, Py_ssize_t most_unsent):
        self.inner = inner
        self.is_tls_ = is_tls(inner)
        self.is_plain = type(inner) is PLAIN
        self.translator = translator
        self.clock = clock
        self.input = first
        self.most_unsent = most_unsent
        self.out = bytearray()
        self.has_frames = translator.has_frames

    def close(self):
        self.inner.close()
        try:
            self.translator.gateway_ended()
        except Exception:
            pass
        self.forget()

    def relay_to(self, Translation beside not None, relayed):
        self.exchange(relayed.client, beside)
        beside.exchange(relayed.broker, self)

    def read_headers(self, is_read):
        if self.relayed is not None:
            self.relayed.read_headers(is_read)

    cdef int exchange(self, end, Translation beside) except -1:
        self.take_bytes()
        self.relayed, rest = end
        self.translator = self.relayed
        self.input = rest + self.input[self.at:]
        self.at = 0
        self.beside = beside
        self.has_frames = self.translator.has_frames
        return 0

    # -- from the peer -------------------------------------------------------------------------

    def recv(self, Py_ssize_t limit):
        cdef bytes data = self.heard_frames(limit)
        if data is None:
            raise BlockingIOError(EAGAIN, AGAIN)
        return data

    def recv_into(self, view):
        cdef Py_buffer into
        cdef bytes data
        cdef Py_ssize_t size
        PyObject_GetBuffer(view, &into, PyBUF_WRITABLE)
        try:
            data = self.heard_frames(into.len)
            if data is None:
                return -1
            size = PyBytes_GET_SIZE(data)
            memcpy(into.buf, PyBytes_AS_STRING(data), size)
        finally:
            PyBuffer_Release(&into)
        return size

    def pending(self):
        if self.is_over or self.has_frames:
            return True
        if self.at == PyBytes_GET_SIZE(self.input) and not (self.is_tls_ and self.inner.pending()):
            return False
        return bool(self.wants_bytes())

    @property
    def is_full(self):
        return not (self.is_over or self.has_frames or self.wants_bytes())

    def has_heard(self):
        cdef bint heard = self.heard
        self.heard = False
        return heard

    cdef bint wants_bytes(self) except -1:
        return PyByteArray_GET_SIZE(self.out) <= self.most_unsent and self.translator.wants_bytes

    cdef bytes heard_frames(self, Py_ssize_t limit):
        """As ``recv``; None where there is nothing now."""
        cdef bytes data
        try:
            data = self.receive(limit)
        except Exception:
            self.fail()
            raise
        if PyBytes_GET_SIZE(data):
            return data
        if not self.is_over or self.has_frames:
            return None
        if self.why is not None:
            raise anew(self.why)
        return data

    cdef bytes receive(self, Py_ssize_t limit):
        cdef object translator = self.translator
        cdef double until = self.clock() + TURN
        cdef bytes frames = b""
        cdef list more = None
        cdef Py_ssize_t room = limit
        cdef bint goes_on = True
        while True:
            if self.has_frames:
                if PyBytes_GET_SIZE(frames):
                    if more is None:
                        more = []
                    more.append(frames)
                frames = translator.frames_for_gateway(room)
                room -= PyBytes_GET_SIZE(frames)
                self.has_frames = translator.has_frames
                if not room or self.has_frames:
                    break
            if self.is_over or not goes_on:
                break
            if not (self.wants_bytes() or (not PyBytes_GET_SIZE(frames) and hung_up(self.inner))):
                break
            goes_on = self.feed() and self.clock() < until
        if self.beside is not None:
            self.take_bytes()
            self.beside.try_to_flush()
        if PyByteArray_GET_SIZE(self.out):
            self.transmit()
        if more is None:
            return frames
        more.append(frames)
        return b"".join(more)

    cdef bint feed(self) except -1:
        """See ``PlainTranslation._feed``."""
        cdef bytes piece
        cdef bint goes_on = True
        cdef Py_ssize_t size
        if self.at < PyBytes_GET_SIZE(self.input):
            piece = self.input[self.at:self.at + PIECE] if self.at or PyBytes_GET_SIZE(self.input) > PIECE else self.input
            self.at += PyBytes_GET_SIZE(piece)
            if self.at == PyBytes_GET_SIZE(self.input):
                self.input, self.at = b"", 0
        else:
            piece = self.read()
            if piece is None:
                return False
            size = PyBytes_GET_SIZE(piece)
            goes_on = size == READ or self.is_tls_
            if size > PIECE:
                self.input, self.at = piece, PIECE
                piece = piece[:PIECE]
                goes_on = True
        try:
            if PyBytes_GET_SIZE(piece):
                self.translator.from_peer(piece)
            elif self.why is None:
                self.translator.peer_ended()
        except ProtocolViolation as violation:
            self.is_over, self.why = True, violation
        self.has_frames = self.translator.has_frames
        if self.beside is None:
            self.take_bytes()
        return goes_on

    cdef bytes read(self):
        cdef bytes data
        cdef ssize_t got
        cdef int number
        try:
            if self.is_plain:
                got = recv(self.inner.fileno(), received, READ, 0)
                if got < 0:
                    number = errno
                    if number == EAGAIN or number == EINTR:
                        return None
                    raise OSError(number, os.strerror(number))
                data = PyBytes_FromStringAndSize(<char*>received, got)
            else:
                data = self.inner.recv(READ)
        except would_block():
            return None
        except has_ended():
            data = b""
        except OSError as error:
            self.is_over, self.why = True, error
            return b""
        if PyBytes_GET_SIZE(data):
            self.heard = True
        else:
            self.is_over = True
        return data

    # -- to the peer -----------------------------------------------------------------------------

    def send(self, frames, *, insists=False):
        cdef Py_buffer view
        cdef Py_ssize_t taken = 0
        cdef Py_ssize_t stop
        cdef double until
        cdef const unsigned char* data
        if PyByteArray_GET_SIZE(self.out) or self.broken is not None:
            self.flush()
            if PyByteArray_GET_SIZE(self.out):
                raise BlockingIOError(EAGAIN, AGAIN)
        until = self.clock() + TURN
        PyObject_GetBuffer(frames, &view, PyBUF_SIMPLE)
        try:
            data = <const unsigned char*>view.buf
            while taken < view.len and (insists or self.translator.wants_frames):
                stop = end_of_piece(data, view.len, taken)
                self.translator.from_gateway(PyBytes_FromStringAndSize(<const char*>data + taken, stop - taken))
                self.has_frames = self.translator.has_frames
                taken = stop
                self.take_bytes()
                if PyByteArray_GET_SIZE(self.out):
                    self.transmit()
                if (
                    taken == view.len
                    or PyByteArray_GET_SIZE(self.out)
                    or self.broken is not None
                    or self.clock() >= until
                ):
                    break
        except Exception:
            self.fail()
            raise
        finally:
            PyBuffer_Release(&view)
        if self.beside is not None:
            self.beside.try_to_flush()
        if not taken:
            raise BlockingIOError(EAGAIN, AGAIN)
        return taken

    @property
    def takes_frames(self):
        return not PyByteArray_GET_SIZE(self.out) and self.broken is None and self.translator.wants_frames

    @property
    def unsent(self):
        return PyByteArray_GET_SIZE(self.out)

    def flush(self):
        try:
            self.take_bytes()
            broken = self.transmit()
        except Exception:
            self.fail()
            raise
        if broken is not None:
            raise anew(broken)

    def beat(self):
        if not self.said and not PyByteArray_GET_SIZE(self.out):
            try:
                self.translator.from_gateway(HEARTBEAT)
                self.has_frames = self.translator.has_frames
            except Exception:
                self.fail()
                raise
            self.flush()
        self.said = False

    def end(self):
        try:
            self.translator.gateway_ended()
            self.has_frames = self.translator.has_frames
            self.take_bytes()
        except Exception:
            self.fail()
            raise

    cdef int take_bytes(self) except -1:
        cdef bytes data
        if self.beside is not None and PyByteArray_GET_SIZE(self.out) > self.most_unsent:
            return 0
        data = self.translator.bytes_for_peer()
        if PyBytes_GET_SIZE(data) and self.broken is None:
            self.out += data
        return 0

    cdef object transmit(self):
        """See ``PlainTranslation._send``."""
        cdef bint is_short
        cdef Py_ssize_t size
        cdef ssize_t sent
        cdef int number
        if self.broken is not None:
            return self.broken
        is_short = PyByteArray_GET_SIZE(self.out) > self.most_unsent and self.beside is not None
        while True:
            size = PyByteArray_GET_SIZE(self.out)
            if not size:
                return None
            size = min(size, RECORD)
            try:
                if self.is_plain:
                    sent = send(self.inner.fileno(), PyByteArray_AS_STRING(self.out), size, MSG_NOSIGNAL)
                    if sent < 0:
                        number = errno
                        if number == EAGAIN or number == EINTR:
                            return None
                        raise OSError(number, os.strerror(number))
                else:
                    # Released both, for a traceback keeps what has failed: else nothing could be resized.
                    with memoryview(self.out) as view, view[:size] as piece:
                        sent = self.inner.send(piece)
            except would_block():
                return None
            except OSError as error:
                self.broken = error
                PyByteArray_Resize(self.out, 0)
                return error
            if sent == PyByteArray_GET_SIZE(self.out):
                PyByteArray_Resize(self.out, 0)
            else:
                del self.out[:sent]
            self.said = True
            if is_short and not PyByteArray_GET_SIZE(self.out):
                self.take_bytes()

    cdef int try_to_flush(self) except -1:
        try:
            self.take_bytes()
            if PyByteArray_GET_SIZE(self.out):
                self.transmit()
        except Exception:
            self.fail()
            raise
        return 0

    cdef int fail(self) except -1:
        self.forget()
        self.why = self.broken = failure()
        return 0

    cdef int forget(self) except -1:
        """See ``PlainTranslation._forget``."""
        self.translator = Nothing()
        self.beside = self.relayed = None
        self.has_frames = False
        self.is_over, self.input, self.at = True, b"", 0
        PyByteArray_Resize(self.out, 0)
        return 0
