# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled pump. Its contract, name by name, is ``pump`` and ``endpoint``; read those first.

Between epoll and the scanner nothing is a Python object but the endpoints themselves. TLS goes
through the methods of ``ssl.SSLSocket``; plain sockets through recv and send on the descriptor.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.ref cimport PyObject
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove, memset, strerror
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, itimerspec, timespec
from posix.unistd cimport close, read, write

from amqpgate.datapath._scan cimport Lane, Span, scan_c

import os
import ssl

from amqpgate.datapath.endpoint import PeerGoneError
from amqpgate.datapath.pump import CHUNK as _CHUNK, EVENTS as _EVENTS, LAST_READS as _LAST_READS, OWN_WORDS as _OWN_WORDS, PumpCounters
from amqpgate.datapath.reference import reframe
from amqpgate.datapath.relay import End
from amqpgate.datapath.tables import Verdict
from amqpgate.datapath.wheel import Wheel
from amqpgate.protocol.frames import FRAME_OVERHEAD, HEARTBEAT

include "_system.pxi"

cdef enum:
    MAX_EVENTS = 256
    SPANS = 64
    TLS_RECORD = 16384
    TLS_OVERHEAD = 2048 + 5  # at most (RFC 5246, section 6.2.3)
    V_FULL = -1
    V_MORE = 0
    V_REFRAME = 6
    V_THROTTLED = 7

cdef double NEVER = float("inf")
cdef Py_ssize_t CHUNK = _CHUNK
cdef Py_ssize_t OWN_WORDS = _OWN_WORDS
cdef int LAST_READS = _LAST_READS
assert _EVENTS == MAX_EVENTS and Verdict.REFRAME == V_REFRAME and Verdict.THROTTLED == V_THROTTLED
cdef tuple VERDICTS = tuple(Verdict(n) if n in Verdict._value2member_map_ else None for n in range(24))
cdef tuple WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
cdef tuple ENDED = (ssl.SSLZeroReturnError, ssl.SSLEOFError)

include "_buffers.pxi"
include "_endpoint.pxi"


cdef class Pump:
    """Every established socket in one epoll set; see ``pump.Pump``."""

    cdef int epoll, timer, event
    cdef PyObject** by_fd
    cdef int by_fd_size
    cdef set held_
    cdef list ready
    cdef Py_ssize_t high, low, own_words, base
    cdef object clock, on_failure
    cdef bytearray scratch_owner
    cdef unsigned char* scratch
    cdef object view, landing
    cdef object beats, throttles
    cdef double armed
    #: No timer is due before; it may be too early, never too late.
    cdef double due
    cdef double now
    cdef readonly object counters
    cdef bint closed, interrupted

    def __cinit__(self):
        self.epoll = self.timer = self.event = -1

    def __init__(self, *, Py_ssize_t high, Py_ssize_t low, Py_ssize_t largest_frame, clock=None, on_failure):
        self.high = high
        self.low = low
        self.own_words = high + CHUNK + OWN_WORDS
        self.base = largest_frame + FRAME_OVERHEAD
        self.clock = clock
        self.on_failure = on_failure
        self.scratch_owner = bytearray(self.base + CHUNK)
        self.scratch = <unsigned char*>PyByteArray_AS_STRING(self.scratch_owner)
        self.view = memoryview(self.scratch_owner)
        self.landing = self.view[self.base:]
        self.held_ = set()
        self.ready = []
        self.beats = Wheel()
        self.throttles = Wheel()
        self.counters = PumpCounters()
        self.epoll = epoll_create1(EPOLL_CLOEXEC)
        self.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)
        self.event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
        if self.epoll < 0 or self.timer < 0 or self.event < 0:
            raise OSError(errno, os.strerror(errno))
        self.control(EPOLL_CTL_ADD, self.timer, EPOLLIN)
        self.control(EPOLL_CTL_ADD, self.event, EPOLLIN)
        self.armed = NEVER
        self.due = NEVER
        self.tick()

    def __dealloc__(self):
        free(self.by_fd)

    cdef int control(self, int operation, int fd, uint32_t events) except -1:
        cdef epoll_event event
        event.events = events
        event.data.fd = fd
        if epoll_ctl(self.epoll, operation, fd, &event) < 0:
            raise OSError(errno, os.strerror(errno))
        return 0

    cdef int tick(self) except -1:
        cdef timespec ts
        if self.clock is None:
            clock_gettime(CLOCK_MONOTONIC, &ts)
            self.now = <double>ts.tv_sec + <double>ts.tv_nsec * 1e-9
        else:
            self.now = self.clock()
        return 0

    def fileno(self):
        return self.epoll

    def __len__(self):
        return len(self.held_)

    @property
    def deadlines(self):
        return len(self.beats) + len(self.throttles)

    def close(self):
        if self.closed:
            return
        for endpoint in list(self.held_):
            if (<Endpoint>endpoint).active:
                self.remove((<Endpoint>endpoint).relay, End.FINISHED, None, None)
        self.closed = True
        close(self.epoll)
        close(self.timer)
        close(self.event)

    def add(self, relay):
        cdef Endpoint endpoint
        cdef int fd
        self.tick()
        relay.pump = self
        relay.active = True
        self.counters.relays += 1
        for endpoint in relay.endpoints:
            endpoint.relay = relay
            endpoint.active = True
            endpoint.last_received = endpoint.last_sent = self.now
            fd = endpoint.fd
            self.make_room(fd)
            self.by_fd[fd] = <PyObject*>endpoint
            self.held_.add(endpoint)
            endpoint.interest = EPOLLIN
            self.control(EPOLL_CTL_ADD, fd, EPOLLIN)
            if endpoint.heartbeat > 0:
                self.schedule(self.beats, endpoint, self.now + endpoint.heartbeat / 2)
            if endpoint.fresh or endpoint.tls:
                self.ready.append(endpoint)
        if self.ready:
            self.wake()
        self.arm()

    cdef int make_room(self, int fd) except -1:
        cdef int size = self.by_fd_size or 64
        cdef PyObject** bigger
        if fd < self.by_fd_size:
            return 0
        while size <= fd:
            size *= 2
        bigger = <PyObject**>realloc(self.by_fd, size * sizeof(PyObject*))
        if bigger == NULL:
            raise MemoryError
        memset(bigger + self.by_fd_size, 0, (size - self.by_fd_size) * sizeof(PyObject*))
        self.by_fd = bigger
        self.by_fd_size = size
        return 0

    def remove(self, relay, end, side, error):
        cdef Endpoint endpoint
        if not relay.active:
            return
        relay.active = False
        self.counters.relays -= 1
        for endpoint in relay.endpoints:
            endpoint.active = False
            self.beats.discard(endpoint)
            self.throttles.discard(endpoint)
            self.by_fd[endpoint.fd] = NULL
            self.held_.discard(endpoint)
            self.control(EPOLL_CTL_DEL, endpoint.fd, 0)
        relay.handler.ended(end, side, error)

    def touched(self, Endpoint endpoint not None):
        endpoint.last_sent = self.now
        self.balance(endpoint)

    def retry(self, relay):
        """See ``pump.Pump.retry``."""
        cdef Endpoint endpoint
        for endpoint in relay.endpoints:
            if endpoint.active and endpoint.throttled:
                self.schedule(self.throttles, endpoint, self.now)
        self.arm()

    def step(self, double timeout=0):
        """See ``pump.Pump.step``; with ``timeout`` (seconds, below zero for ever) it waits for something to do."""
        self.step_c(-1 if timeout < 0 else <int>(timeout * 1000))

    def run(self):
        """See ``pump.Pump.run``. No Python between events (case pingpong, by two runs: some 8 % less CPU)."""
        while not self.interrupted:
            self.step_c(-1)
            PyErr_CheckSignals()
        self.interrupted = False

    cdef int step_c(self, int milliseconds) except -1:
        cdef epoll_event events[MAX_EVENTS]
        cdef int n, i, fd
        cdef uint64_t drained
        cdef Endpoint endpoint
        cdef PyObject* found
        cdef list ready
        if milliseconds == 0:
            n = epoll_wait(self.epoll, events, MAX_EVENTS, 0)
        else:
            with nogil:
                n = epoll_wait(self.epoll, events, MAX_EVENTS, milliseconds)
        self.tick()
        if self.ready:
            ready = self.ready
            self.ready = []
            for endpoint in ready:
                if endpoint.active and not endpoint.paused and not endpoint.throttled:
                    self.guarded(endpoint, EPOLLIN)
        for i in range(max(n, 0)):
            fd = events[i].data.fd
            if fd == self.event or fd == self.timer:
                read(fd, &drained, 8)
                if fd == self.timer:
                    self.armed = NEVER
                continue
            found = self.by_fd[fd]
            if found != NULL:
                endpoint = <Endpoint>found
                self.guarded(endpoint, events[i].events)
        if self.now >= self.due:
            self.run_timers()
        self.arm()
        if self.ready:
            self.wake()
        return 0

    cdef int wake(self) except -1:
        cdef uint64_t one = 1
        write(self.event, &one, 8)
        return 0

    def interrupt(self):
        """Make ``run``, or a waiting ``step``, return. Safe from other threads and signal handlers."""
        self.interrupted = True
        self.wake()

    # -- sockets ---------------------------------------------------------------------------

    cdef int guarded(self, Endpoint endpoint, uint32_t events) except -1:
        relay = endpoint.relay
        try:
            if events & EPOLLOUT and held(&endpoint.unsent_):
                endpoint.flush_octets()
                endpoint.last_sent = self.now
            if events & (EPOLLHUP | EPOLLERR) or (
                events & EPOLLIN and not endpoint.paused and not endpoint.throttled
            ):
                self.read_from(endpoint)
            if endpoint.active:
                self.balance(endpoint)
        except PeerGoneError as gone:
            self.hear_out(relay, gone)
        except Exception as error:
            self.counters.failures += 1
            self.on_failure(error)
            self.remove(relay, End.FAILED, endpoint.side, error)
        return 0

    cdef int hear_out(self, object relay, object gone) except -1:
        """See ``pump.Pump._hear_out``."""
        try:
            for _ in range(LAST_READS):
                if relay.active:
                    self.read_from(relay.endpoints[gone.side])
        except PeerGoneError:
            pass
        except Exception as error:
            self.counters.failures += 1
            self.on_failure(error)
        self.remove(relay, End.GONE, gone.side, gone)
        return 0

    cdef int read_from(self, Endpoint endpoint) except -1:
        cdef Py_ssize_t got
        if endpoint.fresh:
            self.take_rest(endpoint)
            if not endpoint.active or endpoint.throttled:
                return 0
        got = endpoint.receive(self.scratch + self.base, self.landing, CHUNK)
        if got < 0:
            return 0
        if got == 0:
            self.remove(endpoint.relay, End.GONE, endpoint.side, None)
            return 0
        endpoint.last_received = self.now
        if <Py_ssize_t>held(&endpoint.partial) + got < endpoint.wanted:
            append(&endpoint.partial, self.scratch + self.base, got)
        else:
            self.scan_up_to(endpoint, got)
        if endpoint.active and endpoint.has_pending():
            self.ready.append(endpoint)
        return 0

    cdef int take_rest(self, Endpoint endpoint) except -1:
        """Relay what is kept, as if it had just been received."""
        cdef Octets rest = endpoint.partial
        cdef Py_ssize_t size
        memset(&endpoint.partial, 0, sizeof(Octets))
        endpoint.fresh = False
        try:
            while rest.start < rest.end and endpoint.active and not endpoint.throttled:
                size = min(CHUNK, <Py_ssize_t>held(&rest))
                memcpy(self.scratch + self.base, rest.at + rest.start, size)
                rest.start += size
                self.scan_up_to(endpoint, size)
            if rest.start < rest.end:
                append(&endpoint.partial, rest.at + rest.start, held(&rest))
        finally:
            give_back(&rest)
        return 0

    cdef int scan_up_to(self, Endpoint endpoint, Py_ssize_t got) except -1:
        """Relay the whole frames among ``got`` new octets; keep the beginning of the next one."""
        cdef Span spans[SPANS]
        cdef int n, i, verdict
        cdef Py_ssize_t have = held(&endpoint.partial)
        cdef Py_ssize_t pos = self.base - have
        cdef Py_ssize_t end = self.base + got
        cdef Py_ssize_t at = pos, stop = pos
        cdef Endpoint peer = endpoint.peer
        cdef Lane lane = endpoint.lane
        if have:
            memcpy(self.scratch + pos, endpoint.partial.at + endpoint.partial.start, have)
            give_back(&endpoint.partial)
        while True:
            n = 0
            verdict = scan_c(lane, self.scratch, pos, end, self.now, spans, SPANS, &n, &at, &stop)
            for i in range(n):
                peer.put_octets(self.scratch + spans[i].start, spans[i].stop - spans[i].start)
            if n:
                peer.last_sent = self.now
            pos = at
            if verdict == V_FULL:
                continue
            if verdict == V_MORE:
                break
            if verdict == V_THROTTLED:
                stop = pos
                self.wait(endpoint)
                break
            if verdict == V_REFRAME:
                peer.put(reframe(self.view[pos:stop], lane.out_frame_max))
            else:
                self.counters.upcalls += 1
                if endpoint.relay.handler.upcall(endpoint.side, VERDICTS[verdict], self.view[pos:stop]):
                    if lane.ready_at > self.now:
                        stop = pos
                        self.wait(endpoint)
                        break
                    continue
                if not endpoint.active:
                    # What came behind it may be the answer to a close.
                    if stop < end:
                        append(&endpoint.partial, self.scratch + stop, end - stop)
                    return 0
            pos = stop
        if pos < end:
            append(&endpoint.partial, self.scratch + pos, end - pos)
        endpoint.wanted = stop - pos
        return 0

    cdef int wait(self, Endpoint endpoint) except -1:
        """Look again at ``Lane.ready_at``."""
        endpoint.throttled = True
        endpoint.fresh = True
        self.counters.throttled += 1
        self.schedule(self.throttles, endpoint, endpoint.lane.ready_at)
        return 0

    cdef int balance(self, Endpoint endpoint) except -1:
        self.balance_one(endpoint, endpoint.peer)
        self.balance_one(endpoint.peer, endpoint)
        return 0

    cdef int balance_one(self, Endpoint endpoint, Endpoint peer) except -1:
        cdef Py_ssize_t mark = self.low if endpoint.paused else self.high
        cdef bint over = (
            <Py_ssize_t>held(&peer.unsent_) > mark or <Py_ssize_t>held(&endpoint.unsent_) > self.own_words
        )
        cdef uint32_t wish = 0
        if over != endpoint.paused:
            endpoint.paused = over
            if over:
                self.counters.paused += 1
            else:
                endpoint.last_received = self.now
                if endpoint.fresh or endpoint.has_pending():
                    self.ready.append(endpoint)
                    self.wake()
        if not over and not endpoint.throttled:
            wish = EPOLLIN
        if held(&endpoint.unsent_):
            wish |= EPOLLOUT
        if wish != endpoint.interest:
            endpoint.interest = wish
            self.control(EPOLL_CTL_MOD, endpoint.fd, wish)
        return 0

    # -- timers ----------------------------------------------------------------------------

    cdef int schedule(self, object wheel, Endpoint endpoint, double when) except -1:
        wheel.set(endpoint, when)
        if when < self.due:
            # Not ``when``: the wheel hands it out at the end of its slot.
            self.due = min(self.due, <double>wheel.deadline())
        return 0

    cdef int run_timers(self) except -1:
        cdef Endpoint endpoint
        self.due = NEVER
        for endpoint in self.throttles.due(self.now):
            endpoint.throttled = False
            endpoint.last_received = self.now
            if not endpoint.paused:
                self.guarded(endpoint, EPOLLIN)
        for endpoint in self.beats.due(self.now):
            if endpoint.active:
                self.beat(endpoint)
        self.due = min(<double>self.beats.deadline(), <double>self.throttles.deadline())
        return 0

    cdef int arm(self) except -1:
        """Set the timer to the earliest deadline, if that is another one than it is set to."""
        cdef itimerspec spec
        cdef int64_t nanoseconds
        if self.due == self.armed or self.clock is not None:
            return 0
        memset(&spec, 0, sizeof(spec))
        if self.due < NEVER:
            # A little late, so that the clock, which is rounded, has passed it by then.
            nanoseconds = <int64_t>(self.due * 1e9) + 1000
            spec.it_value.tv_sec = nanoseconds // 1000000000
            spec.it_value.tv_nsec = nanoseconds % 1000000000
        timerfd_settime(self.timer, TFD_TIMER_ABSTIME, &spec, NULL)
        self.armed = self.due
        return 0

    cdef int beat(self, Endpoint endpoint) except -1:
        cdef double interval = endpoint.heartbeat
        cdef double due
        if not endpoint.paused and not endpoint.throttled and self.now - endpoint.last_received >= 2 * interval:
            self.remove(endpoint.relay, End.SILENT, endpoint.side, None)
            return 0
        if self.now - endpoint.last_sent >= interval / 2:
            if not held(&endpoint.unsent_):
                try:
                    endpoint.put(HEARTBEAT)
                except PeerGoneError as gone:
                    self.remove(endpoint.relay, End.GONE, gone.side, gone)
                    return 0
            endpoint.last_sent = self.now
            self.balance(endpoint)
        due = endpoint.last_sent + interval / 2
        if not endpoint.paused and not endpoint.throttled:
            due = min(due, endpoint.last_received + 2 * interval)
        self.schedule(self.beats, endpoint, due)
        return 0
