"""A run for machines: JSON, and JUnit's XML as CI servers read it."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from amqpgate.conformance.case import CaseResult
from amqpgate.conformance.report.summary import ConformanceRun, wanted


def as_json(run: ConformanceRun) -> str:
    """One object: who was tested, counts by version, all results in order."""
    return json.dumps(
        {
            "address": run.address,
            "product": run.product,
            "seconds": round(run.seconds, 3),
            "counts": run.counts(),
            "results": [_row(result) for result in run.results],
        },
        indent=2,
        ensure_ascii=False,
    )


def _row(result: CaseResult) -> dict[str, object]:
    case = result.case
    return {
        "id": case.id,
        "version": result.version,
        "title": case.title,
        "section": case.section,
        "strength": case.strength,
        "verdict": result.verdict,
        "seen": result.said,
        "allowed": list(case.obeys),
        "seconds": round(result.seconds, 3),
    }


def as_junit(run: ConformanceRun, *, strict: bool) -> str:
    """A suite for each version; what counts against the peer is a failure, what was not tested is skipped."""
    failed = {id(result) for result in run.failed(strict=strict)}
    root = ElementTree.Element("testsuites", name=f"AMQP conformance of {run.address}")
    for version, counts in run.counts().items():
        results = [result for result in run.results if result.version == version]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=f"AMQP {version}",
            tests=str(len(results)),
            failures=str(sum(id(result) in failed for result in results)),
            skipped=str(counts["untestable"]),
            time=f"{sum(result.seconds for result in results):.3f}",
        )
        for result in results:
            _case(suite, result, is_failed=id(result) in failed)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, result: CaseResult, *, is_failed: bool) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=f"AMQP {result.version}.{result.case.id.partition('.')[0]}",
        name=result.case.id,
        time=f"{result.seconds:.3f}",
    )
    said = _xml(f"seen: {result.said}; the rule allows: {wanted(result)}")
    if result.verdict == "untestable":
        ElementTree.SubElement(case, "skipped", message=_xml(result.said))
    elif is_failed:
        ElementTree.SubElement(case, "failure", message=said).text = result.case.title
    elif result.verdict != "obeys":
        ElementTree.SubElement(case, "system-out").text = f"{result.verdict}: {said}"


def _xml(text: str) -> str:
    """Without what XML cannot hold: what a peer says may be anything."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
