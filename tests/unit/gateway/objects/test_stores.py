"""The stores of one gateway."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from amqpgate.gateway.objects.circuit import MOST
from amqpgate.gateway.objects.downloads import WantedBody
from amqpgate.gateway.objects.store import StoreError
from amqpgate.gateway.objects.stores import ObjectStores
from amqpgate.policy.kinds.claim_check import ClaimCheck, StoreAddress
from amqpgate.telemetry.claims import ClaimMetrics
from tests.support.metrics import sample_value

from .fake import FakeStore, FakeThreads

CLAIM = ClaimCheck(store=StoreAddress("bucket", "prefix"))


def test_bodies_are_counted_and_a_store_that_fails_is_left_alone() -> None:
    registry, store, threads = CollectorRegistry(), FakeStore(), FakeThreads()
    connected: list[object] = []

    def connect(address: StoreAddress, timeout: float) -> FakeStore:
        connected.append((address, timeout))
        return store

    stores = ObjectStores(ClaimMetrics(registry), connect, threads)
    results: list[object] = []

    def put() -> None:
        upload = stores.upload(CLAIM, "key", lambda: None, results.append)
        upload.add(b"12345")
        upload.finish()
        threads.run_all()

    put()
    assert connected == [(CLAIM.store, CLAIM.timeout)], "at the first call, and once"
    assert sample_value(registry, "amqpgate_claim_bytes_total", {"operation": "put"}) == 5
    store.objects.clear()
    stores.download(CLAIM, WantedBody("key", 5, ""), results.append).start()
    threads.run_all()
    put()
    store.fails = {"put"}
    for _ in range(MOST):
        put()
    with pytest.raises(StoreError, match="failed again and again"):
        put()
    failed = {
        operation: sample_value(
            registry, "amqpgate_claim_objects_total", {"operation": operation, "outcome": "failed"}
        )
        for operation in ("put", "get")
    }
    assert failed == {"put": MOST, "get": 1}
    assert len(connected) == 1
