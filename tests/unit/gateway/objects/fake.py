"""A store in memory, and threads that are none: each piece of work is done when the test says so."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

import attrs

from amqpgate.gateway.objects.store import ObjectLostError, Stored, StoreError, Unfinished
from amqpgate.gateway.objects.threads import StoreThreads, Work

T = TypeVar("T")


@attrs.define(eq=False)
class FakeStore:
    """What is there, and what it was asked."""

    objects: dict[str, bytes] = attrs.field(factory=dict)
    uploads: dict[str, dict[int, bytes]] = attrs.field(factory=dict)
    asked: list[str] = attrs.field(factory=list)
    #: Names of calls that fail.
    fails: set[str] = attrs.field(factory=set)
    #: When things were put there, by key; 0 for others.
    since: dict[str, float] = attrs.field(factory=dict)

    def _note(self, name: str) -> None:
        self.asked.append(name)
        if name in self.fails:
            raise StoreError(f"cannot {name}")

    def put(self, key: str, data: bytes | bytearray) -> None:
        self._note("put")
        self.objects[key] = bytes(data)

    def begin(self, key: str) -> str:
        self._note("begin")
        self.uploads[key] = {}
        return key

    def part(self, key: str, upload: str, number: int, data: bytes | bytearray) -> str:
        self._note("part")
        self.uploads[upload][number] = bytes(data)
        return str(number)

    def complete(self, key: str, upload: str, parts: list[str]) -> None:
        self._note("complete")
        pieces = self.uploads.pop(upload)
        self.objects[key] = b"".join(pieces[int(part)] for part in parts)

    def abort(self, key: str, upload: str) -> None:
        self._note("abort")
        del self.uploads[upload]

    def read(self, key: str) -> Iterator[bytes]:
        self._note("read")
        if key not in self.objects:
            raise ObjectLostError("there is no such object")
        data = self.objects[key]
        for at in range(0, len(data), 1000):
            yield data[at : at + 1000]

    def delete(self, key: str) -> None:
        self._note("delete")
        self.objects.pop(key, None)

    def stored(self) -> Iterator[Stored]:
        for key, data in self.objects.items():
            yield Stored(key, len(data), self.since.get(key, 0))

    def unfinished(self) -> Iterator[Unfinished]:
        for key in self.uploads:
            yield Unfinished(key, key, self.since.get(key, 0))


@attrs.define(eq=False)
class FakeThreads(StoreThreads):
    """Work is done one piece after the other, in `run_one`."""

    todo: deque[Callable[[], None]] = attrs.field(factory=deque)

    #: The gateway has ended: nobody hears of what is still done.
    has_ended: bool = False

    def start(
        self,
        kind: Work,
        work: Callable[[], T],
        done: Callable[[T | StoreError], None],
        undo: Callable[[T], None] | None = None,
    ) -> bool:
        def run() -> None:
            try:
                result: T | StoreError = work()
            except StoreError as error:
                result = error
            if not self.has_ended:
                done(result)
            elif undo is not None and not isinstance(result, StoreError):
                undo(result)

        if not self.has_ended:
            self.todo.append(run)
        return not self.has_ended

    def soon(self, call: Callable[[], None]) -> bool:
        if not self.has_ended:
            self.todo.append(call)
        return not self.has_ended

    def run_one(self) -> None:
        self.todo.popleft()()

    def run_all(self) -> None:
        while self.todo:
            self.run_one()
