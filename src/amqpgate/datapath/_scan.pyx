# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled scanner. Its contract, name by name, is ``reference``; read that first.

No Python object is made per frame: channels and flows are C tables, a hit touches C fields only.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject, Py_XDECREF
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from amqpgate.datapath import tables
from amqpgate.datapath.tables import Side, Verdict

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static inline uint16_t be16(const unsigned char *p) { return (uint16_t)((p[0] << 8) | p[1]); }
    static inline uint32_t be32(const unsigned char *p) {
        uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v);
    }
    static inline uint64_t be64(const unsigned char *p) {
        uint64_t v; memcpy(&v, p, 8); return __builtin_bswap64(v);
    }
    /* Eight octets a step, then a last overlapping step: exchange and routing key are a few words. */
    static inline uint64_t mix(uint64_t h, uint64_t v) {
        h = (h ^ v) * 0x9E3779B97F4A7C15ull;
        return h ^ (h >> 32);
    }
    static inline uint64_t hash_octets(const unsigned char *p, uint32_t n) {
        uint64_t h = n, v = 0;
        const unsigned char *end = p + n;
        if (n < 8) {
            while (p < end) v = v << 8 | *p++;
            return mix(mix(h, v), 0);
        }
        for (; p + 8 < end; p += 8) { memcpy(&v, p, 8); h = mix(h, v); }
        memcpy(&v, end - 8, 8);
        return mix(mix(h, v), 0);
    }
    /* memcmp for a few words, in line: a call costs as much as the comparison. */
    static inline int same_octets(const unsigned char *a, const unsigned char *b, Py_ssize_t n) {
        uint64_t x, y;
        if (n < 8) {
            while (n-- > 0) { if (*a++ != *b++) return 0; }
            return 1;
        }
        const unsigned char *last = a + n - 8;
        for (; a < last; a += 8, b += 8) {
            memcpy(&x, a, 8); memcpy(&y, b, 8);
            if (x != y) return 0;
        }
        memcpy(&x, last, 8); memcpy(&y, b - (a - last), 8);
        return x == y;
    }
    """
    void* memmem(const void* hay, size_t hay_size, const void* needle, size_t needle_size) nogil
    Py_ssize_t items_in "PyTuple_GET_SIZE"(PyObject* tuple)
    PyObject* item "PyTuple_GET_ITEM"(PyObject* tuple, Py_ssize_t i)  # borrowed
    int same_octets(const unsigned char* a, const unsigned char* b, Py_ssize_t n) nogil
    uint16_t be16(const unsigned char* p) nogil
    uint32_t be32(const unsigned char* p) nogil
    uint64_t be64(const unsigned char* p) nogil
    uint64_t hash_octets(const unsigned char* p, uint32_t n) nogil

# The numbers of ``tables``, held where C can see them.
cdef enum:
    PUBLISH = 0x003C0028
    ACK = 0x003C0050
    NACK = 0x003C0078
    REJECT = 0x003C005A
    DELIVER = 0x003C003C
    GET_OK = 0x003C0047
    GET_EMPTY = 0x003C0048
    RETURN = 0x003C0032
    CHANNEL_CLOSE = 0x00140028
    CHANNEL_CLOSE_OK = 0x00140029
    CLASS_BASIC = 60
    FRAME_END = 206
    OPEN = 1
    DISCARD = 2
    HEADER_NEXT = -1
    FIRST_FLOWS = 4
    MAX_FLOWS = 16384
    WINDOW = 8
    MAX_KEY_OCTETS = 524288
    WHOLE_HEADER = 22
    PEEKED_HEADER = 4096
    HEADERS = 8192
    MORE_FLAGS = 1

cdef enum:
    V_FULL = -1
    V_MORE = 0
    V_METHOD = 1
    V_MISS = 2
    V_SHOWN = 3
    V_HEADER = 4
    V_BODY = 5
    V_REFRAME = 6
    V_THROTTLED = 7
    V_BAD_TYPE = 10
    V_TOO_LARGE = 11
    V_BAD_END = 12
    V_NOT_OPEN = 14
    V_MALFORMED = 15
    V_HEADER_DUE = 16
    V_BODY_DUE = 17
    V_HEADER_UNASKED = 18
    V_BODY_UNASKED = 19
    V_CLASS_DIFFERS = 20
    V_BODY_OVERRUN = 21
    V_UNSPLITTABLE = 22
    V_BAD_HEARTBEAT = 23

cdef double NO_BOUND = float("inf")

cdef enum:
    FORWARD = 0
    CONTENT = 1
    PUBLISHES = 2
    DELIVERS = 3
    UNKNOWN = 4

cdef object SIDE_CLIENT = Side.CLIENT
cdef tuple VERDICTS = tuple(Verdict(n) if n in Verdict._value2member_map_ else None for n in range(24))


def numbers():
    """The constants that are written out above, for the test that compares them with ``tables``."""
    return {
        "UP": {PUBLISH: PUBLISHES, ACK: FORWARD, NACK: FORWARD, REJECT: FORWARD},
        "DOWN": {
            DELIVER: DELIVERS, GET_OK: CONTENT, RETURN: CONTENT,
            GET_EMPTY: FORWARD, ACK: FORWARD, NACK: FORWARD,
        },
        "CLOSES": {CHANNEL_CLOSE, CHANNEL_CLOSE_OK},
        "OPEN": OPEN, "DISCARD": DISCARD, "HEADER_NEXT": HEADER_NEXT,
        "PEEKED_HEADER": PEEKED_HEADER,
        "FLOWS": MAX_FLOWS, "FLOW_KEY_OCTETS": MAX_KEY_OCTETS,
        "CLASS_BASIC": CLASS_BASIC, "FRAME_END": FRAME_END,
        "VERDICTS": {
            "MORE": V_MORE, "METHOD": V_METHOD, "MISS": V_MISS, "SHOWN": V_SHOWN, "HEADER": V_HEADER,
            "BODY": V_BODY, "REFRAME": V_REFRAME, "THROTTLED": V_THROTTLED, "BAD_TYPE": V_BAD_TYPE,
            "TOO_LARGE": V_TOO_LARGE, "BAD_END": V_BAD_END, "NOT_OPEN": V_NOT_OPEN,
            "MALFORMED": V_MALFORMED, "HEADER_DUE": V_HEADER_DUE, "BODY_DUE": V_BODY_DUE,
            "HEADER_UNASKED": V_HEADER_UNASKED, "BODY_UNASKED": V_BODY_UNASKED,
            "CLASS_DIFFERS": V_CLASS_DIFFERS, "BODY_OVERRUN": V_BODY_OVERRUN,
            "UNSPLITTABLE": V_UNSPLITTABLE, "BAD_HEARTBEAT": V_BAD_HEARTBEAT,
        },
    }


cdef inline double refilled(PyObject* bucket, double now) noexcept:
    """A bucket's tokens, with what came since it was last asked."""
    if now > (<Bucket>bucket).stamp:
        (<Bucket>bucket).tokens = min(
            (<Bucket>bucket).burst, (<Bucket>bucket).tokens + (now - (<Bucket>bucket).stamp) * (<Bucket>bucket).rate
        )
        (<Bucket>bucket).stamp = now
    return (<Bucket>bucket).tokens


cdef class Bucket:
    """A token bucket; see ``reference.Bucket``."""

    def __init__(self, double rate, double burst):
        self.rate = rate
        self.burst = burst
        self.tokens = burst
        self.stamp = 0.0

    def ready_at(self, double now):
        cdef double tokens = refilled(<PyObject*>self, now)
        return now if tokens > 0 else now - tokens / self.rate + 1 / self.rate


cdef class Flow:
    """One set of publish arguments; see ``reference.Flow``."""

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
        self._peeks = peek_flags or peek_headers or peek_body >= 0


cdef inline uint32_t tag_of(uint64_t hash) noexcept:
    return <uint32_t>(hash >> 32) | 1


cdef inline const unsigned char* key_of(const Entry* entry) noexcept:
    return entry.long_key if entry.long_key != NULL else entry.short_key


cdef void give_up(Entry* entry) noexcept:
    Py_XDECREF(entry.flow)
    free(entry.long_key)
    memset(entry, 0, sizeof(Entry))


cdef class FlowTable:
    """Publish arguments to flows; see ``reference.FlowTable``.

    Open addressing: a key is in one of the ``WINDOW`` places from its hash on, and none before it is free,
    since places are only ever taken over. Doubled when a window is full; then the oldest in it goes.
    """

    def __cinit__(self):
        self.generation = 1

    def __dealloc__(self):
        self.clear()
        free(self.entries)
        free(self.tags)

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
        cdef uint32_t i
        cdef uint32_t* tags = <uint32_t*>calloc(capacity, sizeof(uint32_t))
        cdef Entry* entries = <Entry*>calloc(capacity, sizeof(Entry))
        if tags == NULL or entries == NULL:
            free(tags)
            free(entries)
            raise MemoryError
        self.tags, self.entries, self.capacity = tags, entries, capacity
        for i in range(old_capacity):
            if not old_tags[i]:
                continue
            entry = self.vacancy(old[i].hash)
            if entry == NULL:
                # As good as never, and then it is a miss.
                self.octets -= old[i].length
                self.count -= 1
                give_up(old + i)
                continue
            entry[0] = old[i]
            tags[entry - entries] = tag_of(entry.hash)
        free(old_tags)
        free(old)
        return 0

    def __len__(self):
        return self.count

    cdef Entry* place(self, uint64_t hash, const unsigned char* key, uint32_t length) noexcept:
        cdef uint32_t i, at, tag = tag_of(hash)
        cdef Entry* entry
        for i in range(min(WINDOW, self.capacity)):
            at = <uint32_t>(hash + i) & (self.capacity - 1)
            if self.tags[at] == tag:
                entry = self.entries + at
                if entry.hash == hash and entry.length == length and same_octets(key_of(entry), key, length):
                    return entry
            elif not self.tags[at]:
                return NULL
        return NULL

    cdef PyObject* hit(self, const unsigned char* key, uint32_t length) noexcept:
        """A borrowed flow, or NULL."""
        cdef Entry* entry = self.place(hash_octets(key, length), key, length)
        if entry == NULL or (<Flow>entry.flow).generation != self.generation:
            return NULL
        return entry.flow

    def install(self, bytes key not None, Flow flow not None):
        cdef uint32_t length = <uint32_t>PyBytes_GET_SIZE(key)
        cdef const unsigned char* octets = <const unsigned char*>PyBytes_AS_STRING(key)
        cdef uint64_t hash = hash_octets(octets, length)
        cdef Entry* entry = self.place(hash, octets, length)
        cdef unsigned char* copy = NULL
        cdef uint32_t i, at
        flow.generation = self.generation
        self.clock += 1
        if entry != NULL:
            Py_INCREF(flow)
            Py_DECREF(<Flow>entry.flow)
            entry.flow = <PyObject*>flow
            entry.age = self.clock
            return
        if self.octets + length > MAX_KEY_OCTETS:
            self.clear()
        entry = self.vacancy(hash)
        while entry == NULL and self.capacity < MAX_FLOWS:
            self.grow()
            entry = self.vacancy(hash)
        if length > sizeof(entry.short_key):
            copy = <unsigned char*>malloc(length)
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
        entry.hash = hash
        entry.flow = <PyObject*>flow
        entry.length = length
        entry.age = self.clock
        entry.long_key = copy
        if copy == NULL:
            memcpy(entry.short_key, octets, length)
        self.tags[entry - self.entries] = tag_of(hash)
        self.octets += length
        self.count += 1

    def get(self, bytes key not None):
        cdef PyObject* flow
        flow = self.hit(<const unsigned char*>PyBytes_AS_STRING(key), <uint32_t>PyBytes_GET_SIZE(key))
        return None if flow == NULL else <Flow>flow

    def flush(self):
        self.generation += 1


cdef void clear_content(Content* content) noexcept:
    """Whatever is under way ends here."""
    Py_XDECREF(content.flow)
    content.flow = NULL
    content.due = 0
    content.show = content.drop = 0


cdef class Channels:
    """The open channels of one session; see ``reference.Channels``. Open addressing by number."""

    def __cinit__(self):
        self.capacity = 2
        self.slots = <Slot*>calloc(self.capacity, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef uint32_t i
        if self.slots != NULL:
            for i in range(self.capacity):
                Py_XDECREF(self.slots[i].up.flow)
                Py_XDECREF(self.slots[i].down.flow)
            free(self.slots)

    cdef Slot* find(self, uint16_t number) noexcept:
        cdef uint32_t mask = self.capacity - 1
        cdef uint32_t i = number & mask
        while self.slots[i].used:
            if self.slots[i].number == number:
                return self.slots + i
            i = (i + 1) & mask
        return NULL

    cdef int grow(self) except -1:
        """Room for one more; slots of closed channels are given up."""
        cdef uint32_t capacity = 2
        cdef Slot* old = self.slots
        cdef uint32_t old_capacity = self.capacity
        cdef uint32_t i, at
        while capacity < 2 * (self.live + 1):
            capacity *= 2
        self.slots = <Slot*>calloc(capacity, sizeof(Slot))
        if self.slots == NULL:
            self.slots = old
            raise MemoryError
        self.capacity = capacity
        self.taken = 0
        for i in range(old_capacity):
            if old[i].used and old[i].state:
                at = old[i].number & (capacity - 1)
                while self.slots[at].used:
                    at = (at + 1) & (capacity - 1)
                self.slots[at] = old[i]
                self.taken += 1
        free(old)
        return 0

    cdef Slot* must_find(self, int number) except NULL:
        cdef Slot* slot = self.find(<uint16_t>number)
        if slot == NULL or slot.state == 0:
            raise KeyError(number)
        return slot

    def __len__(self):
        return self.live

    def state(self, int number):
        cdef Slot* slot = self.find(<uint16_t>number)
        return 0 if slot == NULL else slot.state

    def open(self, int number, to=None):
        cdef Slot* slot = self.find(<uint16_t>number)
        cdef uint32_t at
        if slot == NULL:
            # One slot always stays free, so that a search ends.
            if (self.taken + 1) * 4 > self.capacity * 3:
                self.grow()
            at = number & (self.capacity - 1)
            while self.slots[at].used:
                at = (at + 1) & (self.capacity - 1)
            slot = self.slots + at
            slot.used = 1
            slot.number = <uint16_t>number
            self.taken += 1
        if slot.state == 0:
            self.live += 1
        slot.state = OPEN
        slot.to = <uint16_t>(number if to is None else to)
        slot.shows_acks = 0
        clear_content(&slot.up)
        clear_content(&slot.down)
        slot.up.messages = slot.down.messages = 0

    def discard(self, int number):
        cdef Slot* slot = self.must_find(number)
        slot.state = DISCARD
        clear_content(&slot.up)

    def close(self, int number):
        cdef Slot* slot = self.find(<uint16_t>number)
        if slot != NULL and slot.state:
            slot.state = 0
            self.live -= 1
            clear_content(&slot.up)
            clear_content(&slot.down)

    def expect_header(self, side, int number, Flow flow, int show=0):
        cdef Slot* slot = self.must_find(number)
        cdef Content* content = &slot.up if side == SIDE_CLIENT else &slot.down
        clear_content(content)
        if flow is not None:
            Py_INCREF(flow)
            content.flow = <PyObject*>flow
        content.due = HEADER_NEXT
        content.show = <uint8_t>show

    cdef Content* content_of(self, side, int number) except NULL:
        cdef Slot* slot = self.must_find(number)
        return &slot.up if side == SIDE_CLIENT else &slot.down

    def drop_next(self, side, int number):
        self.expect_header(side, number, None)
        self.content_of(side, number).drop = 1

    def drop_rest(self, side, int number):
        cdef Content* content = self.content_of(side, number)
        content.show = 0
        content.drop = content.due != 0

    def is_dropping(self, side, int number):
        return bool(self.content_of(side, number).drop)

    def uncount(self, side, int number):
        self.content_of(side, number).messages -= 1

    def show_rest(self, side, int number):
        self.content_of(side, number).show = 3

    def show_acks(self, int number):
        self.must_find(number).shows_acks = 1

    def messages(self, side, int number):
        return self.content_of(side, number).messages

    def due(self, side, int number):
        cdef Slot* slot = self.find(<uint16_t>number)
        if slot == NULL:
            return 0
        return slot.up.due if side == SIDE_CLIENT else slot.down.due


cdef class Lane:
    """One direction of one session; see ``reference.Lane``."""

    def __init__(
        self,
        side,
        Py_ssize_t frame_max,
        Py_ssize_t out_frame_max,
        Channels channels not None,
        FlowTable flows=None,
    ):
        self.side = side
        self.frame_max = frame_max
        self.out_frame_max = out_frame_max
        self.channels = channels
        self._flows = flows
        self.upward = side == SIDE_CLIENT

    @property
    def flows(self):
        return self._flows

    @flows.setter
    def flows(self, FlowTable flows):
        self._flows = flows


cdef inline int action_of(bint upward, uint32_t index) noexcept:
    if upward:
        if index == PUBLISH:
            return PUBLISHES
        if index == ACK or index == NACK or index == REJECT:
            return FORWARD
        return UNKNOWN
    if index == DELIVER:
        return DELIVERS
    if index == GET_OK or index == RETURN:
        return CONTENT
    if index == ACK or index == NACK or index == GET_EMPTY:
        return FORWARD
    return UNKNOWN


cdef inline void renumber(unsigned char* frame, uint16_t to) noexcept:
    frame[1] = to >> 8
    frame[2] = to & 255


cdef inline const unsigned char* after_shortstr(const unsigned char* p, const unsigned char* end) noexcept:
    """Where the short string at ``p`` ends; beyond ``end`` where it does not fit."""
    return p + 1 + p[0] if p < end else end + 1


cdef inline double least_tokens(PyObject* buckets, double now) noexcept:
    """How much may pass before one of them is empty."""
    cdef double least = NO_BOUND
    cdef Py_ssize_t i
    for i in range(items_in(buckets)):
        least = min(least, refilled(item(buckets, i), now))
    return least


cdef double flow_ready_at(Flow flow, double now) noexcept:
    """When a message may pass, some bucket being empty."""
    cdef double ready = now
    cdef Bucket bucket
    for bucket in flow.message_buckets + flow.octet_buckets:
        if bucket.tokens <= 0:
            ready = max(ready, now - bucket.tokens / bucket.rate + 1 / bucket.rate)
    return ready


cdef inline void debit(PyObject* buckets, uint64_t tokens) noexcept:
    cdef Py_ssize_t i
    for i in range(items_in(buckets)):
        (<Bucket>item(buckets, i)).tokens -= <double>tokens


cdef inline void charge(PyObject* flow, uint64_t messages, uint64_t octets) noexcept:
    """Count what passed, and take it from the buckets."""
    (<Flow>flow).messages += messages
    (<Flow>flow).octets += octets
    debit(<PyObject*>(<Flow>flow).message_buckets, messages)
    debit(<PyObject*>(<Flow>flow).octet_buckets, octets)


cdef void count(Lane lane, Content* content, uint64_t octets) noexcept:
    """One message, whose header has come."""
    cdef PyObject* flow = content.flow
    content.flow = NULL
    if not content.drop:
        content.messages += 1
        lane.messages += 1
        lane.octets += octets
        if flow != NULL:
            charge(flow, 1, octets)
    elif flow != NULL:
        (<Flow>flow).messages += 1
        (<Flow>flow).octets += octets
    Py_XDECREF(flow)


cdef bint trips(Flow flow, const unsigned char* frame, Py_ssize_t size) noexcept:
    """Whether a message with this content header must be shown."""
    cdef uint16_t flags = be16(frame + 19)
    cdef PyObject* name
    cdef unsigned char needle[256]
    cdef Py_ssize_t i, length
    if flags & (flow.peek_flags | MORE_FLAGS):
        return True
    if flow.peek_body >= 0 and be64(frame + 11) > <uint64_t>flow.peek_body:
        return True
    if flags & HEADERS:
        for i in range(items_in(<PyObject*>flow.peek_headers)):
            name = item(<PyObject*>flow.peek_headers, i)
            length = PyBytes_GET_SIZE(<bytes>name)
            needle[0] = <unsigned char>length
            memcpy(needle + 1, PyBytes_AS_STRING(<bytes>name), length)
            if memmem(frame + 21, size - 14, needle, length + 1) != NULL:
                return True
    return False


cdef inline bint passes_by(PyObject* flow, const unsigned char* frame, Py_ssize_t left, uint16_t number) noexcept:
    """Whether the message whose header frame starts here surely need not be shown; of ``left`` octets."""
    return (
        left >= WHOLE_HEADER
        and frame[0] == 2
        and be16(frame + 1) == number
        and not be16(frame + 19) & ((<Flow>flow).peek_flags | MORE_FLAGS | HEADERS)
        and ((<Flow>flow).peek_body < 0 or be64(frame + 11) <= <uint64_t>(<Flow>flow).peek_body)
    )


cdef int scan_c(
    Lane lane,
    unsigned char* buf,
    Py_ssize_t pos,
    Py_ssize_t end,
    double now,
    Span* spans,
    int room,
    int* counted,
    Py_ssize_t* at,
    Py_ssize_t* stop_out,
) except -100:
    """As ``scan``, with spans in C; ``V_FULL`` where ``room`` did not suffice: go on from ``at``."""
    cdef Py_ssize_t start = pos
    cdef Py_ssize_t stop = pos
    cdef Py_ssize_t largest = lane.frame_max
    cdef Py_ssize_t out_largest = lane.out_frame_max - 8
    cdef bint upward = lane.upward
    cdef Channels channels = lane.channels
    cdef FlowTable flows = lane._flows
    cdef PyObject* flow = NULL  # borrowed
    cdef Slot* slot = NULL
    cdef Content* content
    cdef int verdict = V_MORE
    cdef int n = 0
    cdef int kind, action
    cdef uint16_t number
    cdef Py_ssize_t size
    cdef int64_t due
    cdef uint32_t index
    cdef uint64_t body
    cdef uint64_t frames = 0
    cdef unsigned char* p
    cdef unsigned char* q
    # Of a run of messages: its first method frame, and where in it the octets begin that may differ.
    cdef unsigned char* method
    cdef Py_ssize_t method_size, gap
    cdef double message_room, octet_room
    cdef uint64_t messages, octets
    cdef bint repeats, begun, renumbers, peeks
    # What the loop takes for one frame of a message, and passes on as it is.
    cdef Py_ssize_t body_largest = min(largest, out_largest)
    cdef Py_ssize_t header_largest = body_largest if upward else largest
    cdef const unsigned char* key
    cdef const unsigned char* mid
    cdef const unsigned char* last
    cdef uint32_t length = 0
    cdef unsigned char joined[1024]
    while True:
        if end - pos < 7:
            verdict = V_MORE
            stop = pos
            break
        p = buf + pos
        kind = p[0]
        number = be16(p + 1)
        size = be32(p + 3)
        if kind != 1 and kind != 2 and kind != 3 and kind != 8:
            verdict = V_BAD_TYPE
            stop = end
            break
        if size > largest:
            verdict = V_TOO_LARGE
            stop = end
            break
        stop = pos + size + 8
        if stop > end:
            verdict = V_MORE
            break
        if buf[stop - 1] != FRAME_END:
            verdict = V_BAD_END
            break
        if kind == 8:
            if number or size:
                verdict = V_BAD_HEARTBEAT
                break
            if start < pos:
                spans[n].start = start
                spans[n].stop = pos
                n += 1
            pos = start = stop
            if n + 1 >= room:
                verdict = V_FULL
                break
            continue
        if slot == NULL or slot.number != number:
            slot = channels.find(number)
        if slot == NULL or slot.state == 0:
            slot = NULL
            if kind == 1:
                verdict = V_METHOD if size >= 4 else V_MALFORMED
            elif number:
                verdict = V_NOT_OPEN
            else:
                verdict = V_HEADER_UNASKED if kind == 2 else V_BODY_UNASKED
            break
        if upward and slot.state == DISCARD:
            if kind == 1 and size >= 4:
                index = be32(p + 7)
                if index == CHANNEL_CLOSE or index == CHANNEL_CLOSE_OK:
                    verdict = V_METHOD
                    break
            if start < pos:
                spans[n].start = start
                spans[n].stop = pos
                n += 1
            pos = start = stop
            if n + 1 >= room:
                verdict = V_FULL
                break
            continue
        content = &slot.up if upward else &slot.down
        due = content.due
        if kind == 1:
            if due:
                verdict = V_HEADER_DUE if due == HEADER_NEXT else V_BODY_DUE
                break
            if size < 4:
                verdict = V_MALFORMED
                break
            action = action_of(upward, be32(p + 7))
            if action == UNKNOWN:
                verdict = V_METHOD
                break
            if lane.shows_content and action == CONTENT:
                verdict = V_METHOD
                break
            if slot.shows_acks and action == FORWARD and not upward:
                verdict = V_METHOD
                break
            if upward and size > out_largest:
                verdict = V_UNSPLITTABLE
                break
            if action == PUBLISHES or action == DELIVERS:
                last = buf + stop - 1
                if action == PUBLISHES:
                    key = p + 13
                    length = <uint32_t>(size - 6) if size > 6 else 0
                    if after_shortstr(after_shortstr(key, last), last) + 1 != last:
                        verdict = V_MALFORMED
                        break
                else:
                    key = p + 11
                    mid = after_shortstr(key, last)
                    if after_shortstr(after_shortstr(mid + 9, last), last) != last:
                        verdict = V_MALFORMED
                        break
                    if flows is not None:
                        # Around delivery tag and redelivered: three short strings, at most 768 octets.
                        memcpy(joined, key, mid - key)
                        memcpy(joined + (mid - key), mid + 9, last - mid - 9)
                        length = <uint32_t>(last - key - 9)
                        key = joined
                if flows is not None:
                    flow = flows.hit(key, length)
                    if flow == NULL:
                        verdict = V_MISS
                        break
                    content.drop = (<Flow>flow).drop
                    if not content.drop:
                        message_room = least_tokens(<PyObject*>(<Flow>flow).message_buckets, now)
                        octet_room = least_tokens(<PyObject*>(<Flow>flow).octet_buckets, now)
                        if message_room <= 0 or octet_room <= 0:
                            lane.ready_at = flow_ready_at(<Flow>flow, now)
                            verdict = V_THROTTLED
                            break
                        if (<Flow>flow)._peeks:
                            # Before the method passes, the header that follows it is looked at.
                            if end - stop < 7:
                                verdict = V_MORE
                                stop = pos
                                break
                            q = buf + stop
                            size = be32(q + 3)
                            if q[0] != 2 or be16(q + 1) != number or size > PEEKED_HEADER:
                                verdict = V_SHOWN
                                break
                            if size + 8 > end - stop:
                                verdict = V_MORE
                                stop += size + 8
                                break
                            if size >= 14 and trips(<Flow>flow, q, size):
                                verdict = V_SHOWN
                                break
                        if (<Flow>flow).sample_every:
                            (<Flow>flow).unsampled += 1
                            if (<Flow>flow).unsampled >= (<Flow>flow).sample_every:
                                (<Flow>flow).unsampled = 0
                                verdict = V_SHOWN
                                break
            if action != FORWARD:
                content.due = HEADER_NEXT
                content.show = 0
        elif kind == 2:
            if due != HEADER_NEXT:
                verdict = V_BODY_DUE if due else V_HEADER_UNASKED
                break
            if size < 14:
                verdict = V_MALFORMED
                break
            if be16(p + 7) != CLASS_BASIC:
                verdict = V_CLASS_DIFFERS
                break
            if upward and size > out_largest and not content.drop:
                verdict = V_UNSPLITTABLE
                break
            body = be64(p + 11)
            if body >> 62:
                # More than any disk holds, and more than a signed count can.
                verdict = V_MALFORMED
                break
            content.due = <int64_t>body
            count(lane, content, body)
            if content.show >= 2:
                verdict = V_HEADER
                break
        else:
            if due <= 0:
                verdict = V_HEADER_DUE if due else V_BODY_UNASKED
                break
            if size > due:
                verdict = V_BODY_OVERRUN
                break
            content.due = due - size
            if content.show >= 3:
                verdict = V_BODY
                break
            if size > out_largest and not content.drop:
                verdict = V_REFRAME
                break
        frames += 1
        if content.drop:
            if start < pos:
                spans[n].start = start
                spans[n].stop = pos
                n += 1
            start = stop
            if kind == 1:
                Py_INCREF(<Flow>flow)
                content.flow = flow
            content.drop = content.due != 0
            pos = stop
            if n + 1 >= room:
                verdict = V_FULL
                break
            continue
        renumbers = slot.to != number
        if renumbers:
            renumber(p, slot.to)
        pos = stop
        if kind != 1 or content.due != HEADER_NEXT:
            continue
        # Most messages are there whole, in three frames or two, and the next one is mostly like it: the same
        # method frame, but for a delivery's tag. Such a run is dealt with here, and counted at its end.
        # Whatever is not just as expected is left to the loop above.
        method = p
        method_size = stop - (p - buf)
        gap = 12 + p[11] if action == DELIVERS else method_size
        if action == CONTENT or flows is None:
            flow = NULL
            message_room = octet_room = NO_BOUND
        repeats = action != CONTENT and (flow == NULL or (<Flow>flow).sample_every == 0)
        peeks = flow != NULL and (<Flow>flow)._peeks
        messages = octets = 0
        begun = True
        while True:
            if end - pos < WHOLE_HEADER:
                break
            p = buf + pos
            size = be32(p + 3)
            stop = pos + size + 8
            if (
                p[0] != 2
                or be16(p + 1) != number
                or size < 14
                or size > header_largest
                or stop > end
                or buf[stop - 1] != FRAME_END
                or be16(p + 7) != CLASS_BASIC
            ):
                break
            body = be64(p + 11)
            if body == 0:
                frames += 1
            elif body <= <uint64_t>body_largest and <int64_t>body <= end - stop - 8:
                q = buf + stop
                size = <Py_ssize_t>body
                if q[0] != 3 or be16(q + 1) != number or be32(q + 3) != size or q[size + 7] != FRAME_END:
                    break
                if renumbers:
                    renumber(q, slot.to)
                frames += 2
                stop += size + 8
            else:
                break
            if renumbers:
                renumber(p, slot.to)
            messages += 1
            octets += body
            pos = stop
            begun = False
            p = buf + pos
            if (
                not repeats
                or end - pos < method_size
                or <double>messages >= message_room
                or <double>octets >= octet_room
                or p[0] != 1
                or be16(p + 1) != number
                or not same_octets(p + 3, method + 3, gap - 3)
                or (gap < method_size and not same_octets(p + gap + 9, method + gap + 9, method_size - gap - 9))
                or (peeks and not passes_by(flow, p + method_size, end - pos - method_size, number))
            ):
                break
            if renumbers:
                renumber(p, slot.to)
            frames += 1
            pos += method_size
            begun = True
        if messages:
            content.messages += messages
            lane.messages += messages
            lane.octets += octets
            if flow != NULL:
                charge(flow, messages, octets)
        if not begun:
            content.due = 0
        elif flow != NULL:
            Py_INCREF(<Flow>flow)
            content.flow = flow
    if start < pos:
        spans[n].start = start
        spans[n].stop = pos
        n += 1
    lane.frames += frames
    counted[0] = n
    at[0] = pos
    stop_out[0] = stop
    return verdict


def scan(Lane lane not None, buf, Py_ssize_t pos, Py_ssize_t end, double now, list spans not None):
    """See ``reference.scan``; ``buf`` is writable."""
    cdef Py_buffer view
    cdef Span some[16]
    cdef int n = 0, verdict, i
    cdef Py_ssize_t at = pos, stop = pos
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE | PyBUF_WRITABLE)
    try:
        if not 0 <= pos <= end <= view.len:
            raise IndexError("pos and end must lie in the buffer")
        while True:
            verdict = scan_c(lane, <unsigned char*>view.buf, at, end, now, some, 16, &n, &at, &stop)
            for i in range(n):
                if spans and spans[len(spans) - 1][1] == some[i].start:
                    spans[len(spans) - 1] = (spans[len(spans) - 1][0], some[i].stop)
                else:
                    spans.append((some[i].start, some[i].stop))
            if verdict != V_FULL:
                return at, VERDICTS[verdict], stop
    finally:
        PyBuffer_Release(&view)
