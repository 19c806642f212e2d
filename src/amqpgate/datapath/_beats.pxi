# When heartbeats are due.

cdef double SLOT = _SLOT

cdef struct Beat:
    int64_t slot
    PyObject* endpoint  # owned


cdef class Beats:
    """Endpoints by deadline, as ``wheel.Wheel`` has them, in 16 bytes each.

    A binary heap, from 1 on. Each endpoint knows its place.
    """

    cdef Beat* heap
    cdef uint32_t count, room

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(1, self.count + 1):
            Py_DECREF(<RelayEndpoint>self.heap[i].endpoint)
        PyMem_RawFree(self.heap)

    def __len__(self):
        return self.count

    cdef void put(self, uint32_t at, Beat beat) noexcept:
        self.heap[at] = beat
        (<RelayEndpoint>beat.endpoint).place = at

    cdef void settle(self, uint32_t at, Beat beat) noexcept:
        """Put it where it belongs; ``at`` is free."""
        cdef uint32_t child
        while at > 1 and self.heap[at // 2].slot > beat.slot:
            self.put(at, self.heap[at // 2])
            at //= 2
        while 2 * at <= self.count:
            child = 2 * at
            if child < self.count and self.heap[child + 1].slot < self.heap[child].slot:
                child += 1
            if self.heap[child].slot >= beat.slot:
                break
            self.put(at, self.heap[child])
            at = child
        self.put(at, beat)

    cdef int make_room(self) except -1:
        cdef uint32_t room = 2 * self.room or 64
        cdef Beat* heap = <Beat*>PyMem_RawRealloc(self.heap, room * sizeof(Beat))
        if heap == NULL:
            raise MemoryError
        self.heap, self.room = heap, room
        return 0

    def set(self, RelayEndpoint endpoint not None, double when):
        cdef Beat beat
        if not endpoint.place:
            if self.count + 1 >= self.room:
                self.make_room()
            Py_INCREF(endpoint)
            self.count += 1
            endpoint.place = self.count
        beat.slot = <int64_t>(when / SLOT) + 1
        beat.endpoint = <PyObject*>endpoint
        self.settle(endpoint.place, beat)

    def discard(self, RelayEndpoint endpoint not None):
        cdef uint32_t at = endpoint.place
        if not at:
            return
        self.count -= 1
        if at <= self.count:
            self.settle(at, self.heap[self.count + 1])
        endpoint.place = 0
        Py_DECREF(endpoint)

    def deadline(self):
        return self.heap[1].slot * SLOT if self.count else NEVER

    def due(self, double now):
        cdef list items = []
        while self.count and self.heap[1].slot * SLOT <= now:
            items.append(<RelayEndpoint>self.heap[1].endpoint)
            self.discard(<RelayEndpoint>self.heap[1].endpoint)
        return items
