"""The object stores of one gateway: connected when they are first needed, left alone while they fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import attrs

from amqpgate.gateway.objects.circuit import Circuit
from amqpgate.gateway.objects.downloads import Download, SpoolRoom, WantedBody
from amqpgate.gateway.objects.s3 import S3Store
from amqpgate.gateway.objects.store import ObjectLostError, ObjectStore, Stored, StoreError, Unfinished
from amqpgate.gateway.objects.threads import StoreThreads
from amqpgate.gateway.objects.uploads import Upload, Uploaded, UploadSlots
from amqpgate.policy.kinds.claim_check import ClaimCheck, StoreAddress
from amqpgate.telemetry.claims import ClaimMetrics
from amqpgate.values import define

#: Makes a store; it may block.
Connect: TypeAlias = Callable[[StoreAddress, float], ObjectStore]

_RESTING: Final = "the object store has failed again and again, and is not asked for some seconds"


@define(eq=False)
class _Lazy:
    """A store that is connected at its first call, in a thread."""

    connect: Callable[[], ObjectStore]
    _store: ObjectStore | None = None

    def _get(self) -> ObjectStore:
        # Two threads may both connect: one of both stores is forgotten.
        if self._store is None:
            self._store = self.connect()
        return self._store

    def put(self, key: str, data: bytes | bytearray) -> None:
        self._get().put(key, data)

    def begin(self, key: str) -> str:
        return self._get().begin(key)

    def part(self, key: str, upload: str, number: int, data: bytes | bytearray) -> str:
        return self._get().part(key, upload, number, data)

    def complete(self, key: str, upload: str, parts: list[str]) -> None:
        self._get().complete(key, upload, parts)

    def abort(self, key: str, upload: str) -> None:
        self._get().abort(key, upload)

    def read(self, key: str) -> Iterator[bytes]:
        return self._get().read(key)

    def delete(self, key: str) -> None:
        self._get().delete(key)

    def stored(self) -> Iterator[Stored]:
        return self._get().stored()

    def unfinished(self) -> Iterator[Unfinished]:
        return self._get().unfinished()


@define(eq=False)
class ObjectStores:
    """Of one gateway."""

    metrics: ClaimMetrics
    connect: Connect = S3Store.connect
    threads: StoreThreads = attrs.field(factory=StoreThreads)
    slots: UploadSlots = attrs.field(factory=UploadSlots)
    room: SpoolRoom = attrs.field(factory=SpoolRoom)
    _known: dict[tuple[StoreAddress, float], tuple[ObjectStore, Circuit]] = attrs.field(
        factory=dict, init=False
    )

    def upload(
        self,
        claim: ClaimCheck,
        key: str,
        on_room: Callable[[], None],
        on_done: Callable[[Uploaded | StoreError], None],
    ) -> Upload:
        """A body that goes to a store. Raises ``StoreError`` while that is left alone."""
        store, circuit = self._of(claim)

        def done(result: Uploaded | StoreError) -> None:
            self._heard(circuit, result)
            self.metrics.put(None if isinstance(result, StoreError) else result.byte_count)
            on_done(result)

        return Upload(self.threads, store, key, on_room, done)

    def download(
        self,
        claim: ClaimCheck,
        wanted: WantedBody,
        on_done: Callable[[StoreError | None], None],
        owner: object = "",
    ) -> Download:
        """A body that comes from a store, for this user. Raises ``StoreError`` while that is left alone."""
        store, circuit = self._of(claim)

        def done(result: StoreError | None) -> None:
            self._heard(circuit, result)
            self.metrics.got(None if isinstance(result, StoreError) else wanted.byte_count)
            on_done(result)

        return Download(self.threads, store, wanted, self.room, done, owner)

    def _of(self, claim: ClaimCheck) -> tuple[ObjectStore, Circuit]:
        which = claim.store, claim.timeout
        known = self._known.get(which)
        if known is None:
            known = self._known[which] = _Lazy(lambda: self.connect(*which)), Circuit()
        if known[1].is_open(time.monotonic()):
            raise StoreError(_RESTING)
        return known

    @staticmethod
    def _heard(circuit: Circuit, result: object) -> None:
        if isinstance(result, StoreError) and not isinstance(result, ObjectLostError):
            circuit.failed(time.monotonic())
        else:
            circuit.worked()
