"""``amqpgate move`` from RabbitMQ 3 to 4, under load, stopped at each step, and turned back.

Publishers take confirms, consumers acknowledge, and all come back whenever they are sent away: none of what
was confirmed is lost, and nobody gets a message twice that is not marked.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from amqpgate.cli.move import STEP_NAMES
from amqpgate.cli.move_amqp import MoveLink
from amqpgate.cli.move_carry import mark
from amqpgate.config.address import AmqpUrl
from amqpgate.move.document import ManagementUrl, MoveEnd
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.moving import ManagedBroker, Stage, both_at_work, brokers, staged
from tests.interop.rolling import QUEUE, Tally, at_work
from tests.support.inprocess import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def ends() -> Iterator[tuple[ManagedBroker, ManagedBroker]]:
    with brokers() as both:
        yield both


@pytest.fixture
def stage(ends: tuple[ManagedBroker, ManagedBroker], tmp_path: Path) -> Iterator[Stage]:
    with staged(*ends, tmp_path) as made:
        yield made


def done(stage: Stage, verb: str, *words: str) -> str:
    """It ends with 0; what it said."""
    code, said = stage.move(verb, *words)
    assert code == 0, said
    return said


def refused(stage: Stage, *words: str) -> dict[str, str]:
    """What is in the way of the move, by name, and what of it is said."""
    code, said = stage.move("plan", "--json", *words)
    found = {one["name"]: one["says"] for one in json.loads(said)["refusals"] if one["stops"]}
    assert code == bool(found)
    return found


def at_least(tally: Tally, more: int) -> None:
    """So many more messages are confirmed."""
    before = len(tally.confirmed)
    eventually(lambda: len(tally.confirmed) >= before + more or bool(tally.failures))


def exact(tally: Tally) -> None:
    """None lost, none twice unmarked."""
    assert not tally.failures
    assert tally.confirmed <= tally.arrived, "nothing is lost"
    assert max(tally.delivered.values()) == 1, "and nothing comes twice unmarked"


@pytest.mark.parametrize("connections", ["own", "pooled"])
def test_there_and_back_under_load(
    ends: tuple[ManagedBroker, ManagedBroker], tmp_path: Path, connections: str
) -> None:
    with (
        staged(*ends, tmp_path, connections=connections) as stage,
        at_work(stage.gateway.port, publishers=10, consumers=5) as tally,
    ):
        at_least(tally, 200)
        assert "from blue to green" in done(stage, "plan")
        code, said = stage.move("status")
        assert code == 1
        assert "resume      -     let those who wait go on" in said, "nothing is done before it begins"
        assert said.endswith("it has not begun: `amqpgate move run` begins\n")
        assert "done: prod are on green" in done(stage, "run")
        at_least(tally, 200)
        assert "resume      done" in done(stage, "status")
        assert done(stage, "run").splitlines()[-1] == "done: prod are on green", "and again is nothing"
        policy = (tmp_path / "policies" / "routes.yaml").read_text()
        assert "upstream: {cluster: green}" in policy
        assert "# all of them" in policy, "what people wrote is still there"
        assert "done: prod are on blue" in done(stage, "rollback")
        at_least(tally, 200)
    exact(tally)
    assert not tally.redelivered, "nobody had to be given anything twice"
    assert (stage.blue.ready(), stage.green.ready()) == (0, 0)


def test_killed_at_each_step_it_goes_on(stage: Stage) -> None:
    """Of others there is nothing to be seen where queues are short: they are done at once."""
    with at_work(stage.gateway.port, publishers=6, consumers=3) as tally:
        at_least(tally, 50)
        for step in ("definitions", "pause", "publishers", "consumers", "switch", "resume"):
            assert f"/9 {step}" in stage.killed_at("run", step)
            assert "done: prod are on green" in done(stage, "run")
            at_least(tally, 20)
            if step != "definitions":
                assert f"/9 {step}" in stage.killed_at("rollback", step)
            assert "done: prod are on blue" in done(stage, "rollback")
            at_least(tally, 20)
    exact(tally)
    assert (stage.blue.ready(), stage.green.ready()) == (0, 0)


def test_turned_back_behind_each_step(stage: Stage) -> None:
    with at_work(stage.gateway.port, publishers=6, consumers=3) as tally:
        at_least(tally, 50)
        for step in STEP_NAMES:
            assert f"stopped behind {step}" in done(stage, "run", "--until", step)
            done(stage, "rollback")
            at_least(tally, 20)
            assert "cluster: blue" in (stage.folder / "policies" / "routes.yaml").read_text()
    exact(tally)
    assert (stage.blue.ready(), stage.green.ready()) == (0, 0)


def test_those_who_publish_what_they_consume_lose_nothing(stage: Stage) -> None:
    stage.describe(leftovers="move", drainFor="1s")
    with both_at_work(stage.gateway.port, 4) as tally:
        at_least(tally, 100)
        done(stage, "run")
        at_least(tally, 100)
        done(stage, "rollback")
        at_least(tally, 100)
    assert stage.green.ready() == 0
    with stage.blue.channel() as channel:
        for method, _, body in channel.consume(QUEUE, inactivity_timeout=1, auto_ack=True):
            if method is None:
                break
            tally.got(body.decode(), redelivered=method.redelivered)
    exact(tally)


def test_a_gateway_that_ends_in_the_middle_is_waited_for(stage: Stage) -> None:
    """Its pause is gone with it, and its clients come back to blue: the steps are gone through again."""
    with at_work(stage.gateway.port, publishers=4, consumers=2) as tally:
        at_least(tally, 50)
        done(stage, "run", "--until", "drain")
        process = stage.start("run")
        assert process.stdout is not None
        # It has looked at all then: one that begins without a gateway ends at once.
        said = process.stdout.readline()
        stage.gateway.child.kill()
        stage.gateway.start()
        said += process.communicate(timeout=120)[0]
        assert process.returncode == 0, said
        at_least(tally, 50)
    # What was on its way when the gateway was killed comes again, and what was not confirmed is published
    # again: by clients, not by the move.
    assert not tally.failures
    assert tally.confirmed <= tally.arrived
    assert (stage.blue.ready(), stage.green.ready()) == (0, 0)


def test_turned_back_from_a_broker_that_is_dead(stage: Stage) -> None:
    with at_work(stage.gateway.port, publishers=4, consumers=2) as tally:
        at_least(tally, 50)
        done(stage, "run", "--until", "consumers")
        stage.green.node.stop()
        try:
            code, said = stage.move("run", "--give-up-after", "1")
            assert code == 1
            assert "no answer from green" in said
            assert "done: prod are on blue" in done(stage, "rollback")
            at_least(tally, 50)
        finally:
            stage.green.node.start()
    exact(tally)
    assert stage.blue.ready() == 0


# -- messages that nobody consumes ---------------------------------------------------------------------------


def filled(stage: Stage, queue: str, count: int) -> None:
    with stage.blue.channel() as channel:
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": queue.partition("-")[0]})
        channel.exchange_declare("letters", "topic", durable=True)
        channel.queue_bind(queue, "letters", "a.#")
        for number in range(count):
            properties = pika.BasicProperties(
                headers={"number": number, "CC": ["a.copy"]}, delivery_mode=2, message_id=str(number)
            )
            channel.basic_publish("letters", "a.b", str(number).encode(), properties, mandatory=True)


def taken(broker: ManagedBroker, queue: str) -> list[tuple[bytes, str, bool, dict[str, object]]]:
    """All messages: body, routing key, whether it is marked, headers."""
    found: list[tuple[bytes, str, bool, dict[str, object]]] = []
    with broker.channel() as channel:
        while True:
            method, properties, body = channel.basic_get(queue, auto_ack=True)
            if method is None:
                return found
            found.append((body, method.routing_key, method.redelivered, properties.headers))


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_messages_without_a_consumer_move_as_they_are(stage: Stage, kind: str) -> None:
    queue = f"{kind}-{secrets.token_hex(3)}"
    filled(stage, queue, 500)
    eventually(lambda: set(refused(stage)) == {"no-consumer"})
    assert stage.move("run")[0] == 1
    assert stage.blue.ready(queue) == 500
    lines = [line for line in done(stage, "run", "--leftovers", "move").splitlines() if "messages of" in line]
    assert lines[-1].strip() == f"500 messages of / {queue} are on green"
    assert len(lines) < 5, "not a line for each batch"
    assert stage.blue.ready(queue) == 0
    found = taken(stage.green, queue)
    assert [body for body, *_ in found] == [str(number).encode() for number in range(500)]
    assert {key for _, key, *_ in found} == {"a.b"}
    assert not any(marked for _, _, marked, _ in found), "no client had them"
    headers = [{name: said[name] for name in said if name != "x-delivery-count"} for *_, said in found]
    assert headers == [{"number": n, "CC": ["a.copy"]} for n in range(500)]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_killed_while_messages_move_none_comes_twice_unmarked(stage: Stage, kind: str) -> None:
    queue = f"{kind}-{secrets.token_hex(3)}"
    filled(stage, queue, 3000)
    assert "messages of" in stage.killed_at("run", "messages of", "--leftovers", "move")
    eventually(lambda: stage.blue.ready(queue) + stage.green.ready(queue) >= 3000)
    done(stage, "run", "--leftovers", "move")
    assert stage.blue.ready(queue) == 0
    found = taken(stage.green, queue)
    assert {body for body, *_ in found} == {str(number).encode() for number in range(3000)}
    unmarked = [body for body, _, marked, _ in found if not marked]
    assert len(unmarked) == len(set(unmarked))


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_what_is_marked_is_back_when_that_is_done(
    ends: tuple[ManagedBroker, ManagedBroker], kind: str
) -> None:
    """RabbitMQ puts messages back one by one, unless it is asked otherwise: so a part of them was there."""
    for broker in ends:
        broker.empty()
        with broker.channel() as channel:
            channel.queue_declare("many", durable=True, arguments={"x-queue-type": kind})
        end = MoveEnd(
            upstream="one",
            management=ManagementUrl.parse(broker.management),
            amqp=AmqpUrl.parse(f"amqp://{broker.node.address}"),
            user="guest",
            password_env="NONE",
        )
        link = MoveLink(end, "/", "guest")
        link.open()
        link.ask(9, amqp.ChannelOpen(), amqp.ChannelOpenOk)
        publish = amqp.BasicPublish(routing_key="many")
        for _ in range(5000):
            link.publish(9, publish, amqp.BasicProperties(delivery_mode=2), b"x")
        eventually(lambda link=link: link.depths(["many"])["many"] == (5000, 0))
        mark("many", link, kind)
        assert link.depths(["many"])["many"] == (5000, 0)
        link.close()


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_what_a_client_had_is_marked_where_it_moves(stage: Stage, kind: str) -> None:
    queue = f"{kind}-{secrets.token_hex(3)}"
    filled(stage, queue, 3)
    with stage.blue.channel() as channel:
        method, _, _ = channel.basic_get(queue)
        channel.basic_nack(method.delivery_tag, requeue=True)
    done(stage, "run", "--leftovers", "move")
    found = taken(stage.green, queue)
    # A quorum queue puts what it gets back behind the others.
    assert {(body, marked) for body, _, marked, _ in found} == {(b"0", True), (b"1", True), (b"2", True)}
    assert len(found) == 3


def test_messages_that_may_be_left_stay(stage: Stage) -> None:
    queue = f"classic-{secrets.token_hex(3)}"
    filled(stage, queue, 3)
    done(stage, "run", "--leftovers", "leave")
    assert (stage.blue.ready(queue), stage.green.ready(queue)) == (3, 0)


def test_a_message_that_is_too_large_stays_and_stops_the_move(stage: Stage) -> None:
    """RabbitMQ 4 takes 16 MiB. What was confirmed before it is not there twice."""
    queue = f"classic-{secrets.token_hex(3)}"
    filled(stage, queue, 1)
    with stage.blue.channel() as channel:
        channel.basic_publish("", queue, b"x" * (17 << 20))
    code, said = stage.move("run", "--leftovers", "move")
    assert code == 1
    assert "larger than configured max size" in said
    eventually(lambda: stage.blue.ready(queue) == 1)
    assert stage.green.ready(queue) == 1
    done(stage, "rollback", "--leftovers", "move")
    assert {len(body) for body, *_ in taken(stage.blue, queue)} == {1, 17 << 20}


def test_turned_back_a_queue_that_the_old_broker_never_had_is_told_with_what_to_do(stage: Stage) -> None:
    done(stage, "run")
    with stage.green.channel() as channel:
        channel.queue_declare("young", durable=True)
        channel.basic_publish("", "young", b"first", mandatory=True)
    code, said = stage.move("rollback", "--leftovers", "move")
    assert code == 1
    assert "no queue 'young'" in said
    assert "declare it there as its clients would" in said
    assert "`amqpgate move rollback` turns back" in said
    with stage.blue.channel() as channel:
        channel.queue_declare("young", durable=True)
    done(stage, "rollback", "--leftovers", "move")
    assert [body for body, *_ in taken(stage.blue, "young")] == [b"first"]


# -- definitions, and what is in the way ---------------------------------------------------------------------


def test_definitions_are_those_that_clients_declare_through_the_gateway(stage: Stage) -> None:
    stage.blue.node.add_user("teller", "secret of teller", vhost="/")
    try:
        with stage.blue.channel() as channel:
            channel.queue_declare("old", durable=True, arguments={"x-queue-master-locator": "random"})
            channel.queue_declare("passing")
            channel.exchange_declare("news", "topic", durable=True)
            channel.queue_bind("passing", "news", "n.#")
            channel.exchange_bind("news", "amq.topic", "all")
        stage.blue.node.ctl("set_policy", "mirrors", "^old", '{"ha-mode":"all","max-length":10}')
        stage.blue.node.ctl("set_policy", "only", "^x", '{"ha-mode":"all"}')
        said = done(stage, "plan")
        assert "retired-argument: as policy 'three' has it" in said
        assert "its queues are not mirrored any more" in said
        done(stage, "run")
        with contextlib.closing(
            pika.BlockingConnection(
                pika.ConnectionParameters(
                    "127.0.0.1",
                    stage.gateway.port,
                    credentials=pika.PlainCredentials("teller", "secret of teller"),
                )
            )
        ) as connection:
            channel = connection.channel()
            channel.queue_declare("old", durable=True, arguments={"x-queue-master-locator": "random"})
            channel.queue_declare("passing")
            channel.confirm_delivery()
            channel.basic_publish("news", "n.1", b"first", mandatory=True)
        assert [body for body, *_ in taken(stage.green, "passing")] == [b"first"]
        (policy,) = stage.green.node.rows("list_policies", vhost="/")
        assert (policy["name"], json.loads(str(policy["definition"]))) == ("mirrors", {"max-length": 10})
    finally:
        for broker in (stage.blue, stage.green):
            with contextlib.suppress(Exception):
                broker.node.ctl("delete_user", "teller")


def test_a_user_of_the_new_broker_keeps_its_password_though_it_may_do_nothing_yet(stage: Stage) -> None:
    with known_to_both(stage, "teller"):
        assert "user teller keeps the password that it has there" in done(stage, "plan")
        done(stage, "run")
        connection = pika.BlockingConnection(
            pika.ConnectionParameters(
                "127.0.0.1", stage.green.node.port, credentials=pika.PlainCredentials("teller", "of green")
            )
        )
        with contextlib.closing(connection):
            connection.channel().queue_declare("mine", exclusive=True)


@contextlib.contextmanager
def known_to_both(stage: Stage, user: str) -> Iterator[None]:
    """With another password on each; on green it has no permission."""
    stage.blue.node.add_user(user, "of blue", vhost="/")
    stage.green.node.ctl("add_user", user, "of green")
    try:
        yield
    finally:
        for broker in (stage.blue, stage.green):
            broker.node.ctl("delete_user", user)


def test_what_would_be_lost_is_in_the_way(stage: Stage) -> None:
    assert refused(stage) == {}
    with stage.blue.channel() as channel:
        channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
        channel.queue_declare("other", durable=True, arguments={"x-max-length": 5})
        with stage.green.channel() as there:
            there.queue_declare("other", durable=True)
            there.queue_declare("full", durable=True)
            there.basic_publish("", "full", b"x")
        # Whoever looks is connected himself.
        eventually(lambda: {"stream", "differs", "not-empty", "past-the-gateway"} <= set(refused(stage)))
        code, said = stage.move("run")
        assert code == 1
        assert "nothing was changed" in said
        assert "x-max-length" in refused(stage)["differs"]
    assert "pause       -" in stage.move("status")[1]


def test_what_the_new_broker_refuses_is_in_the_way(stage: Stage) -> None:
    text = (stage.folder / "policies" / "routes.yaml").read_text()
    (stage.folder / "policies" / "routes.yaml").write_text(text.partition("---")[0])
    with stage.blue.channel() as channel:
        channel.queue_declare("old", durable=True, arguments={"x-queue-master-locator": "random"})
    assert "x-queue-master-locator: 541" in refused(stage)["definition"]
    with stage.green.node.memory_alarm():
        eventually(lambda: "alarm" in refused(stage))
    # The broker takes its time to see that it has memory again, and others need it.
    eventually(lambda: "alarm" not in refused(stage))


def test_who_comes_past_the_gateway_is_waited_for_before_the_switch(stage: Stage) -> None:
    stage.describe(allow="[past-the-gateway]")
    with stage.blue.channel():
        eventually(lambda: "past the gateways" in stage.move("plan")[1])
        code, said = stage.move("run", "--give-up-after", "3")
        assert code == 1
        assert "7/9 alone" in said
    assert "done: prod are on green" in done(stage, "run")


def test_only_one_moves_at_a_time(stage: Stage) -> None:
    stage.describe(switch="wait")
    first = stage.start("run")
    assert first.stdout is not None
    with first.stdout:
        assert any("8/9 switch" in line for line in first.stdout)
        code, said = stage.move("rollback")
        assert code == 1
        assert "another move of '/' is at work" in said
        # Somebody else changes the routes, and it goes on by itself.
        policies = stage.folder / "policies" / "routes.yaml"
        policies.write_text(policies.read_text().replace("cluster: blue", "cluster: green"))
        assert "done: prod are on green" in first.stdout.read()
    assert first.wait() == 0
