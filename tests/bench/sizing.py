"""`python -m tests.bench.sizing RESULTS...`: what a sidecar, 10,000 sessions and a storm of logins take.

Reads the `results.json` of one run or of several and prints tables; `--update docs/sizing.md` puts them
between the page's two marks. What no run has measured is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import attrs
import click

from .figures import OURS, YARDSTICK, Figure, Samples, Spread, cpu, memory, memory_used, per_core, seconds
from .samples import Latency, Memory, Sample, Storm

#: Between these two lines of a page everything is written anew.
BEGIN, END = "<!-- python -m tests.bench.sizing -->", "<!-- end -->"
#: What the tables count on: open sessions, and messages a second.
SESSIONS, MESSAGES = 10_000, 10_000


@attrs.frozen
class Results:
    """Runs that were read from files."""

    samples: Samples
    #: When, where and how, of each.
    facts: Sequence[Mapping[str, str]]

    @classmethod
    def read(cls, files: Iterable[Path]) -> Results:
        """Raises ``OSError``, and ``KeyError`` or ``TypeError`` for what is of another version."""
        samples: list[Sample] = []
        facts: list[Mapping[str, str]] = []
        for file in files:
            raw = json.loads(file.read_text())
            samples += map(_sample, raw["samples"])
            facts.append(raw["facts"])
        return cls(Samples(samples), facts)

    def ours(self, case: str, figure: Figure) -> Spread | None:
        return self.samples.spread(case, OURS, figure)

    def timed(self, case: str, figure: Figure) -> Spread | None:
        """The same, of what counts seconds: None where others kept the machine busy."""
        return None if self.samples.busy else self.ours(case, figure)

    def connections(self) -> int:
        """How many there were at most, in the cases that hold some."""
        return max((max(one.memory.pss) for one in self.samples.of("idle", OURS) if one.memory), default=0)


def _sample(raw: dict[str, object]) -> Sample:
    parts = dict(raw)
    if isinstance(held := parts["memory"], dict):
        parts["memory"] = Memory(**held | {"pss": {int(count): size for count, size in held["pss"].items()}})
    if isinstance(storm := parts["storm"], dict):
        waited = {name: Latency(**storm[name]) for name in ("quiet", "beside_one", "beside_all")}
        parts["storm"] = Storm(**storm | waited | {"pss": tuple(storm["pss"])})
    if isinstance(latency := parts["latency"], dict):
        parts["latency"] = Latency(**latency)
    return Sample(**parts)  # type: ignore[arg-type]


_Row = tuple[str, Spread | None, Callable[[float], str]]


def tables(results: Results) -> str:
    """The three tables, and where they are from."""
    most = results.connections()
    parts = [
        "### A sidecar",
        _table(_sidecar(results)),
        f"### A gateway for {SESSIONS:,} sessions",
        _table(_crowd(results, most)),
        "### A storm",
        _table(_storm(results)),
    ]
    parts += [
        f"{facts['date']}, {facts['machine']}, commit {facts['commit']}, {facts['command']}."
        for facts in results.facts
    ]
    if results.samples.busy:
        parts.append("Others kept the machine busy: what counts seconds is left out, and CPU time is dearer.")
    return "\n\n".join(part for part in parts if part)


def _sidecar(results: Results) -> Iterable[_Row]:
    yield "memory of the process", results.ours("idle", _at_first), _mib
    yield "its start: CPU time", results.ours("start", lambda one: one.cpu_ns), lambda ns: f"{ns / 1e9:.2f} s"
    yield "its start: until it answers", results.timed("start", seconds), lambda took: f"{took:.2f} s"
    yield "a login", results.ours("churn", cpu), _us
    yield "a login over TLS", results.ours("churn-tls", cpu), _us
    for size in ("16", "256", "4k", "64k"):
        named = f"{size[:-1]} KiB" if size.endswith("k") else f"{size} B"
        case = f"publish-{size}"
        yield f"{MESSAGES:,} messages of {named} a second, in batches", results.ours(case, cpu), _share
    yield f"{MESSAGES:,} of 4 KiB a second, over TLS", results.ours("tls-publish-4k", cpu), _share
    yield f"{MESSAGES:,} a second, each alone, confirmed", results.ours("openloop", cpu), _share


def _crowd(results: Results, most: int) -> Iterable[_Row]:
    def whole(each: Figure) -> Figure:
        """The process, and ``SESSIONS`` times what one session takes, in bytes."""

        def of(sample: Sample) -> float | None:
            first, more = _at_first(sample), each(sample)
            return None if first is None or more is None else first + SESSIONS * more * 1024

        return of

    yield "memory, all idle", results.ours("idle", whole(memory(most))), _mib
    yield "memory, each has published", results.ours("idle", whole(memory_used)), _mib
    yield (
        "CPU while nobody says anything",
        results.ours("idle", lambda one: one.memory.idle_cpu * SESSIONS / most if one.memory else None),
        lambda share: f"{share:.1%} of a core",
    )
    yield f"{SESSIONS:,} confirmed messages a second in all", results.ours("openloop", cpu), _share


def _storm(results: Results) -> Iterable[_Row]:
    yield "logins a second of a core", results.ours("storm", per_core), lambda count: f"{count:,.0f}"
    yield (
        f"CPU time until {SESSIONS:,} are back",
        results.ours("storm", cpu),
        lambda ns: f"{ns * SESSIONS / 1e9:.1f} s",
    )
    compared = results.samples.compare("storm", OURS, cpu, YARDSTICK)
    yield f"the same, as a multiple of {YARDSTICK}'s", compared, lambda ratio: f"{ratio:.1f}"
    yield "memory after it", results.ours("storm", _after_storm), _mib
    yield "99th percentile of who stay: before", results.timed("storm", lambda one: _waits(one)[0]), _us
    yield "the same, in the storm", results.timed("storm", lambda one: _waits(one)[1]), _us
    yield (
        "clients that had to try again, of 100",
        results.ours("storm", lambda one: one.storm.again * 100 / one.messages if one.storm else None),
        lambda count: f"{count:.1f}",
    )


def _at_first(sample: Sample) -> float | None:
    return sample.memory.pss[0] if sample.memory else None


def _after_storm(sample: Sample) -> float | None:
    return sample.storm.pss[2] if sample.storm else None


def _waits(sample: Sample) -> tuple[float | None, float | None]:
    """Microseconds at the 99th percentile, before and in a storm."""
    storm = sample.storm
    return (storm.quiet.p99 * 1e3, storm.beside_all.p99 * 1e3) if storm else (None, None)


def _mib(size: float) -> str:
    return f"{size / 2**20:.0f} MiB"


def _us(ns: float) -> str:
    return f"{ns / 1e6:.2f} ms" if ns >= 1e6 else f"{ns / 1e3:.0f} us"


def _share(ns: float) -> str:
    """Of a core, for ``MESSAGES`` a second of so many nanoseconds each."""
    share = ns * MESSAGES / 1e9
    if share < 0.001:
        return "under 0.1%"
    return f"{share:.1%} of a core" if share < 0.1 else f"{share:.0%} of a core"


def _table(rows: Iterable[_Row]) -> str:
    shown = [
        f"| {title} | {form(spread.median)} | {form(spread.low)} to {form(spread.high)} |"
        for title, spread, form in rows
        if spread is not None
    ]
    return "\n".join(["| | median | quartiles |", "|---|---|---|", *shown]) if shown else "Not measured."


def updated(page: str, text: str) -> str:
    """``page`` with ``text`` between its marks. Raises ``ValueError`` where it has none."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"there is no {BEGIN} and {END} in it")
    return f"{head}{begin}\n\n{text}\n\n{end}{tail}"


_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(help=__doc__)
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--update", type=_FILE, help="A page with marks.")
def main(files: tuple[Path, ...], update: Path | None) -> None:
    text = tables(Results.read(files))
    if update is None:
        click.echo(text)
        return
    try:
        update.write_text(updated(update.read_text(), text))
    except ValueError as error:
        raise click.ClickException(f"{update}: {error}") from error


if __name__ == "__main__":
    main()
