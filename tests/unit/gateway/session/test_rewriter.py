"""Sessions whose names and messages are changed; client and broker are both the test itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.rewriter import fitting
from amqpgate.policy import Source, build
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames
from tests.support.inprocess import eventually
from tests.support.talker import CAPABILITIES, Talker, relayed
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

NAMES = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: names}
spec:
  subjects: [{user: guest}]
  names: {both: {prefix: "%s"}}
"""

RULES = """
---
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: rules}
spec:
  subjects: [{user: guest}]
  onDeny: {publish: nack}
  rules:
  - {id: publish, effect: allow, operations: [basic.publish], exchange: {literal: ok}}
  - {id: declare, effect: allow, operations: [queue.declare], queue: {prefix: mine}}
"""


@pytest.fixture
def named(make_stage: MakeStage) -> Stage:
    return make_stage(policies=NAMES % "a.")


def test_what_is_too_large_for_the_broker_once_it_is_changed_is_a_frame_error(make_stage: MakeStage) -> None:
    """A method or a header cannot be cut."""
    stage = make_stage(policies=NAMES % ("p" * 100 + "."), upstream="frameMax: 4096")
    for room, passes in ((3900, True), (4000, False)):
        client, broker = stage.opened()
        properties = amqp.BasicProperties(reply_to="r", headers=Table.of({"h": "x" * room}))
        client.publish(b"body", "k", exchange="amq.topic", properties=properties)
        if passes:
            message = broker.expect_content(amqp.BasicPublish)
            assert message.body == b"body"
            assert message.largest <= 4096
            continue
        close = client.expect(amqp.ConnectionClose)
        assert close.reply_code == 501
        assert "ppp" not in close.reply_text
        assert broker.expect(amqp.ConnectionClose).reply_code == 320


def test_policies_judge_the_clients_names_and_numbers_stay_right(make_stage: MakeStage) -> None:
    stage = make_stage(policies=NAMES % "a." + RULES)
    client, broker = stage.opened()
    relayed(client, broker, amqp.ConfirmSelect(), amqp.ConfirmSelectOk(), 1)
    for exchange in ("ok", "no", "a.ok", "ok"):
        client.publish(b"to " + exchange.encode(), "k", exchange=exchange)
    for number in (1, 2):
        message = broker.expect_content(amqp.BasicPublish)
        assert message.method == amqp.BasicPublish(0, "a.ok", "k")
        assert message.body == b"to ok"
        broker.say(amqp.BasicAck(number), 1)
    heard = [client.hear()[1] for _ in range(4)]
    nacks = [method.delivery_tag for method in heard if isinstance(method, amqp.BasicNack)]
    acks = [method.delivery_tag for method in heard if isinstance(method, amqp.BasicAck)]
    assert (nacks, acks) == ([2, 3], [1, 4])
    client.say(amqp.QueueDeclare(queue="theirs"), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    text = "ACCESS_REFUSED - access to queue 'theirs' in vhost '/' refused for user 'guest'"
    assert client.expect(amqp.ChannelClose, 1).reply_text == text


def test_byte_by_byte_in_both_directions(named: Stage) -> None:
    client, broker = named.opened(2)
    publish, properties = amqp.BasicPublish(exchange="x", routing_key="k"), amqp.BasicProperties(reply_to="r")
    for octet in content_frames(1, publish, properties, b"body" * 50, 131072):
        client.raw(bytes([octet]))
    message = broker.expect_content(amqp.BasicPublish)
    assert message.method == amqp.BasicPublish(exchange="a.x", routing_key="k")
    assert message.header.properties == amqp.BasicProperties(reply_to="a.r")
    assert message.body == b"body" * 50
    for method in (
        amqp.BasicDeliver("c", 1, False, "a.x", "k"),
        amqp.BasicReturn(312, "NO_ROUTE", "a.x", "k"),
        amqp.BasicGetOk(1, False, "a.x", "k", 0),
    ):
        for octet in content_frames(1, method, message.header.properties, b"back" * 50, 131072):
            broker.raw(bytes([octet]))
        back = client.expect_content(type(method))
        assert back.method.exchange == "x"  # type: ignore[attr-defined]
        assert back.header.properties == properties
        assert back.body == b"back" * 50


def test_an_answer_of_the_gateways_own_waits_for_the_end_of_a_message(make_stage: MakeStage) -> None:
    """Before its header is there, nothing of that message has passed."""
    stage = make_stage(policies=NAMES % "a." + RULES)
    client, broker = stage.opened()
    relayed(client, broker, amqp.ConfirmSelect(), amqp.ConfirmSelectOk(), 1)
    sent = content_frames(
        1, amqp.BasicDeliver("c", 1, False, "a.x", "k"), amqp.BasicProperties(), b"b" * 9, 4096
    )
    header_at = sent.index(b"\xce\x02") + 1
    [session] = stage.running.gateway.sessions.values()
    upstream = session.relay.endpoints[Side.UPSTREAM]
    for cut in (header_at, header_at + 22, len(sent) - 3):
        before = upstream.last_received
        broker.raw(sent[:cut])
        eventually(lambda before=before: upstream.last_received > before)
        client.publish(b"no", "k", exchange="no")
        client.say(amqp.BasicQos(prefetch_count=1), 1)
        broker.expect(amqp.BasicQos, 1)
        if has_begun := cut > header_at:
            broker.raw(sent[cut:])
            assert client.expect_content(amqp.BasicDeliver).body == b"b" * 9
        client.expect(amqp.BasicNack, 1)
        if not has_begun:
            broker.raw(sent[cut:])
            assert client.expect_content(amqp.BasicDeliver).body == b"b" * 9


def test_two_channels_do_not_mix(named: Stage) -> None:
    client, broker = named.opened(2)
    one = content_frames(
        1, amqp.BasicPublish(exchange="x", routing_key="1"), amqp.BasicProperties(), b"1", 4096
    )
    two = content_frames(
        2, amqp.BasicPublish(exchange="x", routing_key="2"), amqp.BasicProperties(), b"2", 4096
    )
    cut = one.index(b"\xce\x02") + 1
    client.raw(one[:cut] + two[:cut] + one[cut:] + two[cut:])
    for channel in (1, 2):
        message = broker.expect_content(amqp.BasicPublish, channel)
        assert message.method == amqp.BasicPublish(exchange="a.x", routing_key=str(channel))
        assert message.body == str(channel).encode()
    down = [
        content_frames(
            n, amqp.BasicGetOk(1, False, "a.x", str(n), 0), amqp.BasicProperties(), b"%d" % n, 4096
        )
        for n in (1, 2)
    ]
    cut = down[0].index(b"\xce\x02") + 1
    broker.raw(down[0][:cut] + down[1][:cut] + down[1][cut:] + down[0][cut:])
    for channel in (2, 1):
        back = client.expect_content(amqp.BasicGetOk, channel)
        assert back.method == amqp.BasicGetOk(1, False, "x", str(channel), 0)


def test_a_close_of_the_connection_tells_the_clients_names(named: Stage) -> None:
    client, broker = named.opened()
    broker.say(amqp.ConnectionClose(541, "INTERNAL_ERROR - queue 'a.q' in vhost '/' is gone"))
    assert client.expect(amqp.ConnectionClose).reply_text == "INTERNAL_ERROR - queue 'q' in vhost '/' is gone"


def test_a_user_whom_nobody_knows_is_refused(named: Stage) -> None:
    client, broker = named.greeted()
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "ODD", b"?", "en_US"))
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    tune = client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
    broker.expect(amqp.ConnectionTuneOk)
    client.say(amqp.ConnectionOpen("/"))
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.class_id, close.method_id) == (530, 10, 40)
    assert close.reply_text == "NOT_ALLOWED - access to vhost '/' refused for user ''"


def test_a_refusal_fits_its_close(named: Stage) -> None:
    client, broker = named.opened()
    client.say(amqp.QueueDelete(queue="\r" + "x" * 254), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert close.reply_code == 406
    client.say(amqp.ChannelCloseOk(), 1)
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    client.say(amqp.QueueDelete(queue="\r" + "x" * 250), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert close.reply_code == 403
    assert len(close.reply_text.encode()) == 255
    assert close.reply_text.endswith("...")


def test_who_is_not_selected_is_relayed_as_ever(named: Stage) -> None:
    client, broker = named.opened(user=b"other")
    _passes(client, broker)
    session = next(iter(named.running.gateway.sessions.values()))
    assert session.rewriter is None
    assert session.relay.up.flows is None
    assert session.relay.down.flows is None


def _passes(client: Talker, broker: Talker) -> None:
    client.publish(b"b", "k", exchange="x")
    message = broker.expect_content(amqp.BasicPublish)
    assert message.method == amqp.BasicPublish(exchange="x", routing_key="k")
    broker.content(amqp.BasicDeliver("c", 1, False, "a.x", "k"), b"b")
    assert client.expect_content(amqp.BasicDeliver).method == amqp.BasicDeliver("c", 1, False, "a.x", "k")


CHANGED = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: changed}
spec:
  subjects: [{user: guest}]
  headers: {set: {x-by: "{user}"}}
"""


def test_an_open_session_follows_new_policies_but_for_names(make_stage: MakeStage) -> None:
    stage = make_stage(policies=RULES)
    gateway = stage.running.gateway

    def use(*documents: str) -> None:
        policies = build([Source("p.yaml", "---\n".join(documents).encode())])
        stage.running.call(lambda: gateway.use(policies))

    def published() -> tuple[str, object]:
        client.publish(b"b", "k", exchange="ok")
        message = broker.expect_content(amqp.BasicPublish)
        assert isinstance(message.method, amqp.BasicPublish)
        assert isinstance(message.header.properties, amqp.BasicProperties)
        headers = message.header.properties.headers
        return message.method.exchange, None if headers is None else headers.get("x-by")

    client, broker = stage.opened()
    assert published() == ("ok", None)
    use(NAMES % "c.")
    assert published() == ("ok", None)
    use(CHANGED)
    assert published() == ("ok", "guest")
    # Whoever comes now has other names; who is there keeps them.
    use(CHANGED, NAMES % "a.")
    assert published() == ("ok", "guest")
    before = client, broker
    client, broker = stage.opened()
    assert published() == ("a.ok", "guest")
    use(NAMES % "b.")
    assert published() == ("a.ok", None)
    client, broker = before
    assert published() == ("ok", None)
    use()
    assert published() == ("ok", None)


def test_a_message_under_way_ends_as_it_began(named: Stage) -> None:
    """Its method has been shown and waits for its header, while the policies change."""
    client, broker = named.opened()
    whole = content_frames(1, amqp.BasicPublish(exchange="x"), amqp.BasicProperties(), b"b", 4096)
    cut = whole.index(b"\xce\x02") + 1
    client.raw(whole[:cut])
    client.say(amqp.ConnectionUpdateSecret(b"s", "r"))
    broker.expect(amqp.ConnectionUpdateSecret)
    named.running.call(lambda: named.running.gateway.use(build([])))
    client.raw(whole[cut:])
    assert broker.expect_content(amqp.BasicPublish).method == amqp.BasicPublish(exchange="a.x")


LIMIT = """
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: slow}
spec:
  subjects: [{user: guest}]
  limits: [{id: deliveries, deliverMessages: 1/m, burst: 90s}]
"""


def test_names_are_changed_to_the_end_where_deliveries_are_limited(make_stage: MakeStage) -> None:
    """Who closes need not wait for the limit any more; what comes until then still has the client's names."""
    stage = make_stage(policies=NAMES % "a." + LIMIT)
    client, broker = stage.opened()

    def deliver() -> None:
        broker.content(amqp.BasicDeliver("c", 1, False, "a.x", "k"), b"body")

    for _ in range(3):
        deliver()
    for _ in range(2):
        assert client.expect_content(amqp.BasicDeliver).method == amqp.BasicDeliver("c", 1, False, "x", "k")
    client.hear_nothing(0.2)
    client.say(amqp.ConnectionClose(200, "bye"))
    broker.expect(amqp.ConnectionClose)
    deliver()
    broker.say(amqp.ConnectionCloseOk())
    for _ in range(2):
        assert client.expect_content(amqp.BasicDeliver).method == amqp.BasicDeliver("c", 1, False, "x", "k")
    client.expect(amqp.ConnectionCloseOk)


def test_a_frame_that_just_fits_and_one_that_is_too_long_by_a_byte() -> None:
    frame = method_frame(1, amqp.QueueDelete(queue="q" * 100))
    assert fitting(len(frame), 1, frame) is frame
    with pytest.raises(ProtocolViolation) as refused:
        fitting(len(frame) - 1, 1, frame)
    assert (refused.value.code, refused.value.channel) == (501, 1)
