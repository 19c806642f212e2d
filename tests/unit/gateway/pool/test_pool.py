"""A pool's links, and who waits for them."""

from __future__ import annotations

import pytest

from amqpgate.config import Pooling
from amqpgate.gateway.pool.dial import Opened
from amqpgate.gateway.pool.pool import Pool, PoolIdentity
from amqpgate.protocol.sasl import Credentials
from amqpgate.wire.generated import v0_9_1 as amqp


class _Faulty(Pool):
    async def open_connection(self, session: str = "") -> Opened:
        raise RuntimeError("a fault of the gateway's own")


class _Waiting:
    link = None

    def __init__(self) -> None:
        self.told: list[tuple[str, amqp.ConnectionClose | None]] = []

    def refused(self, why: str, refusal: amqp.ConnectionClose | None) -> None:
        self.told.append((why, refusal))


async def test_whatever_goes_wrong_with_a_dial_who_waits_for_it_hears_of_it() -> None:
    identity = PoolIdentity("broker", "/", "guest", b"", b"", "shown")
    pool = _Faulty(None, identity, Credentials("guest", "guest"), Pooling(), None)  # type: ignore[arg-type]
    waiting = _Waiting()
    pool.waiting[waiting] = None  # type: ignore[index]
    await pool._dial()
    assert waiting.told == [("a fault of the gateway's own", None)]
    assert not pool.waiting


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_dial_that_failed_is_not_under_way_any_more(failures: int) -> None:
    identity = PoolIdentity("broker", "/", "guest", b"", b"", "shown")
    pool = _Faulty(None, identity, Credentials("guest", "guest"), Pooling(), None)  # type: ignore[arg-type]
    pool.decisions.dialling = failures
    for _ in range(failures):
        await pool._dial()
    assert pool.decisions.dialling == 0
