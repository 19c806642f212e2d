"""Established sessions: closes of the connection, what is refused, and what an empty queue name means."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.datapath.tables import FLOW_KEY_BYTES
from amqpgate.protocol.frames import content_frames, encode_frame, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

CLOSE = amqp.ConnectionClose(200, "bye")
SHUTDOWN = amqp.ConnectionClose(
    320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
)
CLOSE_OK = amqp.ConnectionCloseOk()


def heard_nothing(talker: Talker) -> None:
    """What was said until now has brought nothing: the answer to something else comes first."""
    talker.sock.settimeout(0.1)
    with pytest.raises(TimeoutError):
        talker.frame()
    talker.sock.settimeout(20)


# -- closes of the connection --------------------------------------------------------------------------------


def test_the_clients_close_and_the_brokers_answer_pass(stage: Stage) -> None:
    client, broker = stage.opened()
    client.say(CLOSE)
    assert broker.expect(amqp.ConnectionClose) == CLOSE
    heard_nothing(client)
    broker.say(CLOSE_OK)
    client.expect(amqp.ConnectionCloseOk)
    for talker in (client, broker):
        talker.expect_end()
        talker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"closed": 1}


def test_the_brokers_close_and_the_clients_answer_pass(stage: Stage) -> None:
    client, broker = stage.opened()
    broker.say(SHUTDOWN)
    assert client.expect(amqp.ConnectionClose) == SHUTDOWN
    client.say(CLOSE_OK)
    broker.expect(amqp.ConnectionCloseOk)
    for talker in (client, broker):
        talker.expect_end()
        talker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"closed": 1}


@pytest.mark.parametrize("first", ["client", "broker"])
def test_crossing_closes_are_both_answered(stage: Stage, first: str) -> None:
    client, broker = stage.opened()
    client.say(CLOSE)
    broker.say(SHUTDOWN)
    broker.expect(amqp.ConnectionClose)
    client.expect(amqp.ConnectionClose)
    one, other = (client, broker) if first == "client" else (broker, client)
    one.say(CLOSE_OK)
    other.expect(amqp.ConnectionCloseOk)
    other.say(CLOSE_OK)
    one.expect(amqp.ConnectionCloseOk)
    for talker in (client, broker):
        talker.expect_end()
        talker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"closed": 1}


def test_what_comes_behind_the_brokers_close_is_for_nobody(stage: Stage) -> None:
    """A broker may have said it before it heard close-ok."""
    client, broker = stage.opened(channels=2)
    broker.say(amqp.ChannelClose(404, "NOT_FOUND", 50, 10), 1)
    client.expect(amqp.ChannelClose, 1)
    client.say(amqp.ChannelCloseOk(), 1)
    broker.expect(amqp.ChannelCloseOk, 1)
    broker.content(amqp.BasicDeliver("t", 1, False, "", "q"), b"late" * 50_000)
    broker.say(amqp.BasicAck(1), 1)
    broker.say(amqp.ExchangeDeclareOk(), 2)
    client.expect(amqp.ExchangeDeclareOk, 2)
    client.say(amqp.ChannelOpen(), 1)
    broker.expect(amqp.ChannelOpen, 1)
    broker.say(amqp.ChannelOpenOk(), 1)
    client.expect(amqp.ChannelOpenOk, 1)
    # A channel that the client has closed is another matter.
    client.say(amqp.ChannelClose(200, "", 0, 0), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.ChannelCloseOk, 1)
    broker.say(amqp.BasicAck(1), 1)
    assert "which is not open" in client.expect(amqp.ConnectionClose).reply_text


def test_a_close_ok_that_nobody_asked_for_is_a_violation(stage: Stage) -> None:
    client, broker = stage.opened()
    client.say(CLOSE_OK)
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.class_id, close.method_id) == (504, 10, 51)
    assert broker.expect(amqp.ConnectionClose).reply_code == 320


def test_a_broker_that_closes_and_drops_at_once(stage: Stage) -> None:
    client, broker = stage.opened()
    broker.say(SHUTDOWN)
    broker.close()
    assert client.expect(amqp.ConnectionClose) == SHUTDOWN
    client.hear_nothing(0.2)
    client.say(CLOSE_OK)
    client.expect_end()


def test_a_client_that_has_been_told_is_not_told_again(stage: Stage) -> None:
    client, broker = stage.opened()
    broker.say(SHUTDOWN)
    client.expect(amqp.ConnectionClose)
    # What it says after its mistake is its answer to the close that it knows of.
    client.octets(encode_frame(8, 1, b"") + method_frame(0, CLOSE_OK))
    client.expect_end()
    client.close()
    broker.expect_end()
    broker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"violation": 1}


def test_a_client_may_close_and_drop_at_once(stage: Stage) -> None:
    client, broker = stage.opened()
    client.say(CLOSE)
    client.close()
    broker.expect(amqp.ConnectionClose)
    # The broker may take its time; it is waited for.
    broker.hear_nothing(0.2)
    broker.say(CLOSE_OK)
    broker.expect_end()


# -- what does not belong there ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "channel", "answer"),
    [
        (
            amqp.ConnectionBlocked(),
            0,
            (504, 10, 60, "CHANNEL_ERROR - unexpected method in connection state running"),
        ),
        (
            amqp.ChannelOpen(),
            0,
            (504, 20, 10, "CHANNEL_ERROR - unexpected method in connection state running"),
        ),
        (amqp.QueueDeclareOk(), 1, (503, 50, 11, "COMMAND_INVALID - unimplemented method")),
        (amqp.ConnectionClose(), 1, (503, 10, 50, "COMMAND_INVALID - unimplemented method")),
        (amqp.ChannelCloseOk(), 1, (503, 20, 41, "COMMAND_INVALID - unimplemented method")),
        (amqp.ChannelOpen(), 1, (504, 20, 10, "CHANNEL_ERROR - second 'channel.open' seen")),
        (amqp.QueueDeclare(), 2, (504, 50, 10, "CHANNEL_ERROR - expected 'channel.open'")),
        (amqp.QueueDeclareOk(), 2, (504, 50, 11, "CHANNEL_ERROR - expected 'channel.open'")),
        (amqp.BasicPublish(), 2, (504, 60, 40, "CHANNEL_ERROR - expected 'channel.open'")),
    ],
)
def test_a_clients_violation_ends_the_connection(
    stage: Stage, said: Method, channel: int, answer: tuple[int, int, int, str]
) -> None:
    client, broker = stage.opened()
    client.say(said, channel)
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.class_id, close.method_id, close.reply_text) == answer
    assert broker.expect(amqp.ConnectionClose) == amqp.ConnectionClose(
        320, "CONNECTION_FORCED - client broke the protocol"
    )
    for talker in (client, broker):
        talker.say(CLOSE_OK)
        talker.expect_end()
        talker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"violation": 1}


def test_more_channels_than_were_agreed(stage: Stage) -> None:
    client, _ = stage.opened(2, tune=amqp.ConnectionTune(2, 131072, 0))
    client.say(amqp.ChannelOpen(), 3)
    text = "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"
    assert client.expect(amqp.ConnectionClose) == amqp.ConnectionClose(530, text)


@pytest.mark.parametrize(
    ("said", "channel"),
    [
        (amqp.ConnectionUpdateSecret(), 0),
        (amqp.QueueDeclare(), 1),
        (amqp.BasicPublish(), 1),
        (amqp.ConnectionBlocked(), 1),
        # The client has opened channel 1, and no other.
        (amqp.BasicAck(1), 7),
        (amqp.BasicNack(1), 7),
        (amqp.QueueDeclareOk(queue="q"), 7),
        (amqp.BasicConsumeOk("t"), 7),
        (amqp.BasicCancel("t"), 7),
        (amqp.BasicCancelOk("t"), 7),
        (amqp.TxCommitOk(), 7),
        (amqp.BasicGetEmpty(), 7),
        (amqp.BasicDeliver("t", 1, False, "", "k"), 7),
        (amqp.ChannelOpenOk(), 7),
        (amqp.ChannelClose(404, "NOT_FOUND - nothing"), 7),
        (amqp.ChannelCloseOk(), 7),
        (amqp.ChannelCloseOk(), 1),
    ],
)
def test_a_brokers_violation_is_told_both(stage: Stage, said: Method, channel: int) -> None:
    client, broker = stage.opened()
    broker.say(said, channel)
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 541
    assert close.reply_text.startswith("INTERNAL_ERROR - upstream broke the protocol: ")
    assert broker.expect(amqp.ConnectionClose).reply_code == 320


def test_the_tables_leave_no_method_out() -> None:
    """Each method of the protocol is the handshake's, the scanner's, or in a table of the session."""
    from amqpgate.datapath.tables import DOWN_ACTIONS, UP_ACTIONS
    from amqpgate.gateway.session.dispatch import DOWN, UP
    from amqpgate.protocol.methods import SENT_BY, Role

    handshake = {"start", "start-ok", "secure", "secure-ok", "tune", "tune-ok", "open", "open-ok"}
    up = {amqp.METHODS[index].NAME for index in {**UP, **UP_ACTIONS}}
    down = {amqp.METHODS[index].NAME for index in {**DOWN, **DOWN_ACTIONS}}
    known = {method.NAME for method in amqp.METHODS.values() if method.EXTENSION in ("", "rabbitmq")}
    known -= {f"connection.{name}" for name in handshake}
    # The standard lets a client answer the broker's basic.cancel.
    assert up == (known & SENT_BY[Role.CLIENT]) | {"basic.cancel-ok"}
    assert down == known & SENT_BY[Role.SERVER]


# -- what passes ---------------------------------------------------------------------------------------------


def test_methods_of_the_connection_pass_while_it_is_open(stage: Stage) -> None:
    client, broker = stage.opened()
    broker.say(amqp.ConnectionBlocked("low on memory"))
    assert client.expect(amqp.ConnectionBlocked).reason == "low on memory"
    client.say(amqp.ConnectionUpdateSecret(b"\0new", "expired"))
    assert broker.expect(amqp.ConnectionUpdateSecret) == amqp.ConnectionUpdateSecret(b"\0new", "expired")
    broker.say(amqp.ConnectionUpdateSecretOk())
    client.expect(amqp.ConnectionUpdateSecretOk)
    broker.say(amqp.ConnectionUnblocked())
    client.expect(amqp.ConnectionUnblocked)


def test_after_the_brokers_channel_close_the_clients_mistakes_are_dropped(stage: Stage) -> None:
    client, broker = stage.opened(2)
    broker.say(amqp.ChannelClose(404, "NOT_FOUND - nothing there", 50, 10), 1)
    client.expect(amqp.ChannelClose, 1)
    client.say(amqp.QueueDeclareOk(), 1)
    client.say(amqp.ConnectionOpen(), 1)
    client.say(amqp.ChannelCloseOk(), 1)
    broker.expect(amqp.ChannelCloseOk, 1)
    client.say(amqp.ChannelOpen(), 1)
    broker.expect(amqp.ChannelOpen, 1)


def test_a_content_header_larger_than_was_agreed_passes_downwards(stage: Stage) -> None:
    """As RabbitMQ sends it: it cuts bodies only."""
    client, broker = stage.opened(tune_ok=amqp.ConnectionTuneOk(2047, 4096, 0))
    broker.content(
        amqp.BasicDeliver("c", 1, False, "", "q"),
        b"b" * 10_000,
        properties=amqp.BasicProperties(message_id="m" * 255, headers=amqp.Table.of({"big": "h" * 20_000})),
    )
    message = client.expect_content(amqp.BasicDeliver)
    assert message.body == b"b" * 10_000
    assert message.header.properties.headers.get("big") == "h" * 20_000
    assert message.frames == 3


# -- policy --------------------------------------------------------------------------------------------------

POLICIES = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: one}
spec:
  subjects: [{user: "*"}]
  rules:
  - {id: publish, effect: allow, operations: [basic.publish], exchange: {prefix: ok}}
  - {id: declare, effect: allow, operations: [queue.declare]}
  - id: use
    effect: allow
    operations: [basic.consume, basic.get, queue.bind, queue.unbind, queue.purge, queue.delete]
    queue: {prefix: mine}
  - {id: named, effect: allow, operations: [basic.consume], queue: {prefix: amq.gen-}}
"""


@pytest.fixture
def guarded(make_stage: MakeStage) -> Stage:
    return make_stage(policies=POLICIES)


def through(client: Talker, broker: Talker, method: Method, answer: Method, channel: int = 1) -> None:
    """A method of the client's and its answer pass."""
    client.say(method, channel)
    assert broker.expect(type(method), channel) == method
    broker.say(answer, channel)
    assert client.expect(type(answer), channel) == answer


def refused(client: Talker, broker: Talker, ids: tuple[int, int], channel: int = 1) -> str:
    """The conversation about a refusal, after which the number is used again; what the client is told."""
    said = broker.expect(amqp.ChannelClose, channel)
    broker.say(amqp.ChannelCloseOk(), channel)
    told = client.expect(amqp.ChannelClose, channel)
    assert told == said
    assert (told.reply_code, told.class_id, told.method_id) == (403, *ids)
    client.say(amqp.ChannelCloseOk(), channel)
    through(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), channel)
    return told.reply_text


@pytest.mark.parametrize("size", [0, 1, 131064, 131065, 1_000_000])
def test_a_denied_publish_is_swallowed_whole(guarded: Stage, size: int) -> None:
    client, broker = guarded.opened(2)
    client.publish(b"x" * size, "key", exchange="no", channel=1)
    client.publish(b"behind it", "key", exchange="ok", channel=1)
    client.publish(b"beside it", "key", exchange="ok", channel=2)
    text = "ACCESS_REFUSED - access to exchange 'no' in vhost '/' refused for user 'guest'"
    assert refused_beside(client, broker) == text
    client.publish(b"afterwards", "key", exchange="ok", channel=1)
    assert broker.expect_content(amqp.BasicPublish, 1).body == b"afterwards"


def refused_beside(client: Talker, broker: Talker) -> str:
    """As `refused`, with a message on channel 2 behind it."""
    said = broker.expect(amqp.ChannelClose, 1)
    assert broker.expect_content(amqp.BasicPublish, 2).body == b"beside it"
    broker.say(amqp.ChannelCloseOk(), 1)
    assert client.expect(amqp.ChannelClose, 1) == said
    assert (said.reply_code, said.class_id, said.method_id) == (403, 60, 40)
    client.say(amqp.ChannelCloseOk(), 1)
    through(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk())
    return said.reply_text


def test_a_refusal_that_is_too_long_to_tell_is_cut(guarded: Stage) -> None:
    """As RabbitMQ cuts it, and as everything that a client named fits a reply text."""
    client, broker = guarded.opened()
    client.publish(b"x", "k" * 255, exchange="ä" * 127)
    text = refused(client, broker, (60, 40))
    assert text.startswith("ACCESS_REFUSED - access to exchange 'ää")
    assert text.endswith("...")
    assert len(text.encode()) <= 255


def test_a_denied_publish_octet_by_octet(guarded: Stage) -> None:
    client, broker = guarded.opened()
    octets = content_frames(1, amqp.BasicPublish(exchange="no"), amqp.BasicProperties(), b"x" * 300, 131072)
    octets += content_frames(1, amqp.BasicPublish(exchange="ok"), amqp.BasicProperties(), b"y" * 300, 131072)
    for octet in octets:
        client.octets(bytes([octet]))
    refused(client, broker, (60, 40))


def test_a_client_may_answer_a_refusal_in_the_middle_of_its_message(guarded: Stage) -> None:
    client, broker = guarded.opened()
    whole = content_frames(1, amqp.BasicPublish(exchange="no"), amqp.BasicProperties(), b"x" * 9000, 4096)
    client.octets(whole[:5000])
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.ChannelClose, 1)
    # It was in the middle of a frame: that one it must finish.
    end = len(whole) - 832
    client.octets(whole[5000:end])
    client.say(amqp.ChannelCloseOk(), 1)
    through(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk())
    client.publish(b"z", "", exchange="ok")
    assert broker.expect_content(amqp.BasicPublish, 1).body == b"z"


def test_confirms_and_deliveries_from_before_a_refusal_arrive(guarded: Stage) -> None:
    client, broker = guarded.opened()
    client.publish(b"first", "", exchange="ok")
    client.say(amqp.BasicGet(queue="theirs"), 1)
    broker.expect_content(amqp.BasicPublish)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.BasicAck(1), 1)
    broker.content(amqp.BasicDeliver("c", 1, False, "", "q"), b"late")
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.BasicAck, 1)
    assert client.expect_content(amqp.BasicDeliver).body == b"late"
    told = client.expect(amqp.ChannelClose, 1)
    assert (told.reply_code, told.class_id, told.method_id) == (403, 60, 70)


def test_every_operation_is_judged(guarded: Stage) -> None:
    client, broker = guarded.opened()
    for method in (
        amqp.ExchangeDeclare(exchange="x"),
        amqp.ExchangeDelete(exchange="x"),
        amqp.ExchangeBind(destination="x", source="y"),
        amqp.ExchangeUnbind(destination="x", source="y"),
        amqp.QueueBind(queue="theirs", exchange="x"),
        amqp.QueueUnbind(queue="theirs", exchange="x"),
        amqp.QueuePurge(queue="theirs"),
        amqp.QueueDelete(queue="theirs"),
        amqp.BasicConsume(queue="theirs"),
        amqp.BasicGet(queue="theirs"),
    ):
        client.say(method, 1)
        refused(client, broker, (method.CLASS_ID, method.METHOD_ID))


def test_the_same_arguments_are_judged_once(guarded: Stage) -> None:
    client, broker = guarded.opened()
    for number in range(5):
        client.publish(b"%d" % number, "k", exchange="ok")
        assert broker.expect_content(amqp.BasicPublish).body == b"%d" % number
    upcalls = guarded.running.call(lambda: guarded.running.gateway.pump.counters.upcalls)
    client.publish(b"again", "k", exchange="ok")
    broker.expect_content(amqp.BasicPublish)
    assert guarded.running.call(lambda: guarded.running.gateway.pump.counters.upcalls) == upcalls
    # mandatory is another set of arguments, which may pass just as well.
    client.publish(b"again", "k", exchange="ok", mandatory=True)
    assert broker.expect_content(amqp.BasicPublish).method == amqp.BasicPublish(0, "ok", "k", True)


def test_a_client_with_ever_new_keys_costs_bounded_memory(guarded: Stage) -> None:
    client, broker = guarded.opened()
    for number in range(2200):
        client.publish(b"", f"{number:0250d}", exchange="ok")
        broker.expect_content(amqp.BasicPublish)
    session = next(iter(guarded.running.gateway.sessions.values()))
    assert session.relay.up.flows is not None
    assert 0 < len(session.relay.up.flows) * 250 < FLOW_KEY_BYTES


# -- the queue declared last ---------------------------------------------------------------------------------


def declared(client: Talker, broker: Talker, name: str, told: str) -> None:
    client.say(amqp.QueueDeclare(queue=name), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.QueueDeclareOk(told, 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)


EMPTY_NAME = (
    amqp.BasicConsume(),
    amqp.BasicGet(),
    amqp.QueueBind(exchange="x", routing_key="k"),
    amqp.QueueUnbind(exchange="x", routing_key="k"),
    amqp.QueuePurge(),
    amqp.QueueDelete(),
)


@pytest.mark.parametrize("method", EMPTY_NAME, ids=lambda method: method.NAME)
def test_an_empty_name_is_the_queue_declared_last(guarded: Stage, method: Method) -> None:
    client, broker = guarded.opened()
    declared(client, broker, "mine.1", "mine.1")
    client.say(method, 1)
    assert broker.expect(type(method), 1) == method
    declared(client, broker, "theirs", "theirs")
    client.say(method, 1)
    refused(client, broker, (method.CLASS_ID, method.METHOD_ID))
    # A new channel has declared nothing.
    client.say(method, 1)
    refused(client, broker, (method.CLASS_ID, method.METHOD_ID))


def test_a_declare_counts_before_it_is_answered(guarded: Stage) -> None:
    """Or a client could use a queue by its empty name while the gateway believes in the one before."""
    client, broker = guarded.opened()
    declared(client, broker, "mine", "mine")
    client.octets(
        method_frame(1, amqp.QueueDeclare(queue="theirs", passive=True))
        + method_frame(1, amqp.BasicConsume())
    )
    broker.expect(amqp.QueueDeclare, 1)
    refused(client, broker, (60, 20))


@pytest.mark.parametrize(
    ("said", "answers", "allowed"),
    [
        # Answers that come late do not bring an older name back.
        ([("mine", False), ("theirs", False)], ["mine"], False),
        ([("mine", False), ("theirs", False)], ["mine", "theirs"], False),
        ([("theirs", False), ("mine", False)], ["theirs"], True),
        ([("theirs", False), ("mine", True)], ["theirs"], True),
        ([("", False), ("theirs", False)], ["amq.gen-1"], False),
        ([("", False), ("theirs", True)], ["amq.gen-1"], False),
        ([("", False), ("", False)], ["amq.gen-1"], True),
        ([("theirs", False), ("", False)], ["theirs"], True),
        # A name that the broker makes up, and that no policy of amq.gen- names allows.
        ([("", False)], ["odd-1"], False),
        ([("", False)], [], True),
        ([("", True)], [], True),
    ],
)
def test_declares_that_overtake_their_answers(
    guarded: Stage, said: list[tuple[str, bool]], answers: list[str], allowed: bool
) -> None:
    client, broker = guarded.opened()
    for name, no_wait in said:
        client.say(amqp.QueueDeclare(queue=name, no_wait=no_wait), 1)
        broker.expect(amqp.QueueDeclare, 1)
    for name in answers:
        broker.say(amqp.QueueDeclareOk(name, 0, 0), 1)
        client.expect(amqp.QueueDeclareOk, 1)
    client.say(amqp.BasicConsume(), 1)
    if allowed:
        broker.expect(amqp.BasicConsume, 1)
    else:
        refused(client, broker, (60, 20))


# -- queues that the broker names ----------------------------------------------------------------------------

OWN_REPLIES = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: replies}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: replies, effect: allow, operations: ["queue.*", "basic.*"], queue: {prefix: amq.gen-}}
"""


def is_allowed(client: Talker, broker: Talker, queue: str) -> bool:
    """Whether a get of that queue passes, on channel 1, which is open afterwards."""
    client.say(amqp.BasicGet(queue=queue), 1)
    heard = broker.hear()[1]
    if isinstance(heard, amqp.BasicGet):
        broker.say(amqp.BasicGetEmpty(), 1)
        client.expect(amqp.BasicGetEmpty, 1)
        return True
    assert isinstance(heard, amqp.ChannelClose)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.ChannelClose, 1)
    client.say(amqp.ChannelCloseOk(), 1)
    client.say(amqp.ChannelOpen(), 1)
    broker.expect(amqp.ChannelOpen, 1)
    broker.say(amqp.ChannelOpenOk(), 1)
    client.expect(amqp.ChannelOpenOk, 1)
    return False


def test_a_server_named_queue_is_its_connections(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amqpgate.gateway.session.channel_close.OWNED", 2)
    stage = make_stage(policies=OWN_REPLIES)
    client, broker = stage.opened()
    # Not told yet: the channel's last one, whatever its name will be.
    client.say(amqp.QueueDeclare(), 1)
    client.say(amqp.BasicGet(), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.expect(amqp.BasicGet, 1)
    broker.say(amqp.QueueDeclareOk("amq.gen-1"), 1)
    broker.say(amqp.BasicGetEmpty(), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    client.expect(amqp.BasicGetEmpty, 1)
    assert is_allowed(client, broker, "amq.gen-1")
    assert not is_allowed(client, broker, "amq.gen-9")
    assert is_allowed(client, broker, "amq.gen-1")
    for number in (2, 3):
        client.say(amqp.QueueDeclare(), 1)
        broker.expect(amqp.QueueDeclare, 1)
        broker.say(amqp.QueueDeclareOk(f"amq.gen-{number}"), 1)
        client.expect(amqp.QueueDeclareOk, 1)
    # The memory for them is bounded.
    assert [is_allowed(client, broker, f"amq.gen-{number}") for number in (1, 2, 3)] == [False, True, True]


def test_what_is_only_looked_at_is_not_ones_own(make_stage: MakeStage) -> None:
    stage = make_stage(policies=OWN_REPLIES.replace("prefix: amq.gen-", 'regex: "(q|amq[.]gen-.*)"'))
    client, broker = stage.opened()
    for queue, passive in (("q", False), ("", True)):
        client.say(amqp.QueueDeclare(queue=queue, passive=passive), 1)
        broker.expect(amqp.QueueDeclare, 1)
        broker.say(amqp.QueueDeclareOk("amq.gen-5" if passive else "q"), 1)
        client.expect(amqp.QueueDeclareOk, 1)
    assert not is_allowed(client, broker, "amq.gen-5")


@pytest.mark.parametrize("how", ["channel-close", "return"])
def test_a_refusal_that_is_longer_than_a_reply_text(make_stage: MakeStage, how: str) -> None:
    rule = "  - {id: x, effect: allow, operations: [basic.publish], routingKey: {literal: x}}\n"
    stage = make_stage(policies=OWN_REPLIES + rule + f"  onDeny: {{publish: {how}}}\n")
    client, broker = stage.opened()
    # As many octets as a routing key has, in characters of two.
    client.octets(
        content_frames(1, amqp.BasicPublish(routing_key="é" * 127), amqp.BasicProperties(), b"x", 131072)
    )
    if how == "return":
        returned = client.expect_content(amqp.BasicReturn).method
        assert isinstance(returned, amqp.BasicReturn)
        text = returned.reply_text
    else:
        broker.expect(amqp.ChannelClose, 1)
        broker.say(amqp.ChannelCloseOk(), 1)
        text = client.expect(amqp.ChannelClose, 1).reply_text
    # RabbitMQ cuts octets, be it within a character; half a character would break strict clients.
    assert len(text.encode()) in (254, 255)
    assert text.endswith("...")
    assert "access to topic 'ééé" in text
