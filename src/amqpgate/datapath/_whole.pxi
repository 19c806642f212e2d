# How far a client's bytes may go to a link that others share; see ``whole``.

cdef int check_header(const unsigned char* p, Py_ssize_t size, Py_ssize_t largest) noexcept:
    """Of a content header that is due; ``size`` bytes of payload."""
    if size < 14:
        return V_MALFORMED
    if be16(p + 9):
        return V_HEADER_DUE
    if be16(p + 7) != CLASS_BASIC:
        return V_CLASS_DIFFERS
    if size > largest:
        return V_UNSPLITTABLE
    if not are_properties_c(p + 19, p + 7 + size):
        return V_MALFORMED
    return V_MORE


cdef int check_content(Half* half, const unsigned char* p, Py_ssize_t largest) noexcept:
    """A frame on the channel of a message that has begun."""
    cdef Py_ssize_t size = be32(p + 3)
    cdef int result
    if half.due == HEADER_NEXT:
        if p[0] != 2:
            return V_HEADER_DUE
        result = check_header(p, size, largest)
        if result == V_MORE:
            half.due = <int64_t>min(be64(p + 11), MOST_BODY)
        return result
    if p[0] != 3:
        return V_BODY_DUE
    if size > half.due:
        return V_BODY_OVERRUN
    half.due -= size
    return V_MORE


cdef Py_ssize_t whole_content(
    const unsigned char* p,
    Py_ssize_t left,
    uint16_t number,
    Py_ssize_t largest,
    Py_ssize_t header_largest,
    int64_t whole,
) noexcept:
    """Bytes of a header, and of one body frame where there is a body, if they follow at once and all is well."""
    cdef Py_ssize_t size, body
    if left < WHOLE_HEADER or p[0] != 2 or be16(p + 1) != number:
        return 0
    size = be32(p + 3)
    if size < 14 or size > largest or size + 8 > left or p[size + 7] != FRAME_END:
        return 0
    if check_header(p, size, header_largest) != V_MORE or be64(p + 11) > MOST_BODY:
        return 0
    body = <Py_ssize_t>be64(p + 11)
    if body == 0:
        return size + 8
    p += size + 8
    left -= size + 8
    if body > whole or body > largest or body + 8 > left:
        return 0
    if p[0] != 3 or be16(p + 1) != number or <Py_ssize_t>be32(p + 3) != body or p[body + 7] != FRAME_END:
        return 0
    return size + 8 + body + 8


cdef class Walk:
    """How far one client's bytes have been walked; see ``whole.Walk``."""

    def __cinit__(self):
        self.opens = -1

    cdef Half* find(self, uint16_t number) noexcept:
        cdef int i
        for i in range(self.count):
            if self.half[i].number == number:
                return &self.half[i]
        return NULL

    cdef void forget(self, Half* half) noexcept:
        self.count -= 1
        half[0] = self.half[self.count]

    cdef void start_again(self) noexcept:
        self.quiet = self.at = 0
        self.count = 0
        self.opens = -1

    cdef void go_on(self, Py_ssize_t count) noexcept:
        cdef int i
        self.quiet -= count
        self.at -= count
        self.opens = max(-1, self.opens - count)
        for i in range(self.count):
            self.half[i].first -= count

    def restart(self):
        self.start_again()

    def passed(self, Py_ssize_t count):
        self.go_on(count)

    cdef int look_c(
        self,
        Lane lane,
        const unsigned char* data,
        Py_ssize_t size,
        int64_t whole,
        Py_ssize_t* first,
        Py_ssize_t* stop_out,
    ) noexcept:
        """As ``look``, of ``size`` bytes."""
        cdef Channels channels = lane.channels
        cdef Py_ssize_t largest = lane.frame_max
        cdef Py_ssize_t out_largest = <Py_ssize_t>lane.out_frame_max - 8
        cdef Py_ssize_t room = 2 * (whole + largest)
        cdef int64_t most = <int64_t>min(<uint64_t>whole, lane.most_body)
        cdef Py_ssize_t pos = self.at
        cdef Py_ssize_t stop, length, content
        cdef int result = V_MORE
        cdef int kind
        cdef uint16_t number
        cdef uint32_t index
        cdef bint is_open
        cdef Slot* slot = NULL
        cdef Half* half
        cdef const unsigned char* p
        cdef const unsigned char* last
        while True:
            stop = pos
            if self.count and pos - self.quiet > room:
                result = V_LARGE
                self.large = self.quiet
                break
            if size - pos < 7:
                break
            p = data + pos
            kind = p[0]
            number = be16(p + 1)
            length = be32(p + 3)
            if kind != 1 and kind != 2 and kind != 3 and kind != 8:
                result = V_BAD_TYPE
                stop = size
                break
            if length > largest:
                result = V_TOO_LARGE
                stop = size
                break
            stop = pos + length + 8
            if stop > size:
                break
            if p[length + 7] != FRAME_END:
                result = V_BAD_END
                break
            if kind == 8:
                if number or length:
                    result = V_BAD_HEARTBEAT
                    break
            else:
                if slot == NULL or slot.number != number:
                    slot = channels.find(number)
                is_open = slot != NULL and slot.state == OPEN
                half = self.find(number) if self.count else NULL
                if half != NULL and not is_open and self.opens < 0:
                    self.forget(half)
                    half = NULL
                if half != NULL:
                    result = check_content(half, p, out_largest)
                    if result == V_MORE and kind == 2 and is_open:
                        if be64(p + 11) > lane.most_body:
                            result = V_OVERSIZE
                        elif half.due > whole:
                            result = V_LARGE
                            self.large = half.first
                    if result != V_MORE:
                        break
                    if half.due == 0:
                        self.forget(half)
                elif kind == 1 and length >= 4:
                    index = be32(p + 7)
                    if index == CHANNEL_OPEN:
                        self.opens = pos
                    elif not is_open and (self.opens < 0 or number == 0):
                        pass
                    elif index == PUBLISH:
                        last = p + length + 7
                        if after_shortstr(after_shortstr(p + 13, last), last) + 1 != last:
                            result = V_MALFORMED
                            break
                        if length > out_largest:
                            result = V_UNSPLITTABLE
                            break
                        if self.count == HALF_MESSAGES:
                            result = V_LARGE
                            self.large = self.quiet
                            break
                        # Most messages are there whole, in three frames or two, and need not be remembered.
                        content = whole_content(
                            data + stop, size - stop, number, largest, min(largest, out_largest), most
                        )
                        if content and stop + content - self.quiet <= room:
                            stop += content
                        else:
                            half = &self.half[self.count]
                            self.count += 1
                            half.first = pos
                            half.due = HEADER_NEXT
                            half.number = number
                    elif (index == ACK or index == NACK or index == REJECT) and length != ANSWER_SIZE:
                        result = V_MALFORMED
                        break
            pos = stop
            self.at = pos
            if not self.count:
                self.quiet = pos
        if result == V_LARGE:
            pos = self.large
            stop = pos + <Py_ssize_t>be32(data + pos + 3) + 8
        first[0] = pos
        stop_out[0] = stop
        return result

    def look(self, Lane lane not None, buf, Py_ssize_t start, Py_ssize_t end, int64_t whole):
        cdef Py_buffer view
        cdef Py_ssize_t first = 0, stop = 0
        cdef int result
        PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
        try:
            if not 0 <= start <= end <= view.len or self.at > end - start:
                raise IndexError("start and end must lie in the buffer")
            result = self.look_c(lane, <const unsigned char*>view.buf + start, end - start, whole, &first, &stop)
            return SCAN_RESULTS[result], first, stop
        finally:
            PyBuffer_Release(&view)
