# Token buckets, flows, and the table that finds a flow by a publish's arguments.

cdef extern from *:
    """
    /* Of a bucket that several processes share. Each step is one exchange of one word, so nobody waits for a
       process that was stopped or killed in between. */
    static inline double level_read(double *word) {
        uint64_t bits = __atomic_load_n((uint64_t *)word, __ATOMIC_RELAXED);
        double value; memcpy(&value, &bits, 8); return value;
    }
    static inline int level_swap(double *word, double was, double is) {
        uint64_t old, new; memcpy(&old, &was, 8); memcpy(&new, &is, 8);
        return __atomic_compare_exchange_n((uint64_t *)word, &old, new, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    static inline double level_add(double *tokens, double more, double most) {
        double was, is;
        do {
            was = level_read(tokens);
            is = was + more < most ? was + more : most;
        } while (!level_swap(tokens, was, is));
        return is;
    }
    /* The seconds since the stamp, which are nobody else's then. */
    static inline double level_pass(double *stamp, double now) {
        double was;
        do {
            was = level_read(stamp);
            if (now <= was) return 0;
        } while (!level_swap(stamp, was, now));
        return now - was;
    }
    """
    double level_read(double* word) noexcept
    double level_add(double* tokens, double more, double most) noexcept
    double level_pass(double* stamp, double now) noexcept


cdef inline double refilled(PyObject* bucket, double now) noexcept:
    """A bucket's tokens, with what came since it was last asked."""
    cdef Level* level = (<Bucket>bucket).level
    cdef double passed
    if (<Bucket>bucket).is_shared:
        passed = level_pass(&level.stamp, now)
        if passed > 0:
            return level_add(&level.tokens, passed * (<Bucket>bucket).rate, (<Bucket>bucket).burst)
        return level_read(&level.tokens)
    if now > level.stamp:
        level.tokens = min((<Bucket>bucket).burst, level.tokens + (now - level.stamp) * (<Bucket>bucket).rate)
        level.stamp = now
    return level.tokens


cdef inline void drawn(PyObject* bucket, double tokens) noexcept:
    """Take so many tokens from a bucket."""
    if (<Bucket>bucket).is_shared:
        level_add(&(<Bucket>bucket).level.tokens, -tokens, NO_BOUND)
    else:
        (<Bucket>bucket).level.tokens -= tokens


cdef class Bucket:
    """A token bucket; see ``flows.Bucket``."""

    def __cinit__(self):
        self.level = &self.own

    def __init__(self, double rate, double burst):
        self.rate = rate
        self.burst = burst
        self.level.tokens = burst
        self.level.stamp = 0.0

    def __dealloc__(self):
        if self.is_shared:
            PyBuffer_Release(&self.memory)

    @property
    def tokens(self):
        return self.level.tokens

    @tokens.setter
    def tokens(self, double tokens):
        self.level.tokens = tokens

    @property
    def stamp(self):
        return self.level.stamp

    @stamp.setter
    def stamp(self, double stamp):
        self.level.stamp = stamp

    def share(self, memory, Py_ssize_t offset):
        if self.is_shared:
            raise ValueError("the bucket is shared already")
        PyObject_GetBuffer(memory, &self.memory, PyBUF_WRITABLE)
        if offset < 0 or offset % 8 or offset + <Py_ssize_t>sizeof(Level) > self.memory.len:
            PyBuffer_Release(&self.memory)
            raise ValueError("no place of the memory for a bucket")
        self.is_shared = True
        self.level = <Level*>(<char*>self.memory.buf + offset)

    def take(self, double tokens):
        drawn(<PyObject*>self, tokens)

    def ready_at(self, double now):
        cdef double tokens = refilled(<PyObject*>self, now)
        return now if tokens > 0 else now - tokens / self.rate + 1 / self.rate


cdef class CaptureGate:
    """See ``flows.CaptureGate``."""

    def shut(self):
        self.is_shut = True

    def open(self):
        self.is_shut = False


cdef class Looks:

    def __cinit__(self):
        self.peek_body = self.captures = self.samples = -1


# Nobody writes to it.
cdef Looks NOTHING_LOOKED_AT = Looks()


cdef Looks own_looks(Flow flow):
    """To be written to."""
    if flow.looks is NOTHING_LOOKED_AT:
        flow.looks = Looks()
    return flow.looks


cdef class Flow:
    """One set of publish arguments; see ``flows.Flow``."""

    def __init__(
        self,
        tuple message_buckets=(),
        tuple byte_buckets=(),
        uint32_t sample_every=0,
        int show=tables.Show.METHOD,
        bint drop=False,
        uint16_t peek_flags=0,
        tuple peek_headers=(),
        int64_t peek_body=-1,
        bint peek_mode_0=False,
        HeaderRules header_rules=None,
        uint8_t peek_contexts=0,
    ):
        cdef Looks looks
        for bucket in message_buckets + byte_buckets:
            if not isinstance(bucket, Bucket):
                raise TypeError("buckets are Bucket objects")
        self.message_buckets = message_buckets
        self.byte_buckets = byte_buckets
        self.sample_every = sample_every
        self.show = show
        self.drop = drop
        for name in peek_headers:
            if not isinstance(name, bytes) or not 0 < len(name) < 256:
                raise ValueError("headers have names of 1 to 255 bytes")
        self.peek_flags = peek_flags
        self._peek_mode_0 = peek_mode_0
        self.looks = NOTHING_LOOKED_AT
        self.peek_headers = peek_headers
        if peek_body >= 0 or header_rules is not None:
            looks = own_looks(self)
            looks.peek_body = peek_body
            looks.header_rules = header_rules
        self.peek_contexts = peek_contexts
        if peek_flags or peek_headers or peek_mode_0 or peek_contexts or peek_body >= 0 or header_rules is not None:
            self._peeks = PEEKS_HEADER
        self.rules = ()

    @property
    def peek_body(self):
        return self.looks.peek_body

    @property
    def header_rules(self):
        return self.looks.header_rules

    @property
    def captures(self):
        return self.looks.captures

    @property
    def samples(self):
        return self.looks.samples

    @property
    def captures_contexts(self):
        return bool(self.looks.captures_contexts)

    @property
    def gate(self):
        return self.looks.gate

    @property
    def rewrite(self):
        return self.looks.rewrite

    @property
    def notes(self):
        return self.looks.notes

    @property
    def peek_mode_0(self):
        return bool(self._peek_mode_0)

    def decided_by(self, tuple rules not None):
        """See ``flows.Flow.decided_by``."""
        self.rules = rules

    def unreported(self):
        """See ``flows.Flow.unreported``."""
        cdef uint64_t more = self.messages - self.reported
        self.reported = self.messages
        return more

    def capture(self, str who not None, object note, int64_t body_bytes, CaptureGate gate=None):
        """See ``flows.Flow.capture``."""
        cdef Looks looks = own_looks(self)
        looks.notes = {**(looks.notes or {}), who: note}
        looks.captures = max(looks.captures, body_bytes)
        looks.gate = gate or looks.gate
        self._peeks |= PEEKS_CAPTURES

    def capture_samples(self, str who not None, object note, int64_t body_bytes):
        """See ``flows.Flow.capture_samples``."""
        cdef Looks looks
        if self.sample_every or self.shows_samples:
            return False
        looks = own_looks(self)
        looks.notes = {**(looks.notes or {}), who: note}
        looks.samples = max(looks.samples, body_bytes)
        self._peeks |= PEEKS_SAMPLES
        return True

    def show_samples(self):
        """See ``flows.Flow.show_samples``."""
        self.shows_samples = True
        if self.looks is not NOTHING_LOOKED_AT:
            self.looks.captures_contexts = False
            self.looks.samples = -1
            if self._peeks & PEEKS_STAMPS:
                self.looks.rewrite = None
        self._peeks &= PEEKS_ALL

    def rewrite_by(self, Rewrite rewrite not None):
        """See ``flows.Flow.rewrite_by``."""
        own_looks(self).rewrite = rewrite
        if not rewrite.stamps:
            self._peeks |= PEEKS_REWRITES
            return
        self._peeks |= PEEKS_STAMPS
        if not self.peek_contexts:
            self.peek_contexts = tables.Contexts.ALL
            self._peeks |= PEEKS_HEADER

    def show_contexts(self):
        """See ``flows.Flow.show_contexts``."""
        if self.peek_contexts:
            self.peek_contexts = tables.Contexts.ALL
            if self.looks is not NOTHING_LOOKED_AT:
                self.looks.captures_contexts = False

    def capture_contexts(self):
        """See ``flows.Flow.capture_contexts``."""
        if self.looks.samples >= 0:
            # It has its own looks.
            self.looks.captures_contexts = self.peek_contexts != 0


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

    cdef void clear(self) noexcept:
        cdef uint32_t i
        for i in range(self.capacity):
            if self.tags[i]:
                give_up(self.entries + i)
                self.tags[i] = 0
        self.key_bytes = self.count = 0

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
        # Each in a line of its own, and the tags behind them. What has no tag is not looked at. One alone is
        # where it takes least: most sessions publish to one key.
        cdef Entry* entries = <Entry*>aligned_alloc(
            sizeof(Entry) if capacity > FIRST_FLOWS else 16, capacity * (sizeof(Entry) + sizeof(uint32_t))
        )
        cdef uint32_t* tags
        if entries == NULL:
            raise MemoryError
        tags = <uint32_t*>(entries + capacity)
        memset(tags, 0, capacity * sizeof(uint32_t))
        self.tags, self.entries, self.capacity = tags, entries, capacity
        for i in range(old_capacity):
            if not old_tags[i]:
                continue
            hash = hash_bytes(key_of(old + i), old[i].length)
            entry = self.vacancy(hash)
            if entry == NULL:
                # As good as never, and then it is a miss.
                self.key_bytes -= old[i].length
                self.count -= 1
                give_up(old + i)
                continue
            entry[0] = old[i]
            tags[entry - entries] = tag_of(hash)
        free(old)
        return 0

    def __sizeof__(self):
        """With its entries; of keys that are long, without those."""
        return type(self).__basicsize__ + self.capacity * (sizeof(Entry) + sizeof(uint32_t))

    def __len__(self):
        return self.count

    cdef inline Entry* place(self, uint64_t hash, const unsigned char* key, uint32_t length) noexcept:
        cdef uint32_t i, at, tag = tag_of(hash)
        cdef Entry* entry
        for i in range(min(WINDOW, self.capacity)):
            at = <uint32_t>(hash + i) & (self.capacity - 1)
            if self.tags[at] == tag:
                entry = self.entries + at
                if entry.length == length and same_bytes(key_of(entry), key, length):
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
        cdef const unsigned char* data = <const unsigned char*>PyBytes_AS_STRING(key)
        cdef uint64_t hash = hash_bytes(data, length)
        cdef Entry* entry = self.place(hash, data, length)
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
        if self.key_bytes + length > MAX_KEY_BYTES:
            self.clear()
        entry = self.vacancy(hash)
        while entry == NULL and self.capacity < MAX_FLOWS:
            self.grow()
            entry = self.vacancy(hash)
        if length > sizeof(entry.short_key):
            copy = <unsigned char*>PyMem_RawMalloc(length)
            if copy == NULL:
                raise MemoryError
            memcpy(copy, data, length)
        if entry == NULL:
            entry = self.entries + (hash & (self.capacity - 1))
            for i in range(1, WINDOW):
                at = <uint32_t>(hash + i) & (self.capacity - 1)
                # By their distance, since the clock may have gone round.
                if self.clock - self.entries[at].age > self.clock - entry.age:
                    entry = self.entries + at
            self.key_bytes -= entry.length
            self.count -= 1
            give_up(entry)
        Py_INCREF(flow)
        entry.flow = <PyObject*>flow
        entry.length = length
        entry.age = self.clock
        entry.generation = self.generation
        entry.long_key = copy
        if copy == NULL:
            memcpy(entry.short_key, data, length)
        self.tags[entry - self.entries] = tag_of(hash)
        self.key_bytes += length
        self.count += 1

    def get(self, bytes key not None):
        cdef const unsigned char* data = <const unsigned char*>PyBytes_AS_STRING(key)
        cdef uint32_t length = <uint32_t>PyBytes_GET_SIZE(key)
        cdef PyObject* flow = self.hit(hash_bytes(data, length), data, length)
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
