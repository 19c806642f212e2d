"""The ladder: which rungs a delay takes, and where its objects lead a message."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.session import delay_ladder
from amqpgate.gateway.session.delay_ladder import (
    DONE,
    HIGHEST,
    LONGEST,
    LOWEST,
    TARGET,
    end,
    end_of,
    foot,
    rung,
    rung_header,
    rung_name,
    rungs_of,
    way_to,
)
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

DELAYS = st.one_of(st.integers(1, LONGEST), st.integers(0, 31).map(lambda k: 1 << k), st.integers(1, 20_000))


@given(DELAYS)
def test_rungs_add_up_to_the_delay(delay: int) -> None:
    rungs = rungs_of(delay)
    total = sum(1 << k for k in rungs)
    if delay <= 255 << 24:
        assert delay <= total < delay + max(64, delay / 128)
    else:
        assert delay * (1 - 1 / 256) <= total <= delay


@given(DELAYS)
def test_a_message_takes_each_rung_once_and_at_most_eight(delay: int) -> None:
    rungs = rungs_of(delay)
    assert 1 <= len(rungs) <= 8
    assert list(rungs) == sorted(set(rungs), reverse=True)
    assert set(rungs) <= set(range(LOWEST, HIGHEST + 1))


@attrs.define
class Broker:
    """What the definitions do, as RabbitMQ routes by headers, and dead-letters."""

    exchanges: dict[str, amqp.ExchangeDeclare] = attrs.field(factory=dict)
    queues: dict[str, amqp.QueueDeclare] = attrs.field(factory=dict)
    #: Source exchange, arguments, and the queue or the exchange.
    bindings: list[tuple[str, Table, str, bool]] = attrs.field(factory=list)

    def does(self, method: Method) -> None:
        """As RabbitMQ, which wants what is bound to be there."""
        match method:
            case amqp.ExchangeDeclare():
                self.exchanges.setdefault(method.exchange, method)
            case amqp.QueueDeclare():
                self.queues.setdefault(method.queue, method)
            case amqp.QueueBind(queue=queue, exchange=exchange, arguments=arguments):
                assert queue in self.queues
                assert exchange in self.exchanges
                self.bindings.append((exchange, arguments, queue, True))
            case amqp.ExchangeBind(source=source, destination=destination, arguments=arguments):
                assert {source, destination} <= set(self.exchanges)
                self.bindings.append((source, arguments, destination, False))

    def route(self, exchange: str, headers: dict[str, object]) -> Iterator[str]:
        declared = self.exchanges[exchange]
        if declared.type == "topic":
            yield f"client of {exchange}"
            return
        found = [
            (name, is_queue)
            for source, arguments, name, is_queue in self.bindings
            if source == exchange
            and (declared.type == "fanout" or all(headers.get(n) == f.plain for n, f in arguments))
        ]
        otherwise = declared.arguments.get("alternate-exchange")
        for name, is_queue in found:
            if is_queue:
                yield name
            else:
                yield from self.route(name, headers)
        if not found and isinstance(otherwise, str):
            yield from self.route(otherwise, headers)

    def play(self, exchange: str, headers: dict[str, object]) -> tuple[int, list[str], list[str]]:
        """Milliseconds on the way, the queues passed, and those where the message stays."""
        passed: list[str] = []
        delay = 0
        while True:
            queues = list(self.route(exchange, headers))
            leading = [q for q in queues if q in self.queues and "x-message-ttl" in self.queues[q].arguments]
            if not leading:
                return delay, passed, queues
            assert queues == leading, "a rung has it alone"
            (queue,) = leading
            assert queue not in passed, "RabbitMQ drops what goes round"
            passed.append(queue)
            arguments = self.queues[queue].arguments.to_python()
            assert arguments["x-dead-letter-strategy"] == "at-least-once"
            assert arguments["x-overflow"] == "reject-publish"
            delay += int(str(arguments["x-message-ttl"]))
            exchange = str(arguments["x-dead-letter-exchange"])
            assert exchange in self.exchanges


def built(*exchanges: str, highest: int = HIGHEST) -> Broker:
    broker = Broker()
    for method in foot():
        broker.does(method)
    for k in range(LOWEST, highest + 1):
        for method in rung(k):
            broker.does(method)
    for exchange in exchanges:
        for method in end(exchange):
            broker.does(method)
        broker.does(amqp.ExchangeDeclare(exchange=exchange, type="topic"))
        broker.does(way_to(exchange))
    return broker


WHOLE = built("later", "another")
SINK = "amqpgate.delay.sink"


def headers_of(delay: int, exchange: str) -> dict[str, object]:
    return {TARGET: exchange, **{rung_header(k): True for k in rungs_of(delay)}}


@given(DELAYS, st.sampled_from(["later", "another"]))
def test_the_ladder_takes_as_long_as_the_rungs_say(delay: int, exchange: str) -> None:
    rungs = rungs_of(delay)
    took, passed, at = WHOLE.play(rung_name(rungs[0]), headers_of(delay, exchange))
    assert took == sum(1 << k for k in rungs)
    assert passed == [*map(rung_name, rungs), end_of(exchange)]
    assert sorted(at) == sorted([SINK, f"client of {exchange}"])


@given(DELAYS)
def test_what_has_no_exchange_any_more_ends_in_the_sink(delay: int) -> None:
    assert WHOLE.play(rung_name(rungs_of(delay)[0]), headers_of(delay, "deleted"))[2] == [SINK]


@given(DELAYS)
def test_rungs_above_the_first_one_need_not_be_there(delay: int) -> None:
    highest = rungs_of(delay)[0]
    took = built("later", highest=highest).play(rung_name(highest), headers_of(delay, "later"))[0]
    assert took >= sum(1 << k for k in rungs_of(delay))


def test_every_declare_is_durable_and_waits_for_nothing() -> None:
    for method in (*foot(), *rung(LOWEST), *rung(HIGHEST), *end("x")):
        assert getattr(method, "no_wait") is True  # noqa: B009
        if isinstance(method, amqp.QueueDeclare | amqp.ExchangeDeclare):
            assert method.durable
            assert delay_ladder.is_of_ladder(
                method.queue if isinstance(method, amqp.QueueDeclare) else method.exchange
            )


def test_the_sink_keeps_nothing() -> None:
    assert WHOLE.queues[SINK].arguments.get("x-max-length") == 0
    assert "x-dead-letter-exchange" not in WHOLE.queues[SINK].arguments


@pytest.mark.parametrize("name", ["x", "ö" * 100, "n" * 255, "ö" * 127])
def test_the_end_has_a_name_that_fits(name: str) -> None:
    queue = end_of(name)
    assert len(queue.encode()) <= 255
    assert len({queue, end_of(name + "x"), end_of(name[:-1] + "y")}) == 3
    assert queue != DONE
