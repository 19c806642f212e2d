"""What passes directly passes through the gateway: the acceptance tests that the libraries ship."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.acceptance import Addresses, Comparison, addresses, compare
from tests.interop.upstream.suites import SUITES
from tests.support.environments import NotHere
from tests.support.missing import missing
from tests.support.rabbitmq import script_folder


@pytest.fixture(scope="module")
def at() -> Iterator[Addresses]:
    if script_folder() is None:
        missing("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
    with addresses() as at:
        yield at


def check(comparison: Comparison) -> None:
    print(comparison.table())
    print(comparison.summary())
    assert comparison.passed_direct, "nothing passes directly: the comparison says nothing"
    assert not comparison.lost, comparison.summary()


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", list(SUITES))
def test_acceptance(name: str, at: Addresses) -> None:
    try:
        check(compare(SUITES[name], at))
    except NotHere as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", [name for name, suite in SUITES.items() if suite.quick])
def test_quick_acceptance(name: str, at: Addresses) -> None:
    try:
        check(compare(SUITES[name], at, quick=True))
    except NotHere as error:
        pytest.skip(str(error))
