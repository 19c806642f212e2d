"""Whether policies fit the settings."""

from __future__ import annotations

import pytest

from amqpgate.config import parse
from amqpgate.errors import ConfigError
from amqpgate.gateway.server.policy_fit import check_policies
from amqpgate.policy.loader import Source, build

LACKING = """\
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: limits}
spec:
  subjects: [{user: guest}]
  limits:
  - {id: alone, per: [user], messages: 1/s}
  - {id: first, per: [user], messages: 1/s, shared: true}
  - {id: second, per: [user], messages: 1/s, shared: true}
---
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: routes}
spec:
  routes: [{id: r, upstream: {cluster: nowhere}}]
"""


def test_all_that_the_settings_lack_is_told_with_its_place() -> None:
    settings = parse("listeners: [{name: main, bind: '127.0.0.1:0'}]\nupstreams: [{name: a, host: h}]\n", {})
    with pytest.raises(ConfigError) as raised:
        check_policies(settings, build([Source("p.yaml", LACKING.encode())]), {})
    told = [(one.line, one.message.partition(":")[0].partition(" is ")[0]) for one in raised.value.all]
    assert told == [
        (15, "RoutePolicy 'routes', route 'r'"),
        (8, "limit limits/first"),
        (9, "limit limits/second"),
    ]
    assert {one.file for one in raised.value.all} == {"p.yaml"}
