"""Bodies on their way to a store, without a store and without threads."""

from __future__ import annotations

import hashlib

import attrs
import pytest

from amqpgate.gateway.objects.store import PART, StoreError
from amqpgate.gateway.objects.uploads import Upload, Uploaded, UploadSlots

from .fake import FakeStore, FakeThreads


@attrs.define(eq=False)
class Bench:
    store: FakeStore = attrs.field(factory=FakeStore)
    threads: FakeThreads = attrs.field(factory=FakeThreads)
    rooms: list[None] = attrs.field(factory=list)
    results: list[Uploaded | StoreError] = attrs.field(factory=list)

    def upload(self) -> Upload:
        return Upload(self.threads, self.store, "key", lambda: self.rooms.append(None), self.results.append)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("size", [1, PART - 1, PART, PART + 1, 3 * PART, 3 * PART + 7])
def test_a_body_is_there_whole(bench: Bench, size: int) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    body = body[:size]
    upload = bench.upload()
    for at in range(0, size, 1_000_000):
        upload.add(memoryview(body)[at : at + 1_000_000])
        bench.threads.run_all()
    assert bench.results == []
    upload.finish()
    bench.threads.run_all()
    assert bench.results == [Uploaded("key", size, digest(body))]
    assert bench.store.objects == {"key": body}
    assert bench.store.uploads == {}
    assert ("put" in bench.store.asked) == (size < PART)


def test_two_parts_are_in_memory_at_most(bench: Bench) -> None:
    upload = bench.upload()
    upload.add(bytes(PART))
    assert not upload.is_full, "one is on its way"
    upload.add(bytes(PART))
    assert upload.is_full
    assert len(bench.threads.todo) == 1
    bench.threads.run_one()
    assert bench.rooms == [None]
    assert not upload.is_full


@pytest.mark.parametrize("what", ["put", "begin", "part", "complete"])
def test_what_fails_leaves_nothing(bench: Bench, what: str) -> None:
    bench.store.fails = {what}
    upload = bench.upload()
    if what != "put":
        upload.add(bytes(PART))
        bench.threads.run_one()
    upload.add(b"rest")
    upload.finish()
    bench.threads.run_all()
    assert [type(result) for result in bench.results] == [StoreError]
    assert bench.store.objects == {}
    assert bench.store.uploads == {}
    upload.add(b"more")
    bench.threads.run_all()
    assert len(bench.results) == 1


@pytest.mark.parametrize("when", ["before", "within", "between", "at the end"])
def test_what_is_abandoned_leaves_nothing_and_tells_nothing(bench: Bench, when: str) -> None:
    upload = bench.upload()
    if when == "before":
        upload.add(b"little")
    elif when == "within":
        upload.add(bytes(PART))
    elif when == "between":
        upload.add(bytes(PART))
        bench.threads.run_one()
    else:
        upload.add(bytes(PART + 5))
        bench.threads.run_one()
        upload.finish()
    upload.abandon()
    bench.threads.run_all()
    assert bench.results == []
    assert bench.store.objects == {}
    assert bench.store.uploads == {}


@attrs.define(eq=False)
class Who:
    turns: int = 0
    late: bool = False
    slots: UploadSlots | None = None
    expired: bool = False
    owner: object = "bob"

    def on_turn(self) -> None:
        self.turns += 1

    def is_late(self, now: float) -> bool:
        return self.late

    def expire(self) -> None:
        self.expired = True
        if self.slots is not None:
            self.slots.give_back(self)


def test_who_comes_later_waits_in_line() -> None:
    slots = UploadSlots(most=1)
    first, second, third = Who(), Who(), Who()
    for who in (first, second, third):
        slots.take(who)
    assert [slots.has(who) for who in (first, second, third)] == [True, False, False]
    slots.give_back(second)
    slots.give_back(first)
    assert (second.turns, third.turns) == (0, 1)
    assert slots.has(third)
    slots.give_back(third)
    slots.take(first)
    assert slots.has(first)


def test_who_is_late_gives_its_place_to_those_who_wait() -> None:
    slots = UploadSlots(most=1)
    idle, waiting = Who(late=True, slots=slots), Who()
    slots.take(idle)
    slots.expire(0)
    assert not idle.expired, "nobody waits"
    slots.take(waiting)
    slots.expire(0)
    assert idle.expired
    assert slots.has(waiting)


def test_one_user_has_half_of_them_at_most() -> None:
    slots = UploadSlots(most=4)
    slow = [Who(owner="eve") for _ in range(6)]
    for who in slow:
        slots.take(who)
    others = [Who() for _ in range(3)]
    for who in others:
        slots.take(who)
    assert [slots.has(who) for who in (*slow, *others)] == [True] * 2 + [False] * 4 + [True] * 2 + [False]
    # Each one's place goes to its own.
    slots.give_back(others[0])
    assert slots.has(others[2])
    slots.give_back(others[2])
    assert not slots.has(slow[2])
    slots.give_back(slow[0])
    assert slots.has(slow[2])


def test_users_take_turns() -> None:
    slots = UploadSlots(most=2)
    first, second, *many = (Who(owner=owner) for owner in ("a", "b", "a", "a", "c"))
    for who in (first, second, *many):
        slots.take(who)
    slots.give_back(second)
    # That of "a" came earlier, and has its share.
    assert [who.turns for who in many] == [0, 0, 1]
    slots.give_back(many[2])
    slots.give_back(first)
    assert [who.turns for who in many] == [1, 0, 1]
    slots.give_back(many[1])
    slots.give_back(many[0])
    assert not any(map(slots.has, many))
