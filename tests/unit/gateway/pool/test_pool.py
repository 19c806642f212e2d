"""A pool's connections, and who waits for them."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from amqpgate.config import Pooling
from amqpgate.gateway.pool import pool as pool_module
from amqpgate.gateway.pool.dial import Opened, PoolDialer
from amqpgate.gateway.pool.pool import Pool, PoolIdentity
from amqpgate.gateway.pool.shared_connection import SharedConnection
from amqpgate.protocol.sasl import Credentials
from amqpgate.wire.generated import v0_9_1 as amqp


class _Faulty(PoolDialer):
    async def open(self, session: str = "", *, clients: int = 1) -> Opened:
        raise RuntimeError("a fault of the gateway's own")


def faulty() -> Pool:
    identity = PoolIdentity("broker", "/", "guest", b"", b"", "shown")
    dialer = _Faulty(None, Credentials("guest", "guest"), "/", "shown", "1")  # type: ignore[arg-type]
    return Pool(None, identity, Pooling(), dialer)  # type: ignore[arg-type]


class _Waiting:
    connection = None

    def __init__(self) -> None:
        self.told: list[tuple[str, amqp.ConnectionClose | None]] = []

    def rejected(self, why: str, refusal: amqp.ConnectionClose | None) -> None:
        self.told.append((why, refusal))


async def test_whatever_goes_wrong_with_a_dial_who_waits_for_it_hears_of_it() -> None:
    pool = faulty()
    waiting = _Waiting()
    pool.waiting.await_channel(waiting, 0.0)  # type: ignore[arg-type]
    await pool._dial()
    assert waiting.told == [("a fault of the gateway's own", None)]
    assert not pool.waiting


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_dial_that_failed_is_not_under_way_any_more(failures: int) -> None:
    pool = faulty()
    pool.plan.dialling = failures
    for _ in range(failures):
        await pool._dial()
    assert pool.plan.dialling == 0


def test_a_connection_that_there_is_no_memory_for_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def poor(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(pool_module, "hand_over", lambda hop, _tune: hop)
    monkeypatch.setattr(SharedConnection, "enter", poor)
    identity = PoolIdentity("broker", "/", "guest", b"", b"", "shown")
    pool = Pool(Mock(), identity, Pooling(), Mock())
    pool.plan.dialling = 1
    opened = Mock(tune=amqp.ConnectionTune(2047, 131072, 0))
    with pytest.raises(MemoryError):
        pool.add(opened, asked=True)
    opened.hop.sock.close.assert_called_once_with()
    assert (pool.connections, list(pool.plan.links), pool.plan.dialling) == ({}, [], 0)
