"""A pytest plugin, loaded into other projects' test runs: one line of JSON per finished test.

The lines `{"test": node id, "outcome": "passed" | "failed" | "skipped", "began": ..., "ended": ...}`, with
times in seconds since the epoch, go to the file that the environment names in `ACCEPTANCE_OUTCOMES`. A test
that is run again (pytest-rerunfailures) counts by its last run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

_phases: dict[str, dict[str, str]] = {}
_began: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> Iterator[None]:
    """Note a phase, and write the outcome down after the last one."""
    if report.when == "setup":
        _phases[report.nodeid] = {}
        _began[report.nodeid] = report.start
    phases = _phases.setdefault(report.nodeid, {})
    phases[report.when or ""] = report.outcome
    if report.when == "teardown":
        outcomes = set(phases.values())
        worst = next((kind for kind in ("failed", "rerun", "skipped") if kind in outcomes), "passed")
        with Path(os.environ["ACCEPTANCE_OUTCOMES"]).open("a") as file:
            times = {"began": _began[report.nodeid], "ended": report.stop}
            file.write(json.dumps({"test": report.nodeid, "outcome": worst} | times) + "\n")
    return (yield)
