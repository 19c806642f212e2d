# What Linux offers: epoll, timers, sockets.

cdef extern from "<sys/epoll.h>" nogil:
    enum: EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL, EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP, EPOLL_CLOEXEC
    ctypedef union epoll_data_t:
        int fd
    struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_create1(int flags)
    int epoll_ctl(int epfd, int op, int fd, epoll_event* event)
    int epoll_wait(int epfd, epoll_event* events, int maxevents, int timeout)

cdef extern from "<sys/timerfd.h>" nogil:
    enum: TFD_NONBLOCK, TFD_CLOEXEC, TFD_TIMER_ABSTIME
    int timerfd_create(int clockid, int flags)
    int timerfd_settime(int fd, int flags, itimerspec* new_value, itimerspec* old_value)

cdef extern from "<sys/eventfd.h>" nogil:
    enum: EFD_NONBLOCK, EFD_CLOEXEC
    int eventfd(unsigned int initval, int flags)

cdef extern from "<sys/ioctl.h>" nogil:
    enum: FIONREAD
    int ioctl(int fd, unsigned long request, int* value)

cdef extern from "<sys/socket.h>" nogil:
    enum: MSG_NOSIGNAL
    enum: MSG_PEEK
    enum: MSG_MORE
    ssize_t recv(int fd, void* buf, size_t n, int flags)
    ssize_t send(int fd, const void* buf, size_t n, int flags)
    int setsockopt(int fd, int level, int name, const void* value, unsigned int size)

cdef extern from "<netinet/tcp.h>" nogil:
    enum: TCP_NODELAY

cdef extern from "<netinet/in.h>" nogil:
    enum: IPPROTO_TCP
