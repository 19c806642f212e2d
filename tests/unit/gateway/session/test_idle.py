"""What one idle session holds: so many objects, of so many bytes. An idle connection is to cost what it costs
a proxy in C, which does not look into it.

The objects that are reached from a session, and not from the gateway or from another session like it. Sizes
are what Python's allocator gives: multiples of 16 bytes.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType

import pytest

from amqpgate.datapath.build import COMPILED
from amqpgate.datapath.scanner import FlowTable
from amqpgate.gateway.session.session import Session
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.unit.gateway.conftest import Stage

POLICIES = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: bench}
spec:
  subjects: [{user: guest}]
  rules: [{id: publish, effect: allow, operations: [basic.publish], exchange: bench}]
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: bench}
spec:
  subjects: [{user: "*"}]
  limits: [{id: per-user, per: [user, vhost], messages: 1M/s}]
"""
PROPERTIES = Table.of({"product": "bench", "platform": "C"})


def reached(roots: Iterable[object], beyond: Iterable[object] = ()) -> dict[int, object]:
    """All that the roots lead to, but not through what is ``beyond``; and no code."""
    known = {id(one) for one in beyond}
    found: dict[int, object] = {}
    todo = list(roots)
    while todo:
        one = todo.pop()
        if id(one) in known or isinstance(one, type | FunctionType | ModuleType):
            continue
        known.add(id(one))
        found[id(one)] = one
        todo += gc.get_referents(one)
        if type(one).__name__ == "Lane":
            # Not the garbage collector's.
            todo.append(one.channels)  # type: ignore[attr-defined]
            if one.known_flows():  # type: ignore[attr-defined]
                todo.append(one.flows)  # type: ignore[attr-defined]
        elif isinstance(one, FlowTable):
            todo += [flow for _, flow in one.flows()]
    return found


def held_by(session: Session, other: Session, stage: Stage) -> Counter[str]:
    """Bytes by the names of classes."""
    beyond = (session, session.relay, session.id)
    shared = reached((stage.running.gateway, other), beyond)
    own = reached((session,), shared.values())
    held: Counter[str] = Counter()
    for one in own.values():
        held[type(one).__name__] += -(-sys.getsizeof(one) // 16) * 16
    held["objects"] = len(own)
    return held


@pytest.mark.skipif(not COMPILED, reason="the plain data path is made to be read")
def test_an_idle_session_is_small(make_stage: Callable[..., Stage]) -> None:
    """Of 100,000 connections, 100 bytes more are 10 MB."""
    stage = make_stage(policies=POLICIES)
    for _ in range(3):
        stage.opened(properties=PROPERTIES)
    _, other, session = stage.running.gateway.sessions.values()
    held = held_by(session, other, stage)
    count = held.pop("objects")
    assert count <= 18, held
    assert sum(held.values()) <= 1648, held
    # What the walk is to find is there: a test that finds nothing passes always.
    assert {"Session", "RelayEndpoint", "Lane", "Channels", "StatsObserver"} <= held.keys()
    # What caches know is not found: who else has it is asked.
    assert session.principal is other.principal
    assert session.facts is other.facts
    assert not {"socket", "SessionChannel", "SessionEnd"} & held.keys()


@pytest.mark.skipif(not COMPILED, reason="the plain data path is made to be read")
def test_a_session_that_has_published_is_small(make_stage: Callable[..., Stage]) -> None:
    """A flow, and a place for it. What its channels have not been asked for is not remembered."""
    stage = make_stage(policies=POLICIES)
    for _ in range(3):
        client, broker = stage.opened(properties=PROPERTIES)
        client.publish(b"x", "key", exchange="bench")
        broker.expect_content(amqp.BasicPublish)
        client.say(amqp.BasicQos(prefetch_count=10), 1)
        broker.expect(amqp.BasicQos, 1)
        broker.say(amqp.BasicQosOk(), 1)
        client.expect(amqp.BasicQosOk, 1)
    _, other, session = stage.running.gateway.sessions.values()
    held = held_by(session, other, stage)
    count = held.pop("objects")
    assert count <= 20, held
    assert sum(held.values()) <= 1920, held
    # By which rule its messages pass is in the flow, as all flows have it that this rule decides about.
    ((_, flow),) = session.relay.up.known_flows()
    ((_, like),) = other.relay.up.known_flows()
    assert flow.rules == (("AccessPolicy", "bench", "publish"),)
    assert flow.rules is like.rules
    assert {"Flow", "FlowTable"} <= held.keys()
    assert not {"SessionChannel", "OperationLimits", "Consumers", "bytes"} & held.keys()
