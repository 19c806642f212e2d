"""A move's own connections to brokers, and messages from one to another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqpgate.cli.failures import Failure
from amqpgate.cli.move_amqp import MoveLink
from amqpgate.cli.move_carry import carry, mark
from amqpgate.config.address import AmqpUrl
from amqpgate.move.document import ManagementUrl, MoveEnd
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.embedded import embedded_broker
from tests.support.ports import free_port

QUEUE = "work"
#: The channel for what these tests do themselves.
MINE = 9


def end(port: int) -> MoveEnd:
    return MoveEnd(
        upstream="blue",
        management=ManagementUrl.parse("http://127.0.0.1:1"),
        amqp=AmqpUrl.parse(f"amqp://127.0.0.1:{port}"),
        user="guest",
        password_env="NONE",
    )


def linked(port: int, vhost: str) -> MoveLink:
    link = MoveLink(end(port), vhost, "guest", timeout=10)
    link.open()
    link.ask(MINE, amqp.ChannelOpen(), amqp.ChannelOpenOk)
    link.ask(MINE, amqp.ConfirmSelect(), amqp.ConfirmSelectOk)
    return link


@pytest.fixture
def ends() -> Iterator[tuple[MoveLink, MoveLink]]:
    """Two virtual hosts, each with the queue."""
    with embedded_broker("blue", "green") as (_, port):
        links = linked(port, "blue"), linked(port, "green")
        for link in links:
            link.ask(MINE, amqp.QueueDeclare(queue=QUEUE), amqp.QueueDeclareOk)
        yield links
        for link in links:
            link.close()


def fill(link: MoveLink, *bodies: bytes, headers: Table | None = None) -> None:
    for body in bodies:
        link.publish(
            MINE,
            amqp.BasicPublish(routing_key=QUEUE),
            amqp.BasicProperties(headers=headers, message_id="m"),
            body,
        )
        link.expect(MINE, amqp.BasicAck)


def take(link: MoveLink) -> list[tuple[bytes, bool, Table | None]]:
    """All that is there: body, whether it is marked, headers."""
    found = []
    while True:
        link.say(MINE, amqp.BasicGet(queue=QUEUE, no_ack=True))
        event = link.next()
        got = getattr(event, "method", None)
        if not isinstance(got, amqp.BasicGetOk):
            return found
        properties = event.header.properties  # type: ignore[union-attr]
        found.append((event.body, got.redelivered, properties.headers))  # type: ignore[union-attr]


def test_depths_are_of_queues_that_are_there(ends: tuple[MoveLink, MoveLink]) -> None:
    blue, _ = ends
    fill(blue, b"1", b"2")
    assert blue.depths([]) == {}
    names = ["none", QUEUE, "nor this", "nor that", QUEUE, "nothing"]
    assert blue.depths(names) == {QUEUE: (2, 0)}
    assert blue.depths([QUEUE] * 450) == {QUEUE: (2, 0)}, "in several batches"


def test_one_holds_a_name(ends: tuple[MoveLink, MoveLink]) -> None:
    blue, _ = ends
    other = MoveLink(blue.end, "blue", "guest")
    other.open()
    assert blue.hold("the name")
    assert not other.hold("the name")
    assert blue.depths(["the name", QUEUE])[QUEUE] == (0, 0)
    other.close()


def test_messages_are_carried_in_their_order(ends: tuple[MoveLink, MoveLink]) -> None:
    blue, green = ends
    bodies = [str(number).encode() for number in range(300)]
    headers = Table.of({"CC": ["elsewhere"], "x-delivery-count": 3})
    fill(blue, *bodies, headers=headers)
    assert sum(carry(QUEUE, blue, green)) == 300
    assert blue.depths([QUEUE]) == {QUEUE: (0, 0)}
    assert take(green) == [(body, False, Table.of({"CC": ["elsewhere"]})) for body in bodies]
    assert list(carry(QUEUE, blue, green)) == [], "and of nothing there is nothing"


def test_what_a_client_had_is_marked_with_all_that_is_there(ends: tuple[MoveLink, MoveLink]) -> None:
    blue, green = ends
    fill(blue, b"1", b"2")
    mark(QUEUE, blue)
    fill(blue, b"3")
    assert sum(carry(QUEUE, blue, green)) == 3
    assert [(body, marked) for body, marked, _ in take(green)] == [(b"1", True), (b"2", True), (b"3", True)]


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_stopped_in_the_middle_nothing_is_lost_and_copies_are_marked(
    ends: tuple[MoveLink, MoveLink], batches: int
) -> None:
    blue, green = ends
    fill(blue, *(str(number).encode() for number in range(6)))
    # Of one, two and three messages; the last one is not acknowledged before all are done.
    carrying = carry(QUEUE, blue, green)
    for _ in range(batches):
        next(carrying)
    carrying.close()
    again = [MoveLink(link.end, link.vhost, "guest") for link in ends]
    blue.close()
    for link in again:
        link.open()
    assert sum(carry(QUEUE, *again)) >= 1
    found = take(green)
    assert {body for body, *_ in found} == {str(number).encode() for number in range(6)}
    assert all(marked for _, marked, _ in found)
    for link in again:
        link.close()


def test_what_is_not_taken_stays(ends: tuple[MoveLink, MoveLink]) -> None:
    blue, green = ends
    fill(blue, b"1", b"2", b"3")
    green.ask(MINE, amqp.QueueDelete(queue=QUEUE), amqp.QueueDeleteOk)
    with pytest.raises(Failure, match="404") as failure:
        list(carry(QUEUE, blue, green))
    assert "declare it there" in failure.value.message
    blue.close()
    after = linked(int(blue.end.amqp.port), "blue")
    assert after.depths([QUEUE])[QUEUE] == (3, 0)
    after.close()


def test_who_does_not_answer_is_named() -> None:
    link = MoveLink(end(free_port()), "v", "guest", timeout=1)
    with pytest.raises(Failure, match=r"blue at amqp://127.0.0.1:\d+: "):
        link.open()


def test_a_virtual_host_that_is_not_there_is_told_by_the_broker() -> None:
    with embedded_broker() as (_, port), pytest.raises(Failure, match="blue"):
        MoveLink(end(port), "nowhere", "guest", timeout=5).open()
