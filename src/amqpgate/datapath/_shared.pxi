# The ends of what several sessions share; see ``endpoint``.

cdef struct ChannelMapping:
    PyObject* pooled  # owned, or NULL
    uint16_t to


cdef inline Py_ssize_t frame_size(const unsigned char* frame) noexcept:
    """Bytes of the whole frame."""
    return <Py_ssize_t>be32(frame + 3) + 8


cdef inline uint16_t frame_number(const unsigned char* frame) noexcept:
    return be16(frame + 1)


cdef class LinkEndpoint(RelayEndpoint):
    """The socket of a link; see ``endpoint.LinkEndpoint``."""

    cdef ChannelMapping* mappings
    cdef uint32_t room
    cdef int epoll  # the pump's
    cdef dict held_up, behind
    cdef bint broken

    def __init__(self, sock, side, Lane lane not None, double heartbeat, bytes rest=b""):
        # Kept for good: those who share the link need not end when there is no memory for the rest of a read.
        ensure(&self.partial, lane.frame_max + FRAME_OVERHEAD)
        RelayEndpoint.__init__(self, sock, side, lane, heartbeat, rest)
        self.role = LINK
        self.held_up = {}
        self.behind = {}

    def __dealloc__(self):
        self.clear_mappings()

    cpdef bint owes(self) noexcept:
        """See ``endpoint.LinkEndpoint.owes``."""
        cdef uint32_t i
        cdef PyObject* pooled
        for i in range(self.room):
            pooled = self.mappings[i].pooled
            if pooled != NULL and (<PooledEndpoint>pooled).active and (<PooledEndpoint>pooled).fresh and not (<PooledEndpoint>pooled).throttled:
                return True
        return False

    cdef int clear_mappings(self) except -1:
        cdef uint32_t i, room = self.room
        cdef ChannelMapping* mappings = self.mappings
        self.mappings = NULL
        self.room = 0
        for i in range(room):
            Py_XDECREF(mappings[i].pooled)
        PyMem_RawFree(mappings)
        return 0

    def map_channel(self, int number, PooledEndpoint pooled not None, int to):
        cdef uint32_t room = self.room or 16
        cdef ChannelMapping* mappings
        if not 0 < number < 65536 or not 0 < to < 65536:
            raise ValueError("channels are numbered from 1 to 65535")
        while room <= <uint32_t>number:
            room *= 2
        if room > self.room:
            mappings = <ChannelMapping*>PyMem_RawRealloc(self.mappings, room * sizeof(ChannelMapping))
            if mappings == NULL:
                raise MemoryError
            memset(mappings + self.room, 0, (room - self.room) * sizeof(ChannelMapping))
            self.mappings = mappings
            self.room = room
        self.unmap_channel(number)
        Py_INCREF(pooled)
        self.mappings[number].pooled = <PyObject*>pooled
        self.mappings[number].to = <uint16_t>to

    def unmap_channel(self, int number):
        cdef PyObject* pooled
        if 0 <= number < <int>self.room:
            pooled = self.mappings[number].pooled
            self.mappings[number].pooled = NULL
            Py_XDECREF(pooled)

    def mapping_at(self, int number):
        if not 0 <= number < <int>self.room or self.mappings[number].pooled == NULL:
            return None
        return <PooledEndpoint>self.mappings[number].pooled, self.mappings[number].to

    cdef int take_bytes(self, const unsigned char* data, Py_ssize_t size) except -1:
        if self.broken or not self.active:
            return 0
        self.prepare(size)
        try:
            self.put_bytes(data, size)
        except PeerGoneError as gone:
            self.relay.pump.lose(self, gone)
            return 0
        finally:
            if self.wrapped == BUFFERED:
                self.relay.pump.touched(self)
        if self.wrapped != BUFFERED and held(self.unsent_) and not self.interest & EPOLLOUT:
            # Who puts may leave before anybody balances. Nothing here may fail: some of a message has gone.
            self.ask_for_room()
        return 0

    cdef int ask_for_room(self) except -1:
        cdef epoll_event event
        self.interest |= EPOLLOUT
        event.events = self.interest
        event.data.fd = self.fd
        if epoll_ctl(self.epoll, EPOLL_CTL_MOD, self.fd, &event) < 0:
            raise OSError(errno, os.strerror(errno))
        return 0

    cdef int prepare(self, Py_ssize_t size) except -1:
        """Make sure that so many bytes can be put. Where there is no memory for that, the session that asks ends;
        the others' link would, if some of a message had gone."""
        return ensure(&self.unsent_, size)

    cdef void spare(self) noexcept:
        """What was to be put has been."""
        if not held(self.unsent_):
            give_back(&self.unsent_)

    def take(self, data):
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            self.take_bytes(<const unsigned char*>view.buf, view.len)
        finally:
            self.spare()
            PyBuffer_Release(&view)


cdef class PooledEndpoint(RelayEndpoint):
    """A pooled session's end at a link; see ``endpoint.PooledEndpoint``."""

    cdef readonly object link
    cdef LinkEndpoint way  # the link's
    cdef public int64_t whole
    cdef public Py_ssize_t limit
    cdef readonly Py_ssize_t largest_frame
    cdef Walk walk
    cdef ByteBuffer* stage  # owned
    cdef list told
    cdef bint staging, has_overflowed, broken

    def __init__(self, Lane lane not None, *, int64_t whole, Py_ssize_t limit, Py_ssize_t largest_frame=0):
        self.lane = lane
        self.fd = -1
        self.role = POOLED
        self.whole = whole
        self.limit = limit
        self.largest_frame = largest_frame

    def __dealloc__(self):
        give_back(&self.stage)

    @property
    def is_pooled(self):
        return True

    def attach(self, link not None):
        self.link = link
        self.way = link.endpoint
        self.lane.frame_max = max(<Py_ssize_t>link.frame_max, self.largest_frame)
        self.peer.lane.out_frame_max = link.frame_max
        self.look_again()

    def when_sent(self, told not None):
        if held(self.stage):
            if self.told is None:
                self.told = []
            self.told.append(told)
        else:
            told()

    def detach(self, *, bint is_lost=False):
        self.release()
        if is_lost:
            give_back(&self.partial)
        if self.active:
            self.relay.pump.caught_up(self)
        self.link = None
        self.way = None
        self.look_again()

    cdef int look_again(self) except -1:
        if self.active:
            self.relay.pump.touched(self)
        return 0

    cdef int prepare(self, const Span* spans, int n) except -1:
        """Make sure that all of these can be put, or none of them is."""
        cdef Py_ssize_t size = 0
        cdef int i
        if self.way is None or held(self.stage):
            # What is staged is dropped as a whole.
            return 0
        for i in range(n):
            size += spans[i].stop - spans[i].start
        return self.way.prepare(size) if size else 0

    cdef int put_bytes(self, const unsigned char* data, Py_ssize_t size) except -1:
        """See ``pass_on`` there."""
        if self.staging:
            append(&self.stage, data, size)
        elif self.way is not None:
            self.way.take_bytes(data, size)
        return 0

    def put(self, data):
        cdef bytearray frames
        cdef unsigned char* at
        cdef unsigned char* end
        cdef int to
        if self.way is None:
            return
        frames = bytearray(data)
        at = <unsigned char*>PyByteArray_AS_STRING(frames)
        end = at + len(frames)
        while end - at >= 8:
            to = self.lane.channels.to(frame_number(at))
            if to == 0:
                raise KeyError(frame_number(at))
            renumber(at, <uint16_t>to)
            at += frame_size(at)
        self.put_bytes(<const unsigned char*>PyByteArray_AS_STRING(frames), len(frames))

    cdef int release(self) except -1:
        cdef list told
        self.staging = False
        if held(self.stage):
            self.send_stage()
            if self.told is not None:
                told, self.told = self.told, None
                for each in told:
                    each()
        return 0

    cdef int send_stage(self) except -1:
        cdef bytes data
        cdef ByteBuffer* stage
        cdef Span all_of_it
        all_of_it.start = 0
        all_of_it.stop = held(self.stage)
        if quiet_end(first_of(self.stage), &all_of_it, 1) == all_of_it.stop:
            # As mostly: every message ends in it. It may be a whole read of hits behind one that was shown.
            stage = self.stage
            self.stage = NULL
            try:
                return self.put_bytes(first_of(stage), held(stage))
            finally:
                give_back(&stage)
        data = whole_only(copy_of(self.stage))
        give_back(&self.stage)
        self.put_bytes(<const unsigned char*><const char*>data, len(data))
        if self.way is not None:
            self.way.spare()
        return 0

    cdef int drop(self) except -1:
        """See ``drop`` there."""
        self.release()
        self.walk = None
        return 0

    cdef list frames_left(self):
        """See ``give_back`` there."""
        cdef unsigned char* at
        cdef unsigned char* end
        cdef list frames = []
        cdef int to
        cdef Py_ssize_t size
        if self.partial == NULL:
            return frames
        at = first_of(self.partial)
        end = at + held(self.partial)
        while end - at >= 8:
            size = min(frame_size(at), end - at)
            to = self.lane.channels.to(frame_number(at))
            if to:
                renumber(at, <uint16_t>to)
                frames.append(PyBytes_FromStringAndSize(<char*>at, size))
            at += size
        give_back(&self.partial)
        return frames
