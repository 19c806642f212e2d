"""Established sessions whose peers speak different versions: what each of them hears, on the wire.

The handshake here is in 0-9-1 on both hops, and from then on each peer speaks its own version.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from amqpgate.bridge import interpreter_for
from amqpgate.bridge.undecided import UndecidedInterpreter
from amqpgate.bridge.v0_9 import Interpreter09
from amqpgate.bridge.v0_9_1 import NATIVE
from amqpgate.bridge.v0_10 import Interpreter010
from amqpgate.gateway.session import publish_denial
from amqpgate.protocol.frames import encode_frame
from amqpgate.protocol.methods import Role
from amqpgate.wire import dialects
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.dialects import LEGACY_CLIENT, LEGACY_CLIENT_0_9, RABBITMQ_0_8, RABBITMQ_0_9_1, Dialect
from amqpgate.wire.generated import v0_8, v0_9
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table
from tests.support.inprocess import eventually
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Opens, Stage, open_channel
from tests.unit.gateway.memory import in_memory, uncollected

__all__ = ["uncollected"]

SERVER = Role.SERVER
MakeStage = Callable[..., Stage]


CLOSE = {
    (0, 8, 0): v0_8.ConnectionClose(200, "bye"),
    (0, 9, 0): v0_9.ConnectionClose(200, "bye"),
    (0, 9, 1): amqp.ConnectionClose(200, "bye"),
}
CLOSE_OK = {
    (0, 8, 0): v0_8.ConnectionCloseOk,
    (0, 9, 0): v0_9.ConnectionCloseOk,
    (0, 9, 1): amqp.ConnectionCloseOk,
}
CLIENTS = [LEGACY_CLIENT, LEGACY_CLIENT_0_9, RABBITMQ_0_9_1]
BROKERS = [RABBITMQ_0_8, dialects.LEGACY_BROKER_0_9, RABBITMQ_0_9_1]
nine = pytest.mark.parametrize(
    ("one", "other"),
    [(client, broker) for client in CLIENTS for broker in BROKERS],
    ids=lambda dialect: dialect.name,
)


@nine
@pytest.mark.parametrize("first", ["client", "broker"])
def test_closes_of_the_connection_have_each_versions_ids(
    stage: Stage, opens: Opens, one: Dialect, other: Dialect, first: str
) -> None:
    client, broker = opens(stage, one, other)
    asking, answering = (client, broker) if first == "client" else (broker, client)
    asking.say(CLOSE[asking.dialect.version])
    assert answering.hear() == (0, CLOSE[answering.dialect.version])
    answering.say(CLOSE_OK[answering.dialect.version]())
    asking.expect(CLOSE_OK[asking.dialect.version])
    for talker in (client, broker):
        talker.expect_end()
        talker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"closed": 1}


@pytest.mark.usefixtures("uncollected")
def test_what_a_bridge_was_is_no_cycle(stage: Stage, opens: Opens) -> None:
    """Python may not look for those for hours, and memory rises meanwhile."""

    def visits(count: int) -> None:
        for _ in range(count):
            client, broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
            client.reset()
            broker.expect(amqp.ConnectionClose)
            broker.say(amqp.ConnectionCloseOk())
        stage.running.wait_idle()

    visits(2)
    visits(5)
    eventually(lambda: in_memory()["VersionBridge"] < 2 and in_memory()["Session"] < 2)


@nine
def test_declare_bind_consume_and_the_rest(stage: Stage, opens: Opens, one: Dialect, other: Dialect) -> None:
    """Every pair: what is asked, and what is answered, by the canonical names."""
    client, broker = opens(stage, one, other)
    there, back = interpreter_for(one), interpreter_for(other)

    def passes(question: Method, answer: Method) -> None:
        client.raw(encode_frame(1, 1, there.from_canonical(question)))
        heard = broker.frame()
        assert heard[:2] == (1, 1)
        assert interpreter_for(other).to_canonical(heard.payload, SERVER) == question
        broker.raw(encode_frame(1, 1, back.from_canonical(answer)))
        told = client.frame()
        assert interpreter_for(one).to_canonical(told.payload, SERVER) == answer

    passes(amqp.ExchangeDeclare(exchange="e", type="topic", auto_delete=True), amqp.ExchangeDeclareOk())
    arguments = Table.of({"x-max-length": 7, "deep": {"text": "x"}})
    passes(amqp.QueueDeclare(queue="q", arguments=arguments), amqp.QueueDeclareOk("q", 1, 2))
    passes(amqp.QueueBind(queue="q", exchange="e", routing_key="a.#"), amqp.QueueBindOk())
    passes(amqp.QueueUnbind(queue="q", exchange="e", routing_key="a.#"), amqp.QueueUnbindOk())
    passes(amqp.BasicQos(prefetch_count=5), amqp.BasicQosOk())
    passes(amqp.BasicConsume(queue="q", consumer_tag="c"), amqp.BasicConsumeOk("c"))
    passes(amqp.BasicCancel("c"), amqp.BasicCancelOk("c"))
    passes(amqp.BasicGet(queue="q"), amqp.BasicGetEmpty())
    passes(amqp.TxSelect(), amqp.TxSelectOk())
    passes(amqp.TxCommit(), amqp.TxCommitOk())
    if other is not RABBITMQ_0_9_1 or one is RABBITMQ_0_9_1:
        passes(amqp.AccessRequest("/data", read=True), amqp.AccessRequestOk(1))
    passes(amqp.ExchangeDelete(exchange="e"), amqp.ExchangeDeleteOk())
    passes(amqp.QueueDelete(queue="q"), amqp.QueueDeleteOk(3))
    passes(amqp.ChannelClose(200, "done"), amqp.ChannelCloseOk())


# -- policies ------------------------------------------------------------------------------------------------

MINE = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: mine}
spec:
  subjects: [{user: "*"}]
  rules:
  - {id: queues, effect: allow, operations: ["queue.*", basic.consume], queue: {prefix: mine}}
  - {id: publish, effect: allow, operations: [basic.publish], routingKey: {prefix: mine}}
"""


@nine
def test_policies_refuse_the_same_whatever_the_version(
    make_stage: MakeStage, opens: Opens, one: Dialect, other: Dialect
) -> None:
    """403 with the ids of the method, in the client's version; the broker never sees it."""
    client, broker = opens(make_stage(policies=MINE), one, other)
    speaker = interpreter_for(one)
    for number, refused in enumerate(
        (
            amqp.QueueDeclare(queue="theirs"),
            amqp.BasicConsume(queue="theirs"),
            amqp.BasicPublish(routing_key="theirs"),
        ),
        start=1,
    ):
        if number > 1:
            open_channel(client, broker, number)
        client.raw(encode_frame(1, number, speaker.from_canonical(refused)))
        _, close = broker.hear()
        assert (close.NAME, close.reply_code) == ("channel.close", 403)  # type: ignore[attr-defined]
        broker.say(amqp.ChannelCloseOk(), number)
        channel, heard = client.hear()
        assert channel == number
        told = interpreter_for(one).to_canonical(heard.encode(one), SERVER)
        assert isinstance(told, amqp.ChannelClose)
        assert (told.reply_code, told.class_id, told.method_id) == (
            403,
            refused.CLASS_ID,
            refused.METHOD_ID,
        )
        assert "theirs" in told.reply_text
        client.say(amqp.ChannelCloseOk(), number)


# -- messages ------------------------------------------------------------------------------------------------

#: One value of each type, and what an old client of 0-8 reads instead.
TYPES = [
    (Field("t", True), Field("I", 1)),
    (Field("b", -5), Field("I", -5)),
    (Field("l", 2**40), Field("S", str(2**40))),
    (Field("d", 0.5), Field("S", "0.5")),
    (Field("x", b"\xff"), Field("S", b"\xff")),
    (Field("V", None), Field("S", "")),
    (Field("A", (Field("I", 1),)), Field("F", Table((("0", Field("I", 1)),)))),
    (Field("T", 7), Field("T", 7)),
]
SENT = Table(tuple((field.tag, field) for field, _ in TYPES))
READ = Table(tuple((field.tag, read) for field, read in TYPES))
#: 0-9 has booleans.
READ_0_9 = Table((("t", Field("t", True)), *READ.entries[1:]))
PLAIN = amqp.BasicProperties(content_type="text/plain", delivery_mode=2, reserved="cluster")


@pytest.mark.parametrize("one", [LEGACY_CLIENT, LEGACY_CLIENT_0_9], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    "method",
    [
        amqp.BasicDeliver("c", 1, False, "e", "k"),
        amqp.BasicGetOk(1, False, "e", "k", 0),
        amqp.BasicReturn(312, "NO_ROUTE", "e", "k"),
    ],
    ids=lambda method: method.NAME,
)
def test_an_old_client_gets_table_types_that_it_reads(
    stage: Stage, opens: Opens, one: Dialect, method: Method
) -> None:
    client, broker = opens(stage, one, RABBITMQ_0_9_1)
    mapped = READ if one is LEGACY_CLIENT else READ_0_9
    for headers, read in ((SENT, mapped), (None, None), (SENT, mapped)):
        properties = attrs.evolve(PLAIN, headers=headers)
        broker.content(method, b"body" * 50_000, properties=properties)
        _, heard = client.hear()
        assert heard.encode() == method.encode()
        message = client.content_of(heard)
        assert message.body == b"body" * 50_000
        assert message.header.properties.headers == read  # type: ignore[attr-defined]
        assert message.header.properties.cluster_id == "cluster"  # type: ignore[attr-defined]


def test_what_a_broker_lacks_ends_a_session_of_0_10_alone(stage: Stage, opens: Opens) -> None:
    """Others' connection it ends, as 540 of RabbitMQ's does."""
    native = Interpreter010(RABBITMQ_0_9_1)
    client, broker = opens(stage, RABBITMQ_0_9_1, dialects.LEGACY_BROKER, native)
    client.say(amqp.QueueUnbind(queue="q", exchange="e"), 1)
    broker.expect(v0_8.ChannelClose, 1)
    broker.say(v0_8.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, close.class_id, close.method_id) == (540, 50, 50)
    client.say(amqp.ChannelCloseOk(), 1)
    client.say(amqp.ChannelOpen(), 2)
    broker.expect(v0_8.ChannelOpen, 2)


def test_an_old_broker_gets_table_types_that_it_reads(stage: Stage, opens: Opens) -> None:
    client, broker = opens(stage, RABBITMQ_0_9_1, dialects.LEGACY_BROKER)
    for headers, read in ((SENT, READ), (None, None), (SENT, READ)):
        properties = amqp.BasicProperties(headers=headers)
        client.content(amqp.BasicPublish(routing_key="k"), b"body" * 50_000, properties=properties)
        message = broker.expect_content(v0_8.BasicPublish)
        assert message.body == b"body" * 50_000
        assert message.header.properties.headers == read  # type: ignore[attr-defined]


def test_types_of_a_broker_that_nobody_else_has(stage: Stage, opens: Opens) -> None:
    """Qpid's `c`, a long string, and `k`, one octet."""
    client, broker = opens(stage, RABBITMQ_0_9_1, dialects.QPID_0_8)
    broker.dialect = attrs.evolve(dialects.QPID_0_8, encodes=dialects.QPID_0_8.decodes)
    headers = Table((("c", Field("c", "text")), ("k", Field("k", "x"))))
    properties = v0_8.BasicProperties(headers=headers)
    broker.content(v0_8.BasicDeliver("c", 1), b"", properties=properties)
    heard = client.expect_content(amqp.BasicDeliver).header.properties.headers  # type: ignore[attr-defined]
    assert heard == Table((("c", Field("S", "text")), ("k", Field("S", "x"))))


def test_tables_are_mapped_after_a_reload_too(stage: Stage, opens: Opens) -> None:
    client, broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)

    def reload() -> None:
        (session,) = stage.running.gateway.sessions.values()
        session.judge_by(session.session_policies.access, session.limits)

    for _ in range(2):
        for method in (amqp.BasicDeliver("c", 1), amqp.BasicGetOk(1)):
            broker.content(method, b"", properties=amqp.BasicProperties(headers=SENT))
            message = client.content_of(client.hear()[1])
            assert message.header.properties.headers == READ  # type: ignore[attr-defined]
        stage.running.call(reload)


def test_a_client_that_decides_late(stage: Stage, opens: Opens) -> None:
    """Behind the header of 0-9: old types until it binds exchanges, and all of 0-9-1 from then on."""
    undecided = UndecidedInterpreter(Interpreter09(), NATIVE)
    client, broker = opens(stage, RABBITMQ_0_9_1, RABBITMQ_0_9_1, undecided)

    def hears() -> Table:
        broker.content(amqp.BasicDeliver("c", 1), b"", properties=amqp.BasicProperties(headers=SENT))
        return client.expect_content(amqp.BasicDeliver).header.properties.headers  # type: ignore[attr-defined,no-any-return]

    assert hears() == READ_0_9
    client.say(amqp.ExchangeBind(destination="a", source="b"), 1)
    assert broker.hear() == (1, amqp.ExchangeBind(destination="a", source="b"))
    broker.say(amqp.ExchangeBindOk(), 1)
    client.expect(amqp.ExchangeBindOk, 1)
    assert hears() == SENT
    client.say(v0_9.ChannelPing(), 1)
    hears_540(client, v0_9.ChannelPing())


def test_a_new_client_gets_tables_as_they_are(stage: Stage, opens: Opens) -> None:
    client, broker = opens(stage, RABBITMQ_0_9_1, RABBITMQ_0_8)
    properties = v0_8.BasicProperties(headers=SENT, cluster_id="cluster")
    broker.content(v0_8.BasicDeliver("c", 1), b"body", properties=properties)
    message = client.expect_content(amqp.BasicDeliver)
    assert message.header.properties == amqp.BasicProperties(headers=SENT, reserved="cluster")


def test_messages_without_tables_stay_on_the_data_path(stage: Stage, opens: Opens) -> None:
    """An upcall for the first of its kind, and none for the others; octet for octet as they came."""
    client, broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
    counters = stage.running.gateway.pump.counters
    before = stage.running.call(lambda: counters.upcalls)
    for _ in range(20):
        client.content(v0_8.BasicPublish(1, "e", "k"), b"up", properties=v0_8.BasicProperties(headers=READ))
        message = broker.expect_content(amqp.BasicPublish)
        assert message.method == amqp.BasicPublish(1, "e", "k")
        assert message.header.properties == amqp.BasicProperties(headers=READ)
        broker.content(amqp.BasicDeliver("c", 1), b"down", properties=PLAIN)
        client.expect_content(v0_8.BasicDeliver)
    assert stage.running.call(lambda: counters.upcalls) - before == 2


# -- tickets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [LEGACY_CLIENT, LEGACY_CLIENT_0_9], ids=lambda dialect: dialect.name)
class TestTickets:
    """0-9-1 has no class access: the gateway answers, and by its policies."""

    ALL = amqp.AccessRequest("/data", passive=True, active=True, write=True, read=True)

    def asks(self, pair: tuple[Talker, Talker], request: amqp.AccessRequest) -> Method:
        client, _ = pair
        client.raw(encode_frame(1, 1, interpreter_for(client.dialect).from_canonical(request)))
        return client.hear()[1]

    def test_one_is_given(self, stage: Stage, opens: Opens, one: Dialect) -> None:
        for realm in ("/data", "/data/a.b-c_+!=:/d"):
            told = self.asks(opens(stage, one, RABBITMQ_0_9_1), attrs.evolve(self.ALL, realm=realm))
            assert (told.NAME, told.encode()[4:]) == ("access.request-ok", b"\x00\x01")

    @pytest.mark.parametrize("realm", ["", "data", "/", "/data/", "//data", "/da ta", "/-"])
    def test_a_realm_that_is_no_path(self, stage: Stage, opens: Opens, one: Dialect, realm: str) -> None:
        told = self.asks(opens(stage, one, RABBITMQ_0_9_1), attrs.evolve(self.ALL, realm=realm))
        assert (told.NAME, told.reply_code) == ("connection.close", 402)  # type: ignore[attr-defined]
        assert (told.class_id, told.method_id) == (30, 10)  # type: ignore[attr-defined]

    @pytest.mark.parametrize("right", ["passive", "active", "read", "write"])
    @pytest.mark.parametrize("allowed", ["queue.declare", "basic.get", "basic.publish"])
    def test_what_no_rule_allows_is_refused(
        self, make_stage: MakeStage, opens: Opens, one: Dialect, right: str, allowed: str
    ) -> None:
        rights = {"queue.declare": ("passive", "active"), "basic.get": ("read",), "basic.publish": ("write",)}
        rule = f"  - {{id: one, effect: allow, operations: [{allowed}]}}\n"
        policy = MINE[: MINE.index("  - {id: queues")] + rule
        client, broker = opens(make_stage(policies=policy), one, RABBITMQ_0_9_1)
        request = interpreter_for(one).from_canonical(amqp.AccessRequest("/data", **{right: True}))
        client.raw(encode_frame(1, 1, request))
        if right in rights[allowed]:
            assert client.hear()[1].NAME == "access.request-ok"
        else:
            assert broker.expect(amqp.ChannelClose, 1).reply_code == 403
            broker.say(amqp.ChannelCloseOk(), 1)
            told = client.hear()[1]
            assert (told.NAME, told.reply_code) == ("channel.close", 403)  # type: ignore[attr-defined]
            assert (told.class_id, told.method_id) == (30, 10)  # type: ignore[attr-defined]


# -- what one side lacks -------------------------------------------------------------------------------------


def hears_540(client: Talker, method: Method) -> None:
    close = client.expect(CLOSE_540[client.dialect.version])
    assert (close.reply_code, close.class_id, close.method_id) == (  # type: ignore[attr-defined]
        540,
        method.CLASS_ID,
        method.METHOD_ID,
    )


CLOSE_540 = {version: type(method) for version, method in CLOSE.items()}


@pytest.mark.parametrize(
    "method",
    [
        amqp.ConfirmSelect(),
        amqp.ExchangeBind(destination="a", source="b"),
        amqp.BasicConsume(queue="q", arguments=Table.of({"x-priority": 1})),
    ],
    ids=lambda method: method.NAME,
)
def test_what_an_old_broker_lacks_is_refused(stage: Stage, opens: Opens, method: Method) -> None:
    client, _broker = opens(stage, RABBITMQ_0_9_1, RABBITMQ_0_8)
    client.say(method, 1)
    hears_540(client, method)


def test_a_nack_to_a_broker_without(stage: Stage, opens: Opens) -> None:
    client, broker = opens(stage, RABBITMQ_0_9_1, RABBITMQ_0_8)
    client.say(amqp.BasicNack(7, requeue=True), 1)
    client.say(amqp.BasicAck(8, multiple=True), 1)
    assert broker.hear() == (1, v0_8.BasicReject(7, requeue=True))
    assert broker.hear() == (1, v0_8.BasicAck(8, multiple=True))
    nack = amqp.BasicNack(9, multiple=True)
    client.say(nack, 1)
    hears_540(client, nack)


def test_a_ticket_is_given_where_the_broker_has_none(stage: Stage, opens: Opens) -> None:
    client, _broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
    client.say(v0_8.AccessRequest("/data", read=True), 1)
    assert client.hear() == (1, v0_8.AccessRequestOk(1))


def test_an_old_client_is_not_told_that_it_is_blocked(stage: Stage, opens: Opens) -> None:
    """10,60 would be a close to it."""
    client, broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
    broker.say(amqp.ConnectionBlocked("low on memory"))
    broker.say(amqp.ConnectionUnblocked())
    broker.say(amqp.ChannelFlow(active=False), 1)
    assert client.hear() == (1, v0_8.ChannelFlow(active=False))


def test_an_alert_reaches_who_knows_it(stage: Stage, opens: Opens, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "amqpgate.gateway.session.version_bridge")
    alert = v0_8.ChannelAlert(311, "large", Table.of({"a": 1}))
    client, broker = opens(stage, LEGACY_CLIENT, dialects.LEGACY_BROKER)
    broker.say(alert, 1)
    assert client.hear() == (1, alert)
    client, broker = opens(stage, RABBITMQ_0_9_1, dialects.LEGACY_BROKER)
    broker.say(alert, 1)
    broker.say(v0_8.QueueDeclareOk("q"), 1)
    assert client.hear() == (1, amqp.QueueDeclareOk("q"))
    (line,) = caplog.messages
    assert line.endswith(": channel.alert")


def test_pings_are_answered_here(stage: Stage, opens: Opens) -> None:
    client, broker = opens(stage, LEGACY_CLIENT_0_9, RABBITMQ_0_9_1)
    client.say(v0_9.ChannelPing(), 1)
    assert client.hear() == (1, v0_9.ChannelOk())
    assert client.hear() == (1, v0_9.ChannelPong())
    client.say(v0_9.ChannelOk(), 1)
    client.say(v0_9.QueueDeclare(queue="q"), 1)
    assert broker.hear() == (1, amqp.QueueDeclare(queue="q"))
    client.say(v0_9.ChannelResume(b"id"), 1)
    hears_540(client, v0_9.ChannelResume())


def test_pings_within_a_message_are_bounded(
    stage: Stage, opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers wait for its end; whoever never lets it end cannot have many."""
    monkeypatch.setattr(publish_denial, "LONGEST_WAIT", 100)
    client, broker = opens(stage, LEGACY_CLIENT_0_9, RABBITMQ_0_9_1)
    header = encode_header(ContentHeader(60, 6, amqp.BasicProperties()))
    deliver = amqp.BasicDeliver("c", 1).encode()
    broker.raw(encode_frame(1, 1, deliver) + encode_frame(2, 1, header) + encode_frame(3, 1, b"one"))
    for kind in (1, 2, 3):
        assert client.frame().type == kind
    for _ in range(5):
        client.say(v0_9.ChannelPing(), 1)
    close = client.expect(v0_9.ConnectionClose)
    assert close.reply_code == 506


def test_a_brokers_ping_is_not_answered_within_a_message(stage: Stage, opens: Opens) -> None:
    client, broker = opens(stage, RABBITMQ_0_9_1, dialects.LEGACY_BROKER_0_9)
    header = encode_header(ContentHeader(60, 6, amqp.BasicProperties()))
    publish = amqp.BasicPublish(routing_key="k").encode()
    client.raw(encode_frame(1, 1, publish) + encode_frame(2, 1, header) + encode_frame(3, 1, b"one"))
    for kind in (1, 2, 3):
        assert broker.frame().type == kind
    broker.say(v0_9.ChannelPing(), 1)
    broker.say(v0_9.QueueDeclareOk("fence"), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    client.raw(encode_frame(3, 1, b"two"))
    assert broker.frame().payload == b"two"
    assert broker.hear() == (1, v0_9.ChannelOk())
    assert broker.hear() == (1, v0_9.ChannelPong())


def test_recover_is_answered_as_the_client_waits_for_it(stage: Stage, opens: Opens) -> None:
    """Qpid's 0-8: consume with a table, recover 60,100, and 60,101 in answer."""
    client, broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
    client.say(v0_8.BasicRecoverAsync(requeue=True), 1)
    assert broker.hear() == (1, amqp.BasicRecoverAsync(requeue=True))
    client.say(v0_8.BasicConsume(queue="q", arguments=Table()), 1)
    broker.expect(amqp.BasicConsume, 1)
    client.say(v0_8.BasicRecoverAsync(requeue=True), 1)
    assert broker.hear() == (1, amqp.BasicRecover(requeue=True))
    broker.say(amqp.BasicRecoverOk(), 1)
    assert client.hear() == (1, v0_8.BasicRecoverSyncOk())


def test_recover_is_answered_where_the_broker_does_not(stage: Stage, opens: Opens) -> None:
    client, broker = opens(stage, RABBITMQ_0_9_1, dialects.LEGACY_BROKER)
    client.say(amqp.BasicRecover(requeue=True), 1)
    assert broker.hear() == (1, v0_8.BasicRecoverAsync(requeue=True))
    assert broker.hear() == (1, v0_8.ChannelFlow(active=True))
    broker.say(v0_8.ChannelFlowOk(active=True), 1)
    assert client.hear() == (1, amqp.BasicRecoverOk())


def test_a_stop_while_the_broker_recovers(make_stage: MakeStage, opens: Opens) -> None:
    """The flow-ok that stands for the recover is told from the gateway's own."""
    client, broker = opens(
        make_stage(listener="channelFlow: gateway"), RABBITMQ_0_9_1, dialects.LEGACY_BROKER
    )
    client.say(amqp.BasicRecover(requeue=True), 1)
    broker.expect(v0_8.BasicRecoverAsync, 1)
    broker.expect(v0_8.ChannelFlow, 1)
    client.say(amqp.ChannelFlow(active=False), 1)
    assert client.hear() == (1, amqp.ChannelFlowOk(active=False))
    broker.say(v0_8.ChannelFlowOk(active=True), 1)
    assert client.hear() == (1, amqp.BasicRecoverOk())


def test_a_prefetch_size_is_a_count_of_one(stage: Stage, opens: Opens) -> None:
    client, broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
    client.say(v0_8.BasicQos(4096, 10), 1)
    assert broker.hear() == (1, amqp.BasicQos(0, 1))


def test_immediate_closes_the_channel_and_not_the_connection(stage: Stage, opens: Opens) -> None:
    client, broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
    client.content(v0_8.BasicPublish(1, "e", "k"), b"before", properties=v0_8.BasicProperties())
    assert broker.expect_content(amqp.BasicPublish).body == b"before"
    publish = v0_8.BasicPublish(1, "e", "k", immediate=True)
    client.content(publish, b"body", properties=v0_8.BasicProperties())
    assert broker.expect(amqp.ChannelClose, 1).reply_code == 406
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(v0_8.ChannelClose, 1)
    assert (close.reply_code, close.class_id, close.method_id) == (406, 60, 40)
    client.say(v0_8.ChannelCloseOk(), 1)
    open_channel(client, broker, 1)


class TestOtherClasses:
    """Stream is in 0-8 and 0-9; 0-9-1 has none."""

    PUBLISH = v0_8.StreamPublish(exchange="e", routing_key="k")
    PROPERTIES = v0_8.StreamProperties(headers=Table.of({"a": 1}), priority=3)

    def test_pass_between_peers_that_have_them(self, stage: Stage, opens: Opens) -> None:
        client, broker = opens(stage, LEGACY_CLIENT, dialects.LEGACY_BROKER_0_9)
        body = b"x" * 300_000
        client.content(self.PUBLISH, body, properties=self.PROPERTIES)  # type: ignore[arg-type]
        message = broker.expect_content(v0_9.StreamPublish)
        assert message.method == v0_9.StreamPublish(exchange="e", routing_key="k")
        assert message.header.properties == v0_9.StreamProperties(headers=Table.of({"a": 1}), priority=3)
        assert message.body == body
        client.content(self.PUBLISH, b"", properties=self.PROPERTIES)  # type: ignore[arg-type]
        assert broker.expect_content(v0_9.StreamPublish).body == b""
        client.say(v0_8.QueueDeclare(queue="q"), 1)
        assert broker.hear() == (1, v0_9.QueueDeclare(queue="q"))

    def test_are_refused_where_the_broker_has_none(self, stage: Stage, opens: Opens) -> None:
        client, _broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
        client.say(v0_8.FileOpen("f", 1), 1)
        hears_540(client, v0_8.FileOpen())

    def test_are_refused_where_policies_hold(self, make_stage: MakeStage, opens: Opens) -> None:
        """They would pass unjudged."""
        client, _broker = opens(make_stage(policies=MINE), LEGACY_CLIENT, dialects.LEGACY_BROKER)
        client.say(self.PUBLISH, 1)
        hears_540(client, self.PUBLISH)

    def test_content_that_nobody_announced_is_a_violation(self, stage: Stage, opens: Opens) -> None:
        client, _broker = opens(stage, LEGACY_CLIENT, dialects.LEGACY_BROKER_0_9)
        header = ContentHeader(80, 1, v0_8.StreamProperties())
        client.raw(encode_frame(2, 1, encode_header(header)))
        close = client.expect(v0_8.ConnectionClose)
        assert close.reply_code == 505


def test_an_unknown_method_is_refused_with_its_ids(stage: Stage, opens: Opens) -> None:
    client, _broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
    client.say(amqp.ConfirmSelect(), 1)
    hears_540(client, amqp.ConfirmSelect())


@pytest.mark.parametrize("kind", [4, 5, 6, 7])
def test_frame_types_that_no_broker_takes(stage: Stage, opens: Opens, kind: int) -> None:
    client, _broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
    client.raw(encode_frame(kind, 1, b""))
    assert client.expect(v0_8.ConnectionClose).reply_code == 501
