# Whether a message carries a trace context, and whether its trace is surely not sampled; see ``trace_context``.

cdef enum:
    CARRIES_NONE = 0
    CARRIES_UNSAMPLED = 1
    CARRIES_SAMPLED = 2
    TRACEPARENT_SIZE = 11
    CONTEXT_SIZE = 55

cdef const unsigned char* TRACEPARENT = <const unsigned char*>b"\x0btraceparent"


cdef bint is_id(const unsigned char* p, int size) noexcept:
    """Whether so many characters are lower-case hexadecimal, and not all 0."""
    cdef int i
    cdef bint is_zero = True
    for i in range(size):
        if not (c"0" <= p[i] <= c"9" or c"a" <= p[i] <= c"f"):
            return False
        is_zero = is_zero and p[i] == c"0"
    return not is_zero


cdef bint is_unsampled(const unsigned char* p) noexcept:
    """Of a text of ``CONTEXT_SIZE``: version 00, trace, span, flags of which the lowest bit is not set."""
    cdef uint8_t first = p[53], last = p[54]
    if p[0] != c"0" or p[1] != c"0" or p[2] != c"-" or p[35] != c"-" or p[52] != c"-":
        return False
    if not (c"0" <= first <= c"9" or c"a" <= first <= c"f"):
        return False
    if c"0" <= last <= c"9":
        last -= c"0"
    elif c"a" <= last <= c"f":
        last -= c"a"
    else:
        return False
    return not last & 1 and is_id(p + 3, 32) and is_id(p + 36, 16)


cdef int carried_by(const unsigned char* frame, Py_ssize_t size) noexcept:
    """See ``trace_context.carried``; of a content header's frame with this payload."""
    cdef Asked asked
    cdef const unsigned char* p
    cdef const unsigned char* name
    cdef const unsigned char* begin
    cdef const unsigned char* end
    if not be16(frame + 19) & HEADERS:
        return CARRIES_NONE
    if not has_shortstr(frame + 21, size - 14, <const char*>TRACEPARENT + 1, TRACEPARENT_SIZE):
        return CARRIES_NONE
    if not is_message(frame, size):
        return CARRIES_SAMPLED
    find_properties(&asked, frame, be16(frame + 19))
    p = asked.table
    while p < asked.table_end:
        name = p
        begin = value_at(p + 1 + p[0], &end)
        p = end
        if memcmp(name, TRACEPARENT, min(1 + <Py_ssize_t>name[0], TRACEPARENT_SIZE + 1)):
            continue
        # The first of several counts.
        if name[1 + TRACEPARENT_SIZE] == c"S" and end - begin == CONTEXT_SIZE and is_unsampled(begin):
            return CARRIES_UNSAMPLED
        break
    return CARRIES_SAMPLED


def carried(bytes header not None):
    """See ``trace_context.carried``."""
    cdef bytes frame = b"\2\0\0\0\0\0\0" + header + b"\xce"
    if len(header) < 14:
        return CARRIES_NONE
    return carried_by(<const unsigned char*>PyBytes_AS_STRING(frame), len(header))
