cdef void* ask_without_reserve(size_t size) noexcept nogil
