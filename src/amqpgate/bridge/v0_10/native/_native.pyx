# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What every message passes on its way through a relayed connection, compiled.

The contracts, name by name, are ``queues``, ``cutting`` and ``passing``; read those first.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from collections import deque

from amqpgate.bridge.v0_10.native.cutting import Assembly as _Assembly, malformed
from amqpgate.bridge.v0_10.native.forms import MessageForm
from amqpgate.bridge.v0_10.native.queues import EACH as _EACH
from amqpgate.protocol.frames import (
    FRAME_BODY, FRAME_HEAD, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD, FRAME_OVERHEAD as _FRAME_OVERHEAD,
)
from amqpgate.protocol.v0_10.frames import FRAME_HEADER_SIZE as _FRAME_HEADER_SIZE

cdef enum:
    #: Of 0-9-1: bytes of a frame before its payload, and those and its end.
    HEAD_91 = 7
    OVERHEAD_91 = 8
    METHOD_91 = 1
    HEADER_91 = 2
    BODY_91 = 3
    HEARTBEAT_91 = 8
    #: Where a content header has the size of the body.
    SIZE_AT = 4
    #: Of 0-10.
    HEAD = 12
    #: Where a form has the payloads of its frames.
    METHOD = 1
    HEADER_OF = 3
    EACH = 64

assert (FRAME_METHOD, FRAME_HEADER, FRAME_BODY, FRAME_HEARTBEAT) == (METHOD_91, HEADER_91, BODY_91, HEARTBEAT_91)
assert (MessageForm._fields[METHOD], MessageForm._fields[HEADER_OF]) == ("method", "header")
assert (FRAME_HEAD.size, _FRAME_OVERHEAD, _FRAME_HEADER_SIZE, _EACH) == (HEAD_91, OVERHEAD_91, HEAD, EACH)


cdef inline bytes cut_out(const unsigned char* data, Py_ssize_t start, Py_ssize_t stop):
    return PyBytes_FromStringAndSize(<const char*>data + start, stop - start)


cdef inline const unsigned char* bytes_of(bytes data) noexcept:
    return <const unsigned char*>PyBytes_AS_STRING(data)


include "_queues.pxi"
include "_cutting.pxi"
include "_passing.pxi"
