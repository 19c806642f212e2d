# The frames of copies; see ``copying``.

cdef enum:
    METHOD_91 = 1
    HEADER_91 = 2
    BODY_91 = 3
    HEARTBEAT_91 = 8
    END_91 = 0xCE
    #: Where a content header has the size of the body.
    SIZE_AT = 4


cdef inline void put_uint64(unsigned char* at, uint64_t value) noexcept:
    cdef int place
    for place in range(8):
        at[place] = <unsigned char>(value >> (56 - 8 * place))


cdef inline uint64_t get_uint64(const unsigned char* at) noexcept:
    cdef uint64_t value = 0
    cdef int place
    for place in range(8):
        value = value << 8 | at[place]
    return value


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


def tagged(bytes method not None, Py_ssize_t at, uint64_t tag):
    """See ``copying.tagged``."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(method)
    cdef bytes result
    if at < 0 or at + 8 > size:
        raise ValueError("no place for a delivery tag")
    result = PyBytes_FromStringAndSize(PyBytes_AS_STRING(method), size)
    put_uint64(<unsigned char*>PyBytes_AS_STRING(result) + at, tag)
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
        put_uint64(<unsigned char*>PyBytes_AS_STRING(sized) + SIZE_AT, <uint64_t>size)
    frames = PyBytes_FromStringAndSize(NULL, total)
    at = <unsigned char*>PyBytes_AS_STRING(frames)
    at = put_frame(at, METHOD_91, number, bytes_of(method), method_size)
    at = put_frame(at, HEADER_91, number, bytes_of(sized), header_size)
    start = 0
    while start < size:
        at = put_frame(at, BODY_91, number, bytes_of(body) + start, min(step, size - start))
        start += step
    return frames, sized
