"""A consumer of 0-9-1 and 0-8 that acknowledges, and leaves without doing so every now and then."""

from __future__ import annotations

import struct
import time

from amqpgate.protocol.frames import FRAME_BODY, FRAME_HEADER, FRAME_METHOD, method_frame
from amqpgate.wire.generated import v0_9_1

from .clients import Client
from .history import Kind
from .line import Line
from .message import Template, name_in

PREFETCH = 400
#: Deliveries that one acknowledgement answers.
ACKED_AT_ONCE = 50
#: Deliveries after which a consumer leaves, and those of them that it does not acknowledge.
_LEAVES = (4_000, 20_000)
_HELD = 150

_TAG = struct.Struct(">QB")
_DELIVER = b"\0\x3c\0\x3c"


class Consumer(Client):
    role = "consumer"

    def live(self) -> None:
        with Line.opened(self.dice.choice(self.plan.ports), self.plan.version, tls=self._tls) as line:
            words, name = line.words, self.plan.queues[self.queue]
            line.ask(words.BasicQos(prefetch_count=PREFETCH), words.BasicQosOk, 1)
            self._template = Template(
                self.crew.run_id,
                dialect=line.dialect,
                kind=words.BasicProperties,
                added=dict(self.plan.added),
            )
            self.recorder.add(Kind.BEGUN)
            #: Not acknowledged: lane, first, last. What is not recorded yet; the message that comes.
            self._pending: list[tuple[int, int, int]] = []
            self._unacked, self._tag = 0, 0
            self._coming: list[object] = []
            # RabbitMQ begins with messages as soon as it has answered.
            line.say(words.BasicConsume(queue=name, consumer_tag="c"), 1)
            line.expect(words.BasicConsumeOk, 1)
            tail = bytes((0, len(name.encode()))) + name.encode()
            count, leaves = 0, self.dice.randrange(*_LEAVES)
            while self.is_wanted:
                got = self._hear(line, tail)
                count += got
                is_held = count >= leaves - _HELD and self.crew.publishing.is_set()
                if is_held and (count >= leaves or not got):
                    self._leave(line)
                    return
                if not is_held and (self._unacked >= ACKED_AT_ONCE or (not got and self._unacked)):
                    self._ack(line)
            if self._unacked:
                self._ack(line)
            line.leave()

    def _hear(self, line: Line, tail: bytes) -> int:
        """Take what has come; how many messages."""
        came: list[tuple[int, int, int]] = []
        for frame in line.came(0.2):
            payload = frame.payload
            if frame.type == FRAME_METHOD and payload[:4] == _DELIVER:
                at = 5 + payload[4]
                tag, redelivered = _TAG.unpack_from(payload, at)
                self._coming = [tag, redelivered & 1, payload[at + 9 :] == tail]
            elif frame.type == FRAME_HEADER and len(self._coming) == 3:
                self._coming += [payload, int.from_bytes(payload[4:12]), b""]
            elif frame.type == FRAME_BODY and len(self._coming) == 6:
                self._coming[5] += payload  # type: ignore[operator]
                if len(self._coming[5]) >= self._coming[4]:  # type: ignore[arg-type, operator]
                    came.append(self._whole())
        self._note([one for one in came if one[0] >= 0])
        return len(came)

    def _whole(self) -> tuple[int, int, int]:
        """A message is whole: lane, number, mark. The lane is -1 where it is none of ours."""
        tag, marked, is_addressed, header, _, body = self._coming
        self._coming = []
        self._tag = tag  # type: ignore[assignment]
        self._unacked += 1
        named = name_in(self.crew.run_id, body)  # type: ignore[arg-type]
        if named is None:
            self.recorder.add(Kind.UNKNOWN, 0, len(body))  # type: ignore[arg-type]
            return -1, 0, 0
        if not is_addressed or not self._template.is_right(header, *named):  # type: ignore[arg-type]
            self.recorder.add(Kind.CHANGED, *named, named[1])
        return *named, marked  # type: ignore[return-value]

    def _note(self, came: list[tuple[int, int, int]]) -> None:
        """Record deliveries, those that follow one another as one."""
        start = 0
        for at in range(1, len(came) + 1):
            lane, number, marked = came[start]
            if at == len(came) or came[at] != (lane, number + at - start, marked):
                kind = Kind.REDELIVERED if marked else Kind.DELIVERED
                self.got_on(kind, lane, number, number + at - start - 1)
                self._pending.append((lane, number, number + at - start - 1))
                start = at

    def _ack(self, line: Line) -> None:
        """All that has come; it counts as acknowledged once it may have left."""
        method = v0_9_1.BasicAck(delivery_tag=self._tag, multiple=True)
        for lane, first, last in self._pending:
            self.recorder.add(Kind.ACKED, lane, first, last)
        self._pending.clear()
        self._unacked = 0
        line.send(method_frame(1, method, line.dialect))

    def _leave(self, line: Line) -> None:
        """Go, with deliveries that nobody has acknowledged."""
        match self.dice.randrange(4):
            case 0:
                line.reset()
            case 1:
                line.leave()
            case 2 if self.plan.version == "0-9-1":
                nack = v0_9_1.BasicNack(delivery_tag=self._tag, multiple=True, requeue=True)
                line.send(method_frame(1, nack, line.dialect))
                line.leave()
            case _:
                line.close()
        time.sleep(self.dice.uniform(0, 0.2))
