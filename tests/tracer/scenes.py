"""What is traced: each scene plays on a gateway of its own, and returns its path."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs
import trio.testing

from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.audit import setting
from tests.support.inprocess import Doorway, InProcess, serving
from tests.support.otlp import Collector
from tests.support.talker import CAPABILITIES, Talker

from .record import Call, Recorder, Trace

SETTINGS = """
listeners: [{{name: main, bind: "127.0.0.1:0"}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}}}]
policies: {folder}/policies
"""
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: access}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: may, effect: allow, operations: [basic.publish], exchange: x, routingKey: {prefix: may.}}
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: rate}
spec:
  subjects: [{user: guest}]
  limits: [{id: messages, per: [user], messages: 100000/s}]
"""
TRACES = """
---
apiVersion: amqpgate.io/v1alpha1
kind: TracePolicy
metadata: {name: all}
spec:
  subjects: [{user: guest}]
  rules: [{id: all, operations: ["*"], ratio: 1}]
"""


@attrs.frozen
class Stage:
    """A gateway, its broker's door, and the ends of all connections."""

    running: InProcess
    door: Doorway
    ends: contextlib.ExitStack

    def client(self) -> Talker:
        return self.ends.enter_context(self.running.dial())

    def broker(self) -> Talker:
        return self.ends.enter_context(self.door.accept())

    def settle(self) -> None:
        """Until every task waits for something from outside."""
        self.running.ask(trio.testing.wait_all_tasks_blocked)


@contextlib.contextmanager
def set_up(*, observed: bool = False) -> Iterator[Stage]:
    """A gateway with an access policy and a rate limit; `observed`: with audit and traces too."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        door = stack.enter_context(contextlib.closing(Doorway()))
        text, policy = SETTINGS.format(port=door.port, folder=folder), POLICY
        if observed:
            collector = stack.enter_context(Collector())
            text += setting(folder / "audit", 3600) + f"tracing: {{endpoint: '{collector.endpoint}'}}\n"
            policy += TRACES
        (folder / "policies").mkdir()
        (folder / "policies/policy.yaml").write_text(policy)
        running = stack.enter_context(serving(text, folder=folder))
        yield Stage(running, door, stack.enter_context(contextlib.ExitStack()))


def close_of_a_denied_publish() -> Trace:
    """From the upcall until the gateway's channel.close leaves."""
    calls = denied_publish(observed=False).calls
    leaves = Call("datapath/relay.py", "Relay.send")
    return Trace(calls[: calls.index(leaves) + 1])


def denied_publish(*, observed: bool) -> Trace:
    """From the upcall until all is said: channel.close to the broker, its answer, and to the client."""
    with set_up(observed=observed) as stage:
        client, broker = opened(stage, is_known=False)
        client.say(amqp.ChannelOpen(), 1)
        broker.expect(amqp.ChannelOpen, 1)
        broker.say(amqp.ChannelOpenOk(), 1)
        client.expect(amqp.ChannelOpenOk, 1)
        stage.settle()
        recorder = Recorder(stage.running)
        with recorder.recording():
            client.publish(b"no", "other", exchange="x")
            broker.expect(amqp.ChannelClose, 1)
            broker.say(amqp.ChannelCloseOk(), 1)
            client.expect(amqp.ChannelClose, 1)
            stage.settle()
        return Trace(recorder.calls)


def handshake() -> Trace:
    """From accept to open-ok, with PLAIN, on a gateway that knows its broker, and clients like this one."""
    with set_up() as stage:
        # The first is a conversation; of the second is kept what it comes to.
        for is_known in (False, True):
            opened(stage, is_known=is_known)
            stage.settle()
        recorder = Recorder(stage.running)
        with recorder.recording():
            opened(stage, is_known=True)
            stage.settle()
        return Trace(recorder.calls)


def opened(stage: Stage, *, is_known: bool) -> tuple[Talker, Talker]:
    """A client and its broker, up to open-ok.

    A broker whose start is not known is dialled before the client hears start.
    """
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    if not is_known:
        broker = stage.broker()
        broker.greet()
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", plain_response("guest", "guest"), "en_US"))
    if is_known:
        broker = stage.broker()
        broker.greet()
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    tune = client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
    broker.expect(amqp.ConnectionTuneOk)
    client.say(amqp.ConnectionOpen("/"))
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    return client, broker
