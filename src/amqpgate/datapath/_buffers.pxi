# Bytes that wait: a partial frame, or what a peer has not taken yet.

# What stands before them. Of most sockets none wait, and there is NULL in its place.
cdef struct ByteBuffer:
    size_t start
    size_t end
    size_t room


cdef inline size_t held(const ByteBuffer* buffer) noexcept:
    return buffer.end - buffer.start if buffer != NULL else 0


cdef inline unsigned char* first_of(ByteBuffer* buffer) noexcept:
    return <unsigned char*>(buffer + 1) + buffer.start


cdef bytes copy_of(ByteBuffer* buffer):
    return PyBytes_FromStringAndSize(<char*>first_of(buffer), held(buffer)) if buffer != NULL else b""


# Buffers that were given back, for the next who needs one: a buffer of more than 128 KiB would else be
# mapped and unmapped by the C library each time a large frame is split over two reads.
cdef enum:
    SPARES = 4
    SPARE_ROOM = 524288
cdef ByteBuffer* spares[SPARES]
cdef int spare_count = 0

#: A session holds some MiB at most: whoever asks for more than a TiB has reckoned wrong.
cdef Py_ssize_t MOST_HELD = 1 << 40


cdef ByteBuffer* take_buffer(size_t room) noexcept:
    """None yet, and room for so many or more; NULL where there is no memory."""
    global spare_count
    cdef ByteBuffer* buffer
    if 65536 < room <= SPARE_ROOM:
        room = SPARE_ROOM
        if spare_count:
            spare_count -= 1
            return spares[spare_count]
    buffer = <ByteBuffer*>ask_without_reserve(sizeof(ByteBuffer) + room)
    if buffer != NULL:
        buffer.start = buffer.end = 0
        buffer.room = room
    return buffer


cdef void give_back(ByteBuffer** buffer) noexcept:
    """Hold nothing any more."""
    global spare_count
    cdef ByteBuffer* old = buffer[0]
    buffer[0] = NULL
    if old != NULL and old.room == SPARE_ROOM and spare_count < SPARES:
        old.start = old.end = 0
        spares[spare_count] = old
        spare_count += 1
    else:
        PyMem_RawFree(old)


cdef int ensure(ByteBuffer** buffer, Py_ssize_t size) except -1:
    """Have room for so many more bytes, so that adding them cannot fail. Dead room at the front is used before
    more is asked for. A size below zero is a defect: it raises, and nothing has changed."""
    cdef ByteBuffer* old = buffer[0]
    cdef ByteBuffer* bigger
    cdef size_t have = held(old), room = 512
    if not 0 <= size <= MOST_HELD - <Py_ssize_t>have:
        raise OverflowError(f"a buffer of {have} bytes is asked to take {size} more")
    if old == NULL or old.end + size > old.room:
        if old != NULL and have + size <= old.room:
            memmove(old + 1, first_of(old), have)
            old.start = 0
            old.end = have
        else:
            while room < have + size:
                room *= 2
            bigger = take_buffer(room)
            if bigger == NULL:
                raise MemoryError
            if have:
                memcpy(bigger + 1, first_of(old), have)
            bigger.end = have
            give_back(buffer)
            buffer[0] = bigger
    return 0


cdef int append(ByteBuffer** buffer, const unsigned char* data, Py_ssize_t size) except -1:
    """Add to the end; where that raises, nothing has changed."""
    if not size:
        return 0
    ensure(buffer, size)
    memcpy(first_of(buffer[0]) + held(buffer[0]), data, size)
    buffer[0].end += size
    return 0
