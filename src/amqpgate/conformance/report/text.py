"""A run as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from amqpgate.conformance.report.summary import ConformanceRun, not_obeyed, wanted
from amqpgate.logs import on_one_line


def lines(run: ConformanceRun, *, strict: bool) -> Iterator[str]:
    """What is not obeyed, each in two lines; then the counts."""
    for result in not_obeyed(run.results):
        case = result.case
        yield f"{result.verdict:12} {result.version:5} {case.id} ({case.section}, {case.strength})"
        yield f"{'':19}{case.title}"
        if result.verdict == "untestable":
            yield f"{'':19}not tested: {on_one_line(result.said)}"
        else:
            yield f"{'':19}seen: {on_one_line(result.said)}; the rule allows: {wanted(result)}"
    yield f"{run.address} {on_one_line(run.product)}: {run.size} in {run.seconds:.1f} s"
    for version, counts in run.counts().items():
        told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        yield f"  {version:6} {told}"
    failed = len(run.failed(strict=strict))
    yield f"{failed} count against it" if failed else "nothing counts against it"
