"""What an object store is asked, and what it raises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from amqpgate.errors import AmqpgateError
from amqpgate.values import frozen


class StoreError(AmqpgateError):
    """The store does not do what it is asked, or does not answer. It may later."""


class ObjectLostError(StoreError):
    """The object is not there, or is not what was put there. It will not be, either."""


@frozen
class Stored:
    """An object, as the store lists it."""

    key: str
    byte_count: int
    #: When it was put there, in seconds since 1970, by the store's clock.
    since: float


@frozen
class Unfinished:
    """An upload that was neither completed nor aborted."""

    key: str
    upload: str
    since: float


class ObjectStore(Protocol):
    """One prefix of one bucket. Keys count from there. Each method blocks, and raises `StoreError`."""

    def put(self, key: str, data: bytes | bytearray) -> None:
        """An object of one piece."""

    def begin(self, key: str) -> str:
        """An object of several pieces; what it is called until it is complete."""

    def part(self, key: str, upload: str, number: int, data: bytes | bytearray) -> str:
        """Its piece ``number``, from 1 on; what the store calls that. All but the last have `PART` bytes."""

    def complete(self, key: str, upload: str, parts: list[str]) -> None:
        """It is there from now on."""

    def abort(self, key: str, upload: str) -> None:
        """It never will be."""

    def read(self, key: str) -> Iterator[bytes]:
        """An object, in pieces. Raises `ObjectLostError` where there is none."""

    def delete(self, key: str) -> None:
        """No such object any more, if there was one."""

    def stored(self) -> Iterator[Stored]:
        """All objects."""

    def unfinished(self) -> Iterator[Unfinished]:
        """All uploads under way, or left behind."""


#: Bytes of a piece: the least that S3 takes, but for the last one.
PART = 5 << 20
