"""What a route says of its mirror."""

from __future__ import annotations

from amqpgate.policy import Mirror
from tests.unit.policy.routes import document, load


def mirror(text: str, at: str = "cluster: a") -> Mirror:
    (policy,) = load(document(f"upstream: {{{at}, mirror: {{{text}}}}}")).routes
    found = policy.spec.routes[0].upstream.mirror
    assert found is not None
    return found


def test_a_mirror_wants_all_unless_it_says_less() -> None:
    it = mirror("cluster: b")
    assert (it.percent, it.buffer, it.max_body_bytes) == (100, 8 << 20, 1 << 20)
    assert it.wants("")
    some = mirror("cluster: b, exchanges: ['', 'orders*'], percent: 5%, vhost: v")
    assert [some.wants(name) for name in ("", "orders", "orders.eu", "order")] == [True, True, True, False]
    assert some.shown == "5 % of the default exchange, orders* to b (vhost v)"
    assert not mirror("cluster: b, percent: 0").wants("x")
