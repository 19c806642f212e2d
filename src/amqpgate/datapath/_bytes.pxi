# Bytes as numbers, hashed and compared.

cdef extern from *:
    """
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>

    static inline uint16_t be16(const unsigned char *p) { return (uint16_t)((p[0] << 8) | p[1]); }
    static inline uint32_t be32(const unsigned char *p) {
        uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v);
    }
    static inline uint64_t be64(const unsigned char *p) {
        uint64_t v; memcpy(&v, p, 8); return __builtin_bswap64(v);
    }
    /* Eight bytes a step, then a last overlapping step: exchange and routing key are a few words. */
    static inline uint64_t mix(uint64_t h, uint64_t v) {
        h = (h ^ v) * 0x9E3779B97F4A7C15ull;
        return h ^ (h >> 32);
    }
    static inline uint64_t hash_bytes(const unsigned char *p, uint32_t n) {
        uint64_t h = n, v = 0;
        const unsigned char *end = p + n;
        if (n < 8) {
            while (p < end) v = v << 8 | *p++;
            return mix(mix(h, v), 0);
        }
        for (; p + 8 < end; p += 8) { memcpy(&v, p, 8); h = mix(h, v); }
        memcpy(&v, end - 8, 8);
        return mix(mix(h, v), 0);
    }
    /* Which flag is the highest that is set: 0 for the first of sixteen. */
    static inline int first_flag(uint16_t flags) { return __builtin_clz((uint32_t)flags) - 16; }
    /* memcmp for a few words, in line: a call costs as much as the comparison. */
    static inline int same_bytes(const unsigned char *a, const unsigned char *b, Py_ssize_t n) {
        uint64_t x, y;
        if (n < 8) {
            while (n-- > 0) { if (*a++ != *b++) return 0; }
            return 1;
        }
        const unsigned char *last = a + n - 8;
        for (; a < last; a += 8, b += 8) {
            memcpy(&x, a, 8); memcpy(&y, b, 8);
            if (x != y) return 0;
        }
        memcpy(&x, last, 8); memcpy(&y, b - (a - last), 8);
        return x == y;
    }
    /* Whether a short string stands anywhere in these bytes, its length before it. Lengths are rare among
       them: memchr finds each, where memmem would make itself a table first, which costs five times as much. */
    static inline int has_shortstr(const unsigned char *hay, Py_ssize_t left, const char *text, Py_ssize_t n) {
        const unsigned char *end = hay + left;
        while (hay + n < end && (hay = (const unsigned char *)memchr(hay, (int)n, end - hay - n)) != NULL) {
            if (memcmp(++hay, text, n) == 0) return 1;
        }
        return 0;
    }
    """
    void* aligned_alloc(size_t alignment, size_t size) nogil
    bint has_shortstr(const unsigned char* hay, Py_ssize_t left, const char* text, Py_ssize_t n) nogil
    Py_ssize_t items_in "PyTuple_GET_SIZE"(PyObject* tuple)
    PyObject* item "PyTuple_GET_ITEM"(PyObject* tuple, Py_ssize_t i)  # borrowed
    Py_ssize_t items_in_list "PyList_GET_SIZE"(PyObject* list)
    PyObject* list_item "PyList_GET_ITEM"(PyObject* list, Py_ssize_t i)  # borrowed
    int same_bytes(const unsigned char* a, const unsigned char* b, Py_ssize_t n) nogil
    int first_flag(uint16_t flags) nogil
    uint16_t be16(const unsigned char* p) nogil
    uint32_t be32(const unsigned char* p) nogil
    uint64_t be64(const unsigned char* p) nogil
    uint64_t hash_bytes(const unsigned char* p, uint32_t n) nogil
    void prefetch "__builtin_prefetch"(const void* at) nogil


cdef inline void renumber(unsigned char* frame, uint16_t to) noexcept:
    frame[1] = to >> 8
    frame[2] = to & 255
