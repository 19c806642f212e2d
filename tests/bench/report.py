"""The results as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from .cases import BY_NAME, CASES, Case, Mark
from .figures import (
    OURS,
    YARDSTICK,
    Figure,
    Samples,
    Spread,
    Verdict,
    cpu,
    latency,
    memory,
    memory_used,
    per_core,
    rate,
    seconds,
    storm_to_one_by_one,
    storm_to_quiet,
)

NONE = "-"


@attrs.frozen
class Report:
    """One run of the benchmark: what was measured where, when, how, and with which result."""

    #: Name and value of what a reader must know: date, machine, command.
    facts: Mapping[str, str]
    #: Name and description.
    targets: Mapping[str, str]
    samples: Samples
    #: What went wrong, in sentences.
    failures: Sequence[str]
    quick: bool

    @property
    def cases(self) -> list[Case]:
        """Those of which there are samples, in the order of the table."""
        measured = {sample.case for sample in self.samples.all}
        return [case for case in CASES if case.name in measured]

    def markdown(self) -> str:
        """The whole."""
        parts = [
            "# Benchmark",
            *self._head(),
            "## Marks",
            *self._marks(),
            "## CPU per message",
            "The proxy process's own CPU time, user and system, divided by the messages that passed. Others "
            f"are multiples of {YARDSTICK} in the same round: median, quartiles in brackets. `tools` is what "
            "load tool and sink cost without a proxy.",
            self._cpu(),
            "## Messages per second",
            "Median, quartiles in brackets; percent: of one core, that the proxy used. RabbitMQ takes most "
            "of the machine in its cases.",
            self._rates(),
            "## Latency",
            "Microseconds, from the (intended) send to the confirm; `churn` is the life of a connection. "
            "Added: to that without a proxy, in the same round.",
            self._latency(),
            "## Setting up",
            "Connections, or logins, that a second of CPU time is enough for.",
            self._per_core(),
            "Clients that came one after the other, left, and came back all at once, a login each, in a new "
            "process; beside them some who stayed, whose 99th percentile is given in microseconds. `again`: "
            "clients that were refused or cut, and tried once more.",
            self._storm(),
            "From the start of the process until a client hears connection.start.",
            self._start(),
            "## Memory per idle connection",
            "KiB of proportional set size above that with no connection, of a new process.",
            self._memory(),
            "## The machine while it measured",
            *self._noise(),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _head(self) -> Iterable[str]:
        if self.quick:
            yield "**A quick run: too short to say anything about speed.**"
        yield _table(["", ""], [[name, value] for name, value in self.facts.items()])
        yield _table(["target", "what it is"], [[name, text] for name, text in self.targets.items()])
        if self.failures:
            yield "**What went wrong:**\n\n" + "\n".join(f"- {_one_line(text)}" for text in self.failures)

    def _marks(self) -> Iterable[str]:
        verdicts = self.samples.verdicts()
        rows = [
            [one.case.title, _claim(one.mark), _figure(one), _verdict(one)] for one in verdicts if self.cases
        ]
        if rows and self.samples.busy:
            yield (
                "**Others kept the machine busy while this was measured: what counts seconds (latency, "
                "messages a second, the start) says nothing, and CPU time little but as a ratio.**"
            )
        if rows:
            yield _table(["case", "mark", OURS, ""], rows)

    def _table_of(
        self,
        cases: Iterable[Case],
        first: Sequence[str],
        cells: Callable[[Case, str], str],
        head: Callable[[Case], Sequence[str]] = lambda case: (),
        targets: Sequence[str] | None = None,
    ) -> str:
        names = list(self.targets) if targets is None else list(targets)
        rows = [[case.title, *head(case), *(cells(case, name) for name in names)] for case in cases]
        return _table([*first, *names], [row for row in rows if any(cell != NONE for cell in row[1:])])

    def _cpu(self) -> str:
        def tools(case: Case) -> list[str]:
            spread = self.samples.spread(
                case.name,
                "direct",
                lambda sample: (sample.load_cpu_ns + sample.sink_cpu_ns) / sample.messages,
            )
            return [_ns(spread)]

        def cell(case: Case, target: str) -> str:
            if target == YARDSTICK:
                return _ns(self.samples.spread(case.name, target, cpu))
            return _times(self.samples.compare(case.name, target, cpu, YARDSTICK))

        proxies = [name for name in self.targets if name != "direct"]
        cases = [case for case in self.cases if case.per_message]
        return self._table_of(cases, ["case", "tools"], cell, tools, proxies)

    def _rates(self) -> str:
        def cell(case: Case, target: str) -> str:
            busy = self.samples.spread(
                case.name, target, lambda one: one.cpu_ns / one.seconds / 1e7 if one.cpu_ns else None
            )
            text = _large(self.samples.spread(case.name, target, rate))
            return f"{text}, {busy.median:.0f} %" if busy else text

        return self._table_of([case for case in self.cases if case.per_message], ["case"], cell)

    def _latency(self) -> str:
        rows = []
        # With a window and no pause, latency is but the window divided by the throughput.
        for case in (case for case in self.cases if case.way in ("sink", "tls")):
            for target in self.targets:
                spreads = [
                    self.samples.spread(case.name, target, latency(name)) for name in ("p50", "p99", "p999")
                ]
                if not any(spreads):
                    continue
                added = [
                    self.samples.compare(
                        case.name, target, latency(name), "direct", lambda ours, theirs: ours - theirs
                    )
                    for name in ("p50", "p99")
                ]
                shown = [_spread(one, "{:+,.0f}") if target != "direct" else NONE for one in added]
                rows.append([case.title, target, *(_spread(one, "{:,.0f}") for one in spreads), *shown])
        return (
            _table(["case", "target", "p50", "p99", "p99.9", "p50 added", "p99 added"], rows) if rows else ""
        )

    def _per_core(self) -> str:
        def cell(case: Case, target: str) -> str:
            return _spread(self.samples.spread(case.name, target, per_core), "{:,.0f}")

        cases = [case for case in self.cases if case.mode in ("churn", "storm")]
        proxies = [name for name in self.targets if name != "direct"]
        return self._table_of(cases, ["case"], cell, targets=proxies) if cases else ""

    def _storm(self) -> str:
        columns: list[tuple[str, Figure, str]] = [
            ("seconds", seconds, "{:.2f}"),
            (
                "us of CPU each",
                lambda one: one.cpu_per_message / 1e3 if one.cpu_per_message else None,
                "{:,.0f}",
            ),
            ("of one by one", storm_to_one_by_one, "{:.2f}"),
            ("p99 of who stay, before", lambda one: one.storm.quiet.p99 if one.storm else None, "{:,.0f}"),
            ("one by one", lambda one: one.storm.beside_one.p99 if one.storm else None, "{:,.0f}"),
            ("all at once", lambda one: one.storm.beside_all.p99 if one.storm else None, "{:,.0f}"),
            ("of before", storm_to_quiet, "{:.1f}"),
            ("again", lambda one: one.storm.again if one.storm else None, "{:,.0f}"),
            (
                "memory after it, MiB",
                lambda one: one.storm.pss[2] / 2**20 if one.storm and one.storm.pss[2] else None,
                "{:.0f}",
            ),
        ]
        return self._rows_of("storm", columns)

    def _start(self) -> str:
        return self._rows_of(
            "start",
            [
                ("seconds", seconds, "{:.3f}"),
                ("ms of CPU", lambda one: (one.cpu_ns or 0) / 1e6, "{:,.0f}"),
            ],
        )

    def _rows_of(self, case: str, columns: Sequence[tuple[str, Figure, str]]) -> str:
        """A row for each target, a figure in each column."""
        targets = [name for name in self.targets if self.samples.of(case, name)]
        rows = [
            [name, *(_spread(self.samples.spread(case, name, figure), form) for _, figure, form in columns)]
            for name in targets
        ]
        return _table(["target", *(title for title, _, _ in columns)], rows) if rows else ""

    def _memory(self) -> str:
        columns: list[tuple[str, Figure]] = []
        idle = [sample for sample in self.samples.all if sample.memory is not None]
        if not idle or idle[0].memory is None:
            return ""
        counts = sorted(idle[0].memory.pss)[1:]
        columns += [(f"{count:,} connections", memory(count)) for count in counts]
        columns.append((f"{counts[-1]:,}, each has published", memory_used))
        columns.append(("before, MiB", lambda one: one.memory.pss[0] / 2**20 if one.memory else None))
        columns.append(
            ("CPU while idle, ms/s", lambda one: one.memory.idle_cpu * 1e3 if one.memory else None)
        )
        columns.append(("to open one, us of CPU", lambda one: (one.cpu_per_message or 0) / 1e3))
        targets = [name for name in self.targets if any(sample.target == name for sample in idle)]
        rows = [
            [
                name,
                *(
                    _spread(self.samples.spread(idle[0].case, name, figure), "{:.2f}")
                    for _, figure in columns
                ),
            ]
            for name in targets
        ]
        return _table(["target", *(title for title, _ in columns)], rows)

    def _noise(self) -> Iterable[str]:
        timed = [sample for sample in self.samples.all if BY_NAME[sample.case].per_message]
        foreign = self.samples.foreign
        stolen = Spread.of(sample.stolen * 100 for sample in timed)
        if foreign is None:
            return
        worst = max(sample.foreign for sample in timed) * 100
        yield (
            f"Share of its CPU time that went to other processes: {_spread(foreign, '{:.1%}')}, at worst "
            f"{worst:.0f} %; that its host took away: {_spread(stolen, '{:.1f}')} %. Above a few percent the "
            "figures are not to be trusted."
        )
        if agreed := sorted({f"{one.target} {one.tls}" for one in timed if one.tls}):
            yield "TLS: " + ", ".join(agreed) + "."
        wrong = [sample for sample in timed if sample.uncounted]
        if wrong:
            rows = {f"{one.target} missed {one.uncounted:,} in {one.case}" for one in wrong}
            yield "Metrics that miscount: " + "; ".join(sorted(rows)) + "."


def _claim(mark: Mark) -> str:
    limit, against = f"{mark.limit:g}", mark.against
    match mark.measure:
        case "cpu":
            return f"CPU ≤ {limit} x {against}"
        case "cpu-of-case":
            return f"CPU ≤ {limit} x {BY_NAME[against].title}"
        case "p50":
            return f"p50 ≤ {against} + {limit} us"
        case "p99":
            return f"p99 ≤ {limit} x {against}"
        case "throughput":
            return f"messages/s ≥ {limit} x {against}"
        case "memory":
            return f"≤ {limit} KiB each at {int(against):,}"
        case "per-core":
            return f"≥ {mark.limit:,.0f} a second of CPU"
        case "cpu-one-by-one":
            return f"CPU ≤ {limit} x one by one"
        case "p99-quiet":
            return f"p99 of who stay ≤ {limit} x before"
        case "seconds":
            return f"≤ {limit} s"


def _figure(verdict: Verdict) -> str:
    forms = {"p50": "{:+.1f} us", "per-core": "{:,.0f}", "seconds": "{:.3f} s"}
    return _spread(verdict.figure, forms.get(verdict.mark.measure, "{:.2f}"))


def _verdict(verdict: Verdict) -> str:
    if verdict.passed is None or verdict.by is None:
        return "**not measured**"
    share = f"{abs(verdict.by):.1%}" if abs(verdict.by) < 0.01 else f"{abs(verdict.by):.0%}"
    return f"pass, {share} to spare" if verdict.passed else f"**miss by {share}**"


def _spread(spread: Spread | None, form: str) -> str:
    if spread is None:
        return NONE
    return f"{form.format(spread.median)} ({form.format(spread.low)} to {form.format(spread.high)})"


def _large(spread: Spread | None) -> str:
    """With a unit that suits the median."""
    if spread is None:
        return NONE
    unit, factor = next(
        (name, size) for name, size in (("M", 1e6), ("k", 1e3), ("", 1)) if spread.median >= size or size == 1
    )
    median, low, high = (_digits(value / factor) for value in (spread.median, spread.low, spread.high))
    return f"{f'{median} {unit}'.strip()} ({low} to {high})"


def _digits(value: float) -> str:
    """Three of them, or as many as stand before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _ns(spread: Spread | None) -> str:
    return _spread(spread, "{:,.0f}") + " ns" if spread else NONE


def _times(spread: Spread | None) -> str:
    if spread is None:
        return NONE
    return f"{spread.median:.2f} x ({spread.low:.2f} to {spread.high:.2f})"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(head), ["---"] * len(head), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
