# The way of messages through an end; see ``passing``.

from amqpgate.bridge.v0_10.native.limits import MOST_UNSENT as _MOST_UNSENT, MOST_WAITING as _MOST_WAITING
from amqpgate.bridge.v0_10.build import copy_frames, delivery_part
from amqpgate.bridge.v0_10.native.limits import BEAT, CONNECTION as _CONNECTION, CONTENT
from amqpgate.bridge.v0_10.native.stages import ClientStage
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated.v0_10 import MessageTransfer, SessionCompleted

cdef Py_ssize_t MOST_UNSENT = _MOST_UNSENT
cdef Py_ssize_t MOST_WAITING = _MOST_WAITING
cdef uint64_t MOST_SIZE = <uint64_t>1 << 62
cdef int CONNECTION = _CONNECTION[0]
#: message.transfer and session.completed: class and code.
cdef int TRANSFER = MessageTransfer.CLASS_CODE << 8 | MessageTransfer.CODE
cdef int COMPLETED = SessionCompleted.CLASS_CODE << 8 | SessionCompleted.CODE
# To look a member of an enum up takes Python 3.11 a detour each time.
cdef object ATTACHED = ClientStage.ATTACHED


cdef inline int64_t body_size(const unsigned char* header, Py_ssize_t size) noexcept:
    """What a content header says of its body; what nobody could send is as good as any other."""
    cdef uint64_t value = 0
    cdef int place
    if size < SIZE_AT + 8:
        return 0
    for place in range(8):
        value = value << 8 | header[SIZE_AT + place]
    return <int64_t>min(value, MOST_SIZE)


cdef inline int code_of(bytes segment) noexcept:
    """The class and the code of a command or control."""
    if PyBytes_GET_SIZE(segment) < 2:
        return 0
    return <int>bytes_of(segment)[0] << 8 | bytes_of(segment)[1]


cdef class PassingMessage:
    """A message of the gateway's that is not whole."""

    cdef bytes method, header
    cdef int64_t missing


cdef class PassingEnd:
    """See ``passing.PassingEnd``."""

    cdef readonly object _relay
    cdef readonly AssemblyCutter _reader
    cdef readonly Outgoing _out, _way
    cdef readonly Py_ssize_t _most, _takes, _held
    cdef bint is_delivery
    cdef bytearray frames
    cdef dict contents, channels
    cdef readonly object _forms
    cdef dict known
    cdef int frame_max
    cdef uint32_t channel_max

    def __init__(
        self, relay, AssemblyCutter reader not None, Outgoing out not None, Outgoing way not None, *, most, takes,
        is_delivery, forms
    ):
        self._relay = relay
        self.channels = relay.channels
        self.channel_max = relay.channel_max
        self._reader = reader
        self._out = out
        self._way = way
        self._most = most
        self._takes = takes
        self.is_delivery = is_delivery
        self._forms = forms
        self.known = forms.known
        self.frame_max = relay.frame_max
        self.frames = bytearray()
        self.contents = {}

    # -- the peer's side -------------------------------------------------------------------------

    @property
    def wants_bytes(self):
        return self._way.size <= MOST_UNSENT and self._way.waiting <= MOST_WAITING and self._held <= MOST_UNSENT

    def hold(self, Py_ssize_t size):
        self._held += size

    cdef object channel(self, object number):
        cdef PyObject* found = PyDict_GetItem(self.channels, number)
        return <object>found if found != NULL else self._relay.channel(number)

    def from_peer(self, bytes data not None):
        cdef AssemblyCutter reader = self._reader
        cdef tuple assembly
        cdef bytes segment
        reader.add(data)
        while True:
            assembly = reader.cut_next()
            if assembly is None:
                return
            number = assembly[0]
            if <uint32_t>number >= self.channel_max or PyBytes_GET_SIZE(assembly[5]) > self._most:
                # `Assembly` is a tuple, and what overrides gives nothing else.
                assembly = <tuple>self._fitting(assembly_of(assembly))
            segment = assembly[2]
            if assembly[1]:
                channel = self.channel(number)
                if not self.passes(channel, assembly, segment):
                    self._command(channel, assembly_of(assembly))
            elif PyBytes_GET_SIZE(segment) and bytes_of(segment)[0] == CONNECTION:
                self._connection(assembly_of(assembly))
            else:
                channel = self.channel(number)
                if self.is_delivery and code_of(segment) == COMPLETED and not channel.due.answers:
                    (<OriginalQueue?>channel.down).follow(<bytes>assembly[5])
                else:
                    self._control(channel, assembly_of(assembly))

    cdef bint passes(self, object channel, tuple assembly, bytes segment) except -1:
        """Whether it was a client's transfer that is like others, and goes as ``ClientEnd._take_command`` has it."""
        cdef Original original
        cdef PyObject* found
        cdef tuple form
        cdef bytes frames, header
        if self.is_delivery or code_of(segment) != TRANSFER or channel.held or channel.client is not ATTACHED:
            return False
        read = assembly[3]
        if read is not None and self._forms.is_brief:
            read = delivery_part(read)
        found = PyDict_GetItem(self.known, (segment, read))
        if found == NULL:
            return False
        form = <tuple>found
        frames, header = copy_frames(channel.number + 1, form[METHOD], form[HEADER_OF], assembly[4], self.frame_max)
        self.frames += frames
        original = Original.__new__(Original)
        original.data = <bytes>assembly[5]
        original.copies = [form[METHOD]]
        original.header = header
        original.command_id = (<Counter?>channel.up_ids).take()
        original.code = TRANSFER
        original.answers = ()
        original.behind = []
        original.size = PyBytes_GET_SIZE(original.data) + EACH
        (<OriginalQueue?>channel.up).wait(original)
        return True

    def peer_ended(self):
        pass

    def bytes_for_peer(self):
        return self._out.take()

    # -- the gateway's side ------------------------------------------------------------------------

    @property
    def wants_frames(self):
        return True

    def from_gateway(self, bytes frames not None):
        cdef const unsigned char* data = bytes_of(frames)
        cdef Py_ssize_t pos = 0
        cdef Py_ssize_t end = PyBytes_GET_SIZE(frames)
        cdef Py_ssize_t start, size
        cdef int kind
        cdef PassingMessage content
        cdef bytes payload
        while pos < end:
            if end - pos < OVERHEAD_91:
                raise ValueError("a frame is cut")
            kind = data[pos]
            number = <int>data[pos + 1] << 8 | data[pos + 2]
            size = (
                <Py_ssize_t>data[pos + 3] << 24 | data[pos + 4] << 16 | data[pos + 5] << 8 | data[pos + 6]
            )
            start = pos + HEAD_91
            if size > end - pos - OVERHEAD_91:
                raise ValueError("a frame is cut")
            pos += size + OVERHEAD_91
            if kind == METHOD_91:
                payload = cut_out(data, start, start + size)
                if not number:
                    self._tell(decode_method(payload))
                elif payload[:4] in CONTENT:
                    content = PassingMessage.__new__(PassingMessage)
                    content.method = payload
                    content.header = b""
                    self.contents[number] = content
                else:
                    self.contents.pop(number, None)
                    self._method(self.channel(number - 1), payload)
                continue
            if kind == HEARTBEAT_91:
                self._out.put(BEAT)
                continue
            content = self.contents.get(number)
            if content is None:
                continue
            if kind == HEADER_91:
                content.header = cut_out(data, start, start + size)
                content.missing = body_size(data + start, size)
            elif kind == BODY_91:
                content.missing -= size
            if content.missing <= 0:
                del self.contents[number]
                self.message(self.channel(number - 1), content.method, content.header)

    def gateway_ended(self):
        pass

    @property
    def has_frames(self):
        return PyByteArray_GET_SIZE(self.frames) > 0

    def frames_for_gateway(self, Py_ssize_t limit):
        cdef bytes taken
        if PyByteArray_GET_SIZE(self.frames) <= limit:
            taken = PyBytes_FromStringAndSize(
                PyByteArray_AS_STRING(self.frames), PyByteArray_GET_SIZE(self.frames)
            )
            if PyByteArray_GET_SIZE(self.frames) > 4096:
                self.frames = bytearray()
            else:
                PyByteArray_Resize(self.frames, 0)
            return taken
        taken = PyBytes_FromStringAndSize(PyByteArray_AS_STRING(self.frames), max(limit, 0))
        del self.frames[:limit]
        return taken

    cpdef give(self, bytes frames):
        self.frames += frames

    cdef int message(self, object channel, bytes method, bytes header) except -1:
        """See ``PassingEnd._message``."""
        cdef OriginalQueue lane = channel.up if self.is_delivery else channel.down
        cdef Original original
        if not lane.waiting:
            if lane.is_dropping:
                return 0
            raise ValueError("a message that is no copy")
        original = lane.waiting[0]
        if not original.copies or original.copies[len(original.copies) - 1] != method:
            raise ValueError("a message that is no copy of the next one")
        lane.release(None if original.header == header else self._amended(original, header))
        return 0
