# Which channels are open, and how far the content of each has come.

cdef void clear_content(PendingContent* content) noexcept:
    """Whatever is under way ends here."""
    content.due = 0
    content.show = content.drop = 0
    settle_nothing(content)


# Of channels on which nothing has come to the client yet. Nobody writes to it.
cdef PendingContent NOTHING_SENT
memset(&NOTHING_SENT, 0, sizeof(NOTHING_SENT))


cdef PendingContent* sent_of(Slot* slot) except NULL:
    """What comes to the client on a channel, to be written to."""
    cdef PendingContent* made
    if slot.down == &NOTHING_SENT:
        made = <PendingContent*>PyMem_RawCalloc(1, sizeof(PendingContent))
        if made == NULL:
            raise MemoryError
        slot.down = made
    return slot.down


cdef inline void sent_nothing(Slot* slot) noexcept:
    if slot.down != &NOTHING_SENT:
        clear_content(slot.down)
        PyMem_RawFree(slot.down)
        slot.down = &NOTHING_SENT


cdef void settle_nothing(PendingContent* content) noexcept:
    """What is under way does not count, or has been counted."""
    content.counts = 0
    Py_XDECREF(content.flow)
    Py_XDECREF(content.meter)
    Py_XDECREF(content.buckets)
    content.flow = content.meter = content.buckets = NULL


cdef bint forget_answer(Confirms* confirms, uint64_t tag) noexcept:
    """Whether the tag had been answered on its own."""
    cdef uint32_t bit = tag & (CONFIRM_WINDOW - 1)
    cdef uint64_t mask = <uint64_t>1 << (bit & 63)
    if not confirms.answered[bit >> 6] & mask:
        return False
    confirms.answered[bit >> 6] &= ~mask
    confirms.singles -= 1
    return True


cdef void answered(Confirms* confirms, const unsigned char* frame) noexcept:
    """An ack or nack of the broker has passed; see ``confirms.Confirms``."""
    cdef uint64_t tag = be64(frame + 11)
    cdef uint32_t bit = tag & (CONFIRM_WINDOW - 1)
    cdef uint64_t mask = <uint64_t>1 << (bit & 63)
    if frame[19] & 1:
        if tag > confirms.through:
            if tag - confirms.through > CONFIRM_WINDOW:
                confirms.singles = 0
                memset(confirms.answered, 0, sizeof(confirms.answered))
            while confirms.singles and confirms.through < tag:
                confirms.through += 1
                forget_answer(confirms, confirms.through)
            confirms.through = tag
    elif tag > confirms.through and tag - confirms.through <= CONFIRM_WINDOW:
        if not confirms.answered[bit >> 6] & mask:
            confirms.answered[bit >> 6] |= mask
            confirms.singles += 1
    while confirms.singles and forget_answer(confirms, confirms.through + 1):
        confirms.through += 1


cdef inline void time_publish(Channels channels, uint64_t messages, double now) noexcept:
    """See ``channels.Channels.published``."""
    if channels.timing.tag == 0:
        channels.timing.tag = messages - channels.timing.before
        channels.timing.since = now


cdef inline void time_answer(Channels channels, Slot* slot, const unsigned char* frame, double now) noexcept:
    """See ``channels.Channels.answered``."""
    cdef uint64_t tag = be64(frame + 11)
    cdef Timing* timing = channels.timing
    if timing.tag and (tag == timing.tag or (frame[19] & 1 and (tag > timing.tag or tag == 0))):
        timing.seconds = now - timing.since
        timing.number = 0
        slot.acks &= ~ACKS_TIMED


cdef class Channels:
    """The open channels of one session; see ``channels.Channels``. Open addressing by number."""

    def __cinit__(self):
        self.capacity = 1
        self.slots = <Slot*>PyMem_RawCalloc(self.capacity, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef uint32_t i
        if self.slots != NULL:
            for i in range(self.capacity):
                settle_nothing(&self.slots[i].up)
                if self.slots[i].used:
                    sent_nothing(self.slots + i)
                PyMem_RawFree(self.slots[i].confirms)
                forget_unacked(self.slots + i)
            PyMem_RawFree(self.slots)
        PyMem_RawFree(self.timing)
        PyMem_RawFree(self.apart)

    def __sizeof__(self):
        """With its slots."""
        return type(self).__basicsize__ + self.capacity * sizeof(Slot)

    cdef Slot* find(self, uint16_t number) noexcept:
        cdef uint32_t mask = self.capacity - 1
        cdef uint32_t i = number & mask
        cdef uint32_t tried
        for tried in range(self.capacity):
            if not self.slots[i].used:
                break
            if self.slots[i].number == number:
                return self.slots + i
            i = (i + 1) & mask
        return NULL

    cdef int grow(self) except -1:
        """Room for one more; slots of closed channels are given up."""
        cdef uint32_t capacity = 1
        cdef Slot* old = self.slots
        cdef uint32_t old_capacity = self.capacity
        cdef uint32_t i, at
        while self.live and capacity < 2 * (self.live + 1):
            capacity *= 2
        self.slots = <Slot*>PyMem_RawCalloc(capacity, sizeof(Slot))
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
        PyMem_RawFree(old)
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
        if self.is_timed(number):
            self.timing.number = 0
        if slot == NULL:
            # A quarter stays free, so that a search ends soon; but one channel is all that most sessions have.
            if (self.taken + 1) * 4 > max(4, self.capacity * 3):
                self.grow()
            at = number & (self.capacity - 1)
            while self.slots[at].used:
                at = (at + 1) & (self.capacity - 1)
            slot = self.slots + at
            slot.used = 1
            slot.down = &NOTHING_SENT
            slot.number = <uint16_t>number
            self.taken += 1
        if slot.state == 0:
            self.live += 1
        slot.state = OPEN
        slot.to = <uint16_t>(number if to is None else to)
        slot.acks = 0
        PyMem_RawFree(slot.confirms)
        slot.confirms = NULL
        forget_unacked(slot)
        clear_content(&slot.up)
        sent_nothing(slot)
        slot.up.messages = 0

    def discard(self, int number):
        cdef Slot* slot = self.must_find(number)
        slot.state = DISCARD
        clear_content(&slot.up)

    def close(self, int number):
        cdef Slot* slot = self.find(<uint16_t>number)
        if self.is_timed(number):
            self.timing.number = 0
        if slot != NULL and slot.state:
            slot.state = 0
            self.live -= 1
            clear_content(&slot.up)
            sent_nothing(slot)
            PyMem_RawFree(slot.confirms)
            slot.confirms = NULL
            forget_unacked(slot)

    def remap(self, int number, int to):
        self.must_find(number).to = <uint16_t>to

    def to(self, int number):
        cdef Slot* slot = self.find(<uint16_t>number)
        return 0 if slot == NULL or slot.state == 0 else slot.to

    def expect_header(self, side, int number, Flow flow, int show=0):
        cdef PendingContent* content = self.content_of(side, number)
        clear_content(content)
        if flow is not None:
            Py_INCREF(flow)
            content.flow = <PyObject*>flow
        content.due = HEADER_NEXT
        content.show = <uint8_t>show

    cdef PendingContent* content_of(self, side, int number) except NULL:
        cdef Slot* slot = self.must_find(number)
        return &slot.up if side == SIDE_CLIENT else sent_of(slot)

    def drop_next(self, side, int number):
        self.expect_header(side, number, None)
        self.content_of(side, number).drop = 1

    def drop_rest(self, side, int number):
        cdef PendingContent* content = self.content_of(side, number)
        content.show = 0
        content.drop = content.due != 0
        settle_nothing(content)

    def is_dropping(self, side, int number):
        return bool(self.content_of(side, number).drop)

    def uncount(self, side, int number):
        cdef PendingContent* content = self.content_of(side, number)
        if self.is_timed(number):
            self.timing.tag = 0
        content.messages -= 1
        settle_nothing(content)

    def count_as(self, side, int number, Meter meter not None):
        cdef PendingContent* content = self.content_of(side, number)
        Py_XDECREF(content.meter)
        Py_INCREF(meter)
        content.meter = <PyObject*>meter

    def debits(self, side, int number, tuple buckets not None):
        cdef PendingContent* content = self.content_of(side, number)
        for bucket in buckets:
            if not isinstance(bucket, Bucket):
                raise TypeError("buckets are Bucket objects")
        Py_XDECREF(content.buckets)
        Py_INCREF(buckets)
        content.buckets = <PyObject*>buckets

    def hold(self, side, int number):
        cdef PendingContent* content = self.content_of(side, number)
        clear_content(content)
        content.due = HELD_NEXT

    def let_go(self, side, int number):
        if self.due(side, number) == HELD_NEXT:
            self.content_of(side, number).due = 0

    def show_rest(self, side, int number):
        self.content_of(side, number).show = 3

    def show_acks(self, int number, bint shown=True):
        cdef Slot* slot = self.must_find(number)
        slot.acks = slot.acks | ACKS_SHOWN if shown else slot.acks & ~ACKS_SHOWN

    def show_settles(self, int number, bint shown=True):
        cdef Slot* slot = self.must_find(number)
        slot.acks = slot.acks | SETTLES_SHOWN if shown else slot.acks & ~SETTLES_SHOWN

    def count_confirms(self, int number):
        cdef Slot* slot = self.must_find(number)
        cdef Confirms* confirms = <Confirms*>PyMem_RawCalloc(1, sizeof(Confirms))
        if confirms == NULL:
            raise MemoryError
        confirms.before = slot.up.messages
        PyMem_RawFree(slot.confirms)
        slot.confirms = confirms
        slot.acks |= ACKS_COUNTED

    def unconfirmed(self, int number):
        cdef Slot* slot = self.must_find(number)
        assert slot.confirms != NULL, "confirms are counted"
        return max(0, <object>slot.up.messages - slot.confirms.before - slot.confirms.through - slot.confirms.singles)

    cdef Unacked* counted(self, int number) except NULL:
        cdef Unacked* unacked = unacked_of(self.must_find(number))
        if unacked == NULL:
            raise MemoryError
        return unacked

    def acks_deliveries(self, int number):
        self.must_find(number).acks |= DELIVERIES_ACKED

    def silence(self, int number, bytes tag not None):
        cdef Unacked* unacked = self.counted(number)
        cdef uint64_t hash = hash_bytes(<const unsigned char*>PyBytes_AS_STRING(tag), <uint32_t>PyBytes_GET_SIZE(tag))
        cdef uint32_t i
        for i in range(unacked.silents):
            if unacked.silent[i] == hash:
                return
        if unacked.silents == SILENT_TAGS:
            unacked.is_lost = True
            return
        if unacked.silent == NULL:
            unacked.silent = <uint64_t*>PyMem_RawMalloc(SILENT_TAGS * sizeof(uint64_t))
            if unacked.silent == NULL:
                raise MemoryError
        unacked.silent[unacked.silents] = hash
        unacked.silents += 1

    def unsilence(self, int number, bytes tag not None):
        cdef Unacked* unacked = self.counted(number)
        cdef uint64_t hash = hash_bytes(<const unsigned char*>PyBytes_AS_STRING(tag), <uint32_t>PyBytes_GET_SIZE(tag))
        cdef uint32_t i
        for i in range(unacked.silents):
            if unacked.silent[i] == hash:
                unacked.silents -= 1
                unacked.silent[i] = unacked.silent[unacked.silents]
                return

    def gets(self, int number, bint is_acked):
        cdef Unacked* unacked = self.counted(number)
        if unacked.gets_due == GETS:
            unacked.is_lost = True
            return
        if is_acked:
            unacked.gets |= <uint64_t>1 << unacked.gets_due
        unacked.gets_due += 1

    def settled(self, int number, uint64_t tag, bint multiple):
        cdef Slot* slot = self.must_find(number)
        if slot.unacked != NULL:
            settle(slot.unacked, tag, multiple)

    def recovered(self, int number):
        cdef Slot* slot = self.find(<uint16_t>number)
        if slot != NULL and slot.unacked != NULL:
            drop_stretches(slot.unacked)
            slot.unacked.blurred = slot.unacked.clear = 0

    def recovers_unheard(self, int number):
        cdef Unacked* unacked = self.counted(number)
        drop_stretches(unacked)
        unacked.clear = NEVER
        unacked.blurred = UNKNOWN_COUNT

    def committed(self, int number):
        cdef Slot* slot = self.must_find(number)
        if slot.unacked != NULL:
            slot.unacked.uncommitted = 0

    def rolled_back(self, int number):
        cdef Unacked* unacked = self.must_find(number).unacked
        if unacked == NULL or not unacked.uncommitted:
            return
        if unacked.uncommitted == UNKNOWN_COUNT or unacked.blurred == UNKNOWN_COUNT:
            unacked.blurred = UNKNOWN_COUNT
        else:
            unacked.blurred += unacked.count + unacked.uncommitted
        unacked.clear = max(unacked.clear, unacked.next)
        unacked.uncommitted = 0
        drop_stretches(unacked)

    def lose_unacked(self, int number):
        self.counted(number).is_lost = True

    def unacked(self, int number):
        cdef Slot* slot = self.must_find(number)
        if slot.acks & UNACKED_LOST:
            return None
        if slot.unacked == NULL:
            return 0
        if slot.unacked.is_lost or slot.unacked.blurred == UNKNOWN_COUNT:
            return None
        return slot.unacked.blurred + slot.unacked.count

    def unacked_tags(self, int number):
        cdef Unacked* unacked = self.must_find(number).unacked
        cdef uint32_t i
        if self.unacked(number) is None or (unacked != NULL and unacked.blurred):
            return None
        if unacked == NULL:
            return []
        return [
            (unacked.stretches[unacked.head + i].first, unacked.stretches[unacked.head + i].end)
            for i in range(unacked.size)
        ]

    def uncommitted(self, int number):
        cdef Unacked* unacked = self.must_find(number).unacked
        if unacked == NULL:
            return 0
        return None if unacked.uncommitted == UNKNOWN_COUNT else unacked.uncommitted

    def time_confirm(self, int number, uint64_t before):
        cdef Slot* slot = self.must_find(number)
        if self.timing == NULL:
            self.timing = <Timing*>PyMem_RawCalloc(1, sizeof(Timing))
            if self.timing == NULL:
                raise MemoryError
        elif self.timing.number:
            self.must_find(self.timing.number).acks &= ~ACKS_TIMED
        slot.acks |= ACKS_TIMED
        self.timing.number = <uint16_t>number
        self.timing.before = before
        self.timing.tag = 0
        self.timing.seconds = -1

    cdef bint is_timed(self, int number) noexcept:
        return self.timing != NULL and self.timing.number == number

    @property
    def timed(self):
        return 0 if self.timing == NULL else self.timing.number

    @property
    def confirm_seconds(self):
        return -1.0 if self.timing == NULL else self.timing.seconds

    @property
    def is_timing(self):
        return self.timing != NULL and self.timing.number != 0 and self.timing.tag != 0

    @property
    def got(self):
        return 0 if self.apart == NULL else self.apart.got

    @property
    def got_bytes(self):
        return 0 if self.apart == NULL else self.apart.got_bytes

    @property
    def returned(self):
        return 0 if self.apart == NULL else self.apart.returned

    @property
    def returned_bytes(self):
        return 0 if self.apart == NULL else self.apart.returned_bytes

    cdef bint half_way(self, bint upward) noexcept:
        cdef uint32_t i
        cdef PendingContent* content
        for i in range(self.capacity):
            if not self.slots[i].state:
                continue
            content = &self.slots[i].up if upward else self.slots[i].down
            if content.due and not content.drop:
                return True
        return False

    def is_half_way(self, side):
        return self.half_way(side == SIDE_CLIENT)

    def messages(self, side, int number):
        cdef Slot* slot = self.must_find(number)
        return slot.up.messages if side == SIDE_CLIENT else slot.down.messages

    def due(self, side, int number):
        cdef Slot* slot = self.find(<uint16_t>number)
        if slot == NULL or slot.state == 0:
            return 0
        return slot.up.due if side == SIDE_CLIENT else slot.down.due
