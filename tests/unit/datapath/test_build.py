"""Which engine serves: the compiled one wherever it was compiled, and never a stale one in silence."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from amqpgate import datapath
from amqpgate.datapath import build, endpoint, pump, reference, scanner

FOLDER = Path(datapath.__file__).parent
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


@pytest.mark.parametrize(("module", "chooser"), [("_pump", build), ("_scan", scanner)])
def test_what_was_compiled_is_used(module: str, chooser: object) -> None:
    """A build that misses what the sources ask for cannot be imported, and the plain engine would serve."""
    compiled = (FOLDER / f"{module}{SUFFIX}").exists()
    assert vars(chooser)["COMPILED"] is compiled, f"{module} is there and cannot be imported: build it anew"


def test_both_parts_are_of_one_kind() -> None:
    assert build.COMPILED is scanner.COMPILED
    is_plain = (build.Pump is pump.PlainPump, build.RelayEndpoint is endpoint.PlainRelayEndpoint)
    assert is_plain == (not build.COMPILED,) * 2
    assert (scanner.scan is reference.scan) is not build.COMPILED
