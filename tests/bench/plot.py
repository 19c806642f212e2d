"""The results as pictures (matplotlib, which only this file needs)."""

from __future__ import annotations

from pathlib import Path

from .cases import CASES
from .figures import OURS, YARDSTICK, cpu, latency, memory, per_core
from .report import Report

#: By target; others follow matplotlib's own cycle.
_COLOURS = {"direct": "#9a9a9a", YARDSTICK: "#4c72b0", f"{YARDSTICK}-256k": "#8fb0dc", OURS: "#dd5f2a"}


def plot(report: Report, folder: Path) -> list[Path]:
    """Write bench.svg and bench.png. ImportError where matplotlib is missing."""
    import matplotlib as mpl

    mpl.use("Agg")
    # Text stays text, and two runs with the same figures give the same file.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "bench", "font.size": 9})
    from matplotlib import pyplot

    figure, (costs, waits, logins, idle) = pyplot.subplots(
        1, 4, figsize=(20, 8), width_ratios=(5, 3, 3, 2), layout="constrained"
    )
    _costs(costs, report)
    _waits(waits, report)
    _logins(logins, report)
    _idle(idle, report)
    figure.suptitle(" · ".join(report.facts[name] for name in ("date", "machine") if name in report.facts))
    paths = [folder / "bench.svg", folder / "bench.png"]
    for path in paths:
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
    return paths


def _costs(axes, report: Report) -> None:
    """CPU per message as multiples of HAProxy's: medians and quartiles, and the marks."""
    samples = report.samples
    names = [name for name in report.targets if name not in ("direct", YARDSTICK)]
    shown = [case for case in CASES if case.per_message and samples.compare(case.name, OURS, cpu, YARDSTICK)]
    height = 0.8 / max(1, len(names))
    for index, name in enumerate(names):
        rows = [(row, samples.compare(case.name, name, cpu, YARDSTICK)) for row, case in enumerate(shown)]
        found = [(row, spread) for row, spread in rows if spread is not None]
        axes.errorbar(
            [spread.median for _, spread in found],
            [row + (index - (len(names) - 1) / 2) * height for row, _ in found],
            xerr=[
                [spread.median - spread.low for _, spread in found],
                [spread.high - spread.median for _, spread in found],
            ],
            fmt="o",
            elinewidth=2,
            label=name,
            color=_COLOURS.get(name),
        )
    for row, case in enumerate(shown):
        for mark in case.marks:
            if mark.measure == "cpu":
                axes.plot([mark.limit] * 2, [row - 0.4, row + 0.4], color="black", linewidth=1.5)
    axes.axvline(1, color=_COLOURS[YARDSTICK], linewidth=1, linestyle="--")
    axes.set_yticks(range(len(shown)), [case.title for case in shown])
    axes.invert_yaxis()
    axes.grid(axis="x", color="#e0e0e0")
    axes.set_axisbelow(True)
    # A proxy that costs fifty times as much would make all others invisible.
    axes.set_xscale("log")
    ticks = [0.5, 0.7, 1, 1.4, 2, 4, 8, 16, 32, 64]
    low, high = axes.get_xlim()
    axes.set_xticks([tick for tick in ticks if low <= tick <= high], minor=False)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_title(f"CPU per message, multiple of {YARDSTICK} (line: mark)")
    axes.legend(loc="best")


def _waits(axes, report: Report) -> None:
    """Median and 99th percentile of latency."""
    shown = [case for case in CASES if case.mode in ("confirm", "openloop") and case.way == "sink"]
    rows = [
        (case, name, report.samples.spread(case.name, name, latency("p50")))
        for case in shown
        for name in report.targets
    ]
    found = [(case, name, median) for case, name, median in rows if median is not None]
    for row, (case, name, median) in enumerate(found):
        tail = report.samples.spread(case.name, name, latency("p99"))
        assert tail is not None
        colour = _COLOURS.get(name, "#55a868")
        axes.plot([median.median, tail.median], [row, row], color=colour, linewidth=3)
        axes.plot([median.median], [row], "o", color=colour)
        axes.plot([tail.low, tail.high], [row, row], "|", color=colour)
    axes.set_yticks(range(len(found)), [f"{case.name}\n{name}" for case, name, _ in found])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_title("latency, us: p50 (dot) to p99")


def _logins(axes, report: Report) -> None:
    """Logins that a second of CPU time is enough for; the line is the mark."""
    shown = [case for case in CASES if case.mode in ("churn", "storm")]
    rows = [
        (case, name, report.samples.spread(case.name, name, per_core))
        for case in shown
        for name in report.targets
    ]
    found = [(case, name, spread) for case, name, spread in rows if spread is not None]
    axes.barh(
        range(len(found)),
        [spread.median for _, _, spread in found],
        color=[_COLOURS.get(name, "#55a868") for _, name, _ in found],
    )
    for row, (case, name, _) in enumerate(found):
        for mark in case.marks:
            if mark.measure == "per-core" and name == OURS:
                axes.plot([mark.limit] * 2, [row - 0.4, row + 0.4], color="black", linewidth=1.5)
    axes.set_yticks(range(len(found)), [f"{case.name}\n{name}" for case, name, _ in found])
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_title("logins a second of CPU time (line: mark)")


def _idle(axes, report: Report) -> None:
    """KiB per idle connection."""
    held = [sample for sample in report.samples.all if sample.memory is not None]
    if not held or held[0].memory is None:
        axes.set_axis_off()
        return
    most = max(held[0].memory.pss)
    everyone = [(name, report.samples.spread(held[0].case, name, memory(most))) for name in report.targets]
    targets, spreads = zip(*((name, spread) for name, spread in everyone if spread), strict=True)
    axes.bar(
        targets,
        [spread.median for spread in spreads],
        color=[_COLOURS.get(name, "#55a868") for name in targets],
    )
    axes.axhline(3, color="black", linewidth=1.5)
    axes.tick_params(axis="x", rotation=30)
    axes.set_title(f"KiB per connection,\n{most:,} idle ones (line: mark)")
