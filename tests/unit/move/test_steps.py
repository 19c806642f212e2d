"""The steps of a move: which is next, and that nothing is lost wherever it is stopped."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.cli.move import STEP_NAMES
from amqpgate.move.objects import BrokerObject
from amqpgate.move.steps import STEPS, MoveStep, named, next_step
from amqpgate.move.view import (
    CloseSession,
    Course,
    CreateObject,
    MoveMessages,
    PauseRoute,
    ResumeRoute,
    SeenQueue,
    SeenRoute,
    SeenSession,
    SwitchRoutes,
    View,
)
from tests.unit.move.model import Model, Role

COURSE = Course("blue", "green", ("prod",), edits=True)
ORDERS = Course("blue", "green", ("prod",), "move", edits=True)
BACK = Course("green", "blue", ("prod",), "move", edits=True)
QUEUE = BrokerObject("queue", "/", "work", {})


def route(**more: object) -> SeenRoute:
    said = {"gateway": "g", "route": "prod", "upstreams": ("blue",), "paused": True, **more}
    return SeenRoute(**said)  # type: ignore[arg-type]


def session(**more: object) -> SeenSession:
    return SeenSession(**{"gateway": "g", "id": "s", **more})  # type: ignore[arg-type]


def queue(ready: int, consumers: int = 0) -> SeenQueue:
    return SeenQueue(vhost="/", name="work", ready=ready, consumers=consumers)


WAITING = View(routes=(route(),))
GREEN = View(routes=(route(upstreams=("green",)),))


@pytest.mark.parametrize(
    ("view", "step", "orders"),
    [
        (attrs.evolve(WAITING, missing=(QUEUE,)), "definitions", (CreateObject(QUEUE),)),
        (View(routes=(route(paused=False),)), "pause", (PauseRoute("g", "prod"),)),
        (attrs.evolve(WAITING, sessions=(session(),)), "publishers", (CloseSession("g", "s"),)),
        (attrs.evolve(WAITING, sessions=(session(is_closing=True),)), "publishers", ()),
        (attrs.evolve(WAITING, sessions=(session(consumers=1),), queues=(queue(1, 1),)), "drain", ()),
        (attrs.evolve(WAITING, sessions=(session(consumers=1, unacked=1),)), "drain", ()),
        (attrs.evolve(WAITING, sessions=(session(consumers=1),), is_quiet=False), "drain", ()),
        (attrs.evolve(WAITING, sessions=(session(consumers=1),)), "consumers", (CloseSession("g", "s"),)),
        (attrs.evolve(WAITING, queues=(queue(3),)), "leftovers", ()),
        (attrs.evolve(WAITING, strangers=("x",)), "alone", ()),
        (WAITING, "switch", (SwitchRoutes(("prod",), ("g",)),)),
        (GREEN, "resume", (ResumeRoute("g", "prod"),)),
        # Clients that are on green may take away what they do not need.
        (attrs.evolve(GREEN, missing=(QUEUE,)), "resume", (ResumeRoute("g", "prod"),)),
        # Of two gateways one has restarted, and lets clients to blue again.
        (
            View(routes=(route(upstreams=("green",)), route(gateway="h", paused=False))),
            "pause",
            (PauseRoute("h", "prod"),),
        ),
        (View(routes=(route(upstreams=("green",), paused=False),)), None, ()),
        (View(routes=(route(upstreams=("blue", "green")),)), "switch", (SwitchRoutes(("prod",), ("g",)),)),
    ],
)
def test_the_first_that_is_not_done_is_next(view: View, step: str | None, orders: tuple[object, ...]) -> None:
    following = next_step(COURSE, view)
    assert (following and following.name) == step
    if following is not None:
        assert following.orders(COURSE, view) == orders
        assert following.progress(COURSE, view)
        assert following.remedy(COURSE, view)


def test_messages_are_moved_only_where_that_is_wanted() -> None:
    view = attrs.evolve(WAITING, queues=(queue(3),))
    following = next_step(ORDERS, view)
    assert following is not None
    assert following.orders(ORDERS, view) == (MoveMessages("/", "work"),)
    leaving = attrs.evolve(ORDERS, leftovers="leave")
    following = next_step(leaving, view)
    assert following is not None
    assert following.name == "switch"


def test_a_queue_that_nobody_consumes_is_waited_for_only_where_its_messages_may_not_be_moved() -> None:
    view = attrs.evolve(WAITING, sessions=(session(consumers=1),), queues=(queue(3),))
    waiting, moving = next_step(COURSE, view), next_step(ORDERS, view)
    assert waiting is not None
    assert moving is not None
    assert (waiting.name, moving.name) == ("drain", "consumers")
    assert "leftovers: move" in waiting.remedy(COURSE, view)


def test_those_who_publish_what_they_consume_are_waited_for_no_longer_than_asked() -> None:
    one = session(consumers=1, published=9, unacked=1)
    view = attrs.evolve(WAITING, sessions=(one,), queues=(queue(3, 1),))
    for course, waited, step in ((ORDERS, 29, "drain"), (ORDERS, 30, "consumers"), (COURSE, 99, "drain")):
        following = next_step(course, attrs.evolve(view, drained_for=waited))
        assert following is not None
        assert following.name == step
    first = next_step(COURSE, view)
    assert first is not None
    assert "--leftovers move" in first.remedy(COURSE, view)


def test_without_a_folder_of_policies_somebody_else_switches() -> None:
    course = attrs.evolve(COURSE, edits=False)
    step = next_step(course, WAITING)
    assert step is not None
    assert step.name == "switch"
    assert step.orders(course, WAITING) == ()
    assert "cluster: green" in step.remedy(course, WAITING)


def test_many_names_fit_into_a_line() -> None:
    assert named(["a", "b"]) == "a, b"
    assert named(list("abcdefg")) == "a, b, c, d and 3 more"


def test_the_command_line_names_these_steps() -> None:
    assert tuple(step.name for step in STEPS) == STEP_NAMES


# -- a model of all who take part ----------------------------------------------------------------------------

ROLES: tuple[tuple[Role, ...], ...] = (
    ("publisher", "consumer"),
    ("publisher", "publisher", "consumer", "consumer"),
    ("publisher", "both", "consumer"),
    ("both", "both"),
    ("publisher",),
)
#: What may happen: a client's turn, one more thing that the command does, a restart, a kill.
EVENTS = st.one_of(
    st.tuples(st.just("client"), st.integers(0, 3)),
    st.tuples(st.just("acknowledge"), st.integers(0, 3)),
    st.tuples(st.just("gone"), st.integers(0, 3)),
    st.tuples(st.just("command"), st.integers(1, 4)),
    st.tuples(st.just("restart"), st.integers(0, 1)),
    st.tuples(st.just("run"), st.just(0)),
    st.tuples(st.just("rollback"), st.just(0)),
)


def play(model: Model, events: list[tuple[str, int]]) -> None:
    """What happens, in that order. A kill is that another command begins."""
    command = model.command(ORDERS)
    clients, gateways = list(model.clients), list(model.gateways)
    for what, number in events:
        match what:
            case "client":
                model.act(clients[number % len(clients)])
            case "acknowledge":
                model.acknowledge(clients[number % len(clients)])
            case "gone":
                model.end(clients[number % len(clients)])
            case "command":
                for _ in range(number):
                    next(command, None)
            case "restart":
                model.restart(gateways[number % len(gateways)])
            case "run":
                command = model.command(ORDERS)
            case "rollback" if model.queues["green"] is not None:
                command = model.command(BACK)


def finished(model: Model, course: Course) -> None:
    """The command is run once more, to its end, while clients do what they do."""
    command = model.command(course)
    for turn in range(2000):
        if next(command, None) is None:
            break
        if turn < 40:
            for name in model.clients:
                model.act(name)
        else:
            # Who is closed goes; the others acknowledge.
            for name in list(model.sessions):
                model.acknowledge(name)
                if model.sessions[name].closing or model.sessions[name].role != "publisher":
                    model.act(name)
    else:
        raise AssertionError(f"it never ends: {next_step(course, model.view(course))}")


def drained(model: Model, broker: str) -> None:
    """All that is there is consumed."""
    queue = model.queues[broker]
    for message in queue or ():
        model.unmarked[message.number] += not message.redelivered
        model.acknowledged.add(message.number)
    for session in model.sessions.values():
        model.acknowledged |= {message.number for message in session.unacked}


@given(st.sampled_from(ROLES), st.integers(1, 2), st.lists(EVENTS, max_size=60), st.booleans())
def test_wherever_it_is_stopped_nothing_is_lost_and_nothing_comes_twice_unmarked(
    roles: tuple[Role, ...], gateways: int, events: list[tuple[str, int]], back: bool
) -> None:
    model = Model.make(gateways, roles)
    play(model, events)
    course = BACK if back and model.queues["green"] is not None else ORDERS
    finished(model, course)
    assert not model.queues[course.source], "nothing is left behind"
    assert all(one.leads_to == course.target and not one.paused for one in model.gateways.values()), (
        "and all are there"
    )
    assert not any(one.broker == course.source for one in model.sessions.values())
    drained(model, course.target)
    assert not model.lost
    assert model.confirmed <= model.acknowledged
    assert max(model.unmarked.values(), default=0) <= 1


def without(name: str) -> list[MoveStep]:
    return [step for step in STEPS if step.name != name]


def stopped_everywhere() -> None:
    """Every place at which a quiet run can be stopped: it is run again, or turned back."""
    for place in range(1, 60):
        for course in (ORDERS, BACK):
            model = Model.make(2, ("publisher", "consumer", "both"))
            for _ in range(3):
                for name in model.clients:
                    model.act(name)
            command = model.command(ORDERS)
            for _ in range(place):
                if next(command, None) is None:
                    break
                for name in model.clients:
                    model.act(name)
            if course is BACK and model.queues["green"] is None:
                continue
            finished(model, course)
            drained(model, course.target)
            assert not model.queues[course.source]
            assert not model.lost
            assert model.confirmed <= model.acknowledged
            assert max(model.unmarked.values(), default=0) <= 1


def test_stopped_at_each_place_it_goes_on_or_turns_back() -> None:
    stopped_everywhere()


@pytest.mark.parametrize("name", ["definitions", "leftovers"])
def test_the_model_notices_a_step_that_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpgate.move.steps.STEPS", without(name))
    with pytest.raises(AssertionError):
        stopped_everywhere()
