"""The time line of a set-up as SVG: messages a second above, each fault's runs below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .outcome import Outcome

_WIDTH, _LEFT, _RIGHT = 1100, 150, 12
_TOP, _HEIGHT, _ROW = 22, 130, 17
_CONFIRMS, _DELIVERIES, _FAULT, _STALL = "#2b6cb0", "#dd6b20", "#c53030", "#feb2b2"
#: Most points of a line: of longer runs a point is the mean of some seconds.
_POINTS = 450


def picture(outcome: Outcome) -> str:
    return "".join(_drawn(outcome))


def _drawn(outcome: Outcome) -> Iterator[str]:
    names = sorted({run.name for run in outcome.faults})
    seconds = max(len(outcome.confirms), len(outcome.deliveries), 1)
    most = max(*outcome.confirms, *outcome.deliveries, 1) if outcome.confirms else 1
    base = _TOP + _HEIGHT
    bottom = base + 24 + _ROW * len(names)

    def x(second: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * min(max(second / seconds, 0), 1), 1)

    yield (
        f"<svg viewBox='0 0 {_WIDTH} {bottom + 6}' xmlns='http://www.w3.org/2000/svg' "
        "font-family='system-ui, sans-serif' font-size='11' fill='#1a202c'>"
    )
    yield f"<text x='{_LEFT}' y='12' fill='{_CONFIRMS}'>confirmed a second</text>"
    yield f"<text x='{_LEFT + 140}' y='12' fill='{_DELIVERIES}'>delivered a second</text>"
    yield f"<text x='{_LEFT + 280}' y='12' fill='{_FAULT}'>fault</text>"
    yield f"<text x='{_LEFT + 330}' y='12' fill='#5a6675'>light red: a client without a confirm</text>"
    for share in (0, 0.5, 1):
        y = base - _HEIGHT * share
        yield f"<line x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{y}' y2='{y}' stroke='#e2e8f0'/>"
        yield f"<text x='{_LEFT - 6}' y='{y + 4}' text-anchor='end' fill='#5a6675'>{most * share:,.0f}</text>"
    for run in outcome.faults:
        at, width = x(run.begin - outcome.begin), _span(x, outcome, run.begin, run.end)
        yield f"<rect x='{at}' width='{width}' y='{_TOP}' height='{_HEIGHT}' fill='{_FAULT}' opacity='.10'/>"
    for counts, colour in ((outcome.deliveries, _DELIVERIES), (outcome.confirms, _CONFIRMS)):
        points = " ".join(
            f"{x(second)},{base - _HEIGHT * count / most:.1f}" for second, count in _thinned(counts)
        )
        yield f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='1.3'/>"
    step = next(each for each in (10, 30, 60, 120, 300, 600, 1800) if seconds / each <= 12 or each == 1800)
    for second in range(0, seconds + 1, step):
        label = f"{second // 60}:{second % 60:02}"
        yield f"<text x='{x(second)}' y='{base + 14}' text-anchor='middle' fill='#5a6675'>{label}</text>"
    for row, name in enumerate(names):
        y = base + 22 + _ROW * row
        yield f"<text x='{_LEFT - 6}' y='{y + 11}' text-anchor='end'>{name}</text>"
        yield f"<line x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{y + 7}' y2='{y + 7}' stroke='#edf2f7'/>"
        for run in outcome.faults:
            if run.name == name:
                at = x(run.begin - outcome.begin)
                stall = _span(x, outcome, run.begin, run.begin + run.confirm_stall)
                width = _span(x, outcome, run.begin, run.end)
                told = f"{run.detail}; without a confirm {run.confirm_stall:.1f} s"
                yield f"<rect x='{at}' y='{y + 2}' height='10' width='{stall}' fill='{_STALL}'/>"
                yield f"<rect x='{at}' y='{y + 4}' height='6' width='{width}' fill='{_FAULT}'>"
                yield f"<title>{_escaped(told)}</title></rect>"
    yield "</svg>"


def _span(x: object, outcome: Outcome, begin: float, end: float) -> float:
    """Its width; so that it is seen, at least two points."""
    left, right = x(begin - outcome.begin), x(end - outcome.begin)  # type: ignore[operator]
    return float(max(round(right - left, 1), 2))


def _thinned(counts: Sequence[int]) -> Iterator[tuple[float, float]]:
    size = -(-len(counts) // _POINTS) or 1
    for at in range(0, len(counts), size):
        some = counts[at : at + size]
        yield at + len(some) / 2, sum(some) / len(some)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
