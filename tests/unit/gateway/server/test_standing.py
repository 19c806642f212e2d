"""How a gateway stands with new connections."""

from __future__ import annotations

from amqpgate.gateway.server.standing import Standing, combine


def test_several_workers_are_one() -> None:
    one, two = Standing("ready", 3, 4), Standing("draining", 1, 1, 7.0)
    assert combine([one, two]) == Standing("draining", 4, 5, 7.0, 2)
    assert combine([one, one]).state == "ready"
    assert combine([Standing("paused", 0, 0), one]).state == "paused"
    assert combine([]) == Standing("starting", 0, 0, None, 0)
