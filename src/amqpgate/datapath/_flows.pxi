# Token buckets, flows, and the table that finds a flow by a publish's arguments.

cdef inline double refilled(PyObject* bucket, double now) noexcept:
    """A bucket's tokens, with what came since it was last asked."""
    if now > (<Bucket>bucket).stamp:
        (<Bucket>bucket).tokens = min(
            (<Bucket>bucket).burst, (<Bucket>bucket).tokens + (now - (<Bucket>bucket).stamp) * (<Bucket>bucket).rate
        )
        (<Bucket>bucket).stamp = now
    return (<Bucket>bucket).tokens


cdef class Bucket:
    """A token bucket; see ``flows.Bucket``."""

    def __init__(self, double rate, double burst):
        self.rate = rate
        self.burst = burst
        self.tokens = burst
        self.stamp = 0.0

    def ready_at(self, double now):
        cdef double tokens = refilled(<PyObject*>self, now)
        return now if tokens > 0 else now - tokens / self.rate + 1 / self.rate


cdef class Flow:
    """One set of publish arguments; see ``flows.Flow``."""

    def __init__(
        self,
        tuple message_buckets=(),
        tuple octet_buckets=(),
        uint32_t sample_every=0,
        int show=tables.Show.METHOD,
        bint drop=False,
        uint16_t peek_flags=0,
        tuple peek_headers=(),
        int64_t peek_body=-1,
        bint peek_mode_0=False,
    ):
        for bucket in message_buckets + octet_buckets:
            if not isinstance(bucket, Bucket):
                raise TypeError("buckets are Bucket objects")
        self.message_buckets = message_buckets
        self.octet_buckets = octet_buckets
        self.sample_every = sample_every
        self.show = show
        self.drop = drop
        for name in peek_headers:
            if not isinstance(name, bytes) or not 0 < len(name) < 256:
                raise ValueError("headers have names of 1 to 255 octets")
        self.peek_flags = peek_flags
        self.peek_headers = peek_headers
        self.peek_body = peek_body
        self.peek_mode_0 = peek_mode_0
        self._peeks = bool(peek_flags or peek_headers or peek_mode_0) or peek_body >= 0


cdef inline uint32_t tag_of(uint64_t hash) noexcept:
    return <uint32_t>(hash >> 32) | 1


cdef inline const unsigned char* key_of(const Entry* entry) noexcept:
    return entry.long_key if entry.long_key != NULL else entry.short_key


cdef void give_up(Entry* entry) noexcept:
    Py_XDECREF(entry.flow)
    PyMem_RawFree(entry.long_key)
    memset(entry, 0, sizeof(Entry))


cdef class FlowTable:
    """Publish arguments to flows; see ``flows.FlowTable``.

    Open addressing: a key is in one of the ``WINDOW`` places from its hash on, and none before it is free,
    since places are only ever taken over. Doubled when a window is full; then the oldest in it goes.
    """

    def __cinit__(self):
        self.generation = 1

    def __dealloc__(self):
        self.clear()
        free(self.entries)
        PyMem_RawFree(self.tags)

    cdef void clear(self) noexcept:
        cdef uint32_t i
        for i in range(self.capacity):
            if self.tags[i]:
                give_up(self.entries + i)
                self.tags[i] = 0
        self.octets = self.count = 0

    cdef Entry* vacancy(self, uint64_t hash) noexcept:
        """The first free place for the hash, or NULL."""
        cdef uint32_t i, at
        for i in range(min(WINDOW, self.capacity)):
            at = <uint32_t>(hash + i) & (self.capacity - 1)
            if not self.tags[at]:
                return self.entries + at
        return NULL

    cdef int grow(self) except -1:
        cdef uint32_t* old_tags = self.tags
        cdef Entry* old = self.entries
        cdef uint32_t old_capacity = self.capacity
        cdef uint32_t capacity = max(FIRST_FLOWS, 2 * old_capacity)
        cdef Entry* entry
        cdef uint64_t hash
        cdef uint32_t i
        cdef uint32_t* tags = <uint32_t*>PyMem_RawCalloc(capacity, sizeof(uint32_t))
        # Each in a line of its own. What has no tag is not looked at.
        cdef Entry* entries = <Entry*>aligned_alloc(sizeof(Entry), capacity * sizeof(Entry))
        if tags == NULL or entries == NULL:
            PyMem_RawFree(tags)
            free(entries)
            raise MemoryError
        self.tags, self.entries, self.capacity = tags, entries, capacity
        for i in range(old_capacity):
            if not old_tags[i]:
                continue
            hash = hash_octets(key_of(old + i), old[i].length)
            entry = self.vacancy(hash)
            if entry == NULL:
                # As good as never, and then it is a miss.
                self.octets -= old[i].length
                self.count -= 1
                give_up(old + i)
                continue
            entry[0] = old[i]
            tags[entry - entries] = tag_of(hash)
        PyMem_RawFree(old_tags)
        free(old)
        return 0

    def __len__(self):
        return self.count

    cdef inline Entry* place(self, uint64_t hash, const unsigned char* key, uint32_t length) noexcept:
        cdef uint32_t i, at, tag = tag_of(hash)
        cdef Entry* entry
        for i in range(min(WINDOW, self.capacity)):
            at = <uint32_t>(hash + i) & (self.capacity - 1)
            if self.tags[at] == tag:
                entry = self.entries + at
                if entry.length == length and same_octets(key_of(entry), key, length):
                    return entry
            elif not self.tags[at]:
                return NULL
        return NULL

    cdef inline Entry* coming(self, uint64_t hash) noexcept:
        """The entry that ``hit`` will mostly look at first, on its way from memory. The table is not empty."""
        cdef uint32_t at = <uint32_t>hash & (self.capacity - 1)
        prefetch(self.tags + at)
        prefetch(self.entries + at)
        return self.entries + at

    cdef inline PyObject* hit(self, uint64_t hash, const unsigned char* key, uint32_t length) noexcept:
        """A borrowed flow, or NULL."""
        cdef Entry* entry = self.place(hash, key, length)
        if entry == NULL or entry.generation != self.generation:
            return NULL
        return entry.flow

    def install(self, bytes key not None, Flow flow not None):
        cdef uint32_t length = <uint32_t>PyBytes_GET_SIZE(key)
        cdef const unsigned char* octets = <const unsigned char*>PyBytes_AS_STRING(key)
        cdef uint64_t hash = hash_octets(octets, length)
        cdef Entry* entry = self.place(hash, octets, length)
        cdef unsigned char* copy = NULL
        cdef uint32_t i, at
        self.clock += 1
        if entry != NULL:
            Py_INCREF(flow)
            Py_DECREF(<Flow>entry.flow)
            entry.flow = <PyObject*>flow
            entry.age = self.clock
            entry.generation = self.generation
            return
        if self.octets + length > MAX_KEY_OCTETS:
            self.clear()
        entry = self.vacancy(hash)
        while entry == NULL and self.capacity < MAX_FLOWS:
            self.grow()
            entry = self.vacancy(hash)
        if length > sizeof(entry.short_key):
            copy = <unsigned char*>PyMem_RawMalloc(length)
            if copy == NULL:
                raise MemoryError
            memcpy(copy, octets, length)
        if entry == NULL:
            entry = self.entries + (hash & (self.capacity - 1))
            for i in range(1, WINDOW):
                at = <uint32_t>(hash + i) & (self.capacity - 1)
                # By their distance, since the clock may have gone round.
                if self.clock - self.entries[at].age > self.clock - entry.age:
                    entry = self.entries + at
            self.octets -= entry.length
            self.count -= 1
            give_up(entry)
        Py_INCREF(flow)
        entry.flow = <PyObject*>flow
        entry.length = length
        entry.age = self.clock
        entry.generation = self.generation
        entry.long_key = copy
        if copy == NULL:
            memcpy(entry.short_key, octets, length)
        self.tags[entry - self.entries] = tag_of(hash)
        self.octets += length
        self.count += 1

    def get(self, bytes key not None):
        cdef const unsigned char* octets = <const unsigned char*>PyBytes_AS_STRING(key)
        cdef uint32_t length = <uint32_t>PyBytes_GET_SIZE(key)
        cdef PyObject* flow = self.hit(hash_octets(octets, length), octets, length)
        return None if flow == NULL else <Flow>flow

    def flows(self):
        cdef uint32_t i
        cdef list found = []
        for i in range(self.capacity):
            if self.tags[i] and self.entries[i].generation == self.generation:
                key = PyBytes_FromStringAndSize(<char*>key_of(self.entries + i), self.entries[i].length)
                found.append((key, <Flow>self.entries[i].flow))
        return found

    def flush(self):
        self.generation += 1
        if not self.generation:
            # Gone round: what is left of the first one would hold again.
            self.clear()
