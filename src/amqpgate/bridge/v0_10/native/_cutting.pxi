# Bytes to assemblies of which each segment is one frame; see ``cutting``.

cdef enum:
    ALONE = 0b1111
    FIRST_WHOLE = 0b1011
    MIDDLE_WHOLE = 0b0011
    LAST_WHOLE = 0b0111
    CONTROL = 0
    COMMAND = 1
    HEADER = 2
    BODY = 3

cdef type Assembly = _Assembly


cdef struct Frame:
    Py_ssize_t size
    uint16_t channel
    uint8_t flags, kind, track


cdef inline void read_frame(const unsigned char* data, Frame* frame) noexcept:
    frame.flags = data[0]
    frame.kind = data[1]
    frame.size = <Py_ssize_t>data[2] << 8 | data[3]
    frame.track = data[5] & 0x0F
    frame.channel = <uint16_t>(<uint16_t>data[6] << 8 | data[7])


cdef inline object assembly_of(tuple parts):
    """As ``Assembly(*parts)``, without a call of Python's."""
    return parts if type(parts) is Assembly else tuple.__new__(Assembly, parts)


cdef class AssemblyCutter:
    """See ``cutting.AssemblyCutter``."""

    cdef dict unfinished
    cdef bytes buffer
    cdef list chunks
    cdef Py_ssize_t position, have, need

    def __init__(self, dict unfinished not None):
        self.unfinished = unfinished
        self.buffer = b""
        self.chunks = []
        self.need = HEAD

    cpdef add(self, bytes data):
        self.chunks.append(data)
        self.have += PyBytes_GET_SIZE(data)

    def take(self, flags, kind, channel, payload, frame):
        raise NotImplementedError

    cdef int gather(self) except -1:
        """What has come is one piece."""
        cdef list chunks = self.chunks
        if self.position < PyBytes_GET_SIZE(self.buffer):
            chunks = [self.buffer[self.position:], *chunks]
        self.buffer = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        self.position = 0
        self.chunks.clear()
        return 0

    def next(self):
        cdef tuple found = self.cut_next()
        return None if found is None else assembly_of(found)

    cdef tuple cut_next(self):
        """What ``next`` gives, as a plain tuple mostly."""
        cdef const unsigned char* data
        cdef Py_ssize_t start, stop
        cdef Frame frame
        cdef tuple whole
        while self.have >= self.need:
            if self.chunks:
                self.gather()
            data = bytes_of(self.buffer)
            start = self.position
            read_frame(data + start, &frame)
            if (
                frame.flags > ALONE
                or frame.kind > BODY
                or frame.size < HEAD
                or frame.track != (0 if frame.kind == CONTROL else 1)
            ):
                raise malformed(frame.kind, frame.size, frame.channel)
            if frame.size > self.have:
                self.need = frame.size
                return None
            self.need = HEAD
            stop = start + frame.size
            whole = None
            if (frame.flags == ALONE and frame.kind <= COMMAND) or (
                frame.flags == FIRST_WHOLE and frame.kind == COMMAND
            ):
                if not self.unfinished or (<int>frame.channel << 1 | (frame.kind > CONTROL)) not in self.unfinished:
                    if frame.flags == ALONE:
                        payload = cut_out(data, start + HEAD, stop)
                        whole = (frame.channel, frame.kind, payload, None, None, cut_out(data, start, stop))
                        self.skip(frame.size)
                        return whole
                    whole = self.whole(data, start, stop, frame.channel)
                    if whole is not None:
                        return whole
            payload = cut_out(data, start + HEAD, stop)
            original = cut_out(data, start, stop)
            self.skip(frame.size)
            whole = <tuple>self.take(frame.flags, frame.kind, frame.channel, payload, original)
            if whole is not None:
                return whole
        return None

    cdef tuple whole(self, const unsigned char* data, Py_ssize_t start, Py_ssize_t second, uint16_t channel):
        """See ``cutting.AssemblyCutter._whole``. What it gives is skipped."""
        cdef Py_ssize_t end = start + self.have
        cdef Py_ssize_t third, stop
        cdef Frame frame
        if end - second < HEAD:
            return None
        read_frame(data + second, &frame)
        third = second + frame.size
        if (
            frame.kind != HEADER
            or frame.channel != channel
            or frame.size < HEAD
            or third > end
            or frame.track != 1
        ):
            return None
        stop = third
        if frame.flags == MIDDLE_WHOLE:
            if end - third < HEAD:
                return None
            read_frame(data + third, &frame)
            stop = third + frame.size
            if (
                frame.flags != LAST_WHOLE
                or frame.kind != BODY
                or frame.channel != channel
                or stop > end
                or frame.size < HEAD
                or frame.track != 1
            ):
                return None
        elif frame.flags != LAST_WHOLE:
            return None
        self.skip(stop - start)
        return (
            channel,
            COMMAND,
            cut_out(data, start + HEAD, second),
            cut_out(data, second + HEAD, third),
            cut_out(data, third + HEAD, stop) if stop > third else None,
            cut_out(data, start, stop),
        )

    cdef inline void skip(self, Py_ssize_t size) noexcept:
        self.position += size
        self.have -= size
