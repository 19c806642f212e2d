"""A stage whose bodies go to a store in memory, which can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import attrs
import pytest

from amqpgate.gateway.server import policy_fit
from amqpgate.gateway.session.claim_reference import VARIABLE
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.objects.fake import FakeStore

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: claims}
spec:
  subjects: [{}]
  as: rabbitmq-3.13
  claimCheck: {store: "s3://bucket/prefix", above: 64Ki, timeout: 5s}
"""
#: A body that goes to the store.
LARGE = b"0123456789abcdef" * 20_000


@attrs.define(eq=False)
class GatedStore(FakeStore):
    """Answers while its gate is open."""

    gate: threading.Event = attrs.field(factory=threading.Event)

    def __attrs_post_init__(self) -> None:
        self.gate.set()

    def put(self, key: str, data: bytes | bytearray) -> None:
        assert self.gate.wait(20)
        super().put(key, data)

    def read(self, key: str) -> Iterator[bytes]:
        assert self.gate.wait(20)
        yield from super().read(key)


@attrs.define(eq=False)
class ClaimStage:
    stage: Stage
    store: GatedStore


def make(
    make_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch, limits: str = "", items: str = ""
) -> ClaimStage:
    """Of the default settings, with further items of the policy."""
    monkeypatch.setenv(VARIABLE, "k" * 32)
    monkeypatch.setattr(policy_fit, "find_spec", lambda _: object())
    stage, store = make_stage(policies=POLICY + items, limits=limits), GatedStore()
    stores = stage.running.gateway.registry.claim_checks.stores
    stage.running.call(lambda: setattr(stores, "connect", lambda *_: store))
    return ClaimStage(stage, store)
