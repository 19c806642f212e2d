"""The steps of a move, one after the other, until all are done: each is shown while it is under way."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.cli.failures import Failure
from amqpgate.cli.move_facts import lacking, wanted
from amqpgate.cli.move_world import HeldElsewhere, MoveWorld, RefusedByBroker
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.move.rewriting import Rewritten
    from amqpgate.move.view import Course, Order, View

#: Seconds in which nothing changes before an operator is told what to do.
_PATIENCE: Final = 10.0
#: Seconds between two lines on the same step, and until the same orders are given again.
_PACE, _AGAIN = 2.0, 5.0


class NotInTime(Failure):
    """It has not come so far by then."""


@attrs.define(eq=False)
class MoveScreen:
    """What an operator was told last."""

    _text: str = attrs.field(default="", init=False)
    _step: str = attrs.field(default="", init=False)
    _at: float = attrs.field(default=0.0, init=False)
    _has_helped: bool = attrs.field(default=False, init=False)

    def tell(self, step: str, text: str, remedy: str) -> None:
        """Say it if it is new; say what to do about it if it has not changed for long."""
        now = time.monotonic()
        if text != self._text:
            if step == self._step and now - self._at < _PACE:
                return
            echo(text)
            self._text, self._step, self._at, self._has_helped = text, step, now, False
        elif remedy and not self._has_helped and now - self._at >= _PATIENCE:
            echo(f"    waits: {remedy}")
            self._has_helped = True


@attrs.define(eq=False)
class Pace:
    """How quickly queues get empty."""

    _before: tuple[float, int] | None = attrs.field(default=None, init=False)

    def of(self, messages: int) -> str:
        """Messages per second since it was asked last, in words; nothing where they do not get fewer."""
        now = time.monotonic()
        before, self._before = self._before, (now, messages)
        if before is None or messages >= before[1] or now <= before[0]:
            return ""
        return f"; {(before[1] - messages) / (now - before[0]):.0f} messages/s"


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
    _draining_since: float | None = attrs.field(default=None, init=False)

    def look(self) -> View:
        """What is seen now."""
        from amqpgate.move.steps import next_step

        view = self.world.look(self.course, is_back=not self.copies)
        if self._draining_since is not None:
            view = attrs.evolve(view, drained_for=time.monotonic() - self._draining_since)
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
        shown, pace = MoveScreen(), Pace()
        given: tuple[Order, ...] = ()
        given_at, before = 0.0, ""
        while True:
            line = ""
            try:
                self.world.hold()
                view = self.look()
                step = next_step(self.course, view)
                if step is None or (until is not None and names.index(step.name) > names.index(until)):
                    return
                line = f"{names.index(step.name) + 1}/{len(names)} {step.name:<12}"
                line += step.progress(self.course, view)
                if step.name == "drain":
                    self._draining_since = self._draining_since or time.monotonic()
                    line += pace.of(view.ready + view.unacked)
                shown.tell(step.name, line, step.remedy(self.course, view))
                orders = step.orders(self.course, view)
                if orders != given or time.monotonic() - given_at >= _AGAIN:
                    given, given_at = orders, time.monotonic()
                    self._carry_out(orders, shown)
                is_new, before = step.name != before, step.name
            except (HeldElsewhere, RefusedByBroker):
                raise
            except Failure as failure:
                # A gateway that restarts, say. Nothing is remembered that would have to be undone.
                self.world.close()
                line, is_new, given = failure.message, False, ()
                shown.tell(line, line, "it is asked again, until it answers")
            if end is not None and time.monotonic() >= end:
                raise NotInTime(f"amqpgate: not done in time: {line}")
            if not is_new:
                time.sleep(interval)

    def _carry_out(self, orders: Sequence[Order], shown: MoveScreen) -> None:
        for order in orders:
            self.world.carry_out(self.course, order, lambda about, said: shown.tell(about, f"    {said}", ""))
