# From clients to links and back; see ``passage`` and ``pressure``.

cdef inline bint is_of_pooled(RelayEndpoint endpoint) noexcept:
    """Whether it is the client of a pooled session."""
    return endpoint.role == OWN and endpoint.peer.role == POOLED


cdef inline Py_ssize_t most_of(RelayEndpoint endpoint) noexcept:
    """Bytes that are read at once."""
    return CHUNK_REWRITTEN if endpoint.rewritten else CHUNK


cdef class Pooling(Passage):
    """As ``Passage``, with pooled sessions."""

    cdef int read_from(self, RelayEndpoint endpoint) except -1:
        cdef Py_ssize_t got
        if endpoint.fresh and not endpoint.throttled:
            self.take_rest(endpoint)
            if not endpoint.active or endpoint.throttled or endpoint.fresh:
                return 0
        if endpoint.role == POOLED:
            return 0
        if endpoint.wrapped == BUFFERED:
            return self.read_buffered(endpoint)
        got = endpoint.receive(self.scratch + self.base, self.landing, most_of(endpoint))
        if got < 0:
            return 0
        if got == 0:
            return self.end_of(endpoint)
        endpoint.last_received = self.now
        self.take_in(endpoint, got)
        if endpoint.active and endpoint.has_pending():
            self.queue(self.ready, endpoint)
        return 0

    cdef int read_buffered(self, RelayEndpoint endpoint) except -1:
        """See ``turns.Turns._read``."""
        cdef Py_ssize_t got
        try:
            got = endpoint.receive(self.scratch + self.base, self.landing, most_of(endpoint))
        except ProtocolViolation as violation:
            self.remove(endpoint.relay, End.FAILED, endpoint.side, violation)
            return 0
        if got == 0:
            return self.end_of(endpoint)
        if got > 0:
            self.take_in(endpoint, got)
        if not endpoint.active:
            return 0
        if endpoint.held_sock.has_heard():
            endpoint.last_received = self.now
        if endpoint.has_pending():
            self.queue(self.ready, endpoint)
        return 0

    cdef int end_of(self, RelayEndpoint endpoint) except -1:
        """Its stream has ended."""
        if endpoint.role == LINK and (<LinkEndpoint>endpoint).owes():
            return self.queue(self.ready, endpoint)
        self.remove(endpoint.relay, End.GONE, endpoint.side, None)
        return 0

    cdef int take_in(self, RelayEndpoint endpoint, Py_ssize_t got) except -1:
        """So many bytes have been received."""
        if endpoint.throttled or <Py_ssize_t>held(endpoint.partial) + got < endpoint.wanted:
            # Who is throttled, and is read, is gone in both directions: there is little more.
            append(&endpoint.partial, self.scratch + self.base, got)
            return 0
        return self.dispatch(endpoint, got)

    cdef int take_rest(self, RelayEndpoint endpoint) except -1:
        """See ``passage.Passage._take_rest``."""
        cdef ByteBuffer* rest
        cdef Py_ssize_t size
        endpoint.fresh = False
        endpoint.last_received = self.now
        if is_of_pooled(endpoint):
            return self.collect(endpoint, <PooledEndpoint>endpoint.peer, 0)
        rest = endpoint.partial
        endpoint.partial = NULL
        try:
            while held(rest) and endpoint.active and not endpoint.throttled and not endpoint.fresh:
                size = min(PIECE, <Py_ssize_t>held(rest))
                memcpy(self.scratch + self.base, first_of(rest), size)
                rest.start += size
                self.dispatch(endpoint, size)
            if held(rest):
                # What is kept of the last piece stands right before what is left, too.
                rest.start -= held(endpoint.partial)
            if held(rest) or (endpoint.role == LINK and not held(endpoint.partial)):
                give_back(&endpoint.partial)
                endpoint.partial = rest
                rest = NULL
        finally:
            give_back(&rest)
        return 0

    cdef int dispatch(self, RelayEndpoint endpoint, Py_ssize_t got) except -1:
        """What becomes of ``got`` new bytes in the scratch."""
        if endpoint.role == LINK:
            return self.hand_out(<LinkEndpoint>endpoint, got)
        if is_of_pooled(endpoint):
            return self.collect(endpoint, <PooledEndpoint>endpoint.peer, got)
        return self.scan_up_to(endpoint, got)

    cdef int fail(self, object party, object side, object error) except -1:
        """An exception in an upcall ends that session, or link, and no other."""
        self.note(error)
        self.remove(party, End.FAILED, side, error)
        return 0

    cdef int note(self, object error) except -1:
        """See ``passage.Passage._note``."""
        try:
            self.counters.failures += 1
            self.on_failure(error)
        except Exception:
            pass
        return 0

    def lose(self, RelayEndpoint endpoint not None, gone):
        """See ``passage.Passage.lose``."""
        if endpoint.role == LINK:
            if (<LinkEndpoint>endpoint).broken:
                return
            self.lost.append((endpoint.relay, gone))
            (<LinkEndpoint>endpoint).broken = True
        else:
            if (<PooledEndpoint?>endpoint.peer).broken:
                return
            self.lost.append((endpoint.relay, gone))
            (<PooledEndpoint>endpoint.peer).broken = True
        self.wake()

    cdef int collect(self, RelayEndpoint client, PooledEndpoint pooled, Py_ssize_t got) except -1:
        """Relay what is whole of what is kept and of ``got`` new bytes; keep the rest."""
        cdef Py_ssize_t have = held(client.partial)
        cdef Py_ssize_t size = have + got
        cdef Py_ssize_t at = 0, first = 0, stop = 0, passed
        cdef bint in_scratch = have <= self.base
        cdef bint is_new
        cdef int result
        cdef unsigned char* data
        cdef ByteBuffer* kept = NULL
        cdef Walk walk = pooled.walk if pooled.walk is not None else self.walk
        if in_scratch:
            data = self.scratch + self.base - have
            if have:
                memcpy(data, first_of(client.partial), have)
                give_back(&client.partial)
        else:
            append(&client.partial, self.scratch + self.base, got)
            kept = client.partial
            client.partial = NULL
            data = first_of(kept)
        try:
            while (
                at < size and client.active and not client.throttled and not client.fresh and client.peer is pooled
            ):
                is_new = walk.at == 0
                result = walk.look_c(client.lane, data + at, size - at, pooled.whole, &first, &stop)
                first += at
                stop += at
                if walk.quiet:
                    passed = self.pass_whole(client, data + at, walk.quiet, in_scratch)
                    at += passed
                    walk.go_on(passed)
                    if not passed and client.active and not (client.throttled or client.fresh):
                        raise RuntimeError("the scanner does not pass what is whole")
                elif result == V_MORE:
                    break
                else:
                    walk.start_again()
                    if is_new:
                        self.tell(client, pooled, result, data + first, stop - first)
                        if not client.active:
                            at = stop
        finally:
            client.wanted = max(0, stop - at)
            try:
                if at == size:
                    walk.start_again()
                    pooled.walk = None
                else:
                    if walk is self.walk:
                        self.walk = Walk()
                    pooled.walk = walk
                    if in_scratch or size - at <= self.base:
                        append(&client.partial, data + at, size - at)
                    else:
                        kept.start += at
                        client.partial = kept
                        kept = NULL
            except BaseException:
                # The session ends: who comes next must not go on where it was.
                walk.start_again()
                raise
            finally:
                give_back(&kept)
        if at < size and client.active and client.peer is not pooled:
            self.look_soon(client)
        return 0

    cdef Py_ssize_t pass_whole(
        self, RelayEndpoint client, unsigned char* data, Py_ssize_t size, bint in_scratch
    ) except -1:
        """Relay ``size`` bytes that end at a quiet place; how many of them that came to."""
        cdef Py_ssize_t first, pos, end, stop = 0, done = 0
        if in_scratch:
            first = pos = data - self.scratch
            self.relay_frames(client, &pos, first + size, &stop, True)
            return pos - first
        while done < size and client.active and not client.throttled and not client.fresh:
            end = min(size - done, self.base + CHUNK)
            memcpy(self.scratch, data + done, end)
            pos = 0
            self.relay_frames(client, &pos, end, &stop, done + end == size)
            done += pos
        return done

    cdef int tell(
        self, RelayEndpoint client, PooledEndpoint pooled, int result, const unsigned char* frame, Py_ssize_t size
    ) except -1:
        """What the walk found is never scanned: the handler ends the session, or the message."""
        cdef bytes copy = PyBytes_FromStringAndSize(<const char*>frame, size)
        cdef bint again
        self.called[result] += 1
        self.begin()
        again = client.relay.handler.upcall(client.side, SCAN_RESULTS[result], memoryview(copy))
        if not client.active or client.peer is not pooled:
            return 0
        if result > V_OVERSIZE:
            raise RuntimeError(f"a session goes on after {SCAN_RESULTS[result].name}")
        if again:
            if client.lane.ready_at > self.now:
                self.wait(client)
        elif client.lane.channels.state(frame_number(<const unsigned char*><const char*>copy)) == OPEN:
            raise RuntimeError("a message that is too large was refused, and its channel goes on")
        self.ends_turn(client)
        return 0

    cdef int hand_out(self, LinkEndpoint endpoint, Py_ssize_t got) except -1:
        """Give the whole frames among ``got`` new bytes to the sessions that have their channels."""
        cdef uint16_t numbers[RUN]
        cdef int count = 0
        cdef Py_ssize_t have = held(endpoint.partial)
        cdef Py_ssize_t pos = self.base - have
        cdef Py_ssize_t end = self.base + got
        cdef Py_ssize_t largest = endpoint.lane.frame_max
        cdef Py_ssize_t first = pos, stop, size
        cdef PooledEndpoint run = None
        cdef PyObject* pooled
        cdef unsigned char* p
        cdef uint16_t number
        cdef int result, kind
        if have:
            memcpy(self.scratch + pos, first_of(endpoint.partial), have)
            endpoint.partial.start = endpoint.partial.end = 0
        while True:
            pooled = NULL
            number = 0
            stop = pos
            result = V_MORE
            if end - pos >= 7:
                p = self.scratch + pos
                kind = p[0]
                number = frame_number(p)
                size = frame_size(p)
                if kind != 1 and kind != 2 and kind != 3 and kind != 8:
                    result = V_BAD_TYPE
                    stop = end
                elif size - 8 > largest:
                    result = V_TOO_LARGE
                    stop = end
                else:
                    stop = pos + size
                    if stop <= end:
                        if p[size - 1] != FRAME_END:
                            result = V_BAD_END
                        elif kind == 8:
                            result = V_BAD_HEARTBEAT if number or size > 8 else V_HEARTBEAT
                        else:
                            result = V_METHOD
                            if number < endpoint.room:
                                pooled = endpoint.mappings[number].pooled
                                if pooled != NULL and not (<PooledEndpoint>pooled).active:
                                    pooled = NULL
            if run is not None and (pooled != <PyObject*>run or count == RUN):
                # Its upcalls may map channels anew: this frame is looked at again.
                pos = self.give(run, first, pos, numbers)
                run = None
                continue
            if result == V_MORE or not endpoint.active:
                break
            if pooled != NULL:
                if run is None:
                    run = <PooledEndpoint>pooled
                    first = pos
                    count = 0
                numbers[count] = number
                count += 1
                renumber(p, endpoint.mappings[number].to)
            elif result != V_HEARTBEAT:
                self.called[result] += 1
                self.begin()
                endpoint.relay.handler.upcall(endpoint.side, SCAN_RESULTS[result], self.view[pos:stop])
                pos = stop
                if endpoint.active and self.ends_turn(endpoint):
                    break
            pos = stop
        if pos < end:
            append(&endpoint.partial, self.scratch + pos, end - pos)
        endpoint.wanted = stop - pos
        return 0

    cdef Py_ssize_t give(self, PooledEndpoint pooled, Py_ssize_t first, Py_ssize_t end, const uint16_t* numbers) except -1:
        """Relay a run, up to ``end``. Where to go on: before that where the session ended in the middle."""
        cdef object relay = pooled.relay
        cdef Py_ssize_t at = first, stop = 0, pos = first
        self.passed = first
        try:
            if pooled.throttled or pooled.broken or held(pooled.partial) or self.is_over:
                append(&pooled.partial, self.scratch + at, end - at)
                if not (pooled.throttled or pooled.broken or pooled.fresh):
                    self.look_soon(pooled)
                at = end
            else:
                self.relay_frames(pooled, &at, end, &stop, False)
                if pooled.active:
                    append(&pooled.partial, self.scratch + at, end - at)
            if pooled.active:
                self.balance(pooled)
        except PeerGoneError as gone:
            at = self.passed
            try:
                append(&pooled.partial, self.scratch + at, end - at)
                self.lose(pooled.peer, gone)
            except MemoryError as error:
                self.fail(relay, pooled.side, error)
        except Exception as error:
            at = self.passed
            self.fail(relay, pooled.side, error)
        if pooled.active:
            return end
        self.hand_back()
        while pos < end:
            if pos >= at:
                renumber(self.scratch + pos, numbers[0])
            numbers += 1
            pos += frame_size(self.scratch + pos)
        return at

    cdef int hand_back(self) except -1:
        """What came for a session that is over is for its link's handler."""
        cdef PooledEndpoint pooled
        while self.left:
            link, pooled = self.left.pop()
            try:
                for frame in pooled.frames_left():
                    if link.active:
                        self.called[V_METHOD] += 1
                        link.handler.upcall(SIDE_UPSTREAM, SCAN_RESULTS[V_METHOD], memoryview(frame))
            except Exception as error:
                self.fail(link, SIDE_UPSTREAM, error)
        return 0

    def exchange(self, relay, hop):
        """See ``pump.Pump.exchange``."""
        cdef RelayEndpoint client = relay.endpoints[0]
        cdef RelayEndpoint end = relay.endpoints[1]
        cdef RelayEndpoint own
        cdef PooledEndpoint pooled
        if end.role != POOLED or not end.active or held((<PooledEndpoint>end).stage):
            raise RuntimeError("this session cannot have another upstream now")
        pooled = <PooledEndpoint>end
        pooled.detach()
        pooled.drop()
        pooled.active = False
        self.throttles.discard(pooled)
        self.tick()
        pooled.lane.frame_max = max(<Py_ssize_t>hop.frame_max, pooled.largest_frame)
        client.lane.out_frame_max = hop.frame_max
        own = RelayEndpoint(hop.sock, SIDE_UPSTREAM, pooled.lane, hop.heartbeat, pooled.rest() + hop.rest)
        give_back(&pooled.partial)
        client.meet(own)
        own.meet(client)
        own.relay = relay
        relay.endpoints = client, own
        self.enter(own)
        if client.throttled:
            self.schedule(self.throttles, client, self.now)
        elif held(client.partial):
            self.look_soon(client)
        self.balance(client)
        self.arm()

    # -- back-pressure ---------------------------------------------------------------------

    cdef int balance(self, RelayEndpoint endpoint) except -1:
        cdef RelayEndpoint peer
        if endpoint.role == LINK:
            return self.balance_link(<LinkEndpoint>endpoint)
        peer = endpoint.peer
        if endpoint.role == POOLED:
            return self.balance_pooled(peer, <PooledEndpoint>endpoint)
        if peer.role == POOLED:
            return self.balance_pooled(endpoint, <PooledEndpoint>peer)
        self.balance_one(endpoint, peer)
        return self.balance_one(peer, endpoint)

    cdef int balance_pooled(self, RelayEndpoint client, PooledEndpoint pooled) except -1:
        cdef Py_ssize_t mark = self.low if client.paused else self.high
        cdef LinkEndpoint way = pooled.way if pooled.way is not None and pooled.way.active else None
        cdef bint held_up = way is not None and <Py_ssize_t>held(way.unsent_) > mark
        self.pause(client, held_up or <Py_ssize_t>held(client.unsent_) > self.own_words + pooled.limit)
        self.hold_back(pooled, way)
        if way is not None:
            if held_up:
                way.held_up[client] = None
            self.balance_link(way)
        if (
            <Py_ssize_t>(held(client.unsent_) + (held(pooled.partial) if pooled.throttled else 0)) > pooled.limit
            and not pooled.has_overflowed
            and pooled.active
        ):
            pooled.has_overflowed = True
            pooled.relay.handler.overflowed()
        return 0

    cdef int hold_back(self, PooledEndpoint pooled, LinkEndpoint way) except -1:
        """Note whether the link must wait for the session's turns."""
        cdef Py_ssize_t kept = held(pooled.partial)
        if way is None or not (kept or way.behind):
            return 0
        if pooled.active and not pooled.throttled and kept > pooled.limit // (4 if pooled in way.behind else 2):
            way.behind[pooled] = None
            self.balance_link(way)
        elif pooled in way.behind:
            self.caught_up(pooled)
        return 0

    def caught_up(self, PooledEndpoint pooled not None):
        """See ``pressure.Pressure.caught_up``."""
        cdef LinkEndpoint way = pooled.way
        if way is not None and pooled in way.behind:
            del way.behind[pooled]
            if way.active:
                self.balance_link(way)

    cdef int balance_link(self, LinkEndpoint endpoint) except -1:
        self.pause(endpoint, len(endpoint.behind) > 0)
        if endpoint.held_up and <Py_ssize_t>held(endpoint.unsent_) <= self.low:
            self.let_go(endpoint)
        return 0

    cdef int let_go(self, LinkEndpoint endpoint) except -1:
        """Clients that waited for a link need not any more."""
        cdef dict clients = endpoint.held_up
        cdef RelayEndpoint client
        endpoint.held_up = {}
        for client in clients:
            if client.active:
                self.balance(client)
        return 0
