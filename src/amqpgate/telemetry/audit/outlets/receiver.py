"""What an outlet sends to, whatever it speaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from amqpgate.ocsf import OcsfEvent
from amqpgate.values import frozen


@frozen
class Ready:
    """A record that is ready to be sent."""

    #: The record's id, by which receivers know it again.
    id: str
    #: What it is about, where that is said beside it.
    key: str
    data: bytes


@frozen
class Sent:
    """What became of some records."""

    #: Those that are there.
    written: int
    #: Those that the receiver will never take, and why the first one.
    rejected: int = 0
    why_rejected: str = ""
    #: Those that it took, and gave to nobody.
    unroutable: int = 0
    #: Those that are to be sent again, and why.
    again: Sequence[Ready] = ()
    why: str = ""
    #: Seconds in which nobody is to try that, as it asks.
    pause: float = 0.0


class Receiver(Protocol):
    """One thread calls, and `send` may block, for as long as the settings say."""

    def ready(self, event: OcsfEvent) -> Ready:
        """The event as it is sent. ``ValueError`` where a text of it cannot be."""

    def send(self, records: Sequence[Ready]) -> Sent:
        """Send them all. Raises `NotTakenError` where none is known to be there: `TooLargeError` where fewer
        may be, `NotUnderstoodError` where others may be."""

    def ask(self) -> str:
        """Whether it would take records, which it is not sent: what it says, for people. Raises
        `NotTakenError`."""

    def close(self) -> None:
        """Nothing more is sent."""
