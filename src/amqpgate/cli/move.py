"""``amqpgate move``: the clients of some routes from one broker to another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import click

from amqpgate.cli.failures import FAILED, WRONG, Failure, reported
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.cli.move_run import Mover
    from amqpgate.cli.move_world import MoveWorld
    from amqpgate.move.document import Leftovers, MoveDocument
    from amqpgate.move.refusals import MoveFacts, Refusal
    from amqpgate.move.view import Course

#: The steps (`amqpgate.move.steps`), which is not read for a help text.
STEP_NAMES: Final = (
    "definitions",
    "pause",
    "publishers",
    "drain",
    "consumers",
    "leftovers",
    "alone",
    "switch",
    "resume",
)
#: What to do about a move that has begun.
_GO_ON: Final = "`amqpgate move run` goes on, `amqpgate move rollback` turns back"
_STOPPED: Final = f"stopped; clients wait where a route is paused. {_GO_ON}"
#: Objects that a plan shows before it says how many more there are.
_SHOWN: Final = 40

_file = click.argument("file", type=click.Path(path_type=Path))
_leftovers = click.option(
    "--leftovers",
    type=click.Choice(["refuse", "move", "leave"]),
    help="Messages that nobody consumes: refuse to begin, move them by publishing them anew, or leave them.  "
    "[default: as FILE has it]",
)
_asking = partial(
    click.option,
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(0.001, 3600),
    default=10.0,
    show_default=True,
    help="How long to wait for an answer of a gateway.",
)
_give_up = click.option(
    "--give-up-after",
    metavar="SECONDS",
    type=click.FloatRange(0.001),
    help="End with 1 where it has not come so far by then.  [default: wait]",
)
_interval = click.option(
    "--interval",
    metavar="SECONDS",
    type=click.FloatRange(0.01, 60),
    default=0.5,
    show_default=True,
    help="How often to look while something is waited for.",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(
    short_help="Move clients from one broker to another.",
    epilog="Exit codes: 0 done, 1 refused, failed or stopped, 2 wrong command line or file.",
)
def move() -> None:
    """Move the clients of some routes from one broker to another, with nothing lost.

    FILE says from where to where. A move may be stopped anywhere, by Ctrl-C or worse: nothing of it is kept
    but in the brokers and gateways. `run` again goes on, `rollback` turns back.

    \b
    amqpgate move plan move.yaml
    amqpgate move run move.yaml
    amqpgate move status move.yaml
    amqpgate move rollback move.yaml
    """


@move.command(short_help="Show what a move would do, and what is in its way.")
@_file
@_leftovers
@_asking()
@_as_json
def plan(file: Path, leftovers: Leftovers | None, timeout: float, as_json: bool) -> None:
    """Show what a move would do, and what is in its way. Nothing is changed.

    \b
    +        is made on the new broker
    note     to know before it begins
    refused  something would be lost, or would not work; what to do is said below it

    \b
    Exit codes:
      0  nothing is in its way
      1  something is, or somebody does not answer
      2  FILE is wrong
    """
    from amqpgate.cli.move_facts import gather
    from amqpgate.move.refusals import accepted, refusals

    with _world(file, leftovers, timeout) as world:
        facts = gather(world)
        found = list(refusals(facts))
        stopping = accepted(found, world.document.allow)
        if as_json:
            echo(_plan_json(facts, found, stopping))
        else:
            for line in _plan_lines(world.document, facts, found, stopping):
                echo(line)
    if stopping:
        raise SystemExit(FAILED)


@move.command(short_help="Move, or go on with a move.")
@_file
@_leftovers
@click.option(
    "--until", type=click.Choice(STEP_NAMES), help="Stop when this step is done.  [default: the last]"
)
@_give_up
@_interval
@_asking()
def run(
    file: Path,
    leftovers: Leftovers | None,
    until: str | None,
    give_up_after: float | None,
    interval: float,
    timeout: float,
) -> None:
    """Move, or go on with a move: each step is shown while it is under way, and how far it is.

    A move that has not begun does not begin where `plan` finds something in its way.

    \b
    Exit codes:
      0  the clients are on the new broker, or the step of --until is done
      1  refused, failed or stopped: run it again, or turn back with rollback
      2  FILE is wrong
    """
    from amqpgate.cli.move_facts import gather
    from amqpgate.cli.move_run import Mover
    from amqpgate.move.refusals import accepted, refusals

    with _world(file, leftovers, timeout) as world:
        facts = gather(world)
        stopping = accepted(list(refusals(facts)), world.document.allow)
        if facts.has_begun:
            # What is in the way of a beginning is not in that of going on, but for what is never accepted.
            stopping = [] if facts.has_switched else [one for one in stopping if one.is_final]
        for refusal in stopping:
            echo("\n".join(_refusal_lines(refusal, "refused")))
        if stopping:
            raise Failure("amqpgate: nothing was changed; `amqpgate move plan` says more")
        mover = Mover(world, _course(world.document, back=False))
        _until_done(mover, until=until, give_up_after=give_up_after, interval=interval)
        if until is None:
            echo(f"done: {', '.join(world.document.routes)} are on {world.document.target.upstream}")
        else:
            echo(f"stopped behind {until}, as asked")


@move.command(short_help="Turn back: the clients to the old broker.")
@_file
@_leftovers
@_give_up
@_interval
@_asking()
def rollback(
    file: Path,
    leftovers: Leftovers | None,
    give_up_after: float | None,
    interval: float,
    timeout: float,
) -> None:
    """Turn back, wherever a move stands: the clients to the old broker, with nothing lost.

    Before the switch, those who wait go back. After it this is a move of its own: publishers are closed, the
    new broker's queues drained, and the routes switched back. What was made on the new broker stays there.

    \b
    Exit codes:
      0  the clients are on the old broker
      1  failed or stopped: run it again
      2  FILE is wrong
    """
    from amqpgate.cli.move_run import Mover

    with _world(file, leftovers, timeout) as world:
        # It goes on asking who does not answer, but not for a route that nobody has.
        world.routes()
        mover = Mover(world, _course(world.document, back=True), copies=False)
        _until_done(mover, until=None, give_up_after=give_up_after, interval=interval)
        echo(f"done: {', '.join(world.document.routes)} are on {world.document.source.upstream}")


@move.command(short_help="Show where a move stands.")
@_file
@_leftovers
@_asking()
@_as_json
def status(file: Path, leftovers: Leftovers | None, timeout: float, as_json: bool) -> None:
    """Show which steps are done, and how far the next one is. Nothing is changed.

    \b
    Exit codes:
      0  all are done
      1  not all, or somebody does not answer
      2  FILE is wrong
    """
    from amqpgate.cli.move_run import Mover
    from amqpgate.move.steps import STEPS, next_step

    with _world(file, leftovers, timeout) as world:
        course = _course(world.document, back=False)
        view = Mover(world, course).look()
    following = next_step(course, view)
    rows = []
    is_before = True
    for step in STEPS:
        is_before = is_before and step is not following
        state = "done" if is_before else "next" if step is following else "-"
        is_done = step.is_done(course, view)
        rows.append((step.name, state, step.title if is_done else step.progress(course, view)))
    if as_json:
        echo(
            json.dumps([{"step": name, "state": state, "says": says} for name, state, says in rows], indent=2)
        )
    else:
        for name, state, says in rows:
            echo(f"{name:<12}{state:<6}{says}")
        if following is not None and view.has_begun(course):
            echo(f"{_GO_ON}; where it waits: {following.remedy(course, view)}")
        elif following is not None:
            echo("it has not begun: `amqpgate move run` begins")
    if following is not None:
        raise SystemExit(FAILED)


# -- what they share -----------------------------------------------------------------------------------------


@contextmanager
def _world(file: Path, leftovers: Leftovers | None, timeout: float) -> Iterator[MoveWorld]:
    from amqpgate.cli.move_world import MoveWorld
    from amqpgate.move.document import MoveDocument
    from amqpgate.yamldoc import read, structure

    with reported():
        documents = read(file)
        if len(documents) != 1:
            raise Failure(f"{file}: one document is wanted, there are {len(documents)}", WRONG)
        document = structure(documents[0], MoveDocument)
    if leftovers is not None:
        document = attrs.evolve(document, leftovers=leftovers)
    world = MoveWorld.of(document, timeout)
    try:
        yield world
    finally:
        world.close()


def _course(document: MoveDocument, *, back: bool) -> Course:
    from amqpgate.move.view import Course

    ends = document.source.upstream, document.target.upstream
    source, target = ends[::-1] if back else ends
    return Course(
        source,
        target,
        document.routes,
        leftovers=document.leftovers,
        drain_for=document.drain_for,
        edits=document.edits,
    )


def _until_done(mover: Mover, *, until: str | None, give_up_after: float | None, interval: float) -> None:
    from amqpgate.cli.move_run import NotInTime
    from amqpgate.cli.move_world import RefusedByBroker

    try:
        mover.run(until=until, timeout=give_up_after, interval=interval)
    except (RefusedByBroker, NotInTime) as failure:
        raise Failure(f"{failure.message}\n{_STOPPED}") from None
    except KeyboardInterrupt:
        raise Failure(f"amqpgate: {_STOPPED}") from None


def _plan_lines(
    document: MoveDocument, facts: MoveFacts, found: list[Refusal], stopping: list[Refusal]
) -> Iterator[str]:
    from amqpgate.move.refusals import drain_estimate
    from amqpgate.move.steps import STEPS

    yield f"move of {', '.join(document.routes)} from {facts.source} to {facts.target}"
    missing = facts.differences.missing
    yield f"\n{len(missing)} to make on {facts.target}, {facts.differences.same} there already"
    for one in missing[:_SHOWN]:
        yield f"  + {one}"
    if len(missing) > _SHOWN:
        yield f"  + {len(missing) - _SHOWN} more"
    messages = sum(queue.messages for queue in facts.source_queues)
    seconds = drain_estimate(facts.source_queues)
    sessions = sum(one.route in facts.wanted_routes for one in facts.sessions)
    takes = "" if seconds is None else f", which take {seconds:.0f} s at the pace of their consumers"
    yield f"\n{sessions} sessions, {messages} messages in {len(facts.source_queues)} queues{takes}\n"
    for refusal in found:
        word = "refused" if refusal in stopping else "note" if refusal.is_note else "allowed"
        yield from _refusal_lines(refusal, word)
    yield "\nsteps"
    for number, step in enumerate(STEPS, 1):
        yield f"  {number} {step.name:<12}{step.title}"
    if facts.has_begun:
        yield "\nit has begun: `amqpgate move status` says where it stands"
    count = len(stopping)
    yield f"\nrefused: {count} in its way" if count else "\nnothing is in its way: `amqpgate move run` begins"


def _refusal_lines(refusal: Refusal, word: str) -> Iterator[str]:
    from amqpgate.logs import on_one_line

    yield f"{word:<9}{refusal.name}: {on_one_line(refusal.says)}"
    if refusal.remedy and word != "note":
        yield f"         {on_one_line(refusal.remedy)}"


def _plan_json(facts: MoveFacts, found: list[Refusal], stopping: list[Refusal]) -> str:
    return json.dumps(
        {
            "missing": [str(one) for one in facts.differences.missing],
            "same": facts.differences.same,
            "has_begun": facts.has_begun,
            "refusals": [{**attrs.asdict(one), "stops": one in stopping} for one in found],
        },
        indent=2,
    )
