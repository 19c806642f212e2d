"""A record that a receiver will never take is lost alone; one that understands nothing loses none."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence

import attrs
import pytest

from amqpgate.ocsf import OcsfEvent
from amqpgate.telemetry.audit.outlets import sending
from amqpgate.telemetry.audit.outlets.receiver import Ready, Sent
from amqpgate.telemetry.audit.outlets.sending import GivenUpError, Sending
from amqpgate.telemetry.http_request import NotTakenError, NotUnderstoodError, TooLargeError

from .shipping import in_no_time


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    in_no_time(monkeypatch)


@attrs.define
class Fussy:
    """A receiver that raises what it says of a request with such a record, and takes all others."""

    #: By the id of a record.
    refused: dict[str, Exception] = attrs.field(factory=dict)
    #: Of any request.
    always: Exception | None = None
    there: Counter[str] = attrs.field(factory=Counter)
    requests: int = 0
    #: Called with each request.
    told: Callable[[int], None] = lambda number: None

    def send(self, records: Sequence[Ready]) -> Sent:
        self.requests += 1
        self.told(self.requests)
        if self.always is not None:
            raise self.always.with_traceback(None)
        for record in records:
            if record.id in self.refused:
                raise self.refused[record.id].with_traceback(None)
        self.there.update(record.id for record in records)
        return Sent(len(records))

    def ready(self, event: OcsfEvent) -> Ready:
        raise NotImplementedError

    def ask(self) -> str:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def batch_of(count: int, prefix: str = "") -> list[Ready]:
    return [Ready(f"{prefix}{number}", "", b"x") for number in range(count)]


def to(receiver: Fussy, counts: Counter[str] | None = None) -> Sending:
    counts = Counter() if counts is None else counts
    return Sending("otlp", receiver, counts, threading.Event(), threading.Event())


@pytest.mark.parametrize("why", [NotUnderstoodError("it answers 400"), ValueError("a defect"), MemoryError()])
@pytest.mark.parametrize("count", [1, 2, 17, 512])
def test_records_at_fault_are_lost_alone(
    why: Exception, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    receiver, counts = Fussy(), Counter[str]()
    ours = to(receiver, counts)
    ours.send(batch_of(1, "before "))
    bad = {str(number) for number in range(0, count, 100)}
    receiver.refused = dict.fromkeys(bad, why)
    ours.send(batch_of(count))
    expected = {str(number) for number in range(count)} - bad
    assert {name for name in receiver.there if not name.startswith("before")} == expected
    assert (counts["written"], counts["rejected"]) == (1 + count - len(bad), len(bad))
    # Some are there twice, by which it was seen that the receiver is well.
    assert receiver.there.total() - len(receiver.there) <= 2 * len(bad)
    assert receiver.requests < 20 + 20 * len(bad)
    assert "1 records are rejected by otlp, and are lost" in caplog.text
    assert "(the first is 0)" in caplog.text
    assert not ours.is_failing
    # And it goes on.
    ours.send(batch_of(3, "after "))
    assert counts["written"] == 4 + count - len(bad)


def test_all_of_a_batch_may_be_at_fault() -> None:
    receiver, counts = Fussy(), Counter[str]()
    ours = to(receiver, counts)
    ours.send(batch_of(1, "before "))
    receiver.refused = {str(number): NotUnderstoodError("it answers 400") for number in range(64)}
    ours.send(batch_of(64))
    assert counts["rejected"] == 64
    assert set(receiver.there) == {"before 0"}
    assert receiver.there["before 0"] < 20


@pytest.mark.parametrize("why", [NotUnderstoodError("it answers 400"), ValueError("a defect")])
@pytest.mark.parametrize("was_well", [True, False])
def test_who_understands_nothing_loses_nothing(
    why: Exception, was_well: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Its address may be wrong, or its settings."""
    caplog.set_level(logging.INFO)
    tries: list[int] = []

    def told(number: int) -> None:
        if number == 200:
            tries.append(counts["retries"])
            receiver.always = None

    receiver, counts = Fussy(), Counter[str]()
    ours = to(receiver, counts)
    if was_well:
        ours.send(batch_of(1, "before "))
    receiver.always, receiver.told = why, told
    ours.send(batch_of(512))
    assert (counts["written"], counts["rejected"]) == (512 + was_well, 0)
    assert sum(receiver.there[str(number)] for number in range(512)) == 512
    # It is asked some times, and then left alone for a while.
    assert tries[0] > 8
    assert (
        f"and wait: {type(why).__name__ if isinstance(why, ValueError) else 'it answers 400'}" in caplog.text
    )
    assert "records are taken by otlp again" in caplog.text
    assert not ours.is_failing


def test_one_that_was_never_well_takes_the_first_that_is_not_at_fault() -> None:
    receiver, counts = Fussy(), Counter[str]()
    receiver.refused = {str(number): NotUnderstoodError("it answers 422") for number in range(60)}
    to(receiver, counts).send(batch_of(64))
    assert (counts["written"], counts["rejected"]) == (4, 60)


def test_one_that_breaks_amid_them_loses_none() -> None:
    """What was refused before it broke is refused once more when it is well."""
    receiver, counts = Fussy(), Counter[str]()
    ours = to(receiver, counts)
    ours.send(batch_of(1, "before "))
    receiver.refused = {"0": NotUnderstoodError("it answers 400")}

    def told(number: int) -> None:
        receiver.always = NotUnderstoodError("it answers 400") if 6 <= number < 60 else None

    receiver.told = told
    ours.send(batch_of(8))
    assert (counts["written"], counts["rejected"]) == (8, 1)
    assert set(receiver.there) == {"before 0", *map(str, range(1, 8))}


def test_what_is_too_large_alone_is_lost_and_what_is_away_is_waited_for() -> None:
    receiver, counts = Fussy(), Counter[str]()
    receiver.refused = {"3": TooLargeError("it answers 413"), "5": NotUnderstoodError("it answers 400")}

    def told(number: int) -> None:
        receiver.always = NotTakenError("away", 0.001) if 4 <= number < 8 else None

    receiver.told = told
    to(receiver, counts).send(batch_of(8))
    assert (counts["written"], counts["rejected"], counts["retries"]) == (6, 2, 4)


def test_none_is_forgotten_where_the_last_is_too_large() -> None:
    receiver, counts = Fussy(), Counter[str]()
    ours = to(receiver, counts)
    ours.send(batch_of(1, "before "))
    receiver.refused = {"0": NotUnderstoodError("it answers 400"), "1": TooLargeError("it answers 413")}
    ours.send(batch_of(2))
    assert (counts["written"], counts["rejected"]) == (1, 2)


def test_nobody_is_asked_for_ever() -> None:
    receiver = Fussy(always=NotUnderstoodError("it answers 400"))
    ours = to(receiver)
    ours.over.set()
    ours.given_up.set()
    with pytest.raises(GivenUpError):
        ours.send(batch_of(64))
    assert sending._DOUBTS <= receiver.requests < 40
