"""The limits of a channel as RabbitMQ 3 has them: what the broker is told, and which of it is answered."""

from __future__ import annotations

from itertools import count

import pytest

from amqpgate.gateway.session.channel_prefetch import ChannelPrefetch
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table


def limits(*, is_always_kept: bool = False) -> ChannelPrefetch:
    numbers = count(1)
    return ChannelPrefetch(lambda: f"g{next(numbers)}", is_always_kept)


def consume(tag: str = "c", **options: object) -> amqp.BasicConsume:
    return amqp.BasicConsume(queue="q", consumer_tag=tag, **options)  # type: ignore[arg-type]


def each(number: int) -> amqp.BasicQos:
    return amqp.BasicQos(prefetch_count=number)


def every(number: int) -> amqp.BasicQos:
    return amqp.BasicQos(prefetch_count=number, global_=True)


def play(one: ChannelPrefetch, *asked: Method) -> str:
    """What the broker is told, as words. It answers all of it at once."""
    told: list[str] = []
    due: list[Method] = []

    def say(*methods: Method) -> None:
        for method in methods:
            due.append(method)
            match method:
                case amqp.BasicQos():
                    told.append(f"{'all' if method.global_ else 'each'} {method.prefetch_count}")
                case amqp.BasicConsume():
                    told.append(f"consume {method.consumer_tag}")
                case amqp.BasicCancel():
                    told.append(f"cancel {method.consumer_tag}")

    for method in asked:
        match method:
            case amqp.BasicQos():
                say(*one.qos(method))
            case amqp.BasicConsume():
                say(*one.consume(method))
            case amqp.BasicCancel():
                say(one.cancel(method))
        while due:
            answer(one, due.pop(0))
            say(*one.resize())
    return ", ".join(told)


def answer(one: ChannelPrefetch, method: Method) -> None:
    match method:
        case amqp.BasicQos():
            one.answered()
        case amqp.BasicConsume(no_wait=False):
            one.consumed(method.consumer_tag)
        case amqp.BasicCancel():
            one.cancel_answered(method.consumer_tag)


@pytest.mark.parametrize(
    ("asked", "told", "is_kept"),
    [
        # One consumer's limit is the channel's: the broker keeps it.
        ([every(3), consume()], "each 3, consume c", False),
        ([each(3), consume(), consume("d")], "each 3, consume c, consume d", False),
        ([every(3), consume(no_ack=True), consume("d", no_ack=True)], "each 3, consume c, consume d", False),
        ([every(3), consume("s", no_ack=True), consume()], "each 3, consume s, consume c", False),
        # Two share it, whenever they come.
        ([every(3), consume(), consume("d")], "each 3, consume c, consume d", True),
        (
            [every(3), consume(), amqp.BasicCancel("c"), consume("d")],
            "each 3, consume c, cancel c, consume d",
            True,
        ),
        # Both kinds: a consumer has its own at the broker.
        ([each(2), every(3), consume()], "each 2, each 2, consume c", False),
        ([each(5), every(3), consume()], "each 5, each 5, consume c", True),
        ([every(3), each(5), consume(), consume("d")], "each 3, each 5, consume c, consume d", False),
        # A limit behind a consumer: another one takes its place.
        ([consume(), every(3)], "consume c, each 3, consume g1, cancel c, each 3", True),
        ([each(2), consume(), every(3)], "each 2, consume c, each 2", False),
        ([each(5), consume(), every(3)], "each 5, consume c, each 5", True),
        # Wider by the double at least.
        (
            [every(4), consume(), every(5), every(8), every(9)],
            "each 4, consume c, each 8, consume g1, cancel c, each 5, each 8, "
            "each 16, consume g2, cancel g1, each 9",
            True,
        ),
        ([every(4), consume(), every(40)], "each 4, consume c, each 40, consume g1, cancel c, each 40", True),
        ([every(40000), consume(), every(40001)],
         "each 40000, consume c, each 65535, consume g1, cancel c, each 40001", True),
        ([every(4), consume(), every(0)], "each 4, consume c, each 0, consume g1, cancel c, each 0", True),
        ([every(4), consume(), each(0)], "each 4, consume c, each 0, consume g1, cancel c, each 0", True),
        # Narrower where it is far too wide.
        ([every(8), consume(), every(2)], "each 8, consume c, each 2", True),
        ([every(9), consume(), every(2)], "each 9, consume c, each 2, consume g1, cancel c, each 2", True),
        # What nobody may consume beside, or would be read anew, stays as it is.
        ([every(4), consume(exclusive=True), every(8)], "each 4, consume c, each 8", False),
        ([consume(exclusive=True), every(8)], "consume c, each 8", True),
        (
            [every(4), consume(arguments=Table.of({"x-stream-offset": "first"})), every(8)],
            "each 4, consume c, each 8",
            False,
        ),
        # The client's end of a consumer is that of the one in its place.
        (
            [every(4), consume(), every(8), amqp.BasicCancel("c"), consume()],
            "each 4, consume c, each 8, consume g1, cancel c, each 8, cancel g1, consume c",
            True,
        ),
        # A tag that is in use is for the broker to refuse.
        (
            [every(4), consume(), every(8), consume()],
            "each 4, consume c, each 8, consume g1, cancel c, each 8, consume g1",
            True,
        ),
        ([amqp.BasicCancel("other")], "cancel other", False),
        # Every RabbitMQ refuses a size.
        ([amqp.BasicQos(prefetch_size=1, prefetch_count=3, global_=True)], "all 3", False),
    ],
)  # fmt: skip
def test_what_the_broker_is_told(asked: list[Method], told: str, is_kept: bool) -> None:
    one = limits()
    assert play(one, *asked) == told
    assert one.is_kept_here == is_kept


def test_the_broker_is_told_again_what_was_told_for_another_one() -> None:
    """Consumers to come have what the client has asked for, after one was made wider than that."""
    one = limits()
    assert (
        play(one, every(4), consume(), every(5)) == "each 4, consume c, each 8, consume g1, cancel c, each 5"
    )
    assert play(one, consume("d")) == "consume d"


def test_only_what_the_client_has_asked_for_is_answered() -> None:
    one = limits()
    play(one, every(4), consume())
    assert [type(method) for method in one.qos(every(8))] == [
        amqp.BasicQos, amqp.BasicConsume, amqp.BasicCancel, amqp.BasicQos,
    ]  # fmt: skip
    assert [one.answered(), one.answered()] == [False, True]
    assert one.cancel_answered("c") is None
    assert one.cancel(amqp.BasicCancel("c")) == amqp.BasicCancel("g1")
    assert one.cancel_answered("g1") == "c"


def test_a_limit_is_in_force_when_it_is_answered() -> None:
    one = limits()
    one.qos(every(4))
    one.qos(every(7))
    seen = [one.limit]
    for _ in range(2):
        assert one.answered()
        seen.append(one.limit)
    assert seen == [0, 4, 7]


def test_a_consumer_that_is_not_there_yet_is_not_replaced() -> None:
    """RabbitMQ would take it for one that is there, and not let its tag be used again."""
    one = limits()
    one.consume(consume())
    assert one.qos(every(3)) == (each(3),)
    assert list(one.resize()) == []
    one.consumed("c")
    assert [type(method) for method in one.resize()] == [amqp.BasicConsume, amqp.BasicCancel]


def test_one_replacement_is_under_way_at_a_time() -> None:
    """However often a client changes its mind, the gateway remembers one tag of each consumer."""
    one = limits()
    play(one, every(1), consume())
    for limit in range(2, 200):
        one.qos(every(limit))
    assert one.client_tag("g1") == "c"
    assert one.client_tag("g2") == "g2", "there is none"
    one.cancel_answered("c")
    *_, more, less = one.resize()
    assert isinstance(more, amqp.BasicConsume)
    assert (more.consumer_tag, less) == ("g2", amqp.BasicCancel("g1"))


def test_names_of_what_was_replaced_are_known_for_a_while() -> None:
    """The broker may have sent something before it heard of the end."""
    one = limits()
    play(one, every(1), consume())
    for _ in range(40):
        play(one, every(100), every(1))
    assert one.client_tag("g79") == one.client_tag("g80") == "c"
    assert one.client_tag("g1") == "g1", "these are bounded"


@pytest.mark.parametrize("number", [0, 1])
def test_what_the_broker_ends_is_told_by_the_clients_tag(number: int) -> None:
    one = limits()
    play(one, every(2), consume())
    if number:
        play(one, every(5))
    assert one.cancelled("g1" if number else "c") == "c"
    assert one.qos(every(50)) == (each(50),), "there is no consumer to be wider"


def test_the_end_of_what_is_replaced_is_not_told() -> None:
    one = limits()
    play(one, every(2), consume())
    one.qos(every(5))
    assert one.cancelled("c") is None
    assert one.cancelled("g1") == "c"


def test_consumers_that_are_not_known_are_limited_all_the_same() -> None:
    one = limits(is_always_kept=True)
    assert play(one, every(2)) == "each 2"
    assert one.is_kept_here
    two = limits()
    play(two, every(2))
    assert two.consume(consume(), is_remembered=False) == (consume(),)
    assert two.is_kept_here
    assert two.qos(every(50)) == (each(50),)


class TestNarrow:
    def test_halves_a_consumer_that_does_not_fit(self) -> None:
        one = limits()
        play(one, every(8), consume(), consume("d"))
        assert one.narrow("c")
        assert [method.prefetch_count for method in one.resize() if isinstance(method, amqp.BasicQos)] == [4]
        assert one.take_narrowed() == {"c", "d"}
        assert one.take_narrowed() == frozenset()
        assert one.narrow("c"), "it is on its way"
        assert list(one.resize()) == []

    def test_down_to_one(self) -> None:
        one = limits()
        play(one, every(5), consume())
        widths = []
        for tag in ("c", "g1"):
            assert one.narrow("c")
            widths += [method.prefetch_count for method in one.resize() if isinstance(method, amqp.BasicQos)]
            one.cancel_answered(tag)
        assert widths == [2, 1]
        assert not one.narrow("c")

    def test_until_the_client_asks_again(self) -> None:
        one = limits()
        play(one, every(8), consume())
        one.narrow("c")
        list(one.resize())
        one.cancel_answered("c")
        assert play(one, every(8)) == "each 8, consume g2, cancel g1, each 8"

    def test_not_what_must_stay_as_it_is(self) -> None:
        one = limits()
        play(one, every(8), consume(exclusive=True))
        assert not one.narrow("c")
        assert not one.narrow("unknown")
