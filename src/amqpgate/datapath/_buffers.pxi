# Octets that wait: a partial frame, or what a peer has not taken yet.

cdef struct Octets:
    unsigned char* at
    size_t start
    size_t end
    size_t room


cdef inline size_t held(Octets* octets) noexcept:
    return octets.end - octets.start


# Buffers that were given back, for the next who needs one: a buffer of more than 128 KiB would else be
# mapped and unmapped by the C library each time a large frame is split over two reads.
cdef enum:
    SPARES = 4
    SPARE_ROOM = 524288
cdef unsigned char* spares[SPARES]
cdef int spare_count = 0


cdef unsigned char* take_buffer(size_t* room) noexcept:
    """At least ``room`` octets; ``room`` becomes what there is."""
    global spare_count
    if 65536 < room[0] <= SPARE_ROOM:
        room[0] = SPARE_ROOM
        if spare_count:
            spare_count -= 1
            return spares[spare_count]
    return <unsigned char*>malloc(room[0])


cdef void give_back(Octets* octets) noexcept:
    """Hold nothing any more."""
    global spare_count
    if octets.room == SPARE_ROOM and spare_count < SPARES:
        spares[spare_count] = octets.at
        spare_count += 1
    else:
        free(octets.at)
    memset(octets, 0, sizeof(Octets))


cdef int append(Octets* octets, const unsigned char* data, size_t size) except -1:
    """Add to the end. Dead room at the front is used before more is asked for."""
    cdef size_t have = octets.end - octets.start
    cdef Octets bigger
    if not size:
        return 0
    if octets.end + size > octets.room:
        if octets.start and have + size <= octets.room:
            memmove(octets.at, octets.at + octets.start, have)
        else:
            bigger.room = 512
            while bigger.room < have + size:
                bigger.room *= 2
            bigger.at = take_buffer(&bigger.room)
            if bigger.at == NULL:
                raise MemoryError
            if have:
                memcpy(bigger.at, octets.at + octets.start, have)
            give_back(octets)
            octets.at = bigger.at
            octets.room = bigger.room
        octets.start = 0
        octets.end = have
    memcpy(octets.at + octets.end, data, size)
    octets.end += size
    return 0
