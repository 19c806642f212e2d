# One socket of a session.

# What an endpoint is: a socket of its session, a pooled session's end at a link, or a link's socket.
cdef enum:
    OWN = 0
    POOLED = 1
    LINK = 2

# What its socket is. But for a plain one, all goes through the methods of the socket.
cdef enum:
    PLAIN = 0
    TLS = 1
    BUFFERED = 2  # see engine.BufferedSocket

cdef enum:
    TLS_RECORD = 16384
    TLS_OVERHEAD = 2048 + 5  # at most (RFC 5246, section 6.2.3)

cdef object FAMILY = _socket.socket.family


class Over:
    """The relay of endpoints that have parted: one that has left the data path."""

    active = False
    endpoints = ()


cdef object OVER = Over()
cdef RelayEndpoint NOBODY  # whom they have met


cdef class RelayEndpoint:
    """One socket of a session; see ``endpoint.RelayEndpoint``."""

    cdef object held_sock  # or None: there is no socket, or it is bare
    cdef readonly Lane lane
    cdef readonly double heartbeat
    cdef public object relay
    cdef RelayEndpoint peer
    cdef int fd
    cdef uint32_t place  # among the heartbeats, or 0
    cdef uint8_t role, wrapped, active, fresh, interest, queued
    cdef uint8_t more  # more is about to follow what is sent now
    cdef uint8_t corked  # the kernel keeps what was sent last back for that
    cdef uint8_t bare  # its family: the descriptor is the endpoint's own, and no object stands for it
    cdef readonly uint8_t paused, throttled, halted
    cdef readonly uint8_t rewritten  # what was sent last of what came
    cdef Py_ssize_t wanted
    cdef ByteBuffer* partial  # owned, as the next
    cdef ByteBuffer* unsent_
    cdef readonly double last_received
    cdef double last_sent

    def __init__(self, sock, side, Lane lane not None, double heartbeat, bytes rest=b""):
        self.held_sock = sock
        self.lane = lane
        self.heartbeat = heartbeat
        self.fd = sock.fileno()
        self.wrapped = BUFFERED if isinstance(sock, BufferedSocket) else TLS if type(sock) is not Plain and is_tls(sock) else PLAIN
        if rest:
            append(&self.partial, rest, len(rest))
            self.fresh = True

    def __dealloc__(self):
        if self.bare:
            close(self.fd)
        give_back(&self.partial)
        give_back(&self.unsent_)

    @property
    def sock(self):
        if self.bare:
            self.held_sock = socket.socket(self.bare, socket.SOCK_STREAM, 0, self.fd)
            self.bare = 0
            self.held_sock.setblocking(False)
        return self.held_sock

    cdef int shed_sock(self) except -1:
        """Most sessions are idle, and of 96 bytes for each of two sockets the pump needs the number alone. Who
        asks for the socket gets another one."""
        cdef int family
        if type(self.held_sock) is not socket.socket:
            return 0
        # As a number: Python's own makes a member of an enum of it.
        family = FAMILY.__get__(self.held_sock)
        if 0 < family < 256:
            try:
                self.held_sock.detach()
            except MemoryError:
                # The descriptor has one owner: that object, if it was not begun.
                if self.held_sock.fileno() >= 0:
                    return 0
            self.bare = family
            self.held_sock = None
        return 0

    def close_at_once(self):
        """See ``engine.RelayEndpoint.close_at_once``."""
        cdef unsigned char first
        cdef ssize_t got
        if self.wrapped == BUFFERED or held(self.unsent_) or self.fd < 0:
            return False
        if self.wrapped == TLS:
            if not say_end(self.held_sock):
                return False
        else:
            got = recv(self.fd, &first, 1, MSG_PEEK)
            if got > 0 or (got < 0 and errno != EAGAIN):
                return False
        if self.bare:
            close(self.fd)
            self.bare = 0
        else:
            self.held_sock.close()
        self.held_sock = None
        self.fd = -1
        return True

    def peer_name(self):
        cdef object sock = self.held_sock
        if sock is None and not self.bare:
            return None
        if self.bare:
            sock = socket.socket(self.bare, socket.SOCK_STREAM, 0, self.fd)
        try:
            return sock.getpeername()[:2]
        except OSError:
            return None
        finally:
            if self.bare:
                sock.detach()

    def meet(self, RelayEndpoint peer not None):
        self.peer = peer

    def part(self):
        """See ``engine.RelayEndpoint.part``."""
        self.peer = NOBODY
        self.relay = OVER

    @property
    def side(self):
        return self.lane.side

    @property
    def is_tls(self):
        return self.held_sock.is_tls if self.wrapped == BUFFERED else self.wrapped == TLS

    @property
    def is_pooled(self):
        return False

    @property
    def waiting(self):
        return held(self.unsent_) + (self.held_sock.unsent if self.wrapped == BUFFERED else 0)

    def unsent(self):
        return copy_of(self.unsent_)

    def rest(self):
        return copy_of(self.partial)

    cdef bint has_pending(self) except -1:
        return self.wrapped != PLAIN and bool(self.held_sock.pending())

    cdef object gone(self, int number):
        return PeerGoneError(self.side, OSError(number, os.strerror(number)))

    cdef Py_ssize_t receive(self, unsigned char* into, object view, Py_ssize_t size) except -2:
        """Bytes received, 0 at the end, -1 when there is nothing now."""
        cdef ssize_t got
        if self.wrapped != PLAIN:
            return self.receive_buffered(view[:size]) if self.wrapped == BUFFERED else self.receive_records(view, size)
        got = recv(self.fd, into, size, 0)
        if got < 0:
            if errno == EAGAIN or errno == EINTR:
                return -1
            raise self.gone(errno)
        return got

    cdef Py_ssize_t receive_records(self, object view, Py_ssize_t size) except -2:
        """OpenSSL gives one record at a time. More are taken while the kernel has whole ones, so that the
        scan and the other socket's send are paid for once. Its share of the gain was not measured apart."""
        cdef Py_ssize_t total = 0
        cdef int there = 0
        try:
            total = self.held_sock.recv_into(view)
            while total and total + TLS_RECORD <= size:
                if ioctl(self.fd, FIONREAD, &there) < 0 or there < TLS_RECORD + TLS_OVERHEAD:
                    break
                total += self.held_sock.recv_into(view[total:])
        except would_block():
            return total or -1
        except has_ended():
            return total
        except OSError as error:
            if not total:
                raise PeerGoneError(self.side, error) from error
        return total

    cdef Py_ssize_t receive_buffered(self, object view) except -2:
        try:
            return self.held_sock.recv_into(view)
        except BlockingIOError:
            return -1
        except OSError as error:
            raise PeerGoneError(self.side, error) from error

    cdef Py_ssize_t transmit(self, const unsigned char* data, Py_ssize_t size) except -1:
        """Bytes that the kernel took, or a buffered socket."""
        cdef ssize_t sent
        if self.wrapped != PLAIN:
            if self.wrapped == TLS:
                size = min(size, TLS_RECORD)
            try:
                return self.held_sock.send(PyMemoryView_FromMemory(<char*>data, size, PyBUF_READ))
            except would_block():
                return 0
            except MemoryError:
                # What was sent before must be followed by this: later.
                return 0
            except OSError as error:
                raise PeerGoneError(self.side, error) from error
        sent = send(self.fd, data, size, MSG_NOSIGNAL | MSG_MORE if self.more else MSG_NOSIGNAL)
        if sent < 0:
            if errno == EAGAIN or errno == EINTR:
                return 0
            raise self.gone(errno)
        self.corked = self.more
        return sent

    cdef int uncork(self) except -1:
        """See ``endpoint.PlainRelayEndpoint.uncork``."""
        cdef int on = 1
        if self.corked:
            self.corked = False
            if self.fd >= 0:
                setsockopt(self.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on))
        return 0

    cdef int put_bytes(self, const unsigned char* data, Py_ssize_t size) except -1:
        cdef Py_ssize_t sent
        cdef bint was_sent = False
        while size and not held(self.unsent_):
            sent = self.transmit(data, size)
            data += sent
            size -= sent
            was_sent = was_sent or sent > 0
            # TLS sends a record at a time; less than was asked for means that the kernel is full.
            if self.wrapped != TLS or sent == 0:
                break
        try:
            append(&self.unsent_, data, size)
        except MemoryError:
            if not was_sent:
                raise
            # A frame is cut: nothing may follow it, no close either.
            raise self.gone(ENOMEM)
        return 0

    cdef int flush_bytes(self) except -1:
        cdef Py_ssize_t sent
        if self.wrapped == BUFFERED:
            return self.flush_buffered()
        while held(self.unsent_):
            sent = self.transmit(first_of(self.unsent_), held(self.unsent_))
            if sent == 0:
                return 0
            self.unsent_.start += sent
        give_back(&self.unsent_)
        return 0

    cdef int flush_buffered(self) except -1:
        """See ``endpoint.PlainRelayEndpoint.flush``."""
        try:
            self.held_sock.flush()
        except OSError as error:
            raise PeerGoneError(self.side, error) from error
        if held(self.unsent_):
            self.unsent_.start += self.transmit(first_of(self.unsent_), held(self.unsent_))
            if not held(self.unsent_):
                give_back(&self.unsent_)
        return 0

    cdef int beat(self) except -1:
        """See ``endpoint.PlainRelayEndpoint.beat``."""
        if self.wrapped == BUFFERED:
            try:
                self.held_sock.beat()
            except OSError as error:
                raise PeerGoneError(self.side, error) from error
        elif not held(self.unsent_):
            self.put(HEARTBEAT)
        return 0

    def put(self, data):
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            self.put_bytes(<const unsigned char*>view.buf, view.len)
        finally:
            PyBuffer_Release(&view)


NOBODY = RelayEndpoint.__new__(RelayEndpoint)
NOBODY.lane = Lane(SIDE_CLIENT, 0, 0, Channels())
NOBODY.fd = -1
NOBODY.part()
