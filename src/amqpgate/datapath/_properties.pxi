# Whether the properties of a message are well-formed; see ``properties``.

cdef enum:
    NO_VALUE = -128
    LONG_STRING = -1
    TABLE = -3
    SHORT_STRING = -1
    TABLE_OF_HEADERS = -2

cdef int8_t[256] value_size
cdef uint16_t[256] value_exponent
cdef int8_t[16] property_size


def _fill():
    for letter in range(256):
        value_size[letter], value_exponent[letter] = VALUES.get(letter, (NO_VALUE, 0))
    for bit, size in enumerate(PROPERTIES):
        property_size[bit] = size


_fill()


cdef const unsigned char* after_table(const unsigned char* p, const unsigned char* end) noexcept:
    """Where the field table at ``p`` ends; NULL where it is none."""
    cdef const unsigned char* stops[NESTED]
    cdef bint names[NESTED]
    cdef const unsigned char* stop = end
    cdef bint named = True
    cdef int opened = 0, size = TABLE
    cdef Py_ssize_t length
    cdef uint16_t exponent
    while True:
        if size < 0:
            if stop - p < 4:
                return NULL
            length = be32(p)
            p += 4
            if length > stop - p:
                return NULL
            if size == LONG_STRING:
                p += length
            else:
                if opened == NESTED:
                    return NULL
                stops[opened] = stop
                names[opened] = named
                opened += 1
                stop = p + length
                named = size == TABLE
        else:
            if size > stop - p:
                return NULL
            p += size
        while p == stop:
            opened -= 1
            stop = stops[opened]
            named = names[opened]
            if opened == 0:
                return p
        if named:
            p += 1 + p[0]
        if p >= stop:
            return NULL
        size = value_size[p[0]]
        if size == NO_VALUE:
            return NULL
        exponent = value_exponent[p[0]]
        p += 1
        if exponent and stop - p >= 2 and (be16(p) & exponent) == exponent:
            return NULL


cdef bint are_properties_c(const unsigned char* p, const unsigned char* end) noexcept:
    """Of property flags and what follows them."""
    cdef uint16_t flags = be16(p) & 0xFFFC
    cdef int bit, size
    p += 2
    while flags:
        bit = first_flag(flags)
        flags &= ~(0x8000 >> bit)
        size = property_size[bit]
        if size == SHORT_STRING:
            p = after_shortstr(p, end)
        elif size == TABLE_OF_HEADERS:
            p = after_table(p, end)
            if p == NULL:
                return False
        else:
            p += size
        if p > end:
            return False
    return p == end


def are_properties(const unsigned char[::1] buf, Py_ssize_t at, Py_ssize_t end):
    """See ``properties.are_properties``."""
    if not 0 <= at <= end - 2 <= buf.shape[0] - 2:
        raise IndexError("at and end must lie in the buffer")
    return are_properties_c(&buf[at], &buf[at] + (end - at))
