"""Bindings that are remembered: made when the broker says so, gone when it says that, and never too many."""

from __future__ import annotations

import pytest

from amqpgate.gateway.observers.stats import bindings
from amqpgate.gateway.observers.stats.bindings import CHANGES, Bindings, SessionBindings
from amqpgate.policy import Principal
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

ALICE = Principal("alice", "prod")


class Told:
    """One channel whose requests and answers are told."""

    def __init__(self) -> None:
        self.bindings, self.last_queue = Bindings(), ""
        self.session = SessionBindings(self.bindings)

    def ask(self, *methods: Method) -> None:
        for method in methods:
            self.session.passed(1, method, ALICE, self.last_queue)

    def answer(self, *methods: Method) -> None:
        for method in methods:
            self.session.answered(1, method)

    @property
    def found(self) -> list[tuple[str, str, str]]:
        return [(one.source[2], one.target[2], one.key) for one in self.bindings]


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_binding_is_there_once_the_broker_says_so(told: Told) -> None:
    told.ask(amqp.QueueBind(queue="q", exchange="x", routing_key="k"))
    assert told.found == []
    told.answer(amqp.QueueBindOk())
    assert told.found == [("x", "q", "k")]
    assert not told.session._due


def test_what_is_refused_never_was(told: Told) -> None:
    """The broker closes the channel; another one has its number."""
    told.ask(amqp.QueueBind(queue="q", exchange="nowhere", routing_key="k"))
    told.session.opens(1)
    told.ask(amqp.QueueBind(queue="q", exchange="x", routing_key="k"))
    told.answer(amqp.QueueBindOk())
    assert told.found == [("x", "q", "k")]


def test_without_an_answer_it_holds_at_once(told: Told) -> None:
    told.ask(amqp.QueueBind(queue="q", exchange="x", routing_key="k", no_wait=True))
    assert told.found == [("x", "q", "k")]


def test_the_queue_that_was_declared_last_is_meant(told: Told) -> None:
    told.last_queue = "mine"
    told.ask(amqp.QueueBind(queue="", exchange="x", routing_key=""))
    told.answer(amqp.QueueBindOk())
    assert told.found == [("x", "mine", "mine")]


def test_they_are_taken_back(told: Told) -> None:
    told.ask(
        amqp.QueueBind(queue="q", exchange="x", routing_key="k"),
        amqp.ExchangeBind(destination="y", source="x", routing_key="k"),
        amqp.QueueUnbind(queue="q", exchange="x", routing_key="k"),
    )
    told.answer(amqp.QueueBindOk(), amqp.ExchangeBindOk())
    assert told.found == [("x", "q", "k"), ("x", "y", "k")]
    told.answer(amqp.QueueUnbindOk())
    assert told.found == [("x", "y", "k")]


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (amqp.QueueDelete(queue="q", no_wait=True), [("x", "y", "b")]),
        (amqp.ExchangeDelete(exchange="x", no_wait=True), []),
        (amqp.ExchangeDelete(exchange="y", no_wait=True), [("x", "q", "a")]),
    ],
)
def test_they_end_with_either_end(told: Told, end: Method, left: list[tuple[str, str, str]]) -> None:
    told.ask(
        amqp.QueueBind(queue="q", exchange="x", routing_key="a", no_wait=True),
        amqp.ExchangeBind(destination="y", source="x", routing_key="b", no_wait=True),
    )
    told.ask(end)
    assert told.found == left


def test_a_queue_of_another_vhost_stays(told: Told) -> None:
    told.ask(amqp.QueueBind(queue="q", exchange="x", routing_key="k", no_wait=True))
    told.bindings.forget("test", ["q"])
    assert len(told.bindings) == 1
    told.bindings.forget("prod", ["q"])
    assert len(told.bindings) == 0


def test_there_are_never_too_many(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings, "MOST", 3)
    for name in "abcabcd":
        told.ask(amqp.QueueBind(queue=name, exchange="x", routing_key="k", no_wait=True))
    assert told.found == [("x", name, "k") for name in "bcd"]
    assert told.bindings.left_out == 1
    for name in "bcd":
        told.ask(amqp.QueueDelete(queue=name, no_wait=True))
    assert not told.bindings._of


def test_a_client_that_reads_no_answers_costs_bounded_memory(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bindings, "MOST_DUE", 3)
    long = Table.of({"x": "x" * 100_000})
    told.ask(*(amqp.QueueBind(queue=name, exchange="x", routing_key="k", arguments=long) for name in "abcde"))
    assert [dict(due.operation.arguments) for due in told.session._due[1]] == [{}] * 3
    told.answer(*[amqp.QueueBindOk()] * 3)
    # The answers to those that were left out are still to come: they are not taken for those to this one.
    told.ask(amqp.QueueBind(queue="f", exchange="x", routing_key="k"))
    told.answer(amqp.QueueDeclareOk(), *[amqp.QueueBindOk()] * 2)
    assert [target for _, target, _ in told.found] == ["a", "b", "c"]
    assert told.bindings.left_out == 3
    told.answer(amqp.QueueBindOk())
    told.ask(amqp.QueueBind(queue="g", exchange="x", routing_key="k"))
    told.answer(amqp.QueueBindOk())
    assert [target for _, target, _ in told.found] == ["a", "b", "c", "g"]
    assert (told.session._due, told.session._more) == ({}, {})
    told.ask(*(amqp.QueueBind(queue=name, exchange="x", routing_key="k") for name in "abcde"))
    told.session.opens(1)
    assert (told.session._due, told.session._more) == ({}, {})


def test_each_change_has_one_answer() -> None:
    methods = [method for method in vars(amqp).values() if getattr(method, "INDEX", None) in CHANGES]
    assert len(methods) == len(CHANGES)
    assert all(len(method.REPLIES) == 1 for method in methods)
