# Connections of a listening socket. Contract: `accepting.accept`.

cdef extern from "<sys/socket.h>" nogil:
    enum: AF_INET, AF_INET6, SOCK_STREAM, SOCK_NONBLOCK, SOCK_CLOEXEC
    ctypedef unsigned int socklen_t
    struct sockaddr:
        unsigned short sa_family
    struct sockaddr_storage:
        unsigned short ss_family
    int accept4(int fd, sockaddr* address, socklen_t* size, int flags)

cdef extern from "<netinet/in.h>" nogil:
    struct in_addr:
        pass
    struct in6_addr:
        pass
    struct sockaddr_in:
        uint16_t sin_port
        in_addr sin_addr
    struct sockaddr_in6:
        uint16_t sin6_port
        in6_addr sin6_addr
    uint16_t ntohs(uint16_t port)

cdef extern from "<arpa/inet.h>" nogil:
    enum: INET6_ADDRSTRLEN
    const char* inet_ntop(int family, const void* address, char* text, socklen_t size)


def accept(listening):
    """See ``accepting.accept``."""
    cdef int listener = listening.fileno()
    cdef sockaddr_storage address
    cdef socklen_t size = sizeof(address)
    cdef char text[INET6_ADDRSTRLEN]
    cdef const char* host = NULL
    cdef int port = 0
    cdef int fd
    while True:
        fd = accept4(listener, <sockaddr*>&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC)
        if fd >= 0:
            break
        if errno == EAGAIN:
            return None
        if errno != EINTR:
            raise OSError(errno, os.strerror(errno))
        PyErr_CheckSignals()
    try:
        if address.ss_family == AF_INET:
            host = inet_ntop(AF_INET, &(<sockaddr_in*>&address).sin_addr, text, INET6_ADDRSTRLEN)
            port = ntohs((<sockaddr_in*>&address).sin_port)
        elif address.ss_family == AF_INET6:
            host = inet_ntop(AF_INET6, &(<sockaddr_in6*>&address).sin6_addr, text, INET6_ADDRSTRLEN)
            port = ntohs((<sockaddr_in6*>&address).sin6_port)
        if host == NULL:
            raise OSError(EAFNOSUPPORT, os.strerror(EAFNOSUPPORT))
        peer = host.decode("ascii"), port
        # The last thing that may fail: what it has made closes the descriptor.
        return socket.socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), peer
    except BaseException:
        close(fd)
        raise
