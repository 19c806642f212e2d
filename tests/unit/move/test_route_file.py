"""A route's cluster, changed in the text of its policy."""

from __future__ import annotations

import pytest

from amqpgate.errors import ConfigError
from amqpgate.move.route_file import with_cluster

TEXT = """\
# Who goes where: cluster: blue
kind: RoutePolicy
spec:
  routes:
  - {id: flow, upstream: {cluster: blue, vhost: v}}  # blue
  - id: block
    upstream:
      cluster: "blue"   # quoted
  - id: other
    upstream: {cluster: blue}
---
kind: AccessPolicy
spec: {routes: [{id: flow, upstream: {cluster: blue}}]}
"""


def test_only_what_is_meant_changes() -> None:
    changed = with_cluster(TEXT, frozenset({"flow", "block"}), "blue", "green", "f")
    expected = TEXT.replace("{cluster: blue, vhost", "{cluster: green, vhost").replace('"blue"', "green")
    assert changed == expected
    assert with_cluster(changed, frozenset({"flow", "block"}), "blue", "green", "f") == changed
    assert with_cluster(changed, frozenset({"flow"}), "green", "blue", "f") == TEXT.replace('"blue"', "green")


def test_a_name_that_yaml_would_read_otherwise_is_quoted() -> None:
    assert "cluster: '1'," in with_cluster(TEXT, frozenset({"flow"}), "blue", "1", "f")


@pytest.mark.parametrize(
    "upstream", ["{clusters: [{cluster: blue}]}", "{cluster: red}", "{cluster: '${WHERE}'}", "x"]
)
def test_what_is_said_otherwise_is_for_people(upstream: str) -> None:
    text = f"kind: RoutePolicy\nspec: {{routes: [{{id: a, upstream: {upstream}}}]}}\n"
    with pytest.raises(ConfigError, match="change it by hand"):
        with_cluster(text, frozenset({"a"}), "blue", "green", "f")
    assert with_cluster(text, frozenset({"b"}), "blue", "green", "f") == text
