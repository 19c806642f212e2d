"""What policy check says of routes."""

from __future__ import annotations

import pytest

from tests.unit.policy.build_set import found

ROUTES = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {{name: {name}}}
spec:
  mode: {mode}
  routes:
  - {{id: {name}-1, match: {{{first}}}, upstream: {{cluster: a}}}}
  - {{id: {name}-2, match: {{{second}}}, upstream: {{cluster: b}}}}
"""


def routes(name: str, first: str, second: str, mode: str = "enforce") -> str:
    return ROUTES.format(name=name, first=first, second=second, mode=mode)


def test_a_route_behind_one_that_takes_all_its_connections() -> None:
    assert found(routes("r", "vhosts: ['shop*', a]", "user: bob, vhosts: [shop-1]")) == [
        "9 problem route 'r-2' is never taken: 'r-1' (p.yaml:8) comes first, and takes all its connections"
    ]
    assert found(routes("r", "user: bob, vhosts: [shop-1]", "vhosts: ['shop*']")) == []


@pytest.mark.parametrize(("mode", "count"), [("enforce", 2), ("shadow", 0), ("off", 0)])
def test_a_route_behind_one_of_another_policy(mode: str, count: int) -> None:
    """Policies come in the order of their names, whatever their order in the file."""
    texts = [routes("z", "user: a", "user: b"), routes("b", "user: c", "", mode)]
    assert sum("never taken" in one for one in found(*texts)) == count


def test_a_mirror_that_gets_nothing() -> None:
    text = (
        "apiVersion: amqpgate.io/v1alpha1\nkind: RoutePolicy\nmetadata: {name: p}\nspec:\n  routes:\n"
        "  - {id: r, upstream: {cluster: a, mirror: {cluster: b, percent: %s}}}\n"
    )
    assert found(text % 0) == ["6 note route 'r' mirrors nothing to 'b'"]
    assert found(text % 1) == []
