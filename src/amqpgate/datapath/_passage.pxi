# From an endpoint to its peer, and what stops it; see ``passage``.

cdef Py_ssize_t quiet_end(const unsigned char* data, const Span* spans, int n) noexcept:
    """See ``staging.quiet_end``."""
    cdef uint16_t[HALF_MESSAGES] numbers
    cdef int64_t[HALF_MESSAGES] due
    cdef int count = 0, i, j
    cdef Py_ssize_t at, size, quiet = 0
    cdef const unsigned char* p
    for i in range(n):
        at = spans[i].start
        while at < spans[i].stop:
            p = data + at
            size = frame_size(p)
            for j in range(count):
                if numbers[j] == frame_number(p):
                    break
            else:
                j = count
            if p[0] != 1:
                if j == count:
                    return quiet
                if p[0] == 2:
                    due[j] = <int64_t>be64(p + 11)
                else:
                    due[j] -= size - 8
                if due[j] == 0:
                    count -= 1
                    due[j] = due[count]
                    numbers[j] = numbers[count]
            elif be32(p + 7) == PUBLISH:
                if count == HALF_MESSAGES:
                    return quiet
                due[count] = -1
                numbers[count] = frame_number(p)
                count += 1
            at += size
            if count == 0:
                quiet = at
    return quiet


cdef class Passage:
    """What the pump needs for that."""

    cdef int epoll
    cdef list unserved, ready, lost, left, untold
    cdef list gone  # who has left in this step: what the data path still has in hand of them lives until its end
    #: When the present turn is over; 0: no upcall has begun it. Whether it is. What the clock said last.
    cdef double turn_ends, latest
    cdef bint is_over
    cdef Walk walk  # for who has none of his own
    cdef Py_ssize_t high, low, own_words, base
    #: To whom something was sent that more may follow.
    cdef RelayEndpoint corked
    #: How far the frames of ``relay_frames`` were dealt with when an exception ended it.
    cdef Py_ssize_t passed
    cdef object on_failure
    cdef bytearray scratch_owner
    cdef unsigned char* scratch
    cdef object view, landing
    cdef object throttles
    cdef double now
    cdef readonly object counters
    cdef list called  # of the counters
    #: Messages that the scan has captured; its handler is told of them before anything else.
    cdef list captured
    #: What the scan has made of what came, and is to be sent; there are no spans then.
    cdef Made made

    # What the pump itself does.

    cdef int wake(self) except -1:
        raise NotImplementedError

    cdef int look(self) except -1:
        raise NotImplementedError

    cdef int tick(self) except -1:
        raise NotImplementedError

    cdef int arm(self) except -1:
        raise NotImplementedError

    cdef int enter(self, RelayEndpoint endpoint) except -1:
        raise NotImplementedError

    cdef int control(self, int operation, int fd, uint32_t events) except -1:
        raise NotImplementedError

    cdef int schedule(self, object wheel, RelayEndpoint endpoint, double when) except -1:
        raise NotImplementedError

    cdef int begin(self) except -1:
        """An upcall is next."""
        if self.turn_ends == 0:
            self.look()
            self.turn_ends = self.latest + TURN
        return 0

    cdef bint ends_turn(self, RelayEndpoint endpoint) except -1:
        """See ``passage.Passage._ends_turn``."""
        self.look()
        if self.latest < self.turn_ends:
            return False
        self.is_over = True
        endpoint.fresh = True
        self.queue(self.ready, endpoint)
        return True

    cdef int queue(self, list queue, RelayEndpoint endpoint) except -1:
        if endpoint.queued:
            return 0
        queue.append(endpoint)
        endpoint.queued = True
        return self.wake()

    cdef int scan_up_to(self, RelayEndpoint endpoint, Py_ssize_t got) except -1:
        """Relay the whole frames among ``got`` new bytes; keep the beginning of the next one."""
        cdef Py_ssize_t have = held(endpoint.partial)
        cdef Py_ssize_t pos = self.base - have
        cdef Py_ssize_t end = self.base + got
        cdef Py_ssize_t stop = pos
        if have:
            memcpy(self.scratch + pos, first_of(endpoint.partial), have)
            give_back(&endpoint.partial)
        try:
            self.relay_frames(endpoint, &pos, end, &stop, False)
        finally:
            if self.corked is not None:
                self.corked.uncork()
                self.corked = None
        # Where the session has ended, what came behind may be the answer to a close.
        if pos < end:
            append(&endpoint.partial, self.scratch + pos, end - pos)
        endpoint.wanted = stop - pos
        return 0

    cdef int relay_frames(
        self, RelayEndpoint endpoint, Py_ssize_t* at, Py_ssize_t end, Py_ssize_t* stop, bint is_quiet
    ) except -1:
        """Relay the whole frames among the scratch's bytes ``[at:end]``; see ``passage.Passage._relay``."""
        cdef Span spans[SPANS]
        cdef int n, i, result
        cdef Py_ssize_t pos = at[0]
        cdef RelayEndpoint peer
        cdef PooledEndpoint pooled
        cdef Lane lane = endpoint.lane
        cdef bint again, is_whole
        cdef const unsigned char* data
        while True:
            n = 0
            self.made.size = 0
            result = scan_c(lane, self.scratch, pos, end, self.now, spans, SPANS, &n, at, stop, self.captured, &self.made)
            pos = self.passed = at[0]
            peer = endpoint.peer
            pooled = <PooledEndpoint>peer if peer.role == POOLED else None
            data = self.scratch
            if self.made.size:
                # It is all that goes on.
                data = self.made.data
                spans[0].start = 0
                spans[0].stop = self.made.size
                n = 1
            if pooled is not None:
                pooled.prepare(spans, n)
                is_whole = (result == V_MORE and is_quiet) or (
                    result != V_HEADER
                    and result != V_BODY
                    and result != V_REFRAME
                    and not lane.channels.half_way(lane.upward)
                )
                if not is_whole:
                    self.stage(pooled, data, spans, n)
                elif not held(pooled.stage):
                    pooled.staging = False
            if n and (result == V_METHOD or result == V_MISS) and peer.role == OWN and peer.wrapped == PLAIN:
                # What is asked about next goes there, too, as a rule.
                peer.more = True
                self.corked = peer
            try:
                for i in range(n):
                    peer.put_bytes(data + spans[i].start, spans[i].stop - spans[i].start)
            finally:
                peer.more = False
                if self.captured:
                    self.hand_over(endpoint)
            if n:
                endpoint.rewritten = self.made.size != 0
                self.sent(peer)
            if pooled is not None:
                if pooled.way is not None:
                    pooled.way.spare()
                if is_whole:
                    pooled.release()
            if result == V_FULL:
                continue
            if result == V_MORE:
                return 0
            if result == V_THROTTLED:
                stop[0] = pos
                self.wait(endpoint)
                return 0
            if result == V_JUDGED:
                # No upcall, but it takes time as one does.
                self.begin()
                if endpoint.active and self.ends_turn(endpoint):
                    stop[0] = pos
                    return 0
                continue
            if pooled is not None:
                pooled.staging = True
            if result == V_REFRAME:
                peer.put(reframe(self.view[pos:stop[0]], lane.out_frame_max))
            else:
                self.passed = stop[0]
                self.called[result] += 1
                self.begin()
                again = endpoint.relay.handler.upcall(endpoint.side, SCAN_RESULTS[result], self.view[pos:stop[0]])
                if pooled is not None and not lane.channels.half_way(lane.upward):
                    pooled.release()
                if again:
                    if lane.ready_at > self.now:
                        stop[0] = pos
                        self.wait(endpoint)
                        return 0
                else:
                    pos = at[0] = stop[0]
                    if not endpoint.active:
                        return 0
                    if lane.ready_at > self.now:
                        self.wait(endpoint)
                        return 0
                if endpoint.active and self.ends_turn(endpoint):
                    stop[0] = pos
                    return 0
                continue
            pos = at[0] = stop[0]

    cdef int hand_over(self, RelayEndpoint endpoint) except -1:
        """Tell the handler of the messages that were captured."""
        captured = self.captured
        self.captured = []
        self.begin()
        endpoint.relay.handler.captured(endpoint.side, captured)
        return 0

    cdef int stage(self, PooledEndpoint pooled, const unsigned char* data, Span* spans, int n) except -1:
        """Of ``data`` that the scanner passed, only whole messages go to the link now; what is left is in ``spans``."""
        cdef Py_ssize_t quiet, stop
        cdef int i
        if not pooled.staging:
            quiet = quiet_end(data, spans, n)
            for i in range(n):
                stop = min(spans[i].stop, quiet)
                if spans[i].start < stop:
                    pooled.put_bytes(data + spans[i].start, stop - spans[i].start)
                    spans[i].start = stop
        pooled.staging = True
        return 0

    cdef int sent(self, RelayEndpoint endpoint) except -1:
        endpoint.last_sent = self.now
        if endpoint.role == POOLED and (<PooledEndpoint>endpoint).way is not None:
            (<PooledEndpoint>endpoint).way.last_sent = self.now
        return 0

    cdef int wait(self, RelayEndpoint endpoint) except -1:
        """Look again at ``Lane.ready_at``."""
        endpoint.throttled = True
        endpoint.fresh = True
        self.counters.throttled += 1
        self.schedule(self.throttles, endpoint, endpoint.lane.ready_at)
        return 0

    cdef int look_soon(self, RelayEndpoint endpoint) except -1:
        """What is kept for it may be relayed in the next step."""
        endpoint.fresh = True
        return self.queue(self.unserved, endpoint)

    cdef int balance_one(self, RelayEndpoint endpoint, RelayEndpoint peer) except -1:
        cdef Py_ssize_t mark = self.low if endpoint.paused else self.high
        return self.pause(
            endpoint, <Py_ssize_t>held(peer.unsent_) > mark or <Py_ssize_t>held(endpoint.unsent_) > self.own_words
        )

    cdef int pause(self, RelayEndpoint endpoint, bint over) except -1:
        cdef uint32_t wish = 0
        cdef bint is_buffered = endpoint.wrapped == BUFFERED
        if is_buffered and not over:
            over = endpoint.held_sock.is_full
        if over != endpoint.paused:
            endpoint.paused = over
            if over:
                self.counters.paused += 1
            else:
                endpoint.last_received = self.now
                if endpoint.fresh or endpoint.has_pending():
                    self.queue(self.unserved, endpoint)
        if not (over or endpoint.throttled or endpoint.fresh):
            wish = EPOLLIN
        if held(endpoint.unsent_):
            wish |= EPOLLOUT
        if is_buffered:
            wish = self.look_behind(endpoint, wish)
        if wish != endpoint.interest:
            endpoint.interest = wish
            self.control(EPOLL_CTL_MOD, endpoint.fd, wish)
        return 0

    cdef int look_behind(self, RelayEndpoint endpoint, uint32_t wish) except -1:
        """See ``pressure.Pressure._look_behind``."""
        if wish & EPOLLIN and endpoint.has_pending():
            self.queue(self.unserved, endpoint)
        if endpoint.held_sock.unsent or (held(endpoint.unsent_) and endpoint.held_sock.takes_frames):
            return wish | EPOLLOUT
        return wish & ~<uint32_t>EPOLLOUT
