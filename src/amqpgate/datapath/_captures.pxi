# Messages that pass, and of which a copy is kept for the control plane; see ``captures``.

cdef inline Py_ssize_t whole_message(
    const unsigned char* method,
    const unsigned char* header,
    Py_ssize_t left,
    uint16_t number,
    Py_ssize_t header_largest,
    Py_ssize_t body_largest,
) noexcept:
    """Where the message ends, counted from its header's frame, of which ``left`` bytes from there on are here.
    Below zero, likewise: it may end there, and is not whole. 0: it is not one that is captured."""
    cdef Py_ssize_t size = be32(header + 3)
    cdef Py_ssize_t stop = size + 8
    cdef const unsigned char* body = header + stop
    cdef uint64_t declared
    if (
        header[0] != 2
        or be16(header + 1) != number
        or not 14 <= size <= header_largest
        or header[stop - 1] != FRAME_END
        or be16(header + 7) != CLASS_BASIC
        or be16(header + 9) != 0
        or be16(header + 19) & NO_PROPERTIES
        or not are_properties_c(header + 19, header + 7 + size)
    ):
        return 0
    declared = be64(header + 11)
    if declared == 0:
        return stop
    if declared > <uint64_t>body_largest or <Py_ssize_t>declared + 8 + (body - method) > CAPTURED_BYTES:
        return 0
    if left < stop + 7:
        return -1
    size = <Py_ssize_t>declared
    if body[0] != 3 or be16(body + 1) != number or be32(body + 3) != size:
        return 0
    stop += size + 8
    if left < stop:
        return -stop
    return stop if body[size + 7] == FRAME_END else 0


cdef inline bint is_full(list captured) noexcept:
    return items_in_list(<PyObject*>captured) >= CAPTURED_MESSAGES


cdef inline bint is_shut(PyObject* flow) noexcept:
    return (<Flow>flow).looks.gate is not None and (<Flow>flow).looks.gate.is_shut


cdef inline bint is_sample_next(PyObject* flow) noexcept:
    """Whether the next message is a sample, if it carries no trace context."""
    return (<Flow>flow).sample_every and (<Flow>flow).unsampled + 1 >= (<Flow>flow).sample_every


cdef inline bint passes_next(
    PyObject* flow,
    const unsigned char* method,
    const unsigned char* header,
    Py_ssize_t left,
    uint16_t number,
    int* spent,
    Py_ssize_t header_largest,
    Py_ssize_t body_largest,
    list captured,
) noexcept:
    """Whether the flow surely lets the message pass unshown, of whose header's frame ``left`` bytes are here."""
    if (<Flow>flow)._peeks & PEEKS_HEADER and not passes_by(flow, header, left, number, spent):
        return False
    if (<Flow>flow)._peeks & PEEKS_REWRITES:
        return False
    if not (<Flow>flow)._peeks & PEEKS_CAPTURES:
        return True
    return (
        left >= WHOLE_HEADER
        and <Py_ssize_t>be32(header + 3) + 8 <= left
        and be32(header + 3) <= PEEKED_HEADER
        and not be16(header + 19) & MORE_FLAGS
        and not (is_full(captured) or is_shut(flow))
        and whole_message(method, header, left, number, header_largest, body_largest) > 0
    )


cdef int capture(
    PyObject* flow,
    const unsigned char* header,
    list captured,
    uint32_t stands_for,
    bint is_sample,
    uint64_t messages,
    const unsigned char* ids,
    double waited,
) except -1:
    """Keep a copy of the message, which is whole, and before which so many have passed on its channel."""
    cdef Py_ssize_t size = be32(header + 3)
    cdef int64_t most = (<Flow>flow).looks.captures
    cdef Py_ssize_t body
    cdef object sample = None
    if is_sample:
        most = max(most, (<Flow>flow).looks.samples)
        sample = (
            stands_for,
            messages + 1,
            b"" if ids == NULL else PyBytes_FromStringAndSize(<const char*>ids, IDS),
            waited,
        )
    body = min(<Py_ssize_t>be64(header + 11), most)
    captured.append(
        (
            <Flow>flow,
            be16(header + 1),
            PyBytes_FromStringAndSize(<const char*>header + 7, size),
            PyBytes_FromStringAndSize(<const char*>header + size + 15, body) if body else b"",
            sample,
        )
    )
    return 0
