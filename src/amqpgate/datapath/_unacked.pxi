# How many deliveries of a channel its client has not acknowledged; see ``unacked.Unacked``.

cdef uint64_t UNKNOWN_COUNT = <uint64_t>-1
cdef uint64_t NEVER = <uint64_t>1 << 62


cdef Unacked* unacked_of(Slot* slot) noexcept:
    """Where they are counted; NULL: there is no memory."""
    if slot.unacked == NULL:
        slot.unacked = <Unacked*>PyMem_RawCalloc(1, sizeof(Unacked))
        if slot.unacked != NULL:
            slot.acks |= UNACKED_COUNTED
    return slot.unacked


cdef void forget_unacked(Slot* slot) noexcept:
    if slot.unacked != NULL:
        PyMem_RawFree(slot.unacked.stretches)
        PyMem_RawFree(slot.unacked.silent)
        PyMem_RawFree(slot.unacked)
        slot.unacked = NULL


cdef void drop_stretches(Unacked* unacked) noexcept:
    unacked.count = 0
    unacked.head = unacked.size = 0
    if unacked.room > KEPT_STRETCHES:
        PyMem_RawFree(unacked.stretches)
        unacked.stretches = NULL
        unacked.room = 0


cdef bint blur(Unacked* unacked) noexcept:
    """Whether the older half of the stretches had to be made a number."""
    cdef uint64_t tags = 0
    cdef uint32_t i
    cdef Stretch* old = unacked.stretches + unacked.head
    if unacked.size < MOST_STRETCHES:
        return False
    for i in range(MOST_STRETCHES // 2):
        tags += old[i].end - old[i].first
    unacked.clear = old[MOST_STRETCHES // 2 - 1].end
    unacked.count -= tags
    if unacked.blurred != UNKNOWN_COUNT:
        unacked.blurred += tags
    unacked.head += MOST_STRETCHES // 2
    unacked.size -= MOST_STRETCHES // 2
    return True


cdef bint has_room(Unacked* unacked) noexcept:
    """Have a free place behind the last stretch; no: there is no memory."""
    cdef uint32_t room
    cdef Stretch* stretches
    if unacked.head + unacked.size < unacked.room:
        return True
    if unacked.size * 2 <= unacked.room and unacked.room:
        memmove(unacked.stretches, unacked.stretches + unacked.head, unacked.size * sizeof(Stretch))
        unacked.head = 0
        return True
    room = max(FIRST_STRETCHES, 2 * unacked.room)
    stretches = <Stretch*>PyMem_RawMalloc(room * sizeof(Stretch))
    if stretches == NULL:
        unacked.is_lost = True
        return False
    if unacked.size:
        memcpy(stretches, unacked.stretches + unacked.head, unacked.size * sizeof(Stretch))
    PyMem_RawFree(unacked.stretches)
    unacked.stretches = stretches
    unacked.room = room
    unacked.head = 0
    return True


cdef void note_deliveries(Slot* slot, uint64_t tag, uint64_t count) noexcept:
    """So many have passed, with tags from this one on."""
    cdef Unacked* unacked = unacked_of(slot)
    cdef Stretch* last
    if unacked == NULL:
        slot.acks |= UNACKED_LOST
        return
    if tag < unacked.next or tag >= NEVER or tag + count > NEVER:
        unacked.is_lost = True
        return
    unacked.next = tag + count
    if tag < unacked.clear:
        return
    if unacked.size:
        last = unacked.stretches + unacked.head + unacked.size - 1
        if last.end == tag:
            last.end = tag + count
            unacked.count += count
            return
    blur(unacked)
    if has_room(unacked):
        last = unacked.stretches + unacked.head + unacked.size
        last.first = tag
        last.end = tag + count
        unacked.size += 1
        unacked.count += count


cdef void note_run(
    Slot* slot, const unsigned char* p, Py_ssize_t method_size, Py_ssize_t gap, uint64_t more
) noexcept:
    """So many more behind the delivery whose method is at ``p``, each whole, with a method that differs in its tag."""
    cdef uint64_t first = 0, tags = 0, body
    while more:
        more -= 1
        p += method_size
        body = be64(p + 11)
        p += be32(p + 3) + 8
        if body:
            p += body + 8
        if be64(p + gap) != first + tags:
            if tags:
                note_deliveries(slot, first, tags)
            first = be64(p + gap)
            tags = 0
        tags += 1
    note_deliveries(slot, first, tags)


cdef uint64_t settle_one(Unacked* unacked, uint64_t tag) noexcept:
    cdef Stretch* stretches = unacked.stretches + unacked.head
    cdef Stretch* found
    cdef uint32_t low = 0, high = unacked.size, middle
    if not high:
        return 0
    # Mostly it is of the oldest one.
    if high > 1 and stretches[1].first <= tag:
        while low < high:
            middle = (low + high) >> 1
            if stretches[middle].first <= tag:
                low = middle + 1
            else:
                high = middle
        low -= 1
    found = stretches + low
    if tag < found.first or tag >= found.end:
        return 0
    if found.first == tag:
        found.first += 1
        if found.first == found.end:
            if low == 0:
                unacked.head += 1
            else:
                memmove(found, found + 1, (unacked.size - low - 1) * sizeof(Stretch))
            unacked.size -= 1
    elif found.end == tag + 1:
        found.end = tag
    else:
        if blur(unacked):
            if tag < unacked.clear:
                unacked.blurred -= unacked.blurred != UNKNOWN_COUNT
                return 1
            return settle_one(unacked, tag)
        if not has_room(unacked):
            return 0
        found = unacked.stretches + unacked.head + low
        memmove(found + 1, found, (unacked.size - low) * sizeof(Stretch))
        found.end = tag
        found[1].first = tag + 1
        unacked.size += 1
    unacked.count -= 1
    if not unacked.count:
        drop_stretches(unacked)
    return 1


cdef uint64_t settle_through(Unacked* unacked, uint64_t tag) noexcept:
    cdef uint64_t before = unacked.count, settled = 0
    cdef Stretch* first
    if unacked.blurred:
        if tag + 1 >= min(unacked.clear, unacked.next):
            settled = unacked.blurred
            unacked.blurred = unacked.clear = 0
        else:
            settled = unacked.blurred = UNKNOWN_COUNT
    while unacked.size:
        first = unacked.stretches + unacked.head
        if first.first > tag:
            break
        if first.end > tag + 1:
            unacked.count -= tag + 1 - first.first
            first.first = tag + 1
            break
        unacked.count -= first.end - first.first
        unacked.head += 1
        unacked.size -= 1
    if settled != UNKNOWN_COUNT:
        settled += before - unacked.count
    if not unacked.size:
        drop_stretches(unacked)
    return settled


cdef void settle(Unacked* unacked, uint64_t tag, bint multiple) noexcept:
    """The client acks it, or rejects it."""
    cdef uint64_t settled = 0
    if tag >= NEVER:
        return
    if multiple:
        settled = settle_through(unacked, tag if tag else unacked.next)
    elif tag >= unacked.clear:
        settled = settle_one(unacked, tag)
    elif unacked.blurred:
        unacked.blurred -= unacked.blurred != UNKNOWN_COUNT
        settled = 1
    if settled == UNKNOWN_COUNT:
        unacked.uncommitted = UNKNOWN_COUNT
    elif unacked.uncommitted != UNKNOWN_COUNT:
        unacked.uncommitted += settled


cdef void answer_get(Slot* slot, const unsigned char* frame, Py_ssize_t size) noexcept:
    """A get-ok or get-empty of the broker's."""
    cdef Unacked* unacked = slot.unacked
    cdef bint is_acked = unacked.gets & 1
    if not unacked.gets_due:
        return
    unacked.gets >>= 1
    unacked.gets_due -= 1
    if is_acked and size >= LEAST_GET_OK and be32(frame + 7) == GET_OK:
        note_deliveries(slot, be64(frame + 11), 1)


cdef bint is_silent(const Unacked* unacked, const unsigned char* tag) noexcept:
    """Whether deliveries of the consumer with the tag, a short string, are not to be acked."""
    cdef uint64_t hash
    cdef uint32_t i
    if unacked == NULL or not unacked.silents:
        return False
    hash = hash_bytes(tag + 1, tag[0])
    for i in range(unacked.silents):
        if unacked.silent[i] == hash:
            return True
    return False


cdef inline bint counts_delivery(const Slot* slot, const unsigned char* frame) noexcept:
    """Whether a delivery is one that the client has to acknowledge."""
    return slot.acks & DELIVERIES_ACKED and not is_silent(slot.unacked, frame + 11)
