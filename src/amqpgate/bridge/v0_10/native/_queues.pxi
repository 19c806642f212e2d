# What waits in one direction; see ``queues``.

cdef class Outgoing:
    """See ``queues.Outgoing``."""

    cdef list parts
    cdef readonly Py_ssize_t size, waiting

    def __init__(self):
        self.parts = []

    cpdef wait(self, Py_ssize_t size):
        self.waiting += size

    cpdef put(self, bytes data):
        self.parts.append(data)
        self.size += PyBytes_GET_SIZE(data)

    cpdef bytes take(self):
        cdef bytes data
        cdef list parts = self.parts
        if not parts:
            return b""
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.size = 0
        return data


cdef class Original:
    """See ``queues.Original``."""

    cdef readonly bytes data, header
    cdef readonly list copies
    cdef readonly list behind
    cdef readonly object command_id, code, answers
    cdef readonly Py_ssize_t size

    def __init__(self, bytes data not None, list copies not None, *, bytes header=None, command_id=None, code=0, answers=()):
        self.data = data
        self.copies = copies
        self.header = header
        self.command_id = command_id
        self.code = code
        self.answers = answers
        self.behind = []
        self.size = PyBytes_GET_SIZE(data) + EACH

    cpdef follow(self, bytes data):
        self.behind.append(data)
        self.size += PyBytes_GET_SIZE(data) + EACH


cdef class OriginalQueue:
    """See ``queues.OriginalQueue``."""

    cdef Outgoing out
    cdef readonly object waiting
    cdef readonly bint is_dropping

    def __init__(self, Outgoing out not None):
        self.out = out
        self.waiting = deque()

    cpdef wait(self, Original original):
        if not self.is_dropping:
            self.waiting.append(original)
            self.out.waiting += original.size

    cpdef follow(self, bytes data):
        if self.is_dropping:
            return
        if self.waiting:
            (<Original?>self.waiting[len(self.waiting) - 1]).follow(data)
            self.out.waiting += PyBytes_GET_SIZE(data) + EACH
        else:
            self.out.put(data)

    cpdef release(self, bytes data=None):
        cdef Original original = self.waiting.popleft()
        self.out.waiting -= original.size
        if self.is_dropping:
            return
        self.out.put(original.data if data is None else data)
        for one in original.behind:
            self.out.put(one)

    def drop(self):
        first = self.waiting[0] if self.waiting else None
        self.forget()
        self.is_dropping = True
        return first

    def reopen(self):
        self.forget()
        self.is_dropping = False

    cdef int forget(self) except -1:
        for original in self.waiting:
            self.out.waiting -= (<Original?>original).size
        self.waiting.clear()
        return 0


cdef class Counter:
    """See ``queues.Counter``."""

    cdef uint32_t upcoming

    def point(self, command_id):
        self.upcoming = command_id & 0xFFFF_FFFF

    cpdef take(self):
        cdef uint32_t number = self.upcoming
        self.upcoming += 1
        return number
