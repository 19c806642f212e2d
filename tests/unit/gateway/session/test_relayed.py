"""Sessions of a whole gateway whose client and broker both speak AMQP 0-10: all passes as it came."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from amqpgate.errors import Forced
from amqpgate.policy.loader import Source, build
from amqpgate.protocol.v0_10.frames import encode_segments
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.codec import encode_header
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.types import Map, Value
from tests.support.audit import records
from tests.support.inprocess import eventually
from tests.support.otlp import Collector
from tests.support.peer_0_10 import START_OK, TUNE, Peer010, greet, log_in
from tests.support.recorded_0_10 import HEADER
from tests.support.talk_0_10 import ATTACH, KEY, NAME, POINT, TRANSFER, command, control
from tests.unit.gateway.audited import audited
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.memory import in_memory, uncollected
from tests.unit.gateway.traced import ALL as TRACE_ALL
from tests.unit.gateway.traced import SETTINGS as TRACED

__all__ = ["audited", "uncollected"]

MakeStage = Callable[..., Stage]

ATTACHED = amqp.SessionAttached(name=NAME)
DETACH, DETACHED = amqp.SessionDetach(name=NAME), amqp.SessionDetached(name=NAME, code=0)
DECLARE = amqp.QueueDeclare(queue=b"q", arguments=Map(((b"qpid.x", Value(TypeCode.BIN128, bytes(16))),)))
DELIVERY = command(
    amqp.MessageTransfer(destination=b"d", accept_mode=0, acquire_mode=0),
    (amqp.DeliveryProperties(routing_key=b"key", exchange=b"amq.direct"),),
    b"body",
)
TUNE_OK = amqp.ConnectionTuneOk(channel_max=64)
UPSTREAM = "version: 0-10"

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: mine}
spec:
  subjects: [{user: guest}]
  onDeny: {publish: drop}
  rules:
  - {id: own, effect: allow, operations: [queue.declare, basic.consume], queue: {literal: q}}
  - id: publish
    effect: allow
    operations: [basic.publish]
    exchange: {literal: amq.direct}
    routingKey: {literal: key}
"""


def opened(
    stage: Stage,
    tune_ok: amqp.ConnectionTuneOk = TUNE_OK,
    tune: amqp.ConnectionTune = TUNE,
    *,
    is_attached: bool = True,
) -> tuple[Peer010, Peer010]:
    stage.forget()
    talker = stage.client()
    talker.raw(HEADER)
    broker = greet(stage.broker())
    client = Peer010(talker)
    log_in(client, broker, tune_ok, tune)
    if is_attached:
        attach(client, broker)
    return client, broker


def attach(client: Peer010, broker: Peer010, channel: int = 0) -> None:
    client.say(ATTACH, POINT, channel=channel)
    assert broker.expect(amqp.SessionAttach) == ATTACH
    assert broker.expect(amqp.SessionCommandPoint) == POINT
    broker.say(ATTACHED, POINT, channel=channel)
    assert client.expect(amqp.SessionAttached) == ATTACHED
    assert client.expect(amqp.SessionCommandPoint) == POINT


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    return make_stage(upstream=UPSTREAM)


def test_all_passes_as_it_came(stage: Stage) -> None:
    client, broker = opened(stage)
    said = b"".join(
        (
            command(DECLARE, sync=True),
            # Of several frames.
            encode_segments(0, TRANSFER.encode(), encode_header(KEY), b"m" * 200_000, 65535),
            command(TRANSFER, None, b"no header"),
            command(TRANSFER),
            command(amqp.DtxSelect()),
            command(amqp.MessageFlow(destination=b"d", unit=0, value=5)),
            command(amqp.MessageAcquire(transfers=SequenceSet(((4, 7),)))),
            control(amqp.SessionFlush(completed=True)),
            command(amqp.QueueQuery(queue=b"q"), sync=True),
        )
    )
    client.say(said)
    assert broker.raw(len(said)) == said
    answer = b"".join(
        (
            control(amqp.SessionCompleted(SequenceSet(((0, 6),)), timely_reply=True)),
            command(amqp.ExecutionResult(command_id=6, value=b"\x08\x01\x00\x00")),
            DELIVERY * 100,
        )
    )
    broker.say(answer)
    assert client.raw(len(answer)) == answer
    client.say(DETACH, amqp.ConnectionClose(reply_code=200))
    assert broker.expect(amqp.SessionDetach) == DETACH
    broker.expect(amqp.ConnectionClose)
    broker.say(DETACHED, amqp.ConnectionCloseOk())
    assert client.expect(amqp.SessionDetached) == DETACHED
    client.expect(amqp.ConnectionCloseOk)
    for peer in (client, broker):
        peer.sock.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"closed": 1}


@pytest.mark.usefixtures("uncollected")
def test_what_a_relayed_session_was_is_no_cycle(stage: Stage) -> None:
    """Python may not look for those for hours, and memory rises meanwhile."""
    before = in_memory()
    for _ in range(4):
        client, broker = opened(stage)
        client.say(DECLARE)
        broker.expect(amqp.QueueDeclare)
        for peer in (client, broker):
            peer.sock.close()
    stage.running.wait_idle()
    kinds = ("TranslatedSocket", "NativeRelay", "ClientEnd", "BrokerEnd")
    eventually(lambda: max(in_memory()[kind] - before[kind] for kind in kinds) < 2)


def test_messages_are_counted(stage: Stage) -> None:
    client, broker = opened(stage)
    client.say(command(TRANSFER, KEY, b"12345") * 3)
    broker.raw(len(command(TRANSFER, KEY, b"12345") * 3))
    broker.say(DELIVERY * 2)
    client.raw(len(DELIVERY) * 2)
    (session,) = stage.running.call(lambda: list(stage.running.gateway.sessions.values()))
    assert session.facts.is_relayed
    assert session.relay.up.messages == 3
    assert session.relay.down.messages == 2


def test_a_denial_ends_its_session_alone(make_stage: MakeStage) -> None:
    stage = make_stage(upstream=UPSTREAM, policies=POLICY)
    client, broker = opened(stage)
    attach(client, broker, 7)
    client.say(command(TRANSFER, KEY, b"allowed"), command(DECLARE))
    client.say(command(TRANSFER, (amqp.DeliveryProperties(routing_key=b"other"),), b"secret"))
    client.say(command(TRANSFER, KEY, b"behind"))
    assert broker.hear().body == b"allowed"
    assert broker.expect(amqp.QueueDeclare) == DECLARE
    assert broker.expect(amqp.SessionDetach) == DETACH
    broker.say(DETACHED)
    exception = client.expect(amqp.ExecutionException)
    assert (exception.error_code, exception.command_id, exception.class_code) == (403, 2, 4)
    assert client.expect(amqp.SessionDetach) == DETACH
    client.say(DETACHED)
    client.say(command(TRANSFER, KEY, b"other session", channel=7))
    assert broker.hear().body == b"other session"
    attach(client, broker)


def test_a_query_is_judged_as_a_passive_declare(make_stage: MakeStage) -> None:
    stage = make_stage(upstream=UPSTREAM, policies=POLICY)
    client, broker = opened(stage)
    client.say(command(amqp.QueueQuery(queue=b"q")), command(amqp.QueueQuery(queue=b"other")))
    broker.expect(amqp.QueueQuery)
    assert broker.expect(amqp.SessionDetach) == DETACH
    broker.say(DETACHED)
    assert client.expect(amqp.ExecutionException).error_code == 403


def test_headers_are_judged(make_stage: MakeStage) -> None:
    rule = "routingKey: {literal: key}"
    policies = POLICY.replace(rule, f"{rule}\n    properties: {{headers: {{deny: [secret]}}}}")
    stage = make_stage(upstream=UPSTREAM, policies=policies)
    client, broker = opened(stage)
    for name in (b"open", b"secret"):
        headers = Map(((name, Value(TypeCode.STR16, b"x")),))
        client.say(command(TRANSFER, (*KEY, amqp.MessageProperties(application_headers=headers)), name))
    assert broker.hear().body == b"open"
    broker.expect(amqp.SessionDetach)
    broker.say(DETACHED)
    exception = client.expect(amqp.ExecutionException)
    assert (exception.error_code, exception.command_id) == (403, 1)


def test_a_message_that_is_too_large(make_stage: MakeStage) -> None:
    stage = make_stage(upstream=UPSTREAM, limits="maxMessageBytes: 1000")
    client, broker = opened(stage)
    client.say(command(TRANSFER, KEY, bytes(1000)), command(TRANSFER, KEY, bytes(1001)))
    assert broker.hear().body == bytes(1000)
    broker.expect(amqp.SessionDetach)
    broker.say(DETACHED)
    exception = client.expect(amqp.ExecutionException)
    assert (exception.error_code, exception.command_id) == (406, 1)


RATES = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: slow}
spec:
  subjects: [{user: guest}]
  limits:
  - {id: publishes, per: [connection], messages: 50/s, burst: 100ms}
"""


def test_a_rate_makes_wait(make_stage: MakeStage) -> None:
    stage = make_stage(upstream=UPSTREAM, policies=RATES)
    client, broker = opened(stage)
    said = [command(TRANSFER, KEY, b"%d" % number) for number in range(20)]
    flush = control(amqp.SessionFlush(completed=True))
    client.say(b"".join(said) + flush)
    for number in range(20):
        assert broker.hear().body == b"%d" % number
    broker.expect(amqp.SessionFlush)
    (session,) = stage.running.call(lambda: list(stage.running.gateway.sessions.values()))
    assert session.principal.user == "guest"
    assert stage.running.gateway.pump.counters.throttled


TRANSFORM = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: named}
spec:
  subjects: [{user: guest}]
  ceilings: {maxBodyBytes: 1000}
"""


def test_who_is_to_be_changed_is_translated(make_stage: MakeStage) -> None:
    stage = make_stage(upstream=UPSTREAM, policies=TRANSFORM)
    client, _ = opened(stage, is_attached=False)
    client.say(ATTACH, POINT)
    client.expect(amqp.SessionAttached)
    (session,) = stage.running.call(lambda: list(stage.running.gateway.sessions.values()))
    assert not session.facts.is_relayed


ROUTE = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: moved}
spec:
  routes:
  - {id: guests, match: {user: guest}, upstream: {cluster: broker}}
"""


def test_the_broker_is_chosen_by_the_login(make_stage: MakeStage) -> None:
    """It is dialled once the client has said all, and is one of 0-10 all the same."""
    stage = make_stage(upstream=UPSTREAM, policies=ROUTE)
    talker = stage.client()
    talker.raw(HEADER)
    asked = greet(stage.broker())
    client = Peer010(talker)
    client.expect(amqp.ConnectionStart)
    assert asked.at_end()
    client.say(START_OK)
    client.expect(amqp.ConnectionTune)
    client.say(TUNE_OK, amqp.ConnectionOpen(virtual_host=b""), ATTACH, POINT)
    broker = greet(stage.broker())
    broker.expect(amqp.ConnectionStartOk)
    broker.say(TUNE)
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    # What it has sent ahead of open-ok is not lost.
    assert broker.expect(amqp.SessionAttach) == ATTACH
    client.say(command(amqp.DtxSelect()))
    assert broker.expect(amqp.SessionCommandPoint) == POINT
    broker.expect(amqp.DtxSelect)


def test_a_client_that_takes_smaller_frames(stage: Stage) -> None:
    client, broker = opened(stage, amqp.ConnectionTuneOk(channel_max=64, max_frame_size=4096))
    broker.say(command(TRANSFER, KEY, bytes(30_000)))
    assert client.hear().body == bytes(30_000)


def test_a_broker_with_fewer_channels_is_still_one(stage: Stage) -> None:
    tune = amqp.ConnectionTune(channel_max=3, max_frame_size=65535)
    client, broker = opened(stage, amqp.ConnectionTuneOk(channel_max=1), tune)
    client.say(command(DECLARE))
    assert broker.expect(amqp.QueueDeclare) == DECLARE


def test_the_client_goes(stage: Stage) -> None:
    client, broker = opened(stage)
    client.say(command(TRANSFER, KEY, b"last words"))
    client.sock.close()
    assert broker.hear().body == b"last words"
    close = broker.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.reply_text) == (320, b"CONNECTION_FORCED - client closed its connection")
    broker.say(amqp.ConnectionCloseOk())
    assert broker.at_end()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"client_gone": 1}


def test_the_broker_goes(stage: Stage) -> None:
    client, broker = opened(stage)
    broker.say(DELIVERY)
    broker.sock.close()
    assert client.hear().body == b"body"
    assert client.expect(amqp.ConnectionClose).reply_code == 320
    client.say(amqp.ConnectionCloseOk())
    assert client.at_end()


def test_the_broker_closes(stage: Stage) -> None:
    client, broker = opened(stage)
    broker.say(amqp.ConnectionClose(reply_code=320, reply_text=b"connection-forced: bye"))
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.reply_text) == (320, b"connection-forced: bye")
    client.say(amqp.ConnectionCloseOk())
    broker.expect(amqp.ConnectionCloseOk)


@pytest.mark.parametrize("now", [False, True])
def test_an_operator_closes(stage: Stage, now: bool) -> None:
    client, broker = opened(stage)
    gateway = stage.running.gateway
    (session,) = stage.running.call(lambda: list(gateway.sessions.values()))
    stage.running.call(lambda: gateway.registry.dismiss(session, Forced("an operator says so"), now=now))
    for peer in (client, broker):
        close = peer.expect(amqp.ConnectionClose)
        assert close.reply_code == 320
        peer.say(amqp.ConnectionCloseOk())
        assert peer.at_end()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"forced": 1}


def test_a_violation_is_told(stage: Stage) -> None:
    client, broker = opened(stage)
    client.say(command(DECLARE, channel=64))
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 501
    client.say(amqp.ConnectionCloseOk())
    assert broker.expect(amqp.ConnectionClose).reply_code == 320


def test_a_slow_broker_stops_its_own_client(stage: Stage) -> None:
    client, broker = opened(stage)
    other, other_broker = opened(stage)
    client.sock.settimeout(0.5)
    flush = control(amqp.SessionFlush(completed=True)) * 5000
    said = 0
    with contextlib.suppress(TimeoutError):
        while said < 1 << 28:
            said += client.sock.send(flush)
    assert said < 1 << 28
    other.say(command(DECLARE))
    assert other_broker.expect(amqp.QueueDeclare) == DECLARE
    data = broker.sock.recv(1 << 20)
    got = len(data)
    while got < said:
        piece = broker.sock.recv(1 << 20)
        assert piece
        got += len(piece)
    assert got == said


def test_heartbeats(stage: Stage) -> None:
    client, broker = opened(stage, amqp.ConnectionTuneOk(channel_max=64, heartbeat=1))
    beat = control(amqp.ConnectionHeartbeat())
    for _ in range(5):
        assert client.raw(len(beat)) == beat
        client.say(beat)
    # The broker's hop has its own.
    client.say(command(DECLARE))
    assert broker.raw(len(command(DECLARE))) == command(DECLARE)
    assert broker.expect(amqp.ConnectionClose).reply_text == b"CONNECTION_FORCED - client sent no heartbeats"


# -- who looks on ----------------------------------------------------------------------------------------


def test_a_trace_goes_on_in_the_messages(make_stage: MakeStage) -> None:
    with Collector() as otlp:
        text = TRACED.replace("{port}}", "{port}, version: 0-10}") % (otlp.endpoint, 10)
        stage = make_stage(text=text, policies=TRACE_ALL)
        client, broker = opened(stage)
        headers = Map(((b"mine", Value(TypeCode.UINT64, 2**63)),))
        properties = amqp.MessageProperties(content_type=b"text/plain", application_headers=headers)
        client.say(command(TRANSFER, (*KEY, properties), b"body"), command(DECLARE))
        message = broker.hear()
        assert broker.expect(amqp.QueueDeclare) == DECLARE
    assert (message.command, message.body) == (TRANSFER, b"body")
    delivery, got = message.structs or ()
    assert delivery == KEY[0]
    assert isinstance(got, amqp.MessageProperties)
    assert got.content_type == b"text/plain"
    assert got.application_headers is not None
    # What nobody has changed is as it was, though 0-9-1 has no such type.
    assert got.application_headers.get(b"mine") == Value(TypeCode.UINT64, 2**63)
    context = got.application_headers.get(b"traceparent")
    assert context is not None
    assert context.code == TypeCode.STR16


def test_what_is_recorded(audited: Callable[..., Stage], tmp_path: Path) -> None:
    stage = audited(upstream=UPSTREAM, policies=POLICY)
    client, broker = opened(stage)
    client.say(command(DECLARE), command(TRANSFER, KEY, b"12345") * 2, command(amqp.QueuePurge(queue=b"q")))
    broker.expect(amqp.QueueDeclare)
    for _ in range(2):
        assert broker.hear().body == b"12345"
    broker.expect(amqp.SessionDetach)
    broker.say(control(amqp.SessionCompleted(SequenceSet(((0, 2),)))), DETACHED)
    client.expect(amqp.SessionCompleted)
    client.expect(amqp.ExecutionException)
    stage.running.stop()
    events = [(one["kind"], one["operation"], one["queue"]) for one in records(tmp_path / "audit", "events")]
    # A declare is recorded once the broker has completed it.
    assert sorted(events[2:4]) == [("denied", "queue.purge", "q"), ("topology", "queue.declare", "q")]
    (publishes,) = [
        one for one in records(tmp_path / "audit", "usage") if one["operation"] == "basic.publish"
    ]
    columns = ("exchange", "routing_key", "messages", "bytes", "rule")
    assert tuple(publishes[column] for column in columns) == ("amq.direct", "key", 2, 10, "publish")


def test_a_consumer_that_is_not_allowed_any_more(make_stage: MakeStage) -> None:
    stage = make_stage(upstream=UPSTREAM, policies=POLICY)
    client, broker = opened(stage)
    client.say(command(amqp.MessageSubscribe(queue=b"q", destination=b"d"), sync=True))
    broker.expect(amqp.MessageSubscribe)
    broker.say(control(amqp.SessionCompleted(SequenceSet(((0, 0),)))))
    client.expect(amqp.SessionCompleted)
    gateway = stage.running.gateway
    others = build([Source("policy.yaml", POLICY.replace("basic.consume]", "queue.delete]").encode())])
    stage.running.call(lambda: gateway.use(others))
    assert broker.expect(amqp.SessionDetach) == DETACH
    broker.say(DETACHED)
    assert client.expect(amqp.ExecutionException).error_code == 403
    assert client.expect(amqp.SessionDetach) == DETACH
