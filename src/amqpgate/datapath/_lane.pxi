# One direction of a session, and what it costs a message to pass.

# What all lanes have that look for flows and know none yet: most sessions are idle, and a table is 64 bytes.
cdef FlowTable NO_FLOWS = FlowTable()


@cython.no_gc
cdef class Lane:
    """One direction of one session; see ``reference.Lane``."""

    def __init__(
        self,
        side,
        uint32_t frame_max,
        uint32_t out_frame_max,
        Channels channels not None,
        FlowTable flows=None,
        uint64_t most_body=MOST_BODY,
    ):
        self.frame_max = frame_max
        self.out_frame_max = out_frame_max
        self.channels = channels
        self._flows = flows
        self.upward = side == SIDE_CLIENT
        self.most_body = most_body

    @property
    def side(self):
        return SIDE_CLIENT if self.upward else SIDE_UPSTREAM

    def add_body(self, int64_t body_bytes):
        self.body_bytes += body_bytes

    def unreported(self):
        """See ``reference.Lane.unreported``."""
        cdef uint64_t more = self.messages - self.reported
        self.reported = self.messages
        return more

    def settle(self, int number, double now):
        """See ``reference.Lane.settle``."""
        cdef Slot* slot = self.channels.find(<uint16_t>number)
        cdef PendingContent* content
        if slot == NULL or slot.state == 0:
            return
        content = &slot.up if self.upward else slot.down
        if content.counts and content.due == 0:
            count(self, content, now)

    def use_flows(self, bint used):
        """See ``reference.Lane.use_flows``."""
        if not used:
            self._flows = None
        elif self._flows is None:
            self._flows = NO_FLOWS
        elif self._flows is not NO_FLOWS:
            self._flows.flush()

    @property
    def uses_flows(self):
        return self._flows is not None

    def known_flows(self):
        """See ``reference.Lane.known_flows``."""
        return [] if self._flows is None else self._flows.flows()

    @property
    def flows(self):
        if self._flows is NO_FLOWS:
            self._flows = FlowTable()
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


cdef inline const unsigned char* after_shortstr(const unsigned char* p, const unsigned char* end) noexcept:
    """Where the short string at ``p`` ends; beyond ``end`` where it does not fit."""
    return p + 1 + p[0] if p < end else end + 1


cdef inline uint32_t publish_key(const unsigned char* p, Py_ssize_t left) noexcept:
    """How long the key is of the publish whose frame starts at ``p``, in ``left`` bytes; 0: no whole one does.
    What is wrong inside makes it no key of any flow."""
    cdef Py_ssize_t size = be32(p + 3) if left >= 13 else 0
    if (
        not 6 < size <= min(LONGEST_PUBLISH, left - 8)
        or p[0] != 1
        or be32(p + 7) != PUBLISH
        or p[size + 7] != FRAME_END
    ):
        return 0
    return <uint32_t>size - 6


cdef inline bint is_kin(PyObject* flow, PyObject* other) noexcept:
    """Whether a message that passes under one flow passes under the other, its header apart."""
    return (
        other != NULL
        and <PyObject*>(<Flow>other).message_buckets == <PyObject*>(<Flow>flow).message_buckets
        and <PyObject*>(<Flow>other).byte_buckets == <PyObject*>(<Flow>flow).byte_buckets
        and not ((<Flow>other).drop or (<Flow>other).sample_every)
    )


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
    for bucket in flow.message_buckets + flow.byte_buckets:
        if bucket.level.tokens <= 0:
            ready = max(ready, now - bucket.level.tokens / bucket.rate + 1 / bucket.rate)
    return ready


cdef inline void debit(PyObject* buckets, uint64_t tokens) noexcept:
    cdef Py_ssize_t i
    for i in range(items_in(buckets)):
        drawn(item(buckets, i), <double>tokens)


cdef inline int tally(
    PyObject* flow, uint64_t messages, uint64_t body_bytes, uint64_t largest, double now
) except -1:
    """Count what passed; ``largest`` is that of the bodies."""
    (<Flow>flow).messages += messages
    (<Flow>flow).body_bytes += body_bytes
    if (<Flow>flow).meter is not None:
        measure((<Flow>flow).meter, messages, body_bytes, largest, now)
    return 0


cdef int tally_one(PyObject* flow, PyObject* meter, uint64_t body_bytes, double now) except -1:
    """Count a message of the flow; by the meter, where there is one."""
    if meter == NULL:
        return tally(flow, 1, body_bytes, body_bytes, now)
    (<Flow>flow).messages += 1
    (<Flow>flow).body_bytes += body_bytes
    return measure(<Meter>meter, 1, body_bytes, body_bytes, now)


cdef inline void charge(PyObject* flow, uint64_t messages, uint64_t body_bytes) noexcept:
    """Take what passed from the buckets."""
    debit(<PyObject*>(<Flow>flow).message_buckets, messages)
    debit(<PyObject*>(<Flow>flow).byte_buckets, body_bytes)


cdef int tell_apart(Channels channels, uint32_t kind, uint64_t messages, uint64_t body_bytes) except -1:
    """Of what was counted, what is no delivery."""
    if channels.apart == NULL:
        channels.apart = <Apart*>PyMem_RawCalloc(1, sizeof(Apart))
        if channels.apart == NULL:
            raise MemoryError
    if kind == GET_OK:
        channels.apart.got += messages
        channels.apart.got_bytes += body_bytes
    else:
        channels.apart.returned += messages
        channels.apart.returned_bytes += body_bytes
    return 0


cdef void begin(Lane lane, PendingContent* content, uint64_t body) noexcept:
    """A message's header has passed."""
    content.due = content.size = <int64_t>body
    content.counts = 1
    if not content.drop:
        content.messages += 1
        lane.held_since = 0
        if content.flow != NULL:
            debit(<PyObject*>(<Flow>content.flow).message_buckets, 1)


cdef int go_on(Lane lane, PendingContent* content, uint64_t body_bytes, double now) except -1:
    """More of its body has come."""
    if content.drop or not content.counts:
        lane.dropped += body_bytes
    else:
        if content.flow != NULL:
            debit(<PyObject*>(<Flow>content.flow).byte_buckets, body_bytes)
        if content.buckets != NULL:
            debit(content.buckets, body_bytes)
    if content.counts and content.due == 0:
        count(lane, content, now)
    return 0


cdef int count(Lane lane, PendingContent* content, double now) except -1:
    """A message is whole."""
    content.counts = 0
    try:
        if not content.drop:
            lane.messages += 1
            lane.body_bytes += content.size
            if content.kind:
                tell_apart(lane.channels, content.kind, 1, content.size)
        if content.flow != NULL:
            tally_one(content.flow, content.meter, content.size, now)
    finally:
        settle_nothing(content)
    return 0


cdef bint has_mode(const unsigned char* frame, Py_ssize_t size, uint16_t flags) noexcept:
    """Whether the delivery-mode of a content header is not 0; no, too, where it lies beyond the end."""
    cdef const unsigned char* p = frame + 21
    cdef const unsigned char* end = frame + 7 + size
    if flags & CONTENT_TYPE:
        p = after_shortstr(p, end)
    if flags & CONTENT_ENCODING:
        p = after_shortstr(p, end)
    if flags & HEADERS:
        p = p + 4 + be32(p) if p + 4 <= end else end
    return p < end and p[0] != 0


cdef bint has_any(
    const unsigned char* frame, Py_ssize_t size, uint16_t flags, PyObject* names, int64_t most_body
) noexcept:
    """Whether a content header has one of these flags, or (nearly certainly) headers, or declares more body."""
    cdef uint16_t have = be16(frame + 19)
    cdef PyObject* name
    cdef Py_ssize_t i
    if have & flags:
        return True
    if most_body >= 0 and be64(frame + 11) > <uint64_t>most_body:
        return True
    if have & HEADERS:
        for i in range(items_in(names)):
            name = item(names, i)
            if has_shortstr(frame + 21, size - 14, PyBytes_AS_STRING(<bytes>name), PyBytes_GET_SIZE(<bytes>name)):
                return True
    return False


cdef bint trips(Flow flow, const unsigned char* frame, Py_ssize_t size) noexcept:
    """Whether a message with this content header must be shown."""
    cdef uint16_t flags = be16(frame + 19)
    if flow._peek_mode_0 and flags & DELIVERY_MODE and not has_mode(frame, size, flags):
        return True
    return has_any(frame, size, flow.peek_flags | MORE_FLAGS, <PyObject*>flow.peek_headers, flow.looks.peek_body)


cdef bint passes_rules(Flow flow, const unsigned char* frame, Py_ssize_t size, bint tells, int* spent) noexcept:
    """Whether a message surely passes the flow's rules, and nobody needs to know by which; where ``tells``,
    somebody knows from now on."""
    cdef HeaderRules rules = flow.looks.header_rules
    cdef int passed
    if not asks(rules, frame, size):
        return True
    spent[0] += rules.weight
    passed = passed_by(rules, frame, size)
    if passed < 0 or passed == rules.admitted:
        return passed >= 0
    if flow.meter is not None:
        return False
    if flow.looks.told >> passed & 1:
        return True
    if tells:
        flow.looks.told |= <uint64_t>1 << passed
    return False


cdef inline bint may_lack_mode(const unsigned char* frame) noexcept:
    """Whether a delivery-mode may be 0: it is, or what stands before it would have to be read."""
    cdef uint16_t flags = be16(frame + 19)
    if not flags & DELIVERY_MODE:
        return False
    return flags & (CONTENT_TYPE | CONTENT_ENCODING | HEADERS) or be32(frame + 3) < 15 or frame[21] == 0


cdef inline bint passes_by(
    PyObject* flow, const unsigned char* frame, Py_ssize_t left, uint16_t number, int* spent
) noexcept:
    """Whether the message whose header frame starts here surely need not be shown; of ``left`` bytes."""
    cdef Py_ssize_t size
    cdef uint16_t have
    if left < WHOLE_HEADER:
        return False
    size = be32(frame + 3)
    have = be16(frame + 19)
    if size + 8 > left or frame[0] != 2 or be16(frame + 1) != number:
        return False
    if (<Flow>flow).looks.header_rules is not None:
        return (
            14 <= size <= PEEKED_HEADER
            and not ((<Flow>flow).peek_contexts and have & HEADERS)
            and spent[0] < PATIENCE
            and not trips(<Flow>flow, frame, size)
            and passes_rules(<Flow>flow, frame, size, False, spent)
        )
    return (
        not have & ((<Flow>flow).peek_flags | MORE_FLAGS)
        and not ((<Flow>flow)._peek_mode_0 and may_lack_mode(frame))
        and ((<Flow>flow).looks.peek_body < 0 or be64(frame + 11) <= <uint64_t>(<Flow>flow).looks.peek_body)
        and (
            not have & HEADERS
            or not (<Flow>flow).peek_contexts
            and 14 <= size <= PEEKED_HEADER
            and not has_any(frame, size, 0, <PyObject*>(<Flow>flow).peek_headers, -1)
        )
    )
