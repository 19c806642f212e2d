"""Each set-up of the chaos plays, with some faults of each sort, and nothing is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chaos.__main__ import main
from tests.chaos.setups import DEFAULT
from tests.support.rabbitmq_root import root_of_4

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

#: Quick ones, on both ways, of the gateway and of what belongs to everything.
FAULTS = ("client-reset", "upstream-reset", "worker-kill", "memory-alarm", "take-over")


@pytest.mark.parametrize("setup", [*DEFAULT, "direct"])
def test_every_set_up_plays(setup: str, tmp_path: Path) -> None:
    if setup not in ("own", "bridged-0-8", "direct"):
        root_of_4()
    faults = FAULTS[:1] if setup == "direct" else FAULTS
    told = ["--minutes", "0.5", "--setups", setup, "--faults", ",".join(faults), "--seed", "5"]
    assert main([*told, "--out", str(tmp_path)]) == 0
    (page,) = tmp_path.glob("*.html")
    (found,) = json.loads(page.with_suffix(".json").read_text())
    assert found["is_good"]
    assert {run["name"] for run in found["faults"]} == set(faults)
    verdict = found["verdict"]
    assert verdict["confirmed"] + verdict["committed"] > 1000
    assert verdict["delivered"] >= verdict["confirmed"] + verdict["committed"]
