"""Publishers of 0-9-1 and 0-8: with confirms, and with transactions."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator

import attrs

from amqpgate.protocol.frames import FRAME_METHOD, method_frame
from amqpgate.wire.generated import v0_9_1

from .clients import Client, Crew, Pace
from .history import Kind, runs
from .line import Line
from .message import DENIED, Template, lane_of
from .plan import BATCH

_TAG = struct.Struct(">QB")
_ACK, _NACK = b"\0\x3c\0\x50", b"\0\x3c\0\x78"


#: Batches to each queue between two that are to be denied.
_BETWEEN_DENIED = 5


@attrs.frozen
class _Turn:
    """Whose turn it is: the queue, and which of its batches of a round this one is."""

    queue: int
    template: Template
    rank: int
    of: int

    def at(self, rounds: int) -> tuple[int, Template, int]:
        """Queue, template, and the number of the first message, after so many rounds."""
        return self.queue, self.template, (rounds * self.of + self.rank) * BATCH


class _Publisher(Client):
    role = "publisher"

    def __init__(self, crew: Crew, number: int, queue: int = 0) -> None:
        super().__init__(crew, number, queue)
        plan = self.plan
        self.pace = Pace(plan.rate / max(1, plan.publishers + plan.transactions))

    def dial(self) -> Line:
        return self.dialled(self.plan.version)

    def dialled(self, version: str) -> Line:
        return Line.opened(self.dice.choice(self.plan.ports), version, tls=self._tls)

    def template(self, line: Line, routing_key: str) -> Template:
        method = line.words.BasicPublish(exchange="", routing_key=routing_key)
        publish = method_frame(1, method, line.dialect)
        return Template(
            self.crew.run_id,
            dialect=line.dialect,
            publish=publish,
            kind=line.words.BasicProperties,
        )

    def wait(self, line: Line) -> None:
        """Nothing may be sent now."""
        line.came(0.05)


class Publisher(_Publisher):
    """With confirms, which no older version has: a batch to each queue in turn, and one that is to be denied
    now and then.
    """

    def dial(self) -> Line:
        return self.dialled("0-9-1")

    def live(self) -> None:
        with self.dial() as line:
            line.ask(v0_9_1.ConfirmSelect(), v0_9_1.ConfirmSelectOk, 1)
            self._turns = self._take_turns(line)
            self._states = bytearray(1)
            self._low, self._open, batch = 1, 0, 0
            blocked = False
            until = None
            while self.is_wanted or (self._open and time.monotonic() < (until or time.monotonic() + 1)):
                if not self.is_wanted and until is None:
                    until = time.monotonic() + 30
                may_send = self.is_wanted and self._open < self.plan.window and self.crew.has_room
                if may_send and self.pace.has_come():
                    self._send(line, batch)
                    batch += 1
                    self._hear(line, 0)
                else:
                    self._hear(line, 0.05)
                if line.blocked != blocked:
                    blocked = line.blocked
                    self.recorder.add(Kind.BLOCKED if blocked else Kind.UNBLOCKED)
            line.leave()

    def _take_turns(self, line: Line) -> list[_Turn]:
        """Each queue, or each one some times and then what is denied."""
        templates = {queue: self.template(line, name) for queue, name in enumerate(self.plan.queues)}
        if not self.plan.denied:
            return [_Turn(queue, template, 0, 1) for queue, template in templates.items()]
        turns = [
            _Turn(queue, template, rank, _BETWEEN_DENIED)
            for rank in range(_BETWEEN_DENIED)
            for queue, template in templates.items()
        ]
        return [*turns, _Turn(DENIED, self.template(line, self.plan.denied), 0, 1)]

    def _send(self, line: Line, batch: int) -> None:
        queue, template, first = self._turns[batch % len(self._turns)].at(batch // len(self._turns))
        lane = lane_of(self.number, self.epoch, queue)
        kind = Kind.FORBIDDEN if queue == DENIED else Kind.OFFERED
        self.recorder.add(kind, lane, first, first + BATCH - 1)
        self._states.extend(bytes(BATCH))
        self._open += BATCH
        self.pace.took(BATCH)
        line.send(b"".join(template.frames(lane, number) for number in range(first, first + BATCH)))

    def _hear(self, line: Line, wait: float) -> None:
        acked: list[int] = []
        nacked: list[int] = []
        for frame in line.came(wait):
            head = frame.payload[:4]
            if frame.type != FRAME_METHOD or head not in (_ACK, _NACK):
                continue
            tag, bits = _TAG.unpack_from(frame.payload, 4)
            self._answered(tag, bool(bits & 1), acked if head == _ACK else nacked)
        for tags, kind in ((acked, Kind.CONFIRMED), (nacked, Kind.NACKED)):
            tags.sort()
            for first, last in self._spans(tags):
                batch, rest = divmod(first - 1, BATCH)
                queue, _, start = self._turns[batch % len(self._turns)].at(batch // len(self._turns))
                lane, start = lane_of(self.number, self.epoch, queue), start + rest
                if kind is Kind.CONFIRMED:
                    self.got_on(kind, lane, start, start + last - first)
                else:
                    self.recorder.add(kind, lane, start, start + last - first)

    def _answered(self, tag: int, multiple: bool, tags: list[int]) -> None:
        states = self._states
        if tag >= len(states) or (not multiple and states[tag]) or tag == 0:
            self.recorder.add(Kind.UNASKED, lane_of(self.number, self.epoch, 0), min(tag, 0xFFFFFFFF))
            return
        found = [one for one in range(self._low, tag + 1) if not states[one]] if multiple else [tag]
        for one in found:
            states[one] = 1
        tags.extend(found)
        self._open -= len(found)
        while self._low < len(states) and states[self._low]:
            self._low += 1

    @staticmethod
    def _spans(tags: list[int]) -> Iterator[tuple[int, int]]:
        """Tags that follow one another, within a batch."""
        for first, last in runs(tags):
            while first <= last:
                end = min(last, (first - 1) // BATCH * BATCH + BATCH)
                yield first, end
                first = end + 1


class TxPublisher(_Publisher):
    """With transactions: a batch, then a commit; every seventh is rolled back."""

    def live(self) -> None:
        with self.dial() as line:
            words = line.words
            line.ask(words.TxSelect(), words.TxSelectOk, 1)
            name = self.plan.tx_queues[self.number % len(self.plan.tx_queues)]
            template = self.template(line, name)
            lane = lane_of(self.number, self.epoch, self.plan.queues.index(name))
            batch = 0
            while self.is_wanted:
                if not (self.crew.has_room and self.pace.has_come()):
                    self.wait(line)
                    continue
                first, last = batch * BATCH, batch * BATCH + BATCH - 1
                self.recorder.add(Kind.OFFERED, lane, first, last)
                self.pace.took(BATCH)
                line.send(b"".join(template.frames(lane, number) for number in range(first, last + 1)))
                if batch % 7 == 6:
                    self._ask(line, words.TxRollback(), words.TxRollbackOk.INDEX)
                    self.recorder.add(Kind.ROLLED_BACK, lane, first, last)
                else:
                    self._ask(line, words.TxCommit(), words.TxCommitOk.INDEX)
                    self.got_on(Kind.COMMITTED, lane, first, last)
                batch += 1
            line.leave()

    def _ask(self, line: Line, method: object, answer: int) -> None:
        line.send(method_frame(1, method, line.dialect))  # type: ignore[arg-type]
        while not any(frame.payload[:4] == answer.to_bytes(4) for frame in line.came(0.5)):
            pass
