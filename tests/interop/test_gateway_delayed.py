"""Exchanges that delay, on RabbitMQ 4 by a compatibility policy, as the plugin of RabbitMQ 3 documents them.

The plugin is not to be had for the RabbitMQ that is here, so what it does is taken from its source (3.13.0).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic

from amqpgate.wire.generated import v0_10 as amqp_0_10
from amqpgate.wire.v0_10.types import Map
from tests.support.client_0_10 import Client010, text
from tests.support.inprocess import InProcess, serving
from tests.support.metrics import sample_value
from tests.support.rabbitmq import RabbitMQ
from tests.support.rabbitmq_root import root_of_4

pytestmark = pytest.mark.slow

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:0"}}]
upstreams: [{{name: four, host: 127.0.0.1, port: {port}, connections: {connections}}}]
policies: policies
"""

PROFILE = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: three}
spec:
  subjects: [{}]
  as: rabbitmq-3.13
  delayedExchanges: [{exchange: {prefix: later}}]
"""


@pytest.fixture(scope="module")
def four() -> Iterator[RabbitMQ]:
    node = RabbitMQ(root=root_of_4())
    try:
        node.start()
        yield node
    finally:
        node.destroy()


@pytest.fixture(scope="module", params=["own", "pooled"])
def gate(
    four: RabbitMQ, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("delayed")
    (folder / "policies").mkdir()
    (folder / "policies" / "three.yaml").write_text(PROFILE)
    with serving(CONFIG.format(port=four.port, connections=request.param), folder=folder) as running:
        yield running


def connected(port: int, user: str = "guest", password: str = "guest") -> pika.BlockingConnection:
    login = pika.PlainCredentials(user, password)
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", port, heartbeat=0, credentials=login)
    )


@pytest.fixture
def channel(gate: InProcess) -> Iterator[BlockingChannel]:
    with connected(gate.port()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel


@pytest.fixture
def name() -> str:
    return f"later.{secrets.token_hex(4)}"


def declare(
    channel: BlockingChannel, name: str, kind: str = "topic", key: str = "#", **arguments: object
) -> str:
    """The exchange, and a queue that is bound to it and called like it."""
    channel.exchange_declare(
        name, "x-delayed-message", durable=True, arguments={"x-delayed-type": kind, **arguments}
    )
    channel.queue_declare(name, durable=True)
    channel.queue_bind(name, name, key)
    return name


def publish(
    channel: BlockingChannel, name: str, delay: object = 100, key: str = "a.b", body: str = "", **said: object
) -> None:
    headers = {"x-delay": delay, **said.pop("headers", {})}  # type: ignore[dict-item]
    properties = pika.BasicProperties(headers=headers, **said)
    channel.basic_publish(name, key, (body or str(delay)).encode(), properties)


def came(channel: BlockingChannel, queue: str, count: int, patience: float = 30) -> list[tuple[object, ...]]:
    """So many messages: exchange, routing key, properties, body."""
    found: list[tuple[object, ...]] = []
    for method, properties, body in channel.consume(queue, inactivity_timeout=patience):
        assert method is not None, f"{len(found)} of {count} came"
        channel.basic_ack(method.delivery_tag)
        found.append((method.exchange, method.routing_key, properties, body.decode()))
        if len(found) == count:
            break
    channel.cancel()
    return found


def delivered(channel: BlockingChannel, queue: str, count: int) -> list[tuple[Basic.Deliver, str]]:
    """So many messages: how they are delivered, and the body."""
    found = []
    for method, _, body in channel.consume(queue, inactivity_timeout=30):
        assert method is not None, f"{len(found)} of {count} came"
        channel.basic_ack(method.delivery_tag)
        found.append((method, body.decode()))
        if len(found) == count:
            break
    channel.cancel()
    return found


def empties(node: RabbitMQ, exchange: str) -> None:
    """Nothing stays at the end of the ladder for an exchange. What stayed would for ever."""
    queue, deadline = f"amqpgate.delay.to.{exchange}", time.monotonic() + 60
    while True:
        rows = {str(row["name"]): row for row in node.rows("list_queues", "name", "messages")}
        if not int(str(rows[queue]["messages"])):
            return
        assert time.monotonic() < deadline, rows[queue]


def test_the_sooner_one_comes_first(channel: BlockingChannel, name: str) -> None:
    declare(channel, name)
    for delay in (1500, 300, "600", 900):
        publish(channel, name, delay, headers={"k": 1}, expiration="60000", priority=2, message_id="m")
    found = came(channel, name, 4)
    assert [body for *_, body in found] == ["300", "600", "900", "1500"]
    for exchange, key, properties, body in found:
        assert isinstance(properties, pika.BasicProperties)
        assert isinstance(body, str)
        assert (exchange, key, properties.headers) == (name, "a.b", {"k": 1, "x-delay": -int(body)})
        assert (properties.expiration, properties.priority, properties.message_id) == ("60000", 2, "m")


def test_messages_of_one_delay_keep_their_order(channel: BlockingChannel, name: str) -> None:
    declare(channel, name)
    for number in range(200):
        publish(channel, name, 777, body=str(number))
    assert [int(str(body)) for *_, body in came(channel, name, 200)] == list(range(200))


@pytest.mark.parametrize("delay", [0, -100, 2**32, None, True])
def test_what_is_no_delay_passes_at_once(channel: BlockingChannel, name: str, delay: object) -> None:
    declare(channel, name)
    publish(channel, name, delay)
    ((_, _, properties, _),) = came(channel, name, 1)
    assert isinstance(properties, pika.BasicProperties)
    assert properties.headers == {"x-delay": delay}


@pytest.mark.parametrize(
    ("kind", "bound", "key", "comes"),
    [
        ("direct", "a.b", "a.b", True),
        ("direct", "a.c", "a.b", False),
        ("topic", "a.*", "a.b", True),
        ("fanout", "", "a.b", True),
        ("topic", "#", "k" * 255, True),
    ],
)
def test_exchanges_route_by_the_messages_own_key(
    four: RabbitMQ, channel: BlockingChannel, name: str, kind: str, bound: str, key: str, comes: bool
) -> None:
    declare(channel, name, kind, bound)
    publish(channel, name, 64, key)
    if comes:
        assert came(channel, name, 1)[0][:2] == (name, key)
        return
    # What goes nowhere must not stay, for it would hold up others.
    channel.queue_bind(name, name, "then")
    for _ in range(40):
        publish(channel, name, 64, key)
    publish(channel, name, 200, "then")
    assert came(channel, name, 1)[0][:2] == (name, "then")
    empties(four, name)


def test_a_headers_exchange(channel: BlockingChannel, name: str) -> None:
    channel.exchange_declare(name, "x-delayed-message", durable=True, arguments={"x-delayed-type": "headers"})
    channel.queue_declare(name, durable=True)
    channel.queue_bind(name, name, arguments={"x-match": "all", "colour": "red"})
    publish(channel, name, 64, headers={"colour": "blue"})
    publish(channel, name, 65, headers={"colour": "red"})
    assert came(channel, name, 1)[0][3] == "65"


def test_carbon_copies_go_out_at_the_end(channel: BlockingChannel, name: str) -> None:
    declare(channel, name, "direct", "open")
    blind = channel.queue_declare(f"{name}.blind", durable=True).method.queue
    channel.queue_bind(blind, name, "blind")
    publish(channel, name, 300, "nobody", headers={"CC": ["open"], "BCC": ["blind"]})
    for queue in (name, blind):
        ((exchange, key, properties, _),) = came(channel, queue, 1)
        assert isinstance(properties, pika.BasicProperties)
        assert (exchange, key, properties.headers) == (name, "nobody", {"CC": ["open"], "x-delay": -300})


def test_an_alternate_exchange_has_what_is_due_and_has_no_queue(channel: BlockingChannel, name: str) -> None:
    channel.exchange_declare(f"{name}.rest", "fanout", durable=True)
    channel.queue_declare(f"{name}.rest", durable=True)
    channel.queue_bind(f"{name}.rest", f"{name}.rest")
    declare(channel, name, "direct", "a", **{"alternate-exchange": f"{name}.rest"})
    publish(channel, name, 300, "b")
    assert channel.basic_get(f"{name}.rest")[0] is None
    assert came(channel, f"{name}.rest", 1)[0][:2] == (name, "b")


def test_exchanges_behind_it_have_it_too(channel: BlockingChannel, name: str) -> None:
    channel.exchange_declare(f"{name}.next", "fanout", durable=True)
    declare(channel, name)
    channel.exchange_bind(f"{name}.next", name, "a.*")
    channel.queue_declare(f"{name}.next", durable=True)
    channel.queue_bind(f"{name}.next", f"{name}.next")
    publish(channel, name, 100)
    assert came(channel, f"{name}.next", 1)[0][:2] == (name, "a.b")


def test_an_exchange_may_be_deleted_while_messages_wait(
    four: RabbitMQ, channel: BlockingChannel, name: str
) -> None:
    declare(channel, name)
    for _ in range(40):
        publish(channel, name, 600)
    # Bound to the ladder, and yet unused: nothing is bound behind it.
    channel.queue_unbind(name, name, "#")
    channel.exchange_delete(name, if_unused=True)
    other = declare(channel, f"{name}.other")
    publish(channel, other, 700)
    assert came(channel, other, 1)
    empties(four, name)
    assert channel.basic_get(name)[0] is None


def test_one_that_is_there_again_has_what_is_due(channel: BlockingChannel, name: str) -> None:
    declare(channel, name)
    publish(channel, name, 1500)
    channel.exchange_delete(name)
    declare(channel, name)
    assert came(channel, name, 1)[0][:2] == (name, "a.b")


def test_a_queue_that_takes_no_more_holds_up_its_exchange_alone(channel: BlockingChannel, name: str) -> None:
    channel.exchange_declare(name, "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"})
    channel.queue_declare(name, durable=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    channel.queue_bind(name, name)
    for _ in range(80):
        publish(channel, name, 64)
    other = declare(channel, f"{name}.other")
    publish(channel, other, 500)
    assert came(channel, other, 1)
    channel.queue_delete(name)


def test_a_message_that_dies_later_tells_of_that_alone(channel: BlockingChannel, name: str) -> None:
    channel.exchange_declare(f"{name}.dead", "fanout", durable=True)
    dead = channel.queue_declare(f"{name}.dead", durable=True).method.queue
    channel.queue_bind(dead, f"{name}.dead")
    channel.exchange_declare(name, "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"})
    channel.queue_declare(name, durable=True, arguments={"x-dead-letter-exchange": f"{name}.dead"})
    channel.queue_bind(name, name)
    publish(channel, name, 100)
    for method, _, _ in channel.consume(name, inactivity_timeout=30):
        channel.basic_reject(method.delivery_tag, requeue=False)
        break
    channel.cancel()
    ((exchange, _, properties, _),) = came(channel, dead, 1)
    assert isinstance(properties, pika.BasicProperties)
    headers = properties.headers
    deaths = [(one["queue"], one["reason"], one["exchange"], one["count"]) for one in headers["x-death"]]
    assert (exchange, deaths) == (f"{name}.dead", [(name, "rejected", name, 1)])
    told = {word: headers[word] for word in headers if word != "x-death"}
    assert told == {
        "x-delay": -100,
        **{
            f"x-{order}-death-{part}": value
            for order in ("first", "last")
            for part, value in (("queue", name), ("reason", "rejected"), ("exchange", name))
        },
    }


def test_basic_get_sees_it_as_it_was(channel: BlockingChannel, name: str) -> None:
    declare(channel, name)
    publish(channel, name, 64)
    deadline = time.monotonic() + 30
    while (got := channel.basic_get(name, auto_ack=True))[0] is None:
        assert time.monotonic() < deadline
    method, properties, _ = got
    assert (method.exchange, method.routing_key, properties.headers) == (name, "a.b", {"x-delay": -64})


def test_what_left_the_ladder_late_is_marked(
    four: RabbitMQ, gate: InProcess, channel: BlockingChannel, name: str
) -> None:
    """What another gateway led there; the times are those that RabbitMQ writes."""
    declare(channel, name)
    # The ladder is there, and what it does itself is in time.
    publish(channel, name, 1500)
    ((method, _),) = delivered(channel, name, 1)
    assert not method.redelivered
    with connected(four.port) as direct:
        past = direct.channel()
        for number, since in enumerate((0, 30)):
            headers = {
                "amqpgate-delay-to": name,
                "amqpgate-delay-id": secrets.randbits(62),
                "amqpgate-delay-at": round(1000 * (time.time() - since)),
                "amqpgate-delay-06": True,
                "x-delay": -64,
            }
            properties = pika.BasicProperties(headers=headers, delivery_mode=2)
            past.basic_publish("amqpgate.delay.06", "a.b", str(number).encode(), properties)
            ((method, body),) = delivered(channel, name, 1)
            assert (body, method.redelivered) == (str(number), since > 0)


def test_a_transaction(gate: InProcess, name: str) -> None:
    with connected(gate.port()) as connection:
        channel = connection.channel()
        declare(channel, name)
        channel.tx_select()
        publish(channel, name, 64, body="rolled back")
        channel.tx_rollback()
        publish(channel, name, 64, body="committed")
        channel.tx_commit()
        assert channel.consume(name)
        for _, _, body in channel.consume(name, inactivity_timeout=30):
            assert body == b"committed"
            break


def test_a_publisher_need_not_declare(four: RabbitMQ, gate: InProcess, name: str) -> None:
    """The exchange may have been declared past the gateway, as what it becomes."""
    with connected(four.port) as direct:
        channel = direct.channel()
        channel.exchange_declare(name, "topic", durable=True)
        channel.queue_declare(name, durable=True)
        channel.queue_bind(name, name, "#")
    with connected(gate.port()) as connection:
        channel = connection.channel()
        publish(channel, name, 100)
        assert came(channel, name, 1)[0][:2] == (name, "a.b")


def test_an_exchange_that_is_not_there(channel: BlockingChannel, name: str) -> None:
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match=f"no exchange '{name}'"):
        publish(channel, name)


def test_who_may_not_write_to_the_exchange_may_not_delay(
    four: RabbitMQ, gate: InProcess, channel: BlockingChannel, name: str
) -> None:
    """RabbitMQ judges the way to the exchange, which the user's own session declares."""
    declare(channel, name)
    ours = r"^amqpgate\.delay\."
    users = {
        "may": (ours, rf"{ours}|^{name}$", ours),
        "may-not": (ours, ours, ours),
        "lacks-ladder": ("^$", f"^{name}$", "^$"),
    }
    for user, permissions in users.items():
        who = f"{user}-{secrets.token_hex(4)}"
        four.add_user(who, "p", permissions=permissions)
        with connected(gate.port(), who, "p") as connection:
            own = connection.channel()
            own.confirm_delivery()
            if user == "may":
                publish(own, name, 64)
                continue
            with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
                publish(own, name, 64)
            assert closed.value.reply_code == 403
    assert len(came(channel, name, 1)) == 1


def test_text_that_is_no_number_costs_the_channel(channel: BlockingChannel, name: str) -> None:
    declare(channel, name)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        publish(channel, name, "soon")
    assert closed.value.reply_code == 406


def test_what_no_rule_names_is_for_the_broker(channel: BlockingChannel) -> None:
    with pytest.raises(
        (pika.exceptions.ChannelClosedByBroker, pika.exceptions.ConnectionClosedByBroker)
    ) as closed:
        declare(channel, f"now.{secrets.token_hex(4)}")
    assert closed.value.reply_code in (406, 503)


def test_what_was_changed_is_counted(gate: InProcess, channel: BlockingChannel, name: str) -> None:
    def count() -> float:
        labels = {"policy": "three", "item": "delayed-exchange"}
        registry = gate.gateway.metrics.registry
        return sample_value(registry, "amqpgate_compatibility_changes_total", labels) or 0

    before = count()
    declare(channel, name)
    for _ in range(3):
        publish(channel, name, 64)
    assert count() == before + 1


def test_a_client_of_0_10(gate: InProcess, channel: BlockingChannel, name: str) -> None:
    """Its exchange and its messages are translated before."""
    typed = Map(((b"x-delayed-type", text("topic")),))
    with Client010.opened(gate.port()) as client:
        session = client.session()
        session.ask(
            amqp_0_10.ExchangeDeclare(
                exchange=name.encode(), type=b"x-delayed-message", durable=True, arguments=typed
            )
        )
        session.declare(name, durable=True)
        session.ask(amqp_0_10.ExchangeBind(queue=name.encode(), exchange=name.encode(), binding_key=b"a.*"))
        said = Map(((b"x-delay", text("300")), (b"k", text("v"))))
        properties = amqp_0_10.MessageProperties(application_headers=said)
        session.publish(b"body", "a.b", exchange=name, properties=properties)
        publish(channel, name, 64)
        session.subscribe(name)
        first, second = session.get(), session.get()
        assert [one.delivery.exchange for one in (first, second)] == [name.encode()] * 2
        assert [one.headers for one in (first, second)] == [{"x-delay": -64}, {"x-delay": -300, "k": b"v"}]
        session.accept(first, second)


def test_the_folder_of_policies_is_the_one_of_the_documents() -> None:
    """The page shows the rule that these tests use."""
    page = (Path(__file__).parents[2] / "docs" / "rabbitmq-4.md").read_text()
    assert "delayedExchanges: [{exchange: {prefix: later}}]" in page
