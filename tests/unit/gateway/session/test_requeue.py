"""basic.nack with requeue where it is to count: which messages are rejected in its place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.gateway.session import requeue
from amqpgate.gateway.session.requeue import rejected
from amqpgate.policy import Source, build
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.metrics import sample_value
from tests.support.talker import Talker, relayed
from tests.unit.gateway.conftest import Stage
from tests.unit.policy.kinds.test_compatibility import document

MakeStage = Callable[..., Stage]
COUNT = document("three", "nacks: count")


def nack(tag: int, *, multiple: bool = True, requeue: bool = True) -> amqp.BasicNack:
    return amqp.BasicNack(tag, multiple, requeue)


@pytest.mark.parametrize(
    ("method", "unsettled", "tags"),
    [
        (nack(7, multiple=False), None, [7]),
        (nack(7, multiple=False, requeue=False), [(1, 9)], None),
        (nack(7, requeue=False), [(1, 9)], None),
        (nack(7), [(1, 9)], [1, 2, 3, 4, 5, 6, 7]),
        (nack(7), [(2, 4), (6, 9), (20, 30)], [2, 3, 6, 7]),
        (nack(0), [(2, 4), (6, 8)], [2, 3, 6, 7]),
        # What the broker answers to a tag that it does not know is the broker's to say.
        (nack(5), [(2, 4), (6, 8)], None),
        (nack(9), [(2, 4)], None),
        (nack(1), [], None),
        (nack(0), [], None),
        # Nobody knows which they are.
        (nack(7), None, None),
    ],
)
def test_what_is_rejected(
    method: amqp.BasicNack, unsettled: list[tuple[int, int]] | None, tags: list[int] | None
) -> None:
    assert rejected(method, unsettled) == tags


def test_more_than_so_many_go_as_they_are() -> None:
    most = requeue.MOST
    assert rejected(nack(0), [(1, most + 1)]) == list(range(1, most + 1))
    assert rejected(nack(0), [(1, most + 2)]) is None
    assert rejected(nack(0), [(1, 1 << 60)]) is None


@pytest.fixture
def pair(make_stage: MakeStage) -> tuple[Talker, Talker]:
    """A client that consumes, and a broker that has sent it five messages."""
    client, broker = make_stage(policies=COUNT).opened()
    consumes(client, broker)
    return client, broker


def consumes(client: Talker, broker: Talker, *numbers: int) -> None:
    relayed(client, broker, amqp.BasicConsume(queue="q", consumer_tag="c"), amqp.BasicConsumeOk("c"), 1)
    for number in numbers or range(1, 6):
        broker.content(amqp.BasicDeliver("c", number), b"x", properties=amqp.BasicProperties(), channel=1)
        client.expect_content(amqp.BasicDeliver)


def rejects(*tags: int) -> list[Method]:
    return [amqp.BasicReject(tag, requeue=True) for tag in tags]


def told(pair: tuple[Talker, Talker], *methods: Method) -> list[Method]:
    """What the broker hears of what the client says."""
    client, broker = pair
    for method in methods:
        client.say(method, 1)
    client.say(amqp.QueueDeclare(queue="fence"), 1)
    heard: list[Method] = []
    while not isinstance(method := broker.hear()[1], amqp.QueueDeclare):
        heard.append(method)
    return heard


def answered(pair: tuple[Talker, Talker]) -> None:
    """The broker has said something, and the client has all that it is to have of that."""
    client, broker = pair
    broker.say(amqp.QueueDeclareOk("fence"), 1)
    client.expect(amqp.QueueDeclareOk, 1)


def test_a_session_rejects_what_its_client_gives_back(pair: tuple[Talker, Talker]) -> None:
    said = [amqp.BasicAck(2), nack(4), nack(5, multiple=False)]
    assert told(pair, *said) == [amqp.BasicAck(2), *rejects(1, 3, 4, 5)]
    assert told(pair, nack(0)) == [nack(0)], "there is none any more"


def test_what_is_not_given_back_passes_as_it_is(pair: tuple[Talker, Talker]) -> None:
    said = [nack(1, multiple=False, requeue=False), amqp.BasicReject(2, requeue=True), nack(5, requeue=False)]
    assert told(pair, *said) == said


def test_where_it_is_not_known_which_they_are(pair: tuple[Talker, Talker]) -> None:
    said = [amqp.BasicRecoverAsync(requeue=True), nack(0)]
    assert told(pair, *said) == said


def test_in_a_transaction(pair: tuple[Talker, Talker]) -> None:
    relayed(*pair, amqp.TxSelect(), amqp.TxSelectOk(), 1)
    assert told(pair, nack(2)) == rejects(1, 2)
    answered(pair)
    relayed(*pair, amqp.TxCommit(), amqp.TxCommitOk(), 1)
    assert told(pair, nack(5)) == rejects(3, 4, 5)


def test_what_is_kept_from_the_client_is_not_rejected(make_stage: MakeStage) -> None:
    client, broker = make_stage(policies=COUNT).opened()
    relayed(client, broker, amqp.BasicConsume(queue="p", consumer_tag="d"), amqp.BasicConsumeOk("d"), 1)
    client.say(amqp.BasicQos(prefetch_count=2, global_=True), 1)
    for answer in (amqp.BasicQosOk(), None, amqp.BasicCancelOk("d"), amqp.BasicQosOk()):
        broker.hear()
        if answer is not None:
            broker.say(answer, 1)
    client.expect(amqp.BasicQosOk, 1)
    consumes(client, broker, 1, 2)
    broker.content(amqp.BasicDeliver("c", 3), b"x", properties=amqp.BasicProperties(), channel=1)
    assert told((client, broker)) == []
    answered((client, broker))
    assert told((client, broker), nack(0)) == rejects(1, 2)
    assert client.expect_content(amqp.BasicDeliver).method == amqp.BasicDeliver("c", 3)


def test_it_is_told_once_for_each_nack(make_stage: MakeStage) -> None:
    stage = make_stage(policies=COUNT)
    pair = stage.opened()
    consumes(*pair)
    told(pair, nack(3), nack(4, requeue=False))
    labels = {"policy": "three", "item": "requeue"}
    registry = stage.running.gateway.metrics.registry
    assert sample_value(registry, "amqpgate_compatibility_changes_total", labels) == 1


@pytest.mark.parametrize("policy", [None, document("three")])
def test_without_the_item_nothing_is_changed(make_stage: MakeStage, policy: str | None) -> None:
    pair = make_stage(policies=policy).opened()
    consumes(*pair)
    assert told(pair, nack(5)) == [nack(5)]


def test_other_policies_hold_for_the_next_nack(make_stage: MakeStage) -> None:
    stage = make_stage()
    pair = stage.opened()
    consumes(*pair)
    for policies, heard in (([Source("p.yaml", COUNT.encode())], rejects(1, 2)), ([], [nack(4)])):
        others = build(policies)
        stage.running.call(lambda others=others: stage.running.gateway.use(others))  # type: ignore[misc]
        assert told(pair, nack(2 if policies else 4)) == heard
