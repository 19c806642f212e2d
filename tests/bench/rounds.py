"""All cases on all targets, round after round."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.support.processes import ChildDied
from tests.support.rabbitmq import RabbitMQ

from .cases import Case
from .measure import Bench
from .perf import profile
from .samples import MeasureError, Sample
from .targets import BESIDE, Amqpgate, Target, TargetError


@attrs.frozen
class Plan:
    """What the command line asks for."""

    cases: Sequence[Case]
    rounds: int
    quick: bool
    out: Path
    profiled: Case | None
    profiled_targets: Sequence[str]
    pin: bool


@attrs.define
class Run:
    """Everything that happens between start and report."""

    plan: Plan
    bench: Bench
    targets: list[Target]
    rabbitmq: RabbitMQ | None
    console: Console
    samples: list[Sample] = attrs.field(factory=list)
    failures: list[str] = attrs.field(factory=list)

    def start(self) -> None:
        """Start the proxies; those that cannot are left out, and that is a failure of the run."""
        for target in list(self.targets):
            try:
                target.start()
            except (TargetError, ChildDied, OSError) as error:
                self.fail(f"{target.name} cannot be measured: {error}")
                target.stop()
                self.targets.remove(target)
        if self.plan.pin:
            self._pin()

    def _pin(self) -> None:
        """Proxies on the last core, everything else on the others."""
        cores = sorted(os.sched_getaffinity(0))
        for target in self.targets:
            if target.pid is not None:
                os.sched_setaffinity(target.pid, cores[-1:])
        os.sched_setaffinity(self.bench.sink.pid, cores[:-1])
        os.sched_setaffinity(0, cores[:-1])

    def fail(self, text: str) -> None:
        self.failures.append(text)
        self.console.print(text, style="red", highlight=False, markup=False)

    def measure(self) -> None:
        """Case after case, target after target, round after round; what needs RabbitMQ last."""
        on_sink = [case for case in self.plan.cases if case.way != "rabbitmq"]
        on_rabbitmq = [case for case in self.plan.cases if case.way == "rabbitmq"]
        steps = sum(self._rounds_of(case) for case in self.plan.cases) * len(self.targets)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        # Refreshed between runs only: a thread that draws would take part in the measurement.
        with Progress(*columns, console=self.console, auto_refresh=False) as progress:
            task = progress.add_task("", total=steps)

            def rounds(cases: Sequence[Case]) -> None:
                for number in range(self.plan.rounds):
                    for place, case in enumerate(cases):
                        if number >= self._rounds_of(case):
                            continue
                        for target in _rotated(self.targets, number + place):
                            what = f"{number + 1} {case.name} {target.name}"
                            progress.update(task, description=what, refresh=True)
                            self.one(case, target, number)
                            progress.advance(task)

            rounds(on_sink)
            if on_rabbitmq:
                with self._broker():
                    rounds(on_rabbitmq)
        self.check_tls()

    def _rounds_of(self, case: Case) -> int:
        return min(self.plan.rounds, case.rounds or self.plan.rounds)

    @contextlib.contextmanager
    def _broker(self) -> Iterator[None]:
        assert self.rabbitmq is not None
        self.rabbitmq.start()
        self.bench.broker_pid = self.rabbitmq.pid
        try:
            yield
        finally:
            self.bench.broker_pid = None
            self.rabbitmq.destroy()

    def one(self, case: Case, target: Target, number: int) -> None:
        try:
            sample = self.bench.run(case, _on(case, target), number)
        except (MeasureError, TargetError, OSError) as error:
            self.fail(f"{case.name}, {target.name}, round {number + 1}: {error}")
            return
        if sample is not None:
            self.samples.append(sample)

    def check_tls(self) -> None:
        """Targets that agreed on other versions, ciphers or curves are not to be compared."""
        for case in dict.fromkeys(sample.case for sample in self.samples if sample.tls):
            agreed = {sample.target: sample.tls for sample in self.samples if sample.case == case}
            if len(set(agreed.values())) > 1:
                unlike = ", ".join(f"{name} {tls}" for name, tls in agreed.items())
                self.fail(f"{case}: TLS is not the same everywhere: {unlike}")

    def profile(self, case: Case) -> None:
        """`perf` on some targets while they run one case."""
        broker = self._broker() if case.way == "rabbitmq" else contextlib.nullcontext()
        with broker:
            for target in self.targets:
                if target.name not in self.plan.profiled_targets:
                    continue
                try:
                    text = profile(self.bench, case, _on(case, target), self.plan.out)
                except (MeasureError, TargetError, OSError) as error:
                    self.fail(f"profile of {target.name}: {error}")
                    continue
                click.echo(text)


def _on(case: Case, target: Target) -> Target:
    """Whose process the case is for."""
    return target.beside(case.way) if case.way in BESIDE and isinstance(target, Amqpgate) else target


def _rotated(targets: Sequence[Target], by: int) -> list[Target]:
    by %= len(targets) or 1
    return [*targets[by:], *targets[:by]]
