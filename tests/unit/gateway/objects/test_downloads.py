"""Bodies that come from a store, without a store and without threads."""

from __future__ import annotations

import gc
import hashlib

import attrs
import pytest

from amqpgate.gateway.objects.downloads import CHUNK, Download, SpoolRoom, WantedBody
from amqpgate.gateway.objects.store import ObjectLostError, StoreError

from .fake import FakeStore, FakeThreads

BODY = bytes(range(256)) * 3000


@attrs.define(eq=False)
class Bench:
    store: FakeStore = attrs.field(factory=lambda: FakeStore(objects={"key": BODY}))
    threads: FakeThreads = attrs.field(factory=FakeThreads)
    room: SpoolRoom = attrs.field(factory=SpoolRoom)
    results: list[StoreError | None] = attrs.field(factory=list)

    def download(self, **changed: object) -> Download:
        wanted = WantedBody("key", len(BODY), hashlib.sha256(BODY).hexdigest())
        return Download(
            self.threads,
            self.store,
            attrs.evolve(wanted, **changed),  # type: ignore[arg-type]
            self.room,
            self.results.append,
        )


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_body_is_read_piece_by_piece(bench: Bench) -> None:
    download = bench.download()
    download.start()
    bench.threads.run_all()
    assert bench.results == [None]
    got: list[bytes | StoreError] = []
    for at in range(0, len(BODY), CHUNK):
        download.read(at, got.append)
        bench.threads.run_all()
    assert b"".join(piece for piece in got if isinstance(piece, bytes)) == BODY
    download.close()


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"byte_count": len(BODY) - 1}, ObjectLostError),
        ({"byte_count": len(BODY) + 1}, ObjectLostError),
        ({"digest": "0" * 64}, ObjectLostError),
        ({"key": "other"}, ObjectLostError),
    ],
)
def test_what_is_not_what_it_was_is_lost(
    bench: Bench, changed: dict[str, object], error: type[StoreError]
) -> None:
    download = bench.download(**changed)
    download.start()
    bench.threads.run_all()
    assert [type(result) for result in bench.results] == [error]
    download.close()


def test_a_store_that_fails_may_be_asked_again(bench: Bench) -> None:
    bench.store.fails = {"read"}
    bench.download().start()
    bench.threads.run_all()
    assert [type(result) for result in bench.results] == [StoreError]


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_who_leaves_gives_the_room_back_and_hears_nothing(bench: Bench, steps: int) -> None:
    bench.room = SpoolRoom(most=len(BODY))
    first, second = bench.download(), bench.download()
    first.start()
    second.start()
    assert len(bench.threads.todo) == 1, "the second one waits for room"
    if steps:
        bench.threads.run_one()
    if steps == 2:
        first.read(0, lambda _: pytest.fail("it has left"))
    first.close()
    bench.threads.run_all()
    assert bench.results == [None] * (2 if steps else 1)
    second.close()


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_no_file_stays_open_when_the_gateway_ends(bench: Bench, steps: int) -> None:
    """While the body comes, while a piece of it is read, and when a piece is asked for then."""
    download = bench.download()
    download.start()
    if steps:
        bench.threads.run_one()
        if steps == 2:
            bench.threads.has_ended = True
        download.read(0, lambda _: pytest.fail("nobody hears of it"))
    bench.threads.has_ended = True
    download.close()
    bench.threads.run_all()
    del download
    gc.collect()  # A file that nobody has closed is a warning, and so an error.


def test_one_that_is_larger_than_all_room_has_it_to_itself() -> None:
    room, turns = SpoolRoom(most=10), list[int]()
    room.take(100, lambda: turns.append(1))
    room.take(1, lambda: turns.append(2))
    assert turns == [1]
    room.give_back(100)
    assert turns == [1, 2]


def test_one_user_has_half_of_the_room_at_most() -> None:
    room, turns = SpoolRoom(most=100), list[str]()
    for number in range(4):
        room.take(20, lambda number=number: turns.append(f"eve {number}"), "eve")  # type: ignore[misc]
    assert turns == ["eve 0", "eve 1"]
    room.take(20, lambda: turns.append("bob"), "bob")
    # One body is let in, however large, where there is room for it.
    room.take(60, lambda: turns.append("large"), "ann")
    assert turns[2:] == ["bob"]
    # Who waits for room in all is waited for; who has had its share is passed over.
    room.take(10, lambda: turns.append("late"), "eli")
    assert turns[3:] == []
    room.give_back(20, "bob")
    assert turns[3:] == ["large"]
    room.give_back(20, "eve")
    assert turns[4:] == ["eve 2"]
    room.give_back(60, "ann")
    assert turns[5:] == ["late"]
