# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled pump. Its contract, name by name, is ``pump`` and ``endpoint``; read those first.

Between epoll and the scanner nothing is a Python object but the endpoints themselves. TLS goes
through the methods of ``ssl.SSLSocket``, what has buffers of its own through ``engine.BufferedSocket``; plain
sockets through recv and send on the descriptor.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject, Py_XDECREF
from libc.errno cimport EAFNOSUPPORT, EAGAIN, EINTR, ENOMEM, errno
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset, strerror
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, itimerspec, timespec
from posix.unistd cimport close, read, write

from amqpgate.datapath._reserve cimport ask_without_reserve
from amqpgate.datapath._scan cimport Channels, Lane, Made, Span, Walk, scan_c

import _socket
import os
import socket

from amqpgate.datapath.budgets import (
    CHUNK as _CHUNK, CHUNK_REWRITTEN as _CHUNK_REWRITTEN, EVENTS as _EVENTS, LAST_READS as _LAST_READS,
    OWN_WORDS as _OWN_WORDS, PIECE as _PIECE, ROUND as _ROUND, RUN as _RUN, TURN as _TURN, PumpCounters,
)
from amqpgate.datapath.engine import BufferedSocket, End, PeerGoneError, say_end
from amqpgate.datapath.latency import ROUNDS as _ROUNDS
from amqpgate.datapath.framing import reframe
from amqpgate.datapath.staging import whole_only
from amqpgate.datapath.tables import Side, ScanResult
from amqpgate.datapath.tls import has_ended, is_tls, would_block
from amqpgate.datapath.wheel import SLOT as _SLOT, Wheel
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FRAME_OVERHEAD, HEARTBEAT

include "_bytes.pxi"
include "_numbers.pxi"
include "_system.pxi"
include "_accept.pxi"

cdef enum:
    MAX_EVENTS = 256
    SPANS = 64
    LOOKS = 8  # turns without upcalls between two looks at the clock
    RUN = 1024
    V_HEARTBEAT = -2

#: What is no TLS, without a look at `ssl`.
cdef object Plain = socket.socket
cdef double NEVER = float("inf")
cdef Py_ssize_t CHUNK = _CHUNK
cdef Py_ssize_t CHUNK_REWRITTEN = _CHUNK_REWRITTEN
cdef Py_ssize_t PIECE = _PIECE
cdef double TURN = _TURN
cdef double ROUND = _ROUND
cdef Py_ssize_t OWN_WORDS = _OWN_WORDS
cdef int LAST_READS = _LAST_READS
cdef int ROUNDS = _ROUNDS
assert (_EVENTS, _RUN) == (MAX_EVENTS, RUN)

include "_buffers.pxi"
include "_endpoint.pxi"
include "_beats.pxi"
include "_shared.pxi"
include "_passage.pxi"
include "_pooled.pxi"


cdef class Pump(Pooling):
    """Every established socket in one epoll set; see ``pump.Pump``."""

    cdef int timer, event
    cdef PyObject** by_fd  # owned
    cdef int by_fd_size, held
    cdef object clock, beats
    cdef double armed
    #: No timer is due before; it may be too early, never too late.
    cdef readonly double due
    cdef double look_every, look_at
    cdef object late
    cdef dict attending
    #: Who waits for it, by descriptor.
    cdef dict lent
    cdef object take_in
    cdef dict going
    cdef bint closed, interrupted, steps
    #: In `epoll_wait`, for as long as nothing comes.
    cdef bint waits
    #: See ``turn_timer.TurnTimer``.
    cdef RelayEndpoint timed
    cdef double timed_since, looked
    cdef int rounds, picked

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
        self.unserved = []
        self.ready = []
        self.attending = {}
        self.lent = {}
        self.going = {}
        self.lost = []
        self.left = []
        self.gone = []
        self.untold = []
        self.captured = []
        self.walk = Walk()
        self.beats = Beats()
        self.throttles = Wheel()
        self.counters = PumpCounters()
        self.called = self.counters.called
        self.epoll = epoll_create1(EPOLL_CLOEXEC)
        self.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)
        self.event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
        if self.epoll < 0 or self.timer < 0 or self.event < 0:
            raise OSError(errno, os.strerror(errno))
        self.control(EPOLL_CTL_ADD, self.timer, EPOLLIN)
        self.control(EPOLL_CTL_ADD, self.event, EPOLLIN)
        self.armed = NEVER
        self.due = NEVER
        self.look_every = self.look_at = NEVER
        self.rounds = ROUNDS
        self.tick()
        self.looked = self.now

    def __dealloc__(self):
        cdef int fd
        for fd in range(self.by_fd_size):
            Py_XDECREF(self.by_fd[fd])
        PyMem_RawFree(self.by_fd)
        PyMem_RawFree(self.made.data)

    cdef int control(self, int operation, int fd, uint32_t events) except -1:
        cdef epoll_event event
        event.events = events
        event.data.fd = fd
        if epoll_ctl(self.epoll, operation, fd, &event) < 0:
            raise OSError(errno, os.strerror(errno))
        return 0

    cdef int look(self) except -1:
        """What the clock says."""
        cdef timespec ts
        if self.clock is None:
            clock_gettime(CLOCK_MONOTONIC, &ts)
            self.latest = <double>ts.tv_sec + <double>ts.tv_nsec * 1e-9
        else:
            self.latest = self.clock()
        return 0

    cdef int tick(self) except -1:
        self.look()
        self.now = self.latest
        return 0

    def fileno(self):
        return self.epoll

    def __len__(self):
        return self.held

    def watch(self, double seconds, late):
        """See ``pump.Pump.watch``."""
        self.tick()
        self.late = late
        self.look_every = seconds
        self.look_at = self.now + seconds
        self.due = min(self.due, self.look_at)
        self.arm()

    def attend(self, int fd, callback):
        """See ``pump.Pump.attend``."""
        if self.attending.pop(fd, None) is not None:
            self.control(EPOLL_CTL_DEL, fd, 0)
        if callback is not None:
            self.make_room(fd)
            self.attending[fd] = callback
            self.control(EPOLL_CTL_ADD, fd, EPOLLIN)

    def serve_guests(self, take_in):
        """See ``pump.Pump.serve_guests``."""
        self.take_in = take_in

    def lend(self, int fd, guest):
        """See ``pump.Pump.lend``."""
        if guest is None:
            if self.lent.pop(fd, None) is not None:
                self.control(EPOLL_CTL_DEL, fd, 0)
            return
        self.make_room(fd)
        self.control(EPOLL_CTL_ADD, fd, EPOLLIN)
        try:
            self.lent[fd] = guest
        except MemoryError:
            self.control(EPOLL_CTL_DEL, fd, 0)
            raise

    @property
    def deadlines(self):
        return len(self.beats) + len(self.throttles)

    def close(self):
        if self.closed:
            return
        for fd in range(self.by_fd_size):
            if self.by_fd[fd] != NULL:
                self.remove((<RelayEndpoint>self.by_fd[fd]).relay, End.FINISHED, None, None)
        self.closed = True
        close(self.epoll)
        close(self.timer)
        close(self.event)

    def add(self, party):
        cdef RelayEndpoint endpoint
        self.tick()
        party.pump = self
        party.active = True
        self.counters.relays += 1
        try:
            for endpoint in party.endpoints:
                endpoint.relay = party
                if endpoint.role == POOLED:
                    endpoint.active = True
                else:
                    self.enter(endpoint)
            self.arm()
        except Exception:
            party.active = False
            self.counters.relays -= 1
            for endpoint in party.endpoints:
                self.take_out(endpoint)
            raise

    cdef int enter(self, RelayEndpoint endpoint) except -1:
        cdef int fd = endpoint.fd
        endpoint.active = True
        endpoint.last_received = endpoint.last_sent = self.now
        self.make_room(fd)
        self.by_fd[fd] = <PyObject*>endpoint
        Py_INCREF(endpoint)
        self.held += 1
        endpoint.interest = EPOLLIN
        if endpoint.role == LINK:
            (<LinkEndpoint>endpoint).epoll = self.epoll
        if self.lent.pop(fd, None) is None:
            self.control(EPOLL_CTL_ADD, fd, EPOLLIN)
        if endpoint.role == OWN:
            endpoint.shed_sock()
        if endpoint.heartbeat > 0:
            self.schedule(self.beats, endpoint, self.now + endpoint.heartbeat / 2)
        if endpoint.fresh or endpoint.has_pending():
            self.queue(self.unserved, endpoint)
        return 0

    cdef int make_room(self, int fd) except -1:
        cdef int size = self.by_fd_size or 64
        cdef PyObject** bigger
        if fd < self.by_fd_size:
            return 0
        while size <= fd:
            size *= 2
        bigger = <PyObject**>PyMem_RawRealloc(self.by_fd, size * sizeof(PyObject*))
        if bigger == NULL:
            raise MemoryError
        memset(bigger + self.by_fd_size, 0, (size - self.by_fd_size) * sizeof(PyObject*))
        self.by_fd = bigger
        self.by_fd_size = size
        return 0

    def remove(self, party, end, side, error):
        cdef RelayEndpoint endpoint
        cdef object unheard = None
        if not party.active:
            return
        party.active = False
        self.counters.relays -= 1
        if self.steps:
            try:
                self.gone.append(party)
            except MemoryError:
                # It lives for ever then.
                Py_INCREF(party)
        if self.going:
            self.going.pop(party, None)
        for endpoint in party.endpoints:
            if endpoint.role == POOLED:
                self.caught_up(<PooledEndpoint>endpoint)
            self.take_out(endpoint)
            if endpoint.role == POOLED:
                if (<PooledEndpoint>endpoint).link is not None:
                    try:
                        self.left.append(((<PooledEndpoint>endpoint).link, endpoint))
                    except MemoryError as failure:
                        self.note(failure)
                        unheard = (<PooledEndpoint>endpoint).link
                (<PooledEndpoint>endpoint).drop()
        self.tell_end(party, end, side, error)
        endpoint = party.endpoints[0]
        if endpoint.role == LINK:
            (<LinkEndpoint>endpoint).clear_mappings()
            (<LinkEndpoint>endpoint).behind.clear()
            self.let_go(<LinkEndpoint>endpoint)
        if unheard is not None:
            # It will not hear what came for the session: it cannot know the channels' states any more.
            self.remove(unheard, End.FAILED, SIDE_UPSTREAM, None)

    cdef int take_out(self, RelayEndpoint endpoint) except -1:
        """Forget an endpoint, as far as it was entered."""
        cdef epoll_event event
        endpoint.active = False
        if endpoint is self.timed:
            # Whoever keeps it keeps its descriptor, too.
            self.timed = None
        self.beats.discard(endpoint)
        self.throttles.discard(endpoint)
        if 0 <= endpoint.fd < self.by_fd_size and self.by_fd[endpoint.fd] == <PyObject*>endpoint:
            self.by_fd[endpoint.fd] = NULL
            self.held -= 1
            Py_DECREF(endpoint)
            epoll_ctl(self.epoll, EPOLL_CTL_DEL, endpoint.fd, &event)
        return 0

    cdef int tell_end(self, object party, object end, object side, object error) except -1:
        """See ``pump.Pump._tell_end``."""
        try:
            party.handler.ended(end, side, error)
        except MemoryError as failure:
            self.note(failure)
            self.untold.append((party, end, side, error))
            self.wake()
        except Exception as failure:
            self.note(failure)
        return 0

    def touched(self, RelayEndpoint endpoint not None):
        self.sent(endpoint)
        self.balance(endpoint)

    def retry(self, relay):
        """See ``pump.Pump.retry``."""
        cdef RelayEndpoint endpoint
        for endpoint in relay.endpoints:
            if endpoint.active and endpoint.throttled:
                self.schedule(self.throttles, endpoint, self.now)
        self.arm()

    def feed(self, relay, side, frames):
        """See ``pump.Pump.feed``."""
        cdef RelayEndpoint endpoint
        cdef ByteBuffer* before = NULL
        cdef const unsigned char[::1] view = frames
        if not relay.active or not view.shape[0]:
            return
        endpoint = relay.endpoints[side]
        try:
            append(&before, &view[0], view.shape[0])
            if held(endpoint.partial):
                append(&before, first_of(endpoint.partial), held(endpoint.partial))
            before, endpoint.partial = endpoint.partial, before
        finally:
            give_back(&before)
        endpoint.wanted = 0
        self.look_soon(endpoint)
        self.balance(endpoint)

    def halt(self, relay):
        """See ``pump.Pump.halt``."""
        cdef RelayEndpoint client
        if relay.active:
            client = relay.endpoints[0]
            client.halted = client.throttled = True
            self.throttles.discard(client)
            self.balance(client)

    def step(self, double timeout=0):
        """See ``pump.Pump.step``; with ``timeout`` (seconds, below zero for ever) it waits for something to do."""
        self.step_c(-1 if timeout < 0 else <int>(timeout * 1000))

    cdef int step_c(self, int milliseconds) except -1:
        self.steps = True
        try:
            self.handle(milliseconds)
        except MemoryError as error:
            # Nothing that is not done is forgotten: the next step begins with it.
            self.note(error)
            self.due = self.now
            self.armed = NEVER
            self.wake()
        self.steps = False
        if self.gone:
            self.gone.clear()
        return 0

    def run(self):
        """See ``pump.Pump.run``. No Python between events (case pingpong, by two runs: some 8 % less CPU)."""
        while not self.interrupted:
            self.step_c(-1)
            PyErr_CheckSignals()
        self.interrupted = False

    cdef int handle(self, int milliseconds) except -1:
        cdef epoll_event events[MAX_EVENTS]
        cdef int n = 0, i, fd, chosen
        cdef uint64_t drained
        cdef RelayEndpoint endpoint
        cdef PyObject* found
        cdef list untold
        # None where nobody waits, as mostly.
        cdef list late = None, ready = None, guests = None
        cdef double until
        cdef bint attends = False, waited = False, may_wait = milliseconds != 0 and not self.interrupted
        self.rounds -= 1
        if not may_wait or (self.rounds < 0 and self.timed is None):
            n = epoll_wait(self.epoll, events, MAX_EVENTS, 0)
        if n == 0 and may_wait:
            waited = self.waits = True
            with nogil:
                n = epoll_wait(self.epoll, events, MAX_EVENTS, milliseconds)
            self.waits = False
        self.tick()
        chosen = self.choose(n, waited)
        until = self.now + ROUND
        if self.ready:
            ready = self.ready
            self.ready = []
        if self.unserved:
            late = self.unserved
            self.unserved = []
        try:
            if late:
                self.serve(late, until)
            for i in range(max(n, 0)):
                fd = events[i].data.fd
                if fd == self.event or fd == self.timer:
                    read(fd, &drained, 8)
                    if fd == self.timer:
                        self.armed = NEVER
                    continue
                found = self.by_fd[fd]
                if found == NULL:
                    attends = True
                else:
                    if i % LOOKS == LOOKS - 1:
                        self.look()
                    if i == chosen:
                        self.begin_timed(<RelayEndpoint>found, events[i].events)
                    self.heed(<RelayEndpoint>found, events[i].events, late or self.latest >= until)
                    if self.timed is not None:
                        self.end_timed()
            if ready:
                self.serve(ready, self.latest + ROUND)
        finally:
            # Who is left goes first the next time.
            if late:
                late.extend(self.unserved)
                self.unserved = late
            if ready:
                ready.extend(self.ready)
                self.ready = ready
        if self.now >= self.due:
            self.run_timers()
        for i in range(len(self.lost)):
            party, gone = self.lost[0]
            self.hear_out(party, gone)
            del self.lost[0]
        if self.untold:
            untold = self.untold
            self.untold = []
            for party, end, side, error in untold:
                self.tell_end(party, end, side, error)
        if attends:
            for i in range(n):
                # Another one may have taken it out.
                fd = events[i].data.fd
                guest = self.lent.get(fd)
                if guest is not None:
                    if guests is None:
                        guests = []
                    guests.append(guest)
                    continue
                callback = self.attending.get(fd)
                if callback is not None:
                    try:
                        callback()
                    except Exception as failure:
                        self.note(failure)
            if guests is not None and self.take_in is not None:
                try:
                    self.take_in(guests)
                except Exception as failure:
                    self.note(failure)
        self.arm()
        if self.unserved or self.ready:
            self.wake()
        return 0

    cdef int serve(self, list queue, double until) except -1:
        """See ``pump.Pump._serve``."""
        cdef RelayEndpoint endpoint
        while queue:
            endpoint = queue.pop(0)
            endpoint.queued = False
            going = self.going.get(endpoint.relay) if self.going else None
            if going is not None and going[1].side is endpoint.side:
                self.hear_out(endpoint.relay, going[1])
            elif endpoint.active and not endpoint.paused and not endpoint.throttled:
                self.guarded(endpoint, EPOLLIN)
                if self.timed is not None:
                    self.end_timed()
            self.look()
            if self.latest >= until:
                break
        return 0

    cdef int heed(self, RelayEndpoint endpoint, uint32_t events, bint is_late) except -1:
        """What epoll says of one endpoint."""
        if is_late and events & ~<uint32_t>EPOLLOUT:
            self.queue(self.unserved, endpoint)
        if endpoint.queued:
            events &= EPOLLOUT
        if events:
            self.guarded(endpoint, events)
        return 0

    cdef int choose(self, int n, bint waited) except -2:
        """See ``turn_timer.TurnTimer.choose``."""
        cdef int chosen = -1
        if n > 0 and self.rounds < 0 and self.timed is None:
            self.picked += 1
            chosen = self.picked % n
            self.timed_since = self.now if waited else self.looked
        self.looked = self.now
        return chosen

    cdef int begin_timed(self, RelayEndpoint endpoint, uint32_t events) except -1:
        """See ``turn_timer.TurnTimer.begin``."""
        if events & EPOLLIN and not endpoint.paused and not endpoint.throttled and not endpoint.queued:
            self.timed = endpoint
        return 0

    cdef bint peer_waits(self, RelayEndpoint peer) noexcept:
        """Whether bytes for the other side wait until that takes them. A link's has no peer."""
        cdef LinkEndpoint way
        if peer is None:
            return False
        if peer.role != POOLED:
            return held(peer.unsent_) != 0
        way = (<PooledEndpoint>peer).way
        return way is not None and held(way.unsent_) != 0

    cdef int end_timed(self) except -1:
        """See ``turn_timer.TurnTimer.end``."""
        cdef RelayEndpoint endpoint = self.timed
        if endpoint.queued:
            return 0
        self.timed = None
        self.rounds = ROUNDS
        if endpoint.throttled or self.peer_waits(endpoint.peer):
            return 0
        self.look()
        self.counters.latency.add(self.latest - self.timed_since)
        return 0

    cdef int wake(self) except -1:
        cdef uint64_t one = 1
        write(self.event, &one, 8)
        return 0

    def interrupt(self):
        """Make ``run``, or a waiting ``step``, return. Safe from other threads and signal handlers."""
        self.interrupted = True
        # Both are read and written with the interpreter's lock: who does not wait sees it before it does.
        if self.waits:
            self.wake()

    # -- sockets ---------------------------------------------------------------------------

    cdef int guarded(self, RelayEndpoint endpoint, uint32_t events) except -1:
        party = endpoint.relay
        self.turn_ends = 0
        self.is_over = False
        try:
            if events & EPOLLOUT and (held(endpoint.unsent_) or endpoint.wrapped == BUFFERED):
                endpoint.flush_bytes()
                endpoint.last_sent = self.now
            if is_of_pooled(endpoint):
                # Others may have filled the link since.
                self.balance(endpoint)
            if endpoint.active and (
                events & (EPOLLHUP | EPOLLERR)
                or (events & EPOLLIN and not endpoint.paused and not endpoint.throttled)
            ):
                self.read_from(endpoint)
            if endpoint.active:
                self.balance(endpoint)
        except PeerGoneError as gone:
            self.hear_out(party, gone)
        except Exception as error:
            self.fail(party, endpoint.side, error)
        if self.left:
            self.hand_back()
        return 0

    cdef int hear_out(self, object party, object gone) except -1:
        """See ``pump.Pump._hear_out``."""
        cdef tuple endpoints = party.endpoints
        cdef RelayEndpoint endpoint = endpoints[0 if gone.side is SIDE_CLIENT else len(endpoints) - 1]
        cdef int left
        left, before = self.going.get(party, (LAST_READS, gone))
        if endpoint.queued and party in self.going and gone.side is before.side:
            return 0
        self.turn_ends = 0
        self.is_over = False
        try:
            while party.active and not endpoint.throttled and gone.side is before.side:
                if endpoint.fresh:
                    self.take_rest(endpoint)
                elif left:
                    left -= 1
                    self.read_from(endpoint)
                    if endpoint.wrapped == BUFFERED and endpoint.active and endpoint.has_pending():
                        # What was read is heard in more than one turn.
                        left += 1
                        self.is_over = True
                        self.queue(self.ready, endpoint)
                else:
                    break
                if self.is_over and endpoint.queued and party.active:
                    self.going[party] = left, gone
                    return 0
        except PeerGoneError:
            pass
        except Exception as error:
            self.note(error)
        if party.active and endpoint.role == LINK and (<LinkEndpoint>endpoint).owes():
            self.going[party] = 0, gone
            return self.queue(self.ready, endpoint)
        self.remove(party, End.GONE, gone.side, gone)
        if self.left:
            self.hand_back()
        return 0

    # -- timers ----------------------------------------------------------------------------

    cdef int schedule(self, object wheel, RelayEndpoint endpoint, double when) except -1:
        wheel.set(endpoint, when)
        if when < self.due:
            # Not ``when``: the wheel hands it out at the end of its slot.
            self.due = min(self.due, <double>wheel.deadline())
        return 0

    cdef int run_timers(self) except -1:
        cdef RelayEndpoint endpoint
        self.due = NEVER
        if self.now >= self.look_at:
            self.late(self.now - self.look_at)
            self.look_at = self.now + self.look_every
        for endpoint in self.throttles.due(self.now):
            if not endpoint.active or endpoint.halted:
                continue
            endpoint.throttled = False
            endpoint.last_received = self.now
            if not endpoint.paused:
                self.heed(endpoint, EPOLLIN, self.latest >= self.now + ROUND)
        for endpoint in self.beats.due(self.now):
            if endpoint.active:
                self.beat(endpoint)
        self.due = min(self.look_at, <double>self.beats.deadline(), <double>self.throttles.deadline())
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

    cdef int beat(self, RelayEndpoint endpoint) except -1:
        cdef double interval = endpoint.heartbeat
        cdef double due
        cdef bint stopped = endpoint.paused or endpoint.throttled or endpoint.fresh
        if not stopped and self.now - endpoint.last_received >= 2 * interval:
            self.remove(endpoint.relay, End.SILENT, endpoint.side, None)
            return 0
        if endpoint.wrapped == BUFFERED or self.now - endpoint.last_sent >= interval / 2:
            try:
                endpoint.beat()
            except PeerGoneError as gone:
                self.remove(endpoint.relay, End.GONE, gone.side, gone)
                return 0
            endpoint.last_sent = self.now
            self.balance(endpoint)
        due = endpoint.last_sent + interval / 2
        if not stopped:
            due = min(due, endpoint.last_received + 2 * interval)
        self.schedule(self.beats, endpoint, due)
        return 0
