"""The tools of the benchmark, built once, and the broker that takes whatever comes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.support.ports import free_port

from .build import Tools, build
from .tools import Sink


@pytest.fixture(scope="session")
def tools() -> Tools:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    return build()


@pytest.fixture
def sink(tools: Tools) -> Iterator[Sink]:
    with Sink(tools.sink, free_port()) as one:
        yield one
