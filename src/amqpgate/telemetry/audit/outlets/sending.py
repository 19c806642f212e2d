"""Sends records to a receiver, again and again until they are there, or are known never to be.

::

    a batch is not understood ──▶ its halves ──▶ ... ──▶ one record ──▶ set aside
    another one is taken ──▶ what was set aside is sent once more ──▶ is not understood
    another one is taken ──▶ it is lost, and told

A receiver that understands none may be the wrong one, or set up wrongly, or ill for a while. So a record is
lost only when it is refused between others that are taken, and has been before. Where no other is left to
try, that is one that the receiver took before; where it takes that no more, or never took any, all records
wait, and are tried again.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Final

import attrs

from amqpgate.logs import RECURRING, log_failure
from amqpgate.telemetry.audit.outlets.receiver import Ready, Receiver, Sent
from amqpgate.telemetry.http_request import NotTakenError, NotUnderstoodError, TooLargeError
from amqpgate.values import define

log = logging.getLogger(__name__)

#: Seconds between two tries: at first, and at most; and while somebody waits for the end.
_FIRST, _MOST, _AT_END = 0.5, 30.0, 0.5
#: The most seconds that a receiver can ask for.
_ASKED: Final = 60.0
#: So many requests in a row may be refused before the receiver has to take what it took before.
_DOUBTS: Final = 16
#: Bytes of the record that is kept for that.
_KNOWN: Final = 64 << 10


@define(eq=False)
class Suspects:
    """Records of one batch that were refused alone, and may be at fault."""

    #: Before another was taken; and after it once more.
    once: list[Ready] = attrs.field(factory=list, init=False)
    twice: list[Ready] = attrs.field(factory=list, init=False)
    #: Those of them that are sent once more, by id.
    _again: set[str] = attrs.field(factory=set, init=False)
    #: Requests since one was taken.
    _in_a_row: int = attrs.field(default=0, init=False)

    @property
    def all(self) -> list[Ready]:
        """In no order."""
        return [*self.once, *self.twice]

    @property
    def are_many(self) -> bool:
        """Whether it is time to see that the receiver is well."""
        return self._in_a_row >= _DOUBTS

    def add(self, records: Sequence[Ready]) -> list[Sequence[Ready]]:
        """These are refused together: the parts that are to be tried for it."""
        self._in_a_row += 1
        if len(records) > 1:
            return _halves(records)
        (self.twice if records[0].id in self._again else self.once).append(records[0])
        return []

    def another_is_taken(self) -> tuple[list[Ready], list[Sequence[Ready]]]:
        """Those that are lost, and those that are tried once more."""
        lost, tried = self.twice, self.once
        self._again.update(record.id for record in tried)
        self.once, self.twice, self._in_a_row = [], [], 0
        return lost, [[record] for record in reversed(tried)]


class GivenUpError(Exception):
    """Nobody waits any longer for what is left."""


@define(eq=False)
class Sending:
    """To one receiver, by the thread of its outlet."""

    name: str
    receiver: Receiver
    #: The outlet's, by outcome.
    counts: Counter[str]
    #: Somebody waits for the end; nobody does any longer.
    over: threading.Event
    given_up: threading.Event
    is_failing: bool = attrs.field(default=False, init=False)
    #: A record that the receiver took, the last of its request.
    _known: Ready | None = attrs.field(default=None, init=False)

    def send(self, batch: Sequence[Ready]) -> None:
        """Until all of it is there, or never will be. Raises `GivenUpError`."""
        pause = _FIRST
        while batch:
            left = self._tried(batch)
            self._tell(left)
            if len(left.again) < len(batch):
                pause = _FIRST
            batch = left.again
            if batch:
                self._wait(max(pause, min(left.pause, _ASKED)))
                pause = min(2 * pause, _MOST)

    def _tried(self, batch: Sequence[Ready]) -> Sent:
        """Each is sent, and counted where it is known what became of it: what is to be sent again is left."""
        parts, again, suspects, why = [batch], list[Ready](), Suspects(), ""
        while parts:
            part, takes = parts.pop(), False
            try:
                sent = self._asked(part)
            except TooLargeError as error:
                if len(part) > 1:
                    parts += _halves(part)
                else:
                    self._count(Sent(0, rejected=1, why_rejected=str(error)))
            except NotUnderstoodError as error:
                why = str(error)
                parts += suspects.add(part)
            except NotTakenError as error:
                left = [*again, *part, *_in_order(parts), *suspects.all]
                return Sent(0, again=left, why=str(error), pause=error.pause)
            else:
                self._count(sent)
                again += sent.again
                why = sent.why or why
                takes = bool(sent.written + sent.unroutable)
            if not takes and (suspects.are_many or (suspects.all and not parts)):
                takes = self._takes_another()
                if not takes:
                    return Sent(0, again=[*again, *_in_order(parts), *suspects.all], why=why)
            if takes:
                lost, once_more = suspects.another_is_taken()
                self._lose(lost, why)
                parts += once_more
        return Sent(0, again=again, why=why)

    def _asked(self, records: Sequence[Ready]) -> Sent:
        try:
            sent = self.receiver.send(records)
        except NotTakenError:
            raise
        except Exception as error:
            # A defect, here or there: nothing is known to have been taken.
            log_failure(log, "audit: sending records to %s failed", self.name, recurring=True)
            raise NotUnderstoodError(type(error).__name__) from None
        if sent.written + sent.unroutable == len(records) and len(records[-1].data) <= _KNOWN:
            self._known = records[-1]
        return sent

    def _takes_another(self) -> bool:
        """Whether the receiver takes what it took before, which gets there once more."""
        try:
            sent = Sent(0) if self._known is None else self._asked([self._known])
        except NotTakenError:
            return False
        return sent.written + sent.unroutable == 1

    def _lose(self, records: Sequence[Ready], why: str) -> None:
        """These are at fault, and not the receiver."""
        if records:
            said = f"{why} (the first is {records[0].id})"
            self._count(Sent(0, rejected=len(records), why_rejected=said))

    def _count(self, sent: Sent) -> None:
        if self.given_up.is_set():
            # They have been counted.
            raise GivenUpError
        self.counts["written"] += sent.written
        self.counts["rejected"] += sent.rejected
        self.counts["unroutable"] += sent.unroutable
        if sent.rejected:
            log.error(
                "audit: %d records are rejected by %s, and are lost: %s",
                sent.rejected,
                self.name,
                sent.why_rejected,
                extra=RECURRING,
            )
        if sent.unroutable:
            log.warning("audit: records reach no queue of %s", self.name, extra=RECURRING)

    def _tell(self, left: Sent) -> None:
        """Whether some are left."""
        if left.again:
            self.counts["retries"] += 1
            if not self.is_failing:
                log.error("audit: records are not taken by %s, and wait: %s", self.name, left.why)
        elif self.is_failing:
            log.info("audit: records are taken by %s again", self.name)
        self.is_failing = bool(left.again)

    def _wait(self, seconds: float) -> None:
        """Before the next try; for a short time once somebody waits for the end."""
        if not self.over.wait(seconds):
            return
        if self.given_up.wait(_AT_END):
            raise GivenUpError


def _halves(records: Sequence[Ready]) -> list[Sequence[Ready]]:
    """The first of them is the last of these."""
    middle = len(records) // 2
    return [records[middle:], records[:middle]]


def _in_order(parts: Sequence[Sequence[Ready]]) -> list[Ready]:
    """What is still to be sent: the last part is the next."""
    return [record for part in reversed(parts) for record in part]
