"""What is in a document by keys."""

from __future__ import annotations

import yaml

from amqpgate.yamldoc.composed import at


def test_what_is_by_keys() -> None:
    document = yaml.compose("spec: {routes: [{id: a}]}\nkind: RoutePolicy")
    routes = at(document, "spec", "routes")
    assert isinstance(routes, yaml.SequenceNode)
    found = at(routes.value[0], "id")
    assert isinstance(found, yaml.ScalarNode)
    assert (found.value, found.start_mark.index) == ("a", 21)


def test_what_is_not_there() -> None:
    document = yaml.compose("kind: {name: a}")
    for keys in (("spec",), ("kind", "id"), ("kind", "name", "first")):
        assert at(document, *keys) is None
    assert at(None, "kind") is None
