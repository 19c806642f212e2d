# From clients to links and back; see ``passage`` and ``pressure``.

cdef inline bint rides(Endpoint endpoint) noexcept:
    """Whether it is the client of a session that rides on a link."""
    return endpoint.role == OWN and endpoint.peer.role == RIDER


cdef class Pooling(Passage):
    """As ``Passage``, with sessions that ride on links."""

    cdef int read_from(self, Endpoint endpoint) except -1:
        cdef Py_ssize_t got
        if endpoint.fresh and not endpoint.throttled:
            self.take_rest(endpoint)
            if not endpoint.active or endpoint.throttled or endpoint.fresh:
                return 0
        if endpoint.role == RIDER:
            return 0
        got = endpoint.receive(self.scratch + self.base, self.landing, CHUNK)
        if got < 0:
            return 0
        if got == 0:
            if endpoint.role == LINK and (<LinkEndpoint>endpoint).owes():
                return self.queue(self.ready, endpoint)
            self.remove(endpoint.relay, End.GONE, endpoint.side, None)
            return 0
        endpoint.last_received = self.now
        if endpoint.throttled or <Py_ssize_t>held(endpoint.partial) + got < endpoint.wanted:
            # Who is throttled, and is read, is gone in both directions: there is little more.
            append(&endpoint.partial, self.scratch + self.base, got)
        else:
            self.dispatch(endpoint, got)
        if endpoint.active and endpoint.has_pending():
            self.queue(self.ready, endpoint)
        return 0

    cdef int take_rest(self, Endpoint endpoint) except -1:
        """See ``passage.Passage._take_rest``."""
        cdef Octets* rest
        cdef Py_ssize_t size
        endpoint.fresh = False
        endpoint.last_received = self.now
        if rides(endpoint):
            return self.collect(endpoint, <Rider>endpoint.peer, 0)
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

    cdef int dispatch(self, Endpoint endpoint, Py_ssize_t got) except -1:
        """What becomes of ``got`` new octets in the scratch."""
        if endpoint.role == LINK:
            return self.hand_out(<LinkEndpoint>endpoint, got)
        if rides(endpoint):
            return self.collect(endpoint, <Rider>endpoint.peer, got)
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

    def lose(self, Endpoint endpoint not None, gone):
        """See ``passage.Passage.lose``."""
        if endpoint.role == LINK:
            if (<LinkEndpoint>endpoint).broken:
                return
            self.lost.append((endpoint.relay, gone))
            (<LinkEndpoint>endpoint).broken = True
        else:
            if (<Rider?>endpoint.peer).broken:
                return
            self.lost.append((endpoint.relay, gone))
            (<Rider>endpoint.peer).broken = True
        self.wake()

    cdef int collect(self, Endpoint client, Rider rider, Py_ssize_t got) except -1:
        """Relay what is whole of what is kept and of ``got`` new octets; keep the rest."""
        cdef Py_ssize_t have = held(client.partial)
        cdef Py_ssize_t size = have + got
        cdef Py_ssize_t at = 0, first = 0, stop = 0, passed
        cdef bint in_scratch = have <= self.base
        cdef bint is_new
        cdef int verdict
        cdef unsigned char* octets
        cdef Octets* kept = NULL
        cdef Walk walk = rider.walk if rider.walk is not None else self.walk
        if in_scratch:
            octets = self.scratch + self.base - have
            if have:
                memcpy(octets, first_of(client.partial), have)
                give_back(&client.partial)
        else:
            append(&client.partial, self.scratch + self.base, got)
            kept = client.partial
            client.partial = NULL
            octets = first_of(kept)
        try:
            while (
                at < size and client.active and not client.throttled and not client.fresh and client.peer is rider
            ):
                is_new = walk.at == 0
                verdict = walk.look_c(client.lane, octets + at, size - at, rider.whole, &first, &stop)
                first += at
                stop += at
                if walk.quiet:
                    passed = self.pass_whole(client, octets + at, walk.quiet, in_scratch)
                    at += passed
                    walk.go_on(passed)
                    if not passed and client.active and not (client.throttled or client.fresh):
                        raise RuntimeError("the scanner does not pass what is whole")
                elif verdict == V_MORE:
                    break
                else:
                    walk.start_again()
                    if is_new:
                        self.tell(client, rider, verdict, octets + first, stop - first)
                        if not client.active:
                            at = stop
        finally:
            client.wanted = max(0, stop - at)
            try:
                if at == size:
                    walk.start_again()
                    rider.walk = None
                else:
                    if walk is self.walk:
                        self.walk = Walk()
                    rider.walk = walk
                    if in_scratch or size - at <= self.base:
                        append(&client.partial, octets + at, size - at)
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
        if at < size and client.active and client.peer is not rider:
            self.look_soon(client)
        return 0

    cdef Py_ssize_t pass_whole(
        self, Endpoint client, unsigned char* octets, Py_ssize_t size, bint in_scratch
    ) except -1:
        """Relay ``size`` octets that end at a quiet place; how many of them that came to."""
        cdef Py_ssize_t first, pos, end, stop = 0, done = 0
        if in_scratch:
            first = pos = octets - self.scratch
            self.relay_frames(client, &pos, first + size, &stop, True)
            return pos - first
        while done < size and client.active and not client.throttled and not client.fresh:
            end = min(size - done, self.base + CHUNK)
            memcpy(self.scratch, octets + done, end)
            pos = 0
            self.relay_frames(client, &pos, end, &stop, done + end == size)
            done += pos
        return done

    cdef int tell(
        self, Endpoint client, Rider rider, int verdict, const unsigned char* frame, Py_ssize_t size
    ) except -1:
        """What the walk found is never scanned: the handler ends the session, or the message."""
        cdef bytes copy = PyBytes_FromStringAndSize(<const char*>frame, size)
        cdef bint again
        self.called[verdict] += 1
        self.begin()
        again = client.relay.handler.upcall(client.side, VERDICTS[verdict], memoryview(copy))
        if not client.active or client.peer is not rider:
            return 0
        if verdict > V_OVERSIZE:
            raise RuntimeError(f"a session goes on after {VERDICTS[verdict].name}")
        if again:
            if client.lane.ready_at > self.now:
                self.wait(client)
        elif client.lane.channels.state(frame_number(<const unsigned char*><const char*>copy)) == OPEN:
            raise RuntimeError("a message that is too large was refused, and its channel goes on")
        self.ends_turn(client)
        return 0

    cdef int hand_out(self, LinkEndpoint endpoint, Py_ssize_t got) except -1:
        """Give the whole frames among ``got`` new octets to those who sit at their channels."""
        cdef uint16_t numbers[RUN]
        cdef int count = 0
        cdef Py_ssize_t have = held(endpoint.partial)
        cdef Py_ssize_t pos = self.base - have
        cdef Py_ssize_t end = self.base + got
        cdef Py_ssize_t largest = endpoint.lane.frame_max
        cdef Py_ssize_t first = pos, stop, size
        cdef Rider run = None
        cdef PyObject* rider
        cdef unsigned char* p
        cdef uint16_t number
        cdef int verdict, kind
        if have:
            memcpy(self.scratch + pos, first_of(endpoint.partial), have)
            endpoint.partial.start = endpoint.partial.end = 0
        while True:
            rider = NULL
            number = 0
            stop = pos
            verdict = V_MORE
            if end - pos >= 7:
                p = self.scratch + pos
                kind = p[0]
                number = frame_number(p)
                size = frame_size(p)
                if kind != 1 and kind != 2 and kind != 3 and kind != 8:
                    verdict = V_BAD_TYPE
                    stop = end
                elif size - 8 > largest:
                    verdict = V_TOO_LARGE
                    stop = end
                else:
                    stop = pos + size
                    if stop <= end:
                        if p[size - 1] != FRAME_END:
                            verdict = V_BAD_END
                        elif kind == 8:
                            verdict = V_BAD_HEARTBEAT if number or size > 8 else V_HEARTBEAT
                        else:
                            verdict = V_METHOD
                            if number < endpoint.room:
                                rider = endpoint.seats[number].rider
                                if rider != NULL and not (<Rider>rider).active:
                                    rider = NULL
            if run is not None and (rider != <PyObject*>run or count == RUN):
                # Its upcalls may change who sits where: this frame is looked at again.
                pos = self.give(run, first, pos, numbers)
                run = None
                continue
            if verdict == V_MORE or not endpoint.active:
                break
            if rider != NULL:
                if run is None:
                    run = <Rider>rider
                    first = pos
                    count = 0
                numbers[count] = number
                count += 1
                renumber(p, endpoint.seats[number].to)
            elif verdict != V_HEARTBEAT:
                self.called[verdict] += 1
                self.begin()
                endpoint.relay.handler.upcall(endpoint.side, VERDICTS[verdict], self.view[pos:stop])
                pos = stop
                if endpoint.active and self.ends_turn(endpoint):
                    break
            pos = stop
        if pos < end:
            append(&endpoint.partial, self.scratch + pos, end - pos)
        endpoint.wanted = stop - pos
        return 0

    cdef Py_ssize_t give(self, Rider rider, Py_ssize_t first, Py_ssize_t end, const uint16_t* numbers) except -1:
        """Relay a run, up to ``end``. Where to go on: before that where the session ended in the middle."""
        cdef object relay = rider.relay
        cdef Py_ssize_t at = first, stop = 0, pos = first
        self.passed = first
        try:
            if rider.throttled or rider.broken or held(rider.partial) or self.is_over:
                append(&rider.partial, self.scratch + at, end - at)
                if not (rider.throttled or rider.broken or rider.fresh):
                    self.look_soon(rider)
                at = end
            else:
                self.relay_frames(rider, &at, end, &stop, False)
                if rider.active:
                    append(&rider.partial, self.scratch + at, end - at)
            if rider.active:
                self.balance(rider)
        except PeerGoneError as gone:
            at = self.passed
            try:
                append(&rider.partial, self.scratch + at, end - at)
                self.lose(rider.peer, gone)
            except MemoryError as error:
                self.fail(relay, rider.side, error)
        except Exception as error:
            at = self.passed
            self.fail(relay, rider.side, error)
        if rider.active:
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
        cdef Rider rider
        while self.left:
            link, rider = self.left.pop()
            try:
                for frame in rider.frames_left():
                    if link.active:
                        self.called[V_METHOD] += 1
                        link.handler.upcall(SIDE_UPSTREAM, VERDICTS[V_METHOD], memoryview(frame))
            except Exception as error:
                self.fail(link, SIDE_UPSTREAM, error)
        return 0

    def exchange(self, relay, hop):
        """See ``pump.Pump.exchange``."""
        cdef Endpoint client = relay.endpoints[0]
        cdef Endpoint end = relay.endpoints[1]
        cdef Endpoint own
        cdef Rider rider
        if end.role != RIDER or not end.active or held((<Rider>end).stage):
            raise RuntimeError("this session cannot have another upstream now")
        rider = <Rider>end
        rider.leave()
        rider.drop()
        rider.active = False
        self.throttles.discard(rider)
        self.tick()
        rider.lane.frame_max = max(<Py_ssize_t>hop.frame_max, rider.largest_frame)
        client.lane.out_frame_max = hop.frame_max
        own = Endpoint(hop.sock, SIDE_UPSTREAM, rider.lane, hop.heartbeat, rider.rest() + hop.rest)
        give_back(&rider.partial)
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

    cdef int balance(self, Endpoint endpoint) except -1:
        cdef Endpoint peer
        if endpoint.role == LINK:
            return self.balance_link(<LinkEndpoint>endpoint)
        peer = endpoint.peer
        if endpoint.role == RIDER:
            return self.balance_riding(peer, <Rider>endpoint)
        if peer.role == RIDER:
            return self.balance_riding(endpoint, <Rider>peer)
        self.balance_one(endpoint, peer)
        return self.balance_one(peer, endpoint)

    cdef int balance_riding(self, Endpoint client, Rider rider) except -1:
        cdef Py_ssize_t mark = self.low if client.paused else self.high
        cdef LinkEndpoint way = rider.way if rider.way is not None and rider.way.active else None
        cdef bint held_up = way is not None and <Py_ssize_t>held(way.unsent_) > mark
        self.pause(client, held_up or <Py_ssize_t>held(client.unsent_) > self.own_words + rider.limit)
        self.hold_back(rider, way)
        if way is not None:
            if held_up:
                way.held_up[client] = None
            self.balance_link(way)
        if (
            <Py_ssize_t>(held(client.unsent_) + (held(rider.partial) if rider.throttled else 0)) > rider.limit
            and not rider.has_overflowed
            and rider.active
        ):
            rider.has_overflowed = True
            rider.relay.handler.overflowed()
        return 0

    cdef int hold_back(self, Rider rider, LinkEndpoint way) except -1:
        """Note whether the link must wait for the session's turns."""
        cdef Py_ssize_t kept = held(rider.partial)
        if way is None or not (kept or way.behind):
            return 0
        if rider.active and not rider.throttled and kept > rider.limit // (4 if rider in way.behind else 2):
            way.behind[rider] = None
            self.balance_link(way)
        elif rider in way.behind:
            self.caught_up(rider)
        return 0

    def caught_up(self, Rider rider not None):
        """See ``pressure.Pressure.caught_up``."""
        cdef LinkEndpoint way = rider.way
        if way is not None and rider in way.behind:
            del way.behind[rider]
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
        cdef Endpoint client
        endpoint.held_up = {}
        for client in clients:
            if client.active:
                self.balance(client)
        return 0
