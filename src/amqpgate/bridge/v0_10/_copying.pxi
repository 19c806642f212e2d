# Frames of messages, of payloads that are made; see ``copying``.

from amqpgate.protocol.frames import FRAME_BODY, FRAME_END, FRAME_HEAD, FRAME_HEADER, FRAME_METHOD, FRAME_OVERHEAD

cdef enum:
    METHOD_91 = 1
    HEADER_91 = 2
    BODY_91 = 3
    END_91 = 0xCE
    #: Bytes of a frame before its payload, and those and its end.
    HEAD_91 = 7
    OVERHEAD_91 = 8
    #: Where a content header has the size of the body.
    SIZE_AT = 4
    #: Bytes of a frame of basic.ack.
    ACK_SIZE = 21

#: The size of its payload, and its class and method.
cdef const char* ACK_HEAD = "\x00\x00\x00\x0d\x00\x3c\x00\x50"

assert (FRAME_METHOD, FRAME_HEADER, FRAME_BODY, FRAME_END) == (METHOD_91, HEADER_91, BODY_91, END_91)
assert (FRAME_HEAD.size, FRAME_OVERHEAD) == (HEAD_91, OVERHEAD_91)


cdef inline const unsigned char* bytes_of(bytes data) noexcept:
    return <const unsigned char*>PyBytes_AS_STRING(data)



cdef inline unsigned char* put_frame(
    unsigned char* at, int kind, uint16_t number, const unsigned char* payload, Py_ssize_t size
) noexcept:
    """A frame; where the next one begins."""
    at[0] = <unsigned char>kind
    at[1] = <unsigned char>(number >> 8)
    at[2] = <unsigned char>number
    at[3] = <unsigned char>(size >> 24)
    at[4] = <unsigned char>(size >> 16)
    at[5] = <unsigned char>(size >> 8)
    at[6] = <unsigned char>size
    memcpy(at + HEAD_91, payload, size)
    at[HEAD_91 + size] = END_91
    return at + size + OVERHEAD_91


def basic_ack(bytes frames not None):
    """See ``copying.basic_ack``."""
    cdef const unsigned char* data = bytes_of(frames)
    cdef uint64_t tag = 0
    cdef int at
    if (
        PyBytes_GET_SIZE(frames) != ACK_SIZE
        or data[0] != METHOD_91
        or memcmp(data + 3, ACK_HEAD, 8)
        or data[ACK_SIZE - 1] != END_91
    ):
        return None
    for at in range(11, 19):
        tag = tag << 8 | data[at]
    return <int>data[1] << 8 | data[2], tag, bool(data[19] & 1)


def tagged(bytes method not None, Py_ssize_t at, uint64_t tag):
    """See ``copying.tagged``."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(method)
    cdef bytes result
    if at < 0 or at + 8 > size:
        raise ValueError("no place for a delivery tag")
    result = PyBytes_FromStringAndSize(PyBytes_AS_STRING(method), size)
    put_number(<uint8_t*>PyBytes_AS_STRING(result) + at, tag, 8)
    return result


def copy_frames(uint16_t number, bytes method not None, bytes header not None, bytes body, Py_ssize_t frame_max):
    """See ``copying.copy_frames``."""
    cdef Py_ssize_t method_size = PyBytes_GET_SIZE(method)
    cdef Py_ssize_t header_size = PyBytes_GET_SIZE(header)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(body) if body is not None else 0
    cdef Py_ssize_t step = frame_max - OVERHEAD_91
    cdef Py_ssize_t total = method_size + header_size + 2 * OVERHEAD_91
    cdef Py_ssize_t start
    cdef bytes frames
    cdef bytes sized = header
    cdef unsigned char* at
    if step < 1 or header_size < SIZE_AT + 8:
        raise ValueError("no content header, or no room for one")
    if size:
        total += size + OVERHEAD_91 * ((size + step - 1) // step)
        sized = PyBytes_FromStringAndSize(PyBytes_AS_STRING(header), header_size)
        put_number(<uint8_t*>PyBytes_AS_STRING(sized) + SIZE_AT, <uint64_t>size, 8)
    frames = PyBytes_FromStringAndSize(NULL, total)
    at = <unsigned char*>PyBytes_AS_STRING(frames)
    at = put_frame(at, METHOD_91, number, bytes_of(method), method_size)
    at = put_frame(at, HEADER_91, number, bytes_of(sized), header_size)
    start = 0
    while start < size:
        at = put_frame(at, BODY_91, number, bytes_of(body) + start, min(step, size - start))
        start += step
    return frames, sized
