"""What a newer Python gains: ``python -m tests.bench.pythons --also 3.14='/there/bin/python -m amqpgate'``.

All gateways run at once. They have their turns one after the other, of a tenth of a second each and in an
order that rotates, so that other work on the machine meets them alike: with enough turns medians can be
compared where those of longer runs cannot. In microseconds of a gateway's CPU, with a policy in force: for
a login, whose session publishes nothing, and for a message of these cases of `tests.bench.translated`.

With quartiles, and as a multiple of the first gateway's in the same turn. Bytecode is compiled before, as in
`tests.bench.weight`.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.support.ports import free_port
from tests.support.talker import Talker

from .accounting import cpu_ns
from .build import build
from .tools import Sink
from .translated import POLICY, cases
from .weight import running

SETTINGS = """
listeners: [{{name: main, bind: "127.0.0.1:{port}"}}]
upstreams: [{{name: sink, host: 127.0.0.1, port: {sink}}}]
policies: "{policies}"
admin: {{bind: "127.0.0.1:{admin}"}}
log: {{level: warning, format: json}}
"""
CASES = ("login", "pingpong91", "plain", "publish", "publish-new", "pingpong")
#: Logins in a turn.
_LOGINS = 10


def logins(port: int, _: float) -> int:
    """Sessions that came and went."""
    for _ in range(_LOGINS):
        with Talker.dial(port) as client:
            client.open()
            client.bye()
    return _LOGINS


def player(case: str, port: int) -> Callable[[float], int]:
    """Plays it for so many seconds, and says how many there were."""
    if case == "login":
        return lambda seconds: logins(port, seconds)
    _, begin = cases(100)[case]
    return begin(port)


def take_turns(
    gateways: Sequence[tuple[int, int]], case: str, turns: int, seconds: float
) -> list[list[float]]:
    """Microseconds for one, turn by turn, of each gateway, which are given by process and port."""
    costs: list[list[float]] = [[] for _ in gateways]
    # All connections are left open: none ends in another's turn.
    kept = []
    for turn in range(-2, turns):
        for step in range(len(gateways)):
            number = (turn + step) % len(gateways)
            pid, port = gateways[number]
            kept.append(player(case, port))
            before = cpu_ns(pid)
            count = kept[-1](seconds)
            # What it still does for a turn is its own.
            time.sleep(0.01)
            if turn >= 0:
                costs[number].append((cpu_ns(pid) - before) / 1000 / count)
    return costs


def row(case: str, costs: Sequence[Sequence[float]]) -> str:
    """One line of the table."""
    cells = []
    for own in costs:
        low, middle, high = statistics.quantiles(own, n=4)
        ratios = statistics.quantiles([one / first for one, first in zip(own, costs[0], strict=True)], n=4)
        beside = "" if own is costs[0] else f", **{ratios[1]:.2f}** ({ratios[0]:.2f} to {ratios[2]:.2f})"
        cells.append(f"{middle:.4g} ({low:.4g} to {high:.4g}){beside}")
    return f"| {case} | {' | '.join(cells)} |"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--also", action="append", default=[], metavar="NAME=COMMAND")
    chosen = parser.parse_args()
    commands = {sys.version.split()[0]: [sys.executable, "-m", "amqpgate"]}
    for also in chosen.also:
        name, _, command = also.partition("=")
        commands[name] = shlex.split(command)
    print(f"| {chosen.turns} turns | {' | '.join(commands)} |\n|---|{'---|' * len(commands)}")
    with ExitStack() as stack:
        sink = stack.enter_context(Sink(build().sink, free_port())).port
        policies = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (policies / "bench.yaml").write_text(POLICY)
        gateways = []
        for command in commands.values():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            port, admin = free_port(), free_port()
            text = SETTINGS.format(port=port, admin=admin, sink=sink, policies=policies)
            child, _, _ = stack.enter_context(running(command, text, port, folder))
            gateways.append((child.pid, port))
        for case in chosen.cases:
            print(row(case, take_turns(gateways, case, chosen.turns, chosen.seconds)), flush=True)


if __name__ == "__main__":
    main()
