"""Policies are compiled where nobody waits for it, and hold from the first method on."""

from __future__ import annotations

import threading
from functools import partial

import pytest
import trio
import trio.testing

from amqpgate.gateway.session.policy_compiling import PolicyCompiler
from amqpgate.policy import PolicySet, Source, build
from amqpgate.policy.kinds import access
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.conftest import Stage

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: %s}
spec:
  subjects: [{user: guest}]
  rules: [{id: all, effect: allow, operations: ["queue.*"], queue: {prefix: %s}}]
"""


def policies(prefix: str) -> PolicySet:
    return build([Source("policy.yaml", (POLICY % (prefix, prefix)).encode())])


def test_a_session_and_a_reload_compile_in_a_thread(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    compile_it = access.session_policy

    def noted(*args: object) -> object:
        threads.append(threading.current_thread().name)
        return compile_it(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(access, "session_policy", noted)
    gateway = stage.running.gateway
    stage.running.call(lambda: gateway.use(policies("first")))
    client, broker = stage.opened()
    assert threads
    assert "gateway" not in threads
    client.say(amqp.QueueDeclare(queue="first.q"), 1)
    broker.expect(amqp.QueueDeclare, 1)
    threads.clear()
    stage.running.ask(lambda: gateway.policy_control.put_in_force(policies("second")))
    assert threads
    assert "gateway" not in threads
    threads.clear()
    client.say(amqp.QueueDeclare(queue="first.r"), 1)
    broker.expect(amqp.ChannelClose, 1)
    assert threads == []


async def test_an_address_that_claims_many_users_delays_no_other() -> None:
    compiling, first = PolicyCompiler(), threading.Event()
    done: list[str] = []

    def work(source: str) -> None:
        first.wait()
        done.append(source)

    async with trio.open_nursery() as nursery:
        for source in ("a", "a", "a", "b"):
            nursery.start_soon(compiling.run_for, source, partial(work, source))
            await trio.testing.wait_all_tasks_blocked()
        first.set()
    assert done == ["a", "b", "a", "a"]
    assert not compiling._turns
