"""What is summed and handed over: who, what, and how much.

Values are plain: this room does not know sessions or policies. Texts may hold lone surrogates (PEP 383),
as names from the wire do; they are written as ``\\xff``.
"""

from __future__ import annotations

from array import array
from typing import TypedDict

from amqpgate.records import Decided, Origin
from amqpgate.values import frozen


@frozen(kw_only=True, eq=False)
class Deed:
    """What was done, and what was decided of it: the columns of the same names of `amqpgate.records`."""

    operation: str
    exchange: str | None = None
    routing_key: str | None = None
    routing_key_is_template: bool = False
    queue: str | None = None
    destination: str | None = None
    #: JSON, keys sorted, redacted.
    arguments: str | None = None
    passive: bool = False
    foreign: bool = False
    any_key: bool = False
    verdict: Decided | None = None
    policy: str | None = None
    rule: str | None = None
    #: JSON list.
    more_keys: str | None = None


@frozen(kw_only=True, eq=False)
class AuditRow(Deed):
    """What usage is summed by: one object for one thing, kept by whoever counts; compared by identity."""

    origin: Origin
    policy_digest: str = ""


class Columns(TypedDict, total=False):
    """What an event may say beside its origin, time and kind: columns of `amqpgate.records.Event`."""

    operation: str | None
    exchange: str | None
    routing_key: str | None
    routing_key_is_template: bool
    queue: str | None
    destination: str | None
    arguments: str | None
    passive: bool
    foreign: bool
    any_key: bool
    verdict: Decided | None
    policy: str | None
    rule: str | None
    more_keys: str | None
    policy_digest: str
    outcome: str | None
    reply_code: int | None
    reason: str | None
    body_size: int | None
    properties: str | None
    headers: str | None
    body: bytes | None
    body_cut: bool
    audit_policy: str | None
    audit_rule: str | None
    detail: str | None


#: What a column of whole numbers can hold. Sums stop there.
LARGEST = (1 << 63) - 1


class Sums:
    """How much, by row: arrays with one entry for each. Times are epoch seconds."""

    __slots__ = ("byte_count", "end", "first", "largest", "last", "messages", "requests", "rows", "starts")

    def __init__(self) -> None:
        #: Row -> its place in the arrays.
        self.rows: dict[AuditRow, int] = {}
        self.requests, self.messages, self.byte_count = array("q"), array("q"), array("q")
        self.first, self.last = array("d"), array("d")
        #: Bytes of the largest body.
        self.largest = array("q")
        #: When the window began in which a row came; known once it is closed.
        self.starts = array("d")
        #: When the last window was closed.
        self.end = 0.0

    def add(
        self,
        row: AuditRow,
        requests: int,
        messages: int,
        byte_count: int,
        first: float,
        last: float,
        largest: int = 0,
    ) -> None:
        """Count on. A row that is known already is summed up."""
        count = len(self.rows)
        at = self.rows.setdefault(row, count)
        if at == count:
            self.requests.append(min(requests, LARGEST))
            self.messages.append(min(messages, LARGEST))
            self.byte_count.append(min(byte_count, LARGEST))
            self.first.append(first)
            self.last.append(last)
            self.largest.append(min(largest, LARGEST))
            return
        self.requests[at] = min(self.requests[at] + requests, LARGEST)
        self.messages[at] = min(self.messages[at] + messages, LARGEST)
        self.byte_count[at] = min(self.byte_count[at] + byte_count, LARGEST)
        self.first[at] = min(self.first[at], first)
        self.last[at] = max(self.last[at], last)
        self.largest[at] = max(self.largest[at], min(largest, LARGEST))

    def close(self, start: float, end: float) -> None:
        """The window from ``start`` to ``end`` is over. Rows of earlier windows keep the start they had."""
        self.starts.extend([start] * (len(self.rows) - len(self.starts)))
        self.end = end
