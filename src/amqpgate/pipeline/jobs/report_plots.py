"""A plot as SVG that stands in a page: its colors are the page's, and so are all names."""

from __future__ import annotations

import io
import re
from itertools import pairwise
from typing import Final

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from amqpgate.pipeline.jobs.report_parts import MOST_SERIES, Plot

#: Inches, of 72 points.
_SIZE: Final = (9.0, 2.6)

#: Colors that stand for those of the page, which has others where it is dark: for the text, and the series.
_INK: Final = "#00000f"
_FILLS: Final = tuple(f"#0000{number:x}0" for number in range(1, MOST_SERIES + 2))
_PAGES: Final = {_INK: "currentColor"} | {
    fill: f"var(--series-{number})" for number, fill in enumerate(_FILLS, 1)
}

_THOUSANDS: Final = EngFormatter(sep="")


def svg_of(plot: Plot) -> str:
    """The plot without its title and its names, which are text for the page. It has a step and a series."""
    out = io.StringIO()
    with matplotlib.rc_context(
        {
            "svg.fonttype": "none",
            # The same plot is the same text.
            "svg.hashsalt": plot.title,
            "date.converter": "concise",
            "text.color": _INK,
            "axes.edgecolor": _INK,
            "axes.labelcolor": _INK,
            "xtick.color": _INK,
            "ytick.color": _INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "grid.color": _INK,
            "grid.alpha": 0.15,
        }
    ):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        # Days since the epoch; where the last step ends is told by the one before.
        times = [time.timestamp() / 86_400 for time in plot.times]
        step = next((after - before for before, after in pairwise(times)), 1 / 1440)
        edges = [*times, times[-1] + step]
        below = [0.0] * len(times)
        for series, fill in zip(plot.series, _FILLS, strict=False):
            above = [low + value for low, value in zip(below, series.values, strict=True)]
            axes.fill_between(
                edges, [*below, below[-1]], [*above, above[-1]], step="post", color=fill, linewidth=0
            )
            below = above
        axes.xaxis_date("UTC")
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda number, _: _short(number))
        axes.set_ylabel(plot.unit)
        axes.grid(axis="y")
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return _bare(out.getvalue())


def _short(number: float) -> str:
    return _THOUSANDS(number) if number >= 1000 else f"{number:g}"


def _bare(text: str) -> str:
    """Without what only a file of its own has, and with the page's colors."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    # Ids of groups repeat from plot to plot; those that are referred to are made from what they hold.
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    return re.sub(r"#0000[0-9a-f]{2}\b", lambda found: _PAGES.get(found[0], found[0]), text).strip()
