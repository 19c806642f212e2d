"""``amqpgate policy test``: the set's own `PolicyTest` documents, run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import click

from amqpgate.cli.failures import FAILED, WRONG, Failure, reported
from amqpgate.cli.policy_explain import lines_of
from amqpgate.cli.policy_files import default_access_option, read_policies
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.policy.kinds.common import DefaultAccess
    from amqpgate.policy.tools.policy_tests import Result


@click.command(short_help="Run the PolicyTest documents of a folder.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write a JUnit report, too.")
@default_access_option
def test(folder: Path, junit: Path | None, default_access: DefaultAccess) -> None:
    """Run the PolicyTest documents in DIR against the policies in DIR.

    Prints each case that fails with its FILE:LINE:COLUMN and the reasons for the answer.

    \b
    amqpgate policy test policies
    amqpgate policy test policies --junit build/policies.xml

    \b
    Exit codes:
      0  all cases are as expected
      1  at least one is not
      2  the documents are wrong, or there is no test
    """
    from amqpgate.policy.tools.policy_tests import run

    with reported():
        policies, documents = read_policies(folder, default_access)
        results = list(run(policies, documents))
        if not results:
            raise Failure(
                f"amqpgate: no PolicyTest document in {folder}; write one beside the policies", WRONG
            )
        if junit is not None:
            junit.write_bytes(_junit(results))
        failed = 0
        for result in results:
            if result.failure is not None:
                failed += 1
                mark = result.mark
                echo(f"{mark.file}:{mark.line}:{mark.column}: {result.case.title}: {result.failure}")
                for line in lines_of(result.explanation):
                    echo(f"  {line}")
        echo(f"{len(results)} cases, {failed} failed")
        if failed:
            raise SystemExit(FAILED)


def _junit(results: Sequence[Result]) -> bytes:
    """A report in the form that CI systems read."""
    suites = ElementTree.Element("testsuites")
    for name in dict.fromkeys(result.test for result in results):
        cases = [result for result in results if result.test == name]
        failures = sum(result.failure is not None for result in cases)
        suite = ElementTree.SubElement(
            suites, "testsuite", name=name, tests=str(len(cases)), failures=str(failures), errors="0"
        )
        for result in cases:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                name=_printable(result.case.title),
                classname=name,
                file=result.mark.file,
                line=str(result.mark.line),
            )
            if result.failure is not None:
                failure = ElementTree.SubElement(case, "failure", message=_printable(result.failure))
                failure.text = _printable("\n".join(lines_of(result.explanation)))
    ElementTree.indent(suites)
    text: str = ElementTree.tostring(suites, encoding="unicode")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{text}\n".encode()


def _printable(text: str) -> str:
    """Without the characters that XML 1.0 has no way to write."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
