"""The steps of a move, in order.

Each step says of what is seen whether it is done, and what to do if not. The first one that is not done is
next, whatever was done before: so a move that was stopped anywhere goes on, and where a gateway has restarted
and lost its pause, that step comes again. Turned back it is the same with the ends exchanged.

===========  ==============================================  ==============================================
step         done when                                       what is lost without it
===========  ==============================================  ==============================================
definitions  the target has what the source has              messages for queues that are not there yet
pause        each route waits, or leads to the target        publishers come back to the source
publishers   no session on the source has no consumers       queues that never get empty
drain        its queues are empty, nothing is unacked        time: what is left has to be moved
consumers    no session is left on the source                acknowledgements
leftovers    its queues are empty now that all are gone      what was published by those who consume
alone        nobody else uses the source's virtual hosts     what is published past the gateway
switch       each route leads to the target
resume       no route waits
===========  ==============================================  ==============================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from amqpgate.move.view import (
    CloseSession,
    Course,
    CreateObject,
    MarkMessages,
    MoveMessages,
    Order,
    PauseRoute,
    ResumeRoute,
    SeenQueue,
    SwitchRoutes,
    View,
)

#: Names of queues, strangers and the like in one line.
_SHOWN: Final = 4


@attrs.frozen
class MoveStep:
    """One step."""

    name: str
    #: What it does.
    title: str
    is_done: Callable[[Course, View], bool]
    #: What to do about what is seen; nothing: wait.
    orders: Callable[[Course, View], tuple[Order, ...]]
    #: How far it is, in words.
    progress: Callable[[Course, View], str]
    #: What an operator may do if it does not get on.
    remedy: Callable[[Course, View], str]


def named(words: list[str]) -> str:
    """So many of them as fit into a line."""
    more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more


# -- definitions ---------------------------------------------------------------------------------------------


def _has_definitions(course: Course, view: View) -> bool:
    # Clients that are there may take away what they do not need.
    return not view.missing or any(route.leads_to(course.target) for route in view.routes)


def _about_missing(course: Course, view: View) -> str:
    return f"{len(view.missing)} objects are missing on {course.target}"


# -- pause ---------------------------------------------------------------------------------------------------


def _not_held(course: Course, view: View) -> list[PauseRoute]:
    return [
        PauseRoute(route.gateway, route.route)
        for route in view.routes
        if not route.paused and not route.leads_to(course.target)
    ]


def _about_pauses(course: Course, view: View) -> str:
    waiting = sum(route.waiting for route in view.routes)
    return f"{len(_not_held(course, view))} routes let new connections through; {waiting} wait"


# -- publishers, consumers -----------------------------------------------------------------------------------


def _no_publishers(_course: Course, view: View) -> bool:
    return all(session.consumers for session in view.sessions)


def _close_publishers(_course: Course, view: View) -> tuple[Order, ...]:
    return tuple(
        CloseSession(session.gateway, session.id)
        for session in view.sessions
        if not session.consumers and not session.is_closing
    )


def _about_publishers(course: Course, view: View) -> str:
    count = sum(not session.consumers for session in view.sessions)
    return f"{count} sessions on {course.source} consume nothing"


def _close_all(_course: Course, view: View) -> tuple[Order, ...]:
    return tuple(
        CloseSession(session.gateway, session.id) for session in view.sessions if not session.is_closing
    )


def _about_consumers(course: Course, view: View) -> str:
    return f"{len(view.sessions)} sessions are left on {course.source}"


# -- messages ------------------------------------------------------------------------------------------------


def _to_drain(course: Course, view: View) -> list[SeenQueue]:
    """Queues that are waited for: where messages are moved or left, those that somebody consumes."""
    return [
        queue for queue in view.queues if queue.ready and (queue.consumers or course.leftovers == "refuse")
    ]


def _is_drained(course: Course, view: View) -> bool:
    # Without sessions nobody drains anything: what is left then is the next steps' matter.
    if not view.sessions:
        return True
    if course.leftovers == "move" and view.drained_for >= course.drain_for:
        # Those who publish what they consume never come to an end.
        return True
    # What was delivered after its queue had been looked at is in nobody's count. Where it may be moved that
    # does no harm.
    is_sure = view.is_quiet or course.leftovers == "move"
    return is_sure and not (_to_drain(course, view) or view.unacked)


def _about_drain(course: Course, view: View) -> str:
    queues = _to_drain(course, view)
    ready = sum(queue.ready for queue in queues)
    words = [f"{queue} ({queue.ready})" for queue in sorted(queues, key=lambda one: -one.ready)]
    return f"{ready} messages ready, {view.unacked} not acknowledged, {len(view.sessions)} sessions" + (
        f": {named(words)}" if words else ""
    )


def _about_slow_drain(course: Course, view: View) -> str:
    idle = [str(queue) for queue in _to_drain(course, view) if not queue.consumers]
    if idle:
        return (
            f"nobody consumes {named(idle)}: start a consumer past the gateway, or say `leftovers: move`, "
            "or turn back with `amqpgate move rollback`"
        )
    if any(session.consumers and session.published for session in view.sessions):
        return (
            "those who consume publish as well: with `--leftovers move` what they publish last is moved; "
            "`amqpgate move rollback` turns back"
        )
    return "its consumers are slow, or keep messages without acknowledging them; `rollback` turns back"


def _left_over(view: View) -> list[SeenQueue]:
    return [queue for queue in view.queues if queue.ready]


def _has_no_leftovers(course: Course, view: View) -> bool:
    return course.leftovers == "leave" or not (_left_over(view) or view.unsure)


def _move_leftovers(course: Course, view: View) -> tuple[Order, ...]:
    if course.leftovers != "move":
        return ()
    moves = tuple(MoveMessages(queue.vhost, queue.name) for queue in _left_over(view))
    return moves or tuple(MarkMessages(vhost, queue) for vhost, queue in view.unsure)


def _about_leftovers(course: Course, view: View) -> str:
    words = [f"{queue} ({queue.ready})" for queue in _left_over(view)]
    if not words:
        return f"{len(view.unsure)} queues on {course.target} have messages of a move that was stopped"
    return f"{view.ready} messages are left on {course.source}: {named(words)}"


# -- switch, resume ------------------------------------------------------------------------------------------


def _switch(course: Course, view: View) -> tuple[Order, ...]:
    if not course.edits:
        return ()
    gateways = {route.gateway: None for route in view.routes if not route.leads_to(course.target)}
    return (SwitchRoutes(course.routes, tuple(gateways)),)


def _about_switch(course: Course, view: View) -> str:
    left = [f"{one.route} at {one.gateway}" for one in view.routes if not one.leads_to(course.target)]
    return f"not yet to {course.target}: {named(left)}"


def _resume(_course: Course, view: View) -> tuple[Order, ...]:
    return tuple(ResumeRoute(route.gateway, route.route) for route in view.routes if route.paused)


def _about_resume(_course: Course, view: View) -> str:
    paused = [route for route in view.routes if route.paused]
    return f"{len(paused)} routes are paused, {sum(route.waiting for route in paused)} connections wait"


def _no_orders(_course: Course, _view: View) -> tuple[Order, ...]:
    return ()


def _says(text: str) -> Callable[[Course, View], str]:
    return lambda course, _view: text.format(source=course.source, target=course.target)


STEPS: Final = (
    MoveStep(
        "definitions",
        "give the new broker what the old one has",
        _has_definitions,
        lambda _course, view: tuple(CreateObject(one) for one in view.missing),
        _about_missing,
        _says("{target} says what it does not take"),
    ),
    MoveStep(
        "pause",
        "have new connections wait",
        lambda course, view: not _not_held(course, view),
        lambda course, view: tuple(_not_held(course, view)),
        _about_pauses,
        _says("a gateway needs admin.tokenFile, and the move its token"),
    ),
    MoveStep(
        "publishers",
        "close who consumes nothing",
        _no_publishers,
        _close_publishers,
        _about_publishers,
        _says("their confirms are awaited, for limits.drainTimeout of the gateway at most"),
    ),
    MoveStep("drain", "wait for empty queues", _is_drained, _no_orders, _about_drain, _about_slow_drain),
    MoveStep(
        "consumers",
        "close the others",
        lambda _course, view: not view.sessions,
        _close_all,
        _about_consumers,
        _says("they are told within limits.drainTimeout of the gateway"),
    ),
    MoveStep(
        "leftovers",
        "look whether a message is left",
        _has_no_leftovers,
        _move_leftovers,
        _about_leftovers,
        _says(
            "`--leftovers move` publishes them to {target}, marked as redelivered where a client had them; "
            "`amqpgate move rollback` lets the clients go back to {source}"
        ),
    ),
    MoveStep(
        "alone",
        "look whether anybody is left",
        lambda course, view: not view.strangers or view.has_switched(course),
        _no_orders,
        lambda course, view: f"on {course.source}, past these routes: {named(list(view.strangers))}",
        _says("stop them, or have them connect to the gateway"),
    ),
    MoveStep(
        "switch",
        "have the routes lead to the new broker",
        lambda course, view: view.has_switched(course),
        _switch,
        _about_switch,
        _says("say `cluster: {target}` in these routes' policies, and have the gateways read them"),
    ),
    MoveStep(
        "resume",
        "let those who wait go on",
        lambda _course, view: not any(route.paused for route in view.routes),
        _resume,
        _about_resume,
        _says("where a document says `paused: true`, take it away"),
    ),
)


def next_step(course: Course, view: View) -> MoveStep | None:
    """The first one that is not done; None: the move is."""
    return next((step for step in STEPS if not step.is_done(course, view)), None)
