# cython: language_level=3
"""What the compiled pump uses of the compiled scanner without going through Python."""

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef struct Span:
    Py_ssize_t start
    Py_ssize_t stop

cdef struct PendingContent:
    int64_t due
    int64_t size  # of the whole body, as its header declares it
    PyObject* flow  # owned, or NULL
    PyObject* meter  # owned, or NULL: in the place of the flow's
    PyObject* buckets  # owned tuple, or NULL: debited beside the flow's
    uint8_t show
    uint8_t drop
    uint8_t counts  # its header has passed, and it counts once it is whole
    uint32_t kind  # GET_OK, RETURN, or 0
    uint64_t messages

# Which of the broker's confirms have passed.
cdef struct Confirms:
    uint64_t before  # messages
    uint64_t through  # tag
    uint64_t singles
    uint64_t[16] answered  # a bit for each tag behind ``through``, by its lowest ten bits

# Tags of deliveries that follow one another.
cdef struct Stretch:
    uint64_t first, end

# Which deliveries the client has not acknowledged; see ``unacked.Unacked``.
cdef struct Unacked:
    uint64_t count  # in stretches
    uint64_t blurred, clear, next, uncommitted
    uint64_t gets  # a bit for each that is due, the oldest lowest
    Stretch* stretches  # owned, or NULL
    uint64_t* silent  # owned, or NULL: hashes of consumers' tags
    uint32_t head, size, room  # of stretches: the oldest one, how many, and what there is room for
    uint32_t silents
    uint8_t gets_due
    uint8_t is_lost

cdef struct Slot:
    uint16_t number
    uint16_t to
    uint8_t state  # 0: closed, the slot waits for its number to be opened again
    uint8_t used
    # What is done with them: nothing, or, the broker's, ACKS_SHOWN, ACKS_COUNTED, ACKS_TIMED; the client's,
    # SETTLES_SHOWN, UNACKED_COUNTED, UNACKED_LOST; and whether deliveries want any, DELIVERIES_ACKED.
    uint8_t acks
    PendingContent up
    PendingContent* down  # owned, or ``NOTHING_SENT``: most channels of idle sessions have had no delivery
    Confirms* confirms  # owned, or NULL
    Unacked* unacked  # owned, or NULL

# Of the publish that is timed: its channel, or 0; its tag, or 0 until it passes; when it did. ``seconds`` are
# of the one before.
cdef struct Timing:
    uint16_t number
    uint64_t tag, before
    double since, seconds

# Messages to the client that are no deliveries.
cdef struct Apart:
    uint64_t got, got_bytes, returned, returned_bytes

# A message that has begun and not ended, before a link.
cdef struct Half:
    Py_ssize_t first
    int64_t due
    uint16_t number

# One line of a processor's cache, short keys included. A table of thousands is in no cache that is near, and
# costs a message one such line here and one in its flow.
cdef struct Entry:
    PyObject* flow  # owned
    unsigned char* long_key  # owned, or NULL
    uint32_t length
    uint32_t age
    uint32_t generation
    unsigned char[36] short_key


# A bucket's tokens and when they were counted.
cdef struct Level:
    double tokens
    double stamp


@cython.final
cdef class Bucket:
    cdef public double rate, burst
    cdef Level own
    cdef Level* level  # its own, or one in memory that is shared
    cdef bint is_shared
    cdef Py_buffer memory


@cython.final
cdef class Meter:
    cdef public object row
    cdef list book
    cdef readonly uint64_t messages, body_bytes, largest
    cdef readonly double first, last
    cdef bint is_booked


# See ``_header_rules.pxi``.
@cython.final
cdef class HeaderRules:
    cdef list denies, allows  # by group: tuples of ContentChecks, or None
    cdef readonly int admitted, weight
    cdef bint always
    cdef uint16_t flags
    cdef tuple names
    cdef int64_t body


# What is sent in the place of what came.
cdef struct Made:
    unsigned char* data  # owned, or NULL
    Py_ssize_t size, room


@cython.final
cdef class Rewrite:
    cdef readonly bytes method, entries
    cdef readonly tuple sets
    cdef readonly uint16_t drops
    cdef readonly Py_ssize_t grows
    cdef readonly uint32_t stamps


@cython.final
cdef class CaptureGate:
    cdef readonly bint is_shut


# What a flow has whose messages are looked at, or changed, beyond headers that it is asked for. Most are not, and
# share the one that says so.
@cython.final
cdef class Looks:
    cdef int64_t peek_body
    cdef HeaderRules header_rules
    cdef int64_t captures, samples
    cdef CaptureGate gate
    cdef Rewrite rewrite
    cdef dict notes
    cdef uint64_t told  # a bit for each rule by which messages pass, and of which the control plane knows
    cdef uint8_t captures_contexts


@cython.final
cdef class Flow:
    # What a hit looks at, which is one line of a processor's cache with the object's head.
    cdef public tuple message_buckets, byte_buckets
    cdef public Meter meter
    cdef public uint64_t messages, body_bytes
    cdef public uint32_t sample_every
    cdef public uint8_t drop
    cdef readonly uint8_t _peeks  # what for: PEEKS_HEADER, ...
    # What only some flows need; what is small is together, since there are as many flows as sessions.
    cdef readonly uint16_t peek_flags
    cdef public uint32_t unsampled
    cdef public uint8_t show
    cdef readonly uint8_t peek_contexts
    cdef uint8_t _peek_mode_0, shows_samples
    cdef readonly tuple peek_headers
    cdef Looks looks  # NOTHING_LOOKED_AT, or its own
    cdef readonly tuple rules
    cdef uint64_t reported  # messages


@cython.final
cdef class FlowTable:
    cdef uint32_t* tags  # behind the entries: of each the upper half of its hash, odd; 0: free
    cdef Entry* entries  # owned
    cdef uint32_t capacity  # a power of two, or 0
    cdef uint32_t count
    cdef uint32_t clock
    cdef uint32_t key_bytes
    cdef uint32_t generation
    cdef void clear(self) noexcept
    cdef int grow(self) except -1
    cdef Entry* vacancy(self, uint64_t hash) noexcept
    cdef inline Entry* place(self, uint64_t hash, const unsigned char* key, uint32_t length) noexcept
    cdef inline PyObject* hit(self, uint64_t hash, const unsigned char* key, uint32_t length) noexcept
    cdef inline Entry* coming(self, uint64_t hash) noexcept


@cython.final
cdef class Channels:
    cdef Slot* slots
    cdef uint32_t capacity  # a power of two
    cdef uint32_t taken  # slots in use, closed ones included
    cdef uint32_t live
    # Owned, or NULL: most sessions are idle, or need neither.
    cdef Timing* timing
    cdef Apart* apart
    cdef Slot* find(self, uint16_t number) noexcept
    cdef int grow(self) except -1
    cdef Slot* must_find(self, int number) except NULL
    cdef Unacked* counted(self, int number) except NULL
    cdef bint is_timed(self, int number) noexcept
    cdef PendingContent* content_of(self, side, int number) except NULL
    cdef bint half_way(self, bint upward) noexcept


# Not the garbage collector's: what it holds is its channels and flows, which hold no lane. There are two for
# each session, of 112 bytes instead of 128.
@cython.final
@cython.no_gc
cdef class Lane:
    cdef public uint32_t frame_max, out_frame_max
    cdef readonly Channels channels
    cdef FlowTable _flows
    cdef public uint64_t messages, body_bytes, dropped, frames, most_body
    cdef public double ready_at, held_since
    cdef uint64_t reported  # messages
    cdef uint8_t upward
    cdef public uint8_t shows_content, shows_nacks


@cython.final
cdef class Walk:
    cdef readonly Py_ssize_t quiet, at
    cdef Py_ssize_t opens, large
    cdef int count
    cdef Half[16] half
    cdef Half* find(self, uint16_t number) noexcept
    cdef void forget(self, Half* half) noexcept
    cdef void start_again(self) noexcept
    cdef void go_on(self, Py_ssize_t count) noexcept
    cdef int look_c(
        self,
        Lane lane,
        const unsigned char* data,
        Py_ssize_t size,
        int64_t whole,
        Py_ssize_t* first,
        Py_ssize_t* stop,
    ) noexcept


cdef int scan_c(
    Lane lane,
    unsigned char* buf,
    Py_ssize_t pos,
    Py_ssize_t end,
    double now,
    Span* spans,
    int room,
    int* count,
    Py_ssize_t* at,
    Py_ssize_t* stop,
    list captured,
    Made* made,
) except -100
