"""The steps of a move, one after the other, until all are done: each is shown while it is under way."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import attrs
import click

from amqpgate.cli.failures import Failure
from amqpgate.cli.move_facts import lacking, wanted
from amqpgate.cli.move_world import HeldElsewhere, MoveWorld

if TYPE_CHECKING:
    from amqpgate.move.rewriting import Rewritten
    from amqpgate.move.steps import MoveStep
    from amqpgate.move.view import Course, View

#: Seconds in which nothing changes before an operator is told what to do.
_PATIENCE: Final = 10.0
#: Steps in which what fails is not tried again: a broker has refused something.
_NOT_AGAIN: Final = ("definitions", "leftovers")


@attrs.define(eq=False)
class Shown:
    """What an operator was told last."""

    clock: Callable[[], float] = time.monotonic
    _text: str = attrs.field(default="", init=False)
    _since: float = attrs.field(default=0.0, init=False)
    _has_helped: bool = attrs.field(default=False, init=False)

    def tell(self, text: str, remedy: str) -> None:
        """Say it if it is new; say what to do about it if it has not changed for long."""
        if text != self._text:
            click.echo(text)
            self._text, self._since, self._has_helped = text, self.clock(), False
        elif not self._has_helped and self.clock() - self._since >= _PATIENCE:
            click.echo(f"    waits: {remedy}")
            self._has_helped = True


@attrs.define(eq=False)
class Mover:
    """One run of ``amqpgate move run``, ``rollback`` or ``status``."""

    world: MoveWorld
    course: Course
    #: Whether the target gets what it lacks: not on the way back.
    copies: bool = True
    _version: str = attrs.field(default="", init=False)
    #: What was seen when the brokers were compared last and nothing was missing.
    _compared: object = attrs.field(default=None, init=False)

    def look(self) -> View:
        """What is seen now."""
        from amqpgate.move.steps import next_step

        view = self.world.look(self.course)
        if not self.copies:
            return view
        # To compare all takes long where there is much: when a step is done, or queues have come or gone.
        step = next_step(self.course, view)
        known = (step and step.name, {str(queue) for queue in view.queues})
        if known == self._compared:
            return view
        missing = lacking(self.world, self._wanted()).missing
        self._compared = None if missing else known
        return attrs.evolve(view, missing=missing)

    def _wanted(self) -> Rewritten:
        if not self._version:
            self._version, _ = self.world.target.management.overview()
        return wanted(self.world, self._version)

    def run(self, *, until: str | None, timeout: float | None, interval: float) -> None:
        """Go on until all is done, or the step ``until`` is. Raises ``Failure`` where a broker refuses
        something, another one moves, or after ``timeout`` seconds.
        """
        from amqpgate.move.steps import STEPS, next_step

        names = [step.name for step in STEPS]
        end = None if timeout is None else time.monotonic() + timeout
        shown, before = Shown(), ""
        while True:
            step: MoveStep | None = None
            try:
                self.world.hold()
                view = self.look()
                step = next_step(self.course, view)
                if step is None or (until is not None and names.index(step.name) > names.index(until)):
                    return
                line = step_line(step, self.course, view)
                shown.tell(line, step.remedy(self.course, view))
                for order in step.orders(self.course, view):
                    self.world.carry_out(self.course, order, lambda said: shown.tell(f"    {said}", ""))
            except Failure as failure:
                self.world.close()
                if isinstance(failure, HeldElsewhere) or (step is not None and step.name in _NOT_AGAIN):
                    raise
                line = failure.message
                shown.tell(line, "it is asked again, until it answers")
            if end is not None and time.monotonic() >= end:
                raise Failure(f"amqpgate: not done in time: {line}")
            name = "" if step is None else step.name
            if name == before:
                time.sleep(interval)
            before = name


def step_line(step: MoveStep, course: Course, view: View) -> str:
    """How far it is."""
    from amqpgate.move.steps import STEPS

    return f"{STEPS.index(step) + 1}/{len(STEPS)} {step.name:<12}{step.progress(course, view)}"
