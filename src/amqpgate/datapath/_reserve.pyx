# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Memory for small pieces, when there is no other; ``reserve`` says what for.

It is mapped once, in chunks of one size class each, and used in place of what Python's own allocator lacks. A
chunk with no pieces left is free for any class. What has a lock is asked only where memory fails, and for
what came from here: everything else is a call more, and a comparison where memory is given back.
"""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy, memset


cdef extern from *:
    """
    #include <pthread.h>
    #include <sys/mman.h>
    #include <malloc.h>

    static pthread_mutex_t reserve_lock = PTHREAD_MUTEX_INITIALIZER;
    /* What this thread asks for is a client's, and not worth the reserve. */
    static __thread int reserve_is_barred;
    """
    ctypedef struct pthread_mutex_t:
        pass
    pthread_mutex_t reserve_lock
    int reserve_is_barred
    int pthread_mutex_lock(pthread_mutex_t*) nogil
    int pthread_mutex_unlock(pthread_mutex_t*) nogil
    void* mmap(void* address, size_t size, int protection, int flags, int fd, long offset) nogil
    void* MAP_FAILED
    enum: PROT_READ, PROT_WRITE, MAP_PRIVATE, MAP_ANONYMOUS, MADV_DONTNEED
    int madvise(void* address, size_t size, int advice) nogil
    size_t malloc_usable_size(void* piece) nogil


cdef extern from "Python.h":
    enum PyMemAllocatorDomain:
        PYMEM_DOMAIN_RAW
    ctypedef struct PyMemAllocatorEx:
        void* ctx
        void* (*malloc)(void* ctx, size_t size) noexcept nogil
        void* (*calloc)(void* ctx, size_t count, size_t size) noexcept nogil
        void* (*realloc)(void* ctx, void* piece, size_t size) noexcept nogil
        void (*free)(void* ctx, void* piece) noexcept nogil
    ctypedef struct PyObjectArenaAllocator:
        void* ctx
        void* (*alloc)(void* ctx, size_t size) noexcept nogil
        void (*free)(void* ctx, void* piece, size_t size) noexcept nogil
    void PyMem_GetAllocator(PyMemAllocatorDomain domain, PyMemAllocatorEx* allocator)
    void PyMem_SetAllocator(PyMemAllocatorDomain domain, PyMemAllocatorEx* allocator)
    void PyObject_GetArenaAllocator(PyObjectArenaAllocator* allocator)
    void PyObject_SetArenaAllocator(PyObjectArenaAllocator* allocator)
    void* PyMem_RawMalloc(size_t size) nogil
    void PyMem_RawFree(void* piece) nogil


cdef enum:
    CHUNK_BITS = 16
    CHUNK = 1 << CHUNK_BITS
    CHUNKS = 128
    SIZE = CHUNKS * CHUNK
    LEAST_BITS = 5


cdef struct Chunk:
    # Pieces have 1 << bits bytes; 0: there is none.
    uint8_t bits
    uint32_t live
    # So many have been given out at least once: the rest needs no list.
    uint32_t begun
    # Those that were given back, each with the next one in it.
    void* free


cdef PyMemAllocatorEx below
cdef PyObjectArenaAllocator arenas
cdef char* base = NULL
cdef Chunk chunks[CHUNKS]
cdef size_t used = 0, most = 0, given = 0, lacked = 0


cdef inline bint is_ours(const void* piece) noexcept nogil:
    return <size_t>piece - <size_t>base < SIZE


cdef inline size_t size_of(const void* piece) noexcept nogil:
    return <size_t>1 << chunks[(<size_t>piece - <size_t>base) >> CHUNK_BITS].bits


cdef void* take(size_t size) noexcept nogil:
    """A piece of the reserve; NULL: it has none, or not for this."""
    global used, most, given, lacked
    cdef int bits = LEAST_BITS, i, found = -1
    cdef Chunk* chunk
    cdef void* piece = NULL
    if size > CHUNK or reserve_is_barred:
        return NULL
    while (<size_t>1 << bits) < size:
        bits += 1
    pthread_mutex_lock(&reserve_lock)
    for i in range(CHUNKS):
        if not chunks[i].live:
            if found < 0:
                found = i
        elif chunks[i].bits == bits and chunks[i].live < (<uint32_t>CHUNK >> bits):
            found = i
            break
    if found < 0:
        lacked += 1
    else:
        chunk = &chunks[found]
        if not chunk.live:
            chunk.bits = bits
            chunk.begun = 0
            chunk.free = NULL
        if chunk.free != NULL:
            piece = chunk.free
            chunk.free = (<void**>piece)[0]
        else:
            piece = base + (<size_t>found << CHUNK_BITS) + (<size_t>chunk.begun << bits)
            chunk.begun += 1
        chunk.live += 1
        given += 1
        used += <size_t>1 << bits
        if used > most:
            most = used
    pthread_mutex_unlock(&reserve_lock)
    return piece


cdef void put_back(void* piece) noexcept nogil:
    global used
    cdef Chunk* chunk = &chunks[(<size_t>piece - <size_t>base) >> CHUNK_BITS]
    pthread_mutex_lock(&reserve_lock)
    (<void**>piece)[0] = chunk.free
    chunk.free = piece
    chunk.live -= 1
    used -= <size_t>1 << chunk.bits
    if not used:
        madvise(base, SIZE, MADV_DONTNEED)
    pthread_mutex_unlock(&reserve_lock)


cdef void* raw_malloc(void* ctx, size_t size) noexcept nogil:
    cdef void* piece = below.malloc(below.ctx, size)
    return piece if piece != NULL else take(size)


cdef void* raw_calloc(void* ctx, size_t count, size_t size) noexcept nogil:
    cdef void* piece = below.calloc(below.ctx, count, size)
    if piece != NULL or (size and count > CHUNK // size):
        return piece
    piece = take(count * size)
    if piece != NULL:
        memset(piece, 0, count * size)
    return piece


cdef void* raw_realloc(void* ctx, void* piece, size_t size) noexcept nogil:
    cdef void* other
    cdef size_t old
    if piece != NULL and is_ours(piece):
        old = size_of(piece)
        if size <= old:
            return piece
        other = raw_malloc(NULL, size)
        if other != NULL:
            memcpy(other, piece, old)
            put_back(piece)
        return other
    other = below.realloc(below.ctx, piece, size)
    if other == NULL:
        other = take(size)
        if other != NULL and piece != NULL:
            old = malloc_usable_size(piece)
            memcpy(other, piece, old if old < size else size)
            below.free(below.ctx, piece)
    return other


cdef void raw_free(void* ctx, void* piece) noexcept nogil:
    if is_ours(piece):
        put_back(piece)
    else:
        below.free(below.ctx, piece)


cdef void* arena_alloc(void* ctx, size_t size) noexcept nogil:
    cdef void* piece = arenas.alloc(arenas.ctx, size)
    return piece if piece != NULL else take(size)


cdef void arena_free(void* ctx, void* piece, size_t size) noexcept nogil:
    if is_ours(piece):
        put_back(piece)
    else:
        arenas.free(arenas.ctx, piece, size)


cdef void* ask_without_reserve(size_t size) noexcept nogil:
    """As ``PyMem_RawMalloc``, but never of the reserve."""
    global reserve_is_barred
    cdef void* piece
    reserve_is_barred = 1
    piece = PyMem_RawMalloc(size)
    reserve_is_barred = 0
    return piece


def install():
    """Put the reserve below all that Python asks for, for as long as the process runs; whether it is there.

    It is not where another allocator is in the place of Python's own, or where it cannot be mapped.
    """
    global base
    cdef void* mapped
    cdef PyMemAllocatorEx ours
    cdef PyObjectArenaAllocator our_arenas
    if base != NULL:
        return True
    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &below)
    PyObject_GetArenaAllocator(&arenas)
    if below.ctx != NULL or arenas.ctx != NULL:
        return False
    mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    if mapped == MAP_FAILED:
        return False
    base = <char*>mapped
    ours.ctx = NULL
    ours.malloc = raw_malloc
    ours.calloc = raw_calloc
    ours.realloc = raw_realloc
    ours.free = raw_free
    our_arenas.ctx = NULL
    our_arenas.alloc = arena_alloc
    our_arenas.free = arena_free
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &ours)
    PyObject_SetArenaAllocator(&our_arenas)
    return True


def in_use():
    """Bytes of it that somebody has."""
    return used


cdef enum:
    #: Bytes in use from which on memory is short. What lives for long may have been asked for in an hour of
    #: need, and stays where it is: less than that is no sign.
    MUCH = 256 * 1024
    #: Bytes that are free, in one piece, where memory is short no more.
    PLENTY = 64 * 1024

SHORT = MUCH


def is_short():
    """Whether the reserve is lived on now. A comparison where it is not."""
    return used >= MUCH and lacks(PLENTY)


def lacks(size_t size):
    """Whether there are not so many bytes in one piece, but for the reserve."""
    cdef void* piece = ask_without_reserve(size)
    PyMem_RawFree(piece)
    return piece == NULL


def numbers():
    """Bytes in use, the most ever, pieces ever given out, and requests that it could not serve."""
    return used, most, given, lacked
