# Headers of transfers to content headers; see ``quick_header``.
#
# No byte is looked at that is not within its struct, or its map. What is said grows by no more than `most_of`.

from amqpgate.bridge.v0_10.quick_header import (
    APART, MOST_SECONDS as _MOST_SECONDS, QuickHeader as _QuickHeader, SAME, STRINGS, SUBJECT,
)
from amqpgate.wire.generated.v0_9_1 import BasicPublish
from amqpgate.wire.generated.v0_10 import DeliveryProperties, MessageProperties
from amqpgate.wire.generated.v0_10_types import TypeCode

cdef enum:
    #: Bytes of a struct before its fields: size, class, code, packing flags.
    STRUCT = 8
    #: And of a content header before its properties.
    CONTENT = 14
    #: What a message-id is in words, with its length.
    WORDS = 37
    #: Names of a map that are compared with each other one by one.
    FEW = 32

# Packing flags of the delivery properties.
cdef enum:
    IMMEDIATE = 1 << 1
    REDELIVERED = 1 << 2
    PRIORITY = 1 << 3
    DELIVERY_MODE = 1 << 4
    TTL = 1 << 5
    TIMESTAMP = 1 << 6
    EXPIRATION = 1 << 7
    EXCHANGE = 1 << 8
    ROUTING_KEY = 1 << 9
    RARE_DELIVERY = 0xFC00

# And of the message properties.
cdef enum:
    CONTENT_LENGTH = 1 << 0
    MESSAGE_ID = 1 << 1
    CORRELATION_ID = 1 << 2
    CONTENT_TYPE = 1 << 4
    CONTENT_ENCODING = 1 << 5
    USER_ID = 1 << 6
    APP_ID = 1 << 7
    HEADERS = 1 << 8
    RARE_MESSAGE = 0xFE08

# How a value of a map is written.
cdef enum:
    LONG_WAY = 0
    AS_IT_IS = 1
    STRING = 2
    TRUTH = 3
    FLOATING = 4

cdef type QuickHeader = _QuickHeader
cdef uint16_t CLASS_ID = BasicPublish.CLASS_ID
cdef uint64_t MOST_SECONDS = _MOST_SECONDS
cdef int DELIVERY = DeliveryProperties.CLASS_CODE << 8 | DeliveryProperties.CODE
cdef int MESSAGE = MessageProperties.CLASS_CODE << 8 | MessageProperties.CODE
cdef int STR16 = TypeCode.STR16
#: By the code of a type: how it is written, its letter, and the bytes of it or of its length.
cdef uint8_t[256] how
cdef uint8_t[256] letters
cdef uint8_t[256] widths
#: Lengths of names that are no headers.
cdef uint8_t[256] is_apart

for _table, _how in ((SAME, AS_IT_IS), (STRINGS, STRING)):
    for _code, (_letter, _width) in _table.items():
        how[_code] = _how
        letters[_code] = _letter[0]
        widths[_code] = _width
how[<int>TypeCode.BOOLEAN] = TRUTH
how[<int>TypeCode.DOUBLE] = FLOATING
for _name in APART:
    is_apart[len(_name)] = True


cdef struct Part:
    #: Bytes of the header, or of the login; none: NULL.
    const uint8_t* data
    Py_ssize_t size


#: What a header says.
cdef struct Said:
    Part content_type, encoding, correlation, user, app, exchange, routing_key, uuid
    #: The table, and where it is made.
    uint8_t* table
    Py_ssize_t table_size
    uint64_t ttl, timestamp
    uint16_t flags
    uint8_t mode, priority
    bint redelivered, immediate, has_delivery, has_message


cdef inline uint64_t number_at(const uint8_t* data, int width) noexcept:
    cdef uint64_t value = 0
    cdef int place
    for place in range(width):
        value = value << 8 | data[place]
    return value


cdef inline void put_number(uint8_t* data, uint64_t value, int width) noexcept:
    cdef int place
    for place in range(width):
        data[place] = <uint8_t>(value >> (8 * (width - 1 - place)))


cdef inline Py_ssize_t most_of(Py_ssize_t size) noexcept:
    """Bytes of a table that is made of a map of so many: a string of one byte of length gets four."""
    return 2 * size + 4


def delivery_part(bytes header not None):
    """See ``quick_header.delivery_part``."""
    cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(header)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(header)
    cdef Py_ssize_t pos = 0
    cdef Py_ssize_t start = -1
    cdef Py_ssize_t after = -1
    cdef Py_ssize_t stop
    while end - pos >= STRUCT:
        stop = pos + 4 + <Py_ssize_t>number_at(data + pos, 4)
        if stop > end:
            return header
        if (<int>data[pos + 4] << 8 | data[pos + 5]) == DELIVERY:
            if start >= 0:
                return header
            start, after = pos, stop
        pos = stop
    if pos != end:
        return header
    if start < 0:
        return b""
    if start == 0 and after == end:
        return header
    return PyBytes_FromStringAndSize(<const char*>data + start, after - start)


def quick_header(bytes header not None, bytes login=None):
    """See ``quick_header.quick_header``."""
    cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(header)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(header)
    cdef Said said
    cdef uint8_t[1024] near
    cdef uint8_t* table = near
    if most_of(end) > <Py_ssize_t>sizeof(near):
        table = <uint8_t*>PyMem_Malloc(most_of(end))
        if table == NULL:
            raise MemoryError
    try:
        memset(&said, 0, sizeof(said))
        said.table = table
        if not read(data, end, &said, login):
            return None
        return quick_of(&said)
    finally:
        if table != near:
            PyMem_Free(table)


cdef bint read(const uint8_t* data, Py_ssize_t end, Said* said, bytes login) except -1:
    """Whether all of a header is as nearly all are."""
    cdef Py_ssize_t pos = 0
    cdef Py_ssize_t stop
    cdef int kind, packing
    while pos < end:
        if end - pos < STRUCT:
            return False
        stop = pos + 4 + <Py_ssize_t>number_at(data + pos, 4)
        kind = <int>data[pos + 4] << 8 | data[pos + 5]
        packing = <int>data[pos + 6] | <int>data[pos + 7] << 8
        pos += STRUCT
        if stop > end or pos > stop:
            return False
        if kind == DELIVERY and not packing & RARE_DELIVERY and not said.has_delivery:
            said.has_delivery = True
            if not read_delivery(data + pos, stop - pos, packing, said):
                return False
        elif kind == MESSAGE and not packing & RARE_MESSAGE and not said.has_message:
            said.has_message = True
            if not read_message(data + pos, stop - pos, packing, said, login):
                return False
        else:
            return False
        pos = stop
    return True


cdef inline Py_ssize_t short_part(const uint8_t* data, Py_ssize_t pos, Py_ssize_t end, Part* part) noexcept:
    """A length of one byte, and so many bytes, all of which is the part; where it ends, or -1."""
    cdef Py_ssize_t stop
    if pos < 0 or pos >= end:
        return -1
    stop = pos + 1 + data[pos]
    if stop > end:
        return -1
    part.data = data + pos
    part.size = stop - pos
    return stop


cdef inline Py_ssize_t long_part(const uint8_t* data, Py_ssize_t pos, Py_ssize_t end, Part* part) noexcept:
    """The same, of a length of two bytes, of which the first is 0 and no part of it."""
    if pos < 0 or end - pos < 2 or data[pos]:
        return -1
    return short_part(data, pos + 1, end, part)


cdef bint read_delivery(const uint8_t* data, Py_ssize_t end, int packing, Said* said) noexcept:
    cdef Py_ssize_t pos = 0
    cdef uint64_t seconds
    said.immediate = packing & IMMEDIATE > 0
    said.redelivered = packing & REDELIVERED > 0
    if packing & PRIORITY:
        if end - pos < 1:
            return False
        said.priority = data[pos]
        said.flags |= 1 << 11
        pos += 1
    if packing & DELIVERY_MODE:
        if end - pos < 1:
            return False
        if data[pos] == 1 or data[pos] == 2:
            said.mode = data[pos]
            said.flags |= 1 << 12
        pos += 1
    if packing & TTL:
        if end - pos < 8:
            return False
        said.ttl = number_at(data + pos, 8)
        if said.ttl:
            said.flags |= 1 << 8
        pos += 8
    if packing & TIMESTAMP:
        if end - pos < 8:
            return False
        seconds = number_at(data + pos, 8)
        said.timestamp = seconds if seconds <= MOST_SECONDS else seconds // 1000
        said.flags |= 1 << 6
        pos += 8
    if packing & EXPIRATION:
        pos += 8
    if packing & EXCHANGE:
        pos = short_part(data, pos, end, &said.exchange)
        if pos < 0:
            return False
    if packing & ROUTING_KEY:
        pos = short_part(data, pos, end, &said.routing_key)
    return pos == end


cdef bint read_message(const uint8_t* data, Py_ssize_t end, int packing, Said* said, bytes login) except -1:
    cdef Py_ssize_t pos = 0
    if packing & CONTENT_LENGTH:
        pos += 8
    if packing & MESSAGE_ID:
        if end - pos < 16:
            return False
        said.uuid = Part(data + pos, 16)
        said.flags |= 1 << 7
        pos += 16
    if packing & CORRELATION_ID:
        pos = long_part(data, pos, end, &said.correlation)
        if pos < 0:
            return False
        said.flags |= 1 << 10
    if packing & CONTENT_TYPE:
        pos = short_part(data, pos, end, &said.content_type)
        if pos < 0:
            return False
        said.flags |= 1 << 15
    if packing & CONTENT_ENCODING:
        pos = short_part(data, pos, end, &said.encoding)
        if pos < 0:
            return False
        said.flags |= 1 << 14
    if packing & USER_ID:
        pos = long_part(data, pos, end, &said.user)
        if pos < 0:
            return False
        said.flags |= 1 << 4
        if login is not None:
            judge_user(said, login)
    if packing & APP_ID:
        pos = long_part(data, pos, end, &said.app)
        if pos < 0:
            return False
        said.flags |= 1 << 3
    if packing & HEADERS:
        pos = read_map(data, pos, end, said)
        if pos < 0:
            return False
        said.flags |= 1 << 13
    return pos == end


cdef void judge_user(Said* said, bytes login) noexcept:
    """The user's name stays if it is the login, with or without a realm."""
    cdef const uint8_t* name = <const uint8_t*>PyBytes_AS_STRING(login)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(login)
    cdef Py_ssize_t has = said.user.size - 1
    if has >= size and memcmp(said.user.data + 1, name, size) == 0:
        if has == size:
            return
        if said.user.data[1 + size] == b"@":
            # Its length is put before it.
            said.user = Part(name - 1, size + 1)
            return
    said.user = Part(NULL, 0)
    said.flags ^= 1 << 4


cdef Py_ssize_t read_map(const uint8_t* data, Py_ssize_t pos, Py_ssize_t end, Said* said) except -2:
    """Make the table of a map; where it ends, or -1."""
    cdef uint8_t* out = said.table + 4
    cdef Py_ssize_t[FEW] names
    cdef Py_ssize_t stop, start, length, other
    cdef uint32_t count, number
    cdef int code, width, size
    cdef set many = None
    if end - pos < 8:
        return -1
    length = <Py_ssize_t>number_at(data + pos, 4)
    pos += 4
    stop = pos + length
    if stop > end or length < 4:
        return -1
    count = <uint32_t>number_at(data + pos, 4)
    pos += 4
    if count > FEW:
        many = set()
    for number in range(count):
        start = pos
        if pos >= stop:
            return -1
        size = data[pos]
        pos += 1 + size
        if pos >= stop:
            return -1
        code = data[pos]
        pos += 1
        if is_apart[size]:
            name = PyBytes_FromStringAndSize(<const char*>data + start + 1, size)
            if name in APART and not (name == SUBJECT and code == STR16):
                return -1
        if many is not None:
            many.add(PyBytes_FromStringAndSize(<const char*>data + start, 1 + size))
        else:
            for other in range(number):
                if memcmp(data + names[other], data + start, 1 + size) == 0:
                    return -1
            names[number] = start
        memcpy(out, data + start, 1 + size)
        out += 1 + size
        width = widths[code]
        if how[code] == AS_IT_IS:
            if stop - pos < width:
                return -1
            out[0] = letters[code]
            memcpy(out + 1, data + pos, width)
            out += 1 + width
            pos += width
        elif how[code] == STRING:
            if stop - pos < width:
                return -1
            length = <Py_ssize_t>number_at(data + pos, width)
            pos += width
            if stop - pos < length:
                return -1
            out[0] = letters[code]
            put_number(out + 1, <uint64_t>length, 4)
            memcpy(out + 5, data + pos, length)
            out += 5 + length
            pos += length
        elif how[code] == TRUTH:
            if stop - pos < 1:
                return -1
            out[0] = b"t"
            out[1] = 1 if data[pos] else 0
            out += 2
            pos += 1
        elif how[code] == FLOATING:
            if stop - pos < 8 or not is_finite(data + pos):
                return -1
            out[0] = b"d"
            memcpy(out + 1, data + pos, 8)
            out += 9
            pos += 8
        else:
            return -1
    if pos != stop or (many is not None and len(many) != count):
        return -1
    said.table_size = out - said.table
    put_number(said.table, <uint64_t>(said.table_size - 4), 4)
    return stop


cdef inline bint is_finite(const uint8_t* data) noexcept:
    """All bits of the exponent are not set (IEEE 754, binary64)."""
    return (number_at(data, 2) & 0x7FF0) != 0x7FF0


cdef inline uint8_t* put_part(uint8_t* at, Part* part) noexcept:
    if part.data != NULL:
        memcpy(at, part.data, part.size)
        at += part.size
    return at


cdef inline bytes name_of(Part* part):
    """Without its length."""
    if part.data == NULL:
        return b""
    return PyBytes_FromStringAndSize(<const char*>part.data + 1, part.size - 1)


cdef int put_digits(uint8_t* at, uint64_t value) noexcept:
    """A number in words, with its length before it: how many bytes that are."""
    cdef uint8_t[20] digits
    cdef int count = 0
    cdef int place
    while value:
        digits[count] = <uint8_t>(48 + value % 10)
        value //= 10
        count += 1
    at[0] = <uint8_t>count
    for place in range(count):
        at[1 + place] = digits[count - 1 - place]
    return 1 + count


cdef void put_uuid(uint8_t* at, const uint8_t* uuid) noexcept:
    """In words, with its length before it: `WORDS` bytes."""
    cdef const char* hexadecimal = b"0123456789abcdef"
    cdef int place
    at[0] = WORDS - 1
    at += 1
    for place in range(16):
        if place == 4 or place == 6 or place == 8 or place == 10:
            at[0] = b"-"
            at += 1
        at[0] = <uint8_t>hexadecimal[uuid[place] >> 4]
        at[1] = <uint8_t>hexadecimal[uuid[place] & 15]
        at += 2


cdef object quick_of(Said* said):
    cdef uint8_t[21] ttl
    cdef int ttl_size = put_digits(ttl, said.ttl) if said.ttl else 0
    cdef bint has_timestamp = said.flags & (1 << 6) > 0
    cdef Py_ssize_t size = (
        CONTENT
        + said.content_type.size
        + said.encoding.size
        + said.table_size
        + (said.flags >> 12 & 1)
        + (said.flags >> 11 & 1)
        + said.correlation.size
        + ttl_size
        + (WORDS if said.uuid.data != NULL else 0)
        + (8 if has_timestamp else 0)
        + said.user.size
        + said.app.size
    )
    cdef bytes payload = PyBytes_FromStringAndSize(NULL, size)
    cdef uint8_t* at = <uint8_t*>PyBytes_AS_STRING(payload)
    put_number(at, CLASS_ID, 2)
    put_number(at + 2, 0, 2)
    put_number(at + 4, 0, 8)
    put_number(at + 12, said.flags, 2)
    at += CONTENT
    at = put_part(at, &said.content_type)
    at = put_part(at, &said.encoding)
    memcpy(at, said.table, said.table_size)
    at += said.table_size
    if said.flags & 1 << 12:
        at[0] = said.mode
        at += 1
    if said.flags & 1 << 11:
        at[0] = said.priority
        at += 1
    at = put_part(at, &said.correlation)
    memcpy(at, ttl, ttl_size)
    at += ttl_size
    if said.uuid.data != NULL:
        put_uuid(at, said.uuid.data)
        at += WORDS
    if has_timestamp:
        put_number(at, said.timestamp, 8)
        at += 8
    at = put_user(at, &said.user)
    put_part(at, &said.app)
    return tuple.__new__(
        QuickHeader,
        (
            payload,
            name_of(&said.routing_key),
            name_of(&said.exchange),
            bool(said.redelivered),
            bool(said.immediate),
        ),
    )


cdef inline uint8_t* put_user(uint8_t* at, Part* user) noexcept:
    if user.data == NULL:
        return at
    at[0] = <uint8_t>(user.size - 1)
    memcpy(at + 1, user.data + 1, user.size - 1)
    return at + user.size
