# What becomes of a publish on its way; see ``rewrites``.

cdef enum:
    IDS = 24  # bytes: of a trace's number, and of a span's

cdef const unsigned char* HEXADECIMAL = <const unsigned char*>b"0123456789abcdef"

# xoshiro256**, of Blackman and Vigna: numbers of traces are to be spread, and need not be secret.
cdef uint64_t[4] random_state
_seed = os.urandom(32)
memcpy(random_state, PyBytes_AS_STRING(_seed), 32)


cdef inline uint64_t rotated(uint64_t value, int bits) noexcept:
    return (value << bits) | (value >> (64 - bits))


cdef uint64_t random_64() noexcept:
    """Any number but 0."""
    cdef uint64_t found = 0, shifted
    while not found:
        found = rotated(random_state[1] * 5, 7) * 9
        shifted = random_state[1] << 17
        random_state[2] ^= random_state[0]
        random_state[3] ^= random_state[1]
        random_state[1] ^= random_state[2]
        random_state[0] ^= random_state[3]
        random_state[2] ^= shifted
        random_state[3] = rotated(random_state[3], 45)
    return found


cdef void new_ids(unsigned char* ids) noexcept:
    cdef uint64_t one
    cdef int i
    for i in range(3):
        one = random_64()
        memcpy(ids + 8 * i, &one, 8)

cdef class Rewrite:
    """See ``rewrites.Rewrite``."""

    def __init__(
        self,
        bytes method not None,
        tuple sets not None,
        uint16_t drops,
        bytes entries not None,
        uint32_t stamps=0,
    ):
        if len(sets) != PROPERTY_PLACES:
            raise ValueError("a value, or None, for each property")
        if stamps and len(entries) < CONTEXT_SIZE:
            raise ValueError("what is stamped ends in a trace context")
        self.stamps = stamps
        self.method = method
        self.sets = tuple([value if value is None else bytes(value) for value in sets])
        self.drops = drops
        self.entries = entries
        self.grows = 4 + len(entries) + sum([len(value) for value in sets if value is not None])

    def passed(self, bytes header not None, bytes ids not None):
        """See ``rewrites.Rewrite.passed``."""
        return passed_header(self, header, ids)


cdef int reserve(Made* made, Py_ssize_t size) except -1:
    """Room for so many bytes more."""
    cdef Py_ssize_t room = max(made.room, 4096)
    cdef unsigned char* bigger
    if made.size + size <= made.room:
        return 0
    while room < made.size + size:
        room *= 2
    bigger = <unsigned char*>PyMem_RawRealloc(made.data, room)
    if bigger == NULL:
        raise MemoryError
    made.data = bigger
    made.room = room
    return 0


cdef int add_made(Made* made, const unsigned char* data, Py_ssize_t size) except -1:
    """Behind what was made before."""
    reserve(made, size)
    memcpy(made.data + made.size, data, size)
    made.size += size
    return 0


cdef int add_spans(Made* made, const unsigned char* data, const Span* spans, int n) except -1:
    """Likewise what the spans are of."""
    cdef int i
    for i in range(n):
        add_made(made, data + spans[i].start, spans[i].stop - spans[i].start)
    return 0


cdef bint can_rewrite(Rewrite rewrite, const unsigned char* frame, Py_ssize_t size, Py_ssize_t most) noexcept:
    """Whether the message whose header's frame is here, whole, can be rewritten for sure."""
    return (
        size >= 14
        and size + rewrite.grows <= most
        and PyBytes_GET_SIZE(rewrite.method) <= most
        and frame[size + 7] == FRAME_END
        and be16(frame + 7) == CLASS_BASIC
        and be16(frame + 9) == 0
        and not be16(frame + 19) & NO_PROPERTIES
        and are_properties_c(frame + 19, frame + 7 + size)
    )


cdef inline unsigned char* begin_frame(unsigned char* q, int kind, uint16_t number) noexcept:
    """The head of a frame whose size is not known yet; where its payload is."""
    q[0] = kind
    q[1] = number >> 8
    q[2] = number & 255
    return q + 7


cdef inline void put32(unsigned char* q, Py_ssize_t value) noexcept:
    q[0] = (value >> 24) & 255
    q[1] = (value >> 16) & 255
    q[2] = (value >> 8) & 255
    q[3] = value & 255


cdef inline unsigned char* end_frame(unsigned char* frame, unsigned char* q) noexcept:
    put32(frame + 3, q - frame - 7)
    q[0] = FRAME_END
    return q + 1


cdef void put_hex(unsigned char* q, const unsigned char* data, int size) noexcept:
    """So many bytes as lower-case hexadecimal."""
    cdef int i
    for i in range(size):
        q[2 * i] = HEXADECIMAL[data[i] >> 4]
        q[2 * i + 1] = HEXADECIMAL[data[i] & 15]


cdef bytes passed_header(Rewrite rewrite, bytes header, bytes ids):
    """The payload of the header that became of this one, which has passed."""
    cdef Made made
    cdef Py_ssize_t before = PyBytes_GET_SIZE(rewrite.method) + 15
    cdef const unsigned char* stamp = NULL
    if PyBytes_GET_SIZE(ids):
        if PyBytes_GET_SIZE(ids) != IDS or not rewrite.stamps:
            raise ValueError("numbers of a trace and a span, for what is stamped")
        stamp = <const unsigned char*>PyBytes_AS_STRING(ids)
    frame = b"\2\0\0" + PyBytes_GET_SIZE(header).to_bytes(4, "big") + header + b"\xce"
    if not can_rewrite(rewrite, <const unsigned char*>PyBytes_AS_STRING(frame), PyBytes_GET_SIZE(header), 1 << 30):
        raise ValueError("no header that is rewritten")
    memset(&made, 0, sizeof(Made))
    try:
        make_frames(rewrite, <const unsigned char*>PyBytes_AS_STRING(frame), 0, stamp, NULL, &made)
        return PyBytes_FromStringAndSize(<const char*>made.data + before, made.size - before - 1)
    finally:
        PyMem_RawFree(made.data)


cdef int make_frames(
    Rewrite rewrite,
    const unsigned char* frame,
    uint16_t number,
    const unsigned char* ids,
    const unsigned char* delivery,
    Made* made,
) except -1:
    """The method and the header that become of the message, behind what was made before. ``ids``: NULL, or the
    numbers of its trace and its span, which go into the context that the entries end in. ``delivery``: NULL, or
    the method's frame, whose delivery tag and redelivered stay."""
    cdef Py_ssize_t size = be32(frame + 3), length = PyBytes_GET_SIZE(rewrite.method)
    cdef Py_ssize_t table
    cdef const unsigned char* p = frame + 21
    cdef const unsigned char* end = frame + 7 + size
    cdef const unsigned char* there
    cdef uint16_t flags = be16(frame + 19), told = 0, flag
    cdef unsigned char* q
    cdef unsigned char* head
    cdef PyObject* value
    cdef int place
    reserve(made, length + size + rewrite.grows + 16)
    head = made.data + made.size
    q = begin_frame(head, 1, number)
    memcpy(q, PyBytes_AS_STRING(rewrite.method), length)
    if delivery != NULL and 14 + delivery[11] <= length:
        memcpy(q + 5 + delivery[11], delivery + 12 + delivery[11], 9)
    head = end_frame(head, q + length)
    q = begin_frame(head, 2, number)
    memcpy(q, frame + 7, 12)
    q += 14
    for place in range(PROPERTY_PLACES):
        flag = 0x8000 >> place
        there = p
        if flags & flag:
            if property_size[place] == SHORT_STRING:
                p = after_shortstr(p, end)
            elif property_size[place] == TABLE_OF_HEADERS:
                p += 4 + be32(p)
            else:
                p += property_size[place]
        value = item(<PyObject*>rewrite.sets, place)
        if <object>value is not None:
            memcpy(q, PyBytes_AS_STRING(<bytes>value), PyBytes_GET_SIZE(<bytes>value))
            q += PyBytes_GET_SIZE(<bytes>value)
        elif place == HEADERS_PLACE and PyBytes_GET_SIZE(rewrite.entries):
            table = p - there - 4 if flags & flag else 0
            put32(q, table + PyBytes_GET_SIZE(rewrite.entries))
            memcpy(q + 4, there + 4, table)
            memcpy(q + 4 + table, PyBytes_AS_STRING(rewrite.entries), PyBytes_GET_SIZE(rewrite.entries))
            q += 4 + table + PyBytes_GET_SIZE(rewrite.entries)
            if ids != NULL:
                put_hex(q - CONTEXT_SIZE + 3, ids, 16)
                put_hex(q - CONTEXT_SIZE + 36, ids + 16, 8)
        elif flags & flag and not rewrite.drops & flag:
            memcpy(q, there, p - there)
            q += p - there
        else:
            continue
        told |= flag
    head[19] = told >> 8
    head[20] = told & 255
    made.size = end_frame(head, q) - made.data
    return 0
