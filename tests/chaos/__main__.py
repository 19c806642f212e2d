"""Chaos on real parts.

    python -m tests.chaos --minutes 30 --setups own,pooled@4.3 --faults worker-kill,broker-reset --seed 7

`--list` names set-ups and faults. The report is `build/chaos/<time>.html`, with JSON beside it. Exit code 1
where anything is wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from .churn import churn, probed
from .faults import FAULTS
from .outcome import Outcome
from .report import page, summary, written
from .setups import DEFAULT, SETUPS, Setup, named
from .stage import Order, play

_ROOT = Path(__file__).parents[2]
_INSIDE = "AMQPGATE_CHAOS_MOUNTS"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30, help="of all set-ups together")
    parser.add_argument("--setups", default=",".join(DEFAULT), help="names; own@4.3 for another broker")
    parser.add_argument("--faults", default="", help="names; all that fit otherwise")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--rate", type=float, default=0, help="messages a second; 0: as many as may be")
    parser.add_argument("--out", type=Path, default=_ROOT / "build/chaos")
    parser.add_argument("--keep", action="store_true", help="keep the clients' records")
    parser.add_argument(
        "--churn", action="store_true", help="no faults: clients come and go; what rises meanwhile"
    )
    parser.add_argument(
        "--visitors",
        type=int,
        default=0,
        help="with --churn: so many that make no pause; memory by connections",
    )
    parser.add_argument("--list", action="store_true")
    told = parser.parse_args(arguments)
    if told.list:
        print(f"set-ups: {', '.join(SETUPS)}\nfaults: {', '.join(FAULTS)}")
        return 0
    setups = [named(name) for name in told.setups.split(",")]
    faults = tuple(name for name in told.faults.split(",") if name)
    if unknown := [name for name in faults if name not in FAULTS]:
        parser.error(f"no such fault: {', '.join(unknown)}")
    seed = random.randrange(1, 1 << 31) if told.seed is None else told.seed
    stamp = time.strftime("%Y%m%d-%H%M%S")
    told.out.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for setup in setups:
        folder = Path(tempfile.mkdtemp(prefix="amqpgate-chaos-"))
        name = f"{setup.name}@{setup.broker}"
        print(f"{time.strftime('%X')} {name}, seed {seed}", flush=True)
        order = Order(60 * told.minutes / len(setups), seed, faults, told.rate)
        try:
            outcome = _played(setup, order, folder, told.visitors if told.churn else None)
        except Exception as error:
            # The other set-ups are played all the same.
            outcome = Outcome(name, time.time(), seed, time.time(), problems=[traceback.format_exc()])
            print(f"  did not play: {error}", flush=True)
        finally:
            if told.keep:
                print(f"  kept: {folder}")
            else:
                shutil.rmtree(folder, ignore_errors=True)
        outcomes.append(outcome)
        print(summary(outcome), flush=True)
        # So that what was seen is there whatever happens to the rest.
        (told.out / f"{stamp}.json").write_text(written(outcomes))
        (told.out / f"{stamp}.html").write_text(page(outcomes))
    print(told.out / f"{stamp}.html")
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


def _played(setup: Setup, order: Order, folder: Path, visitors: int | None) -> Outcome:
    def say(text: str) -> None:
        print(f"  {text}", flush=True)

    if visitors is None:
        return play(setup, order, folder, say)
    with probed(folder / "tasks") as tasks:
        return play(setup, order, folder, say, churn(tasks, visitors))


def enter() -> None:
    """In a mount namespace of its own, so that a full disk ends with this process."""
    if _INSIDE not in os.environ and os.geteuid() == 0 and shutil.which("unshare"):
        os.environ[_INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, "-m", "tests.chaos", *sys.argv[1:]])


if __name__ == "__main__":
    enter()
    sys.exit(main())
