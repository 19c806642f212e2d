# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Bytes to frames of AMQP 0-10, compiled. The contract is ``frames.SegmentFrameDecoder``; read that first."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.string cimport memcmp

from amqpgate.protocol.v0_10.frames import (
    COMMAND as _COMMAND, FRAME_HEADER_SIZE, HEADER as _HEADER, BODY as _BODY, MIN_MAX_FRAME_SIZE,
    SegmentFrame as _SegmentFrame, WholeMessage as _WholeMessage, malformed,
)

cdef enum:
    HEAD = 12
    COMMAND = 1
    HEADER = 2
    BODY = 3
    COMMAND_TRACK = 1
    ALONE = 0b1111
    FIRST_OF_MANY = 0b1011
    ONE_FRAME = 0b0011
    LAST_OF_MANY = 0b0111

assert (FRAME_HEADER_SIZE, _COMMAND, _HEADER, _BODY) == (HEAD, COMMAND, HEADER, BODY)

cdef type SegmentFrame = _SegmentFrame
cdef type WholeMessage = _WholeMessage


cdef struct Frame:
    Py_ssize_t size
    int flags, kind, track, channel


cdef inline void read_frame(const uint8_t* data, Frame* frame) noexcept:
    frame.flags = data[0]
    frame.kind = data[1]
    frame.size = <Py_ssize_t>data[2] << 8 | data[3]
    frame.track = data[5]
    frame.channel = <int>data[6] << 8 | data[7]


cdef inline bytes cut_out(const uint8_t* data, Py_ssize_t start, Py_ssize_t stop):
    return PyBytes_FromStringAndSize(<const char*>data + start, stop - start)


cdef class SegmentFrameDecoder:
    """See ``frames.SegmentFrameDecoder``."""

    cdef readonly Py_ssize_t max_frame_size
    cdef readonly bint is_broken
    cdef bytes buffer
    cdef Py_ssize_t position
    #: What came behind the buffer, and its bytes.
    cdef list chunks
    cdef Py_ssize_t behind
    #: Bytes of a frame that is not whole, before which there is nothing to look at.
    cdef Py_ssize_t need

    def __init__(self, Py_ssize_t max_frame_size=MIN_MAX_FRAME_SIZE):
        self.max_frame_size = max_frame_size
        self.buffer = b""
        self.chunks = []

    def __len__(self):
        return self.held()

    cdef inline Py_ssize_t held(self) noexcept:
        return PyBytes_GET_SIZE(self.buffer) - self.position + self.behind

    def feed(self, data):
        cdef bytes piece = data if type(data) is bytes else bytes(data)
        if self.position == PyBytes_GET_SIZE(self.buffer) and not self.behind:
            self.buffer = piece
            self.position = 0
        else:
            self.chunks.append(piece)
            self.behind += PyBytes_GET_SIZE(piece)

    cdef int gather(self) except -1:
        """All that has come is in the buffer, if it makes a difference."""
        if self.behind and self.held() >= self.need:
            self.buffer = b"".join([self.buffer[self.position:], *self.chunks])
            self.position = self.behind = self.need = 0
            self.chunks.clear()
        return 0

    def next(self):
        cdef const uint8_t* data
        cdef Frame frame
        self.gather()
        if self.behind or PyBytes_GET_SIZE(self.buffer) - self.position < HEAD:
            return None
        data = <const uint8_t*>PyBytes_AS_STRING(self.buffer) + self.position
        read_frame(data, &frame)
        if (
            frame.flags > ALONE
            or frame.size < HEAD
            or frame.size > self.max_frame_size
            or frame.kind > BODY
        ):
            self.is_broken = True
            raise malformed(frame.flags, frame.kind, frame.size, frame.channel, self.max_frame_size)
        if PyBytes_GET_SIZE(self.buffer) - self.position < frame.size:
            self.need = frame.size
            return None
        self.position += frame.size
        return tuple.__new__(
            SegmentFrame,
            (frame.flags, frame.kind, frame.track & 0x0F, frame.channel, cut_out(data, HEAD, frame.size)),
        )

    cdef inline bint is_of(self, const Frame* frame, int kind, Py_ssize_t left) noexcept:
        """Whether a frame is of this kind, on the track of commands, and within what is left."""
        return (
            frame.kind == kind
            and frame.track == COMMAND_TRACK
            and HEAD <= frame.size <= self.max_frame_size
            and frame.size <= left
        )

    def message(self, bytes code not None):
        cdef const uint8_t* data
        cdef Frame frame
        cdef Py_ssize_t left, second, third, stop
        cdef int channel
        self.gather()
        if self.behind or PyBytes_GET_SIZE(self.buffer) - self.position < 2 * HEAD:
            return None
        data = <const uint8_t*>PyBytes_AS_STRING(self.buffer) + self.position
        left = PyBytes_GET_SIZE(self.buffer) - self.position
        if PyBytes_GET_SIZE(code) > HEAD or memcmp(data + HEAD, PyBytes_AS_STRING(code), PyBytes_GET_SIZE(code)):
            return None
        read_frame(data, &frame)
        if frame.flags != FIRST_OF_MANY or not self.is_of(&frame, COMMAND, left):
            return None
        channel = frame.channel
        second = frame.size
        if left - second < HEAD:
            return None
        read_frame(data + second, &frame)
        if not self.is_of(&frame, HEADER, left - second) or frame.channel != channel:
            return None
        stop = third = second + frame.size
        if frame.flags == ONE_FRAME:
            if left - third < HEAD:
                return None
            read_frame(data + third, &frame)
            if (
                frame.flags != LAST_OF_MANY
                or not self.is_of(&frame, BODY, left - third)
                or frame.channel != channel
            ):
                return None
            stop = third + frame.size
        elif frame.flags != LAST_OF_MANY:
            return None
        return tuple.__new__(
            WholeMessage,
            (
                channel,
                cut_out(data, HEAD, second),
                cut_out(data, second + HEAD, third),
                cut_out(data, third + HEAD, stop) if stop > third else b"",
                stop,
            ),
        )

    def skip(self, Py_ssize_t size):
        if not 0 <= size <= PyBytes_GET_SIZE(self.buffer) - self.position:
            raise ValueError("so many bytes were not looked at")
        self.position += size

    def allow(self, Py_ssize_t max_frame_size):
        self.max_frame_size = max_frame_size

    def take(self, Py_ssize_t count):
        cdef bytes taken
        if not 0 <= count <= self.held():
            return None
        self.need = 0
        self.gather()
        taken = self.buffer[self.position:self.position + count]
        self.position += count
        return taken

    def clear(self):
        self.buffer = b""
        self.chunks.clear()
        self.position = self.behind = self.need = 0
