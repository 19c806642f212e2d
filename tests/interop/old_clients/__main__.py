"""Play every old client everywhere, and print a table of it.

    python -m tests.interop.old_clients [--client amqplib_0_8]

A line per client: its version and protocol header, and for each place how many of its steps went well, or
that it was refused as a whole. Below, each step that did not, and why. Exit code 1 if there is one through
the gateway.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from tests.interop.old_clients.clients import CLIENTS, Client, Failed, Outcome, verdicts
from tests.interop.old_clients.places import DIRECT, UPSTREAMS, play, ports
from tests.support.rabbitmq import RabbitMQ


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--client", action="append", choices=list(CLIENTS), help="only this one (default: all)"
    )
    parser.add_argument("--place", action="append", choices=[*DIRECT, *UPSTREAMS], help="only here")
    options = parser.parse_args()
    notes: list[str] = []
    lost = 0
    rabbitmq = RabbitMQ()
    rabbitmq.start()
    try:
        with ports(rabbitmq) as everywhere:
            at = {place: everywhere[place] for place in options.place or everywhere}
            print(row("client", "version", "header", at))
            for name in options.client or CLIENTS:
                client = CLIENTS[name]
                lack = client.lacks()
                if lack is not None:
                    print(row(name, client.version, client.header, [f"not run: {lack}"]), flush=True)
                    continue
                cells = []
                for place, port in at.items():
                    seen = play(client, place, port, rabbitmq)
                    wrong = list(verdicts(client, seen, place=place, mapped=place not in DIRECT))
                    cells.append(cell(seen, wrong))
                    notes += told(client, place, seen, wrong)
                    lost += len(wrong) if place not in DIRECT else 0
                print(row(name, client.version, client.header, cells), flush=True)
    finally:
        rabbitmq.destroy()
    print("", *notes, sep="\n")
    return 1 if lost else 0


def row(name: str, version: str, header: str, cells: Mapping[str, int] | list[str]) -> str:
    return f"{name:18} {version:8} {header:8} " + " ".join(f"{text:12}" for text in cells)


def cell(seen: Mapping[str, Outcome], wrong: list[tuple[str, str]]) -> str:
    return "refused" if refused(seen) else f"{len(seen) - len(wrong)} of {len(seen)}"


def refused(seen: Mapping[str, Outcome]) -> bool:
    """Whether the client did not even get in."""
    return all(isinstance(outcome, Failed) for outcome in seen.values())


def told(client: Client, place: str, seen: Mapping[str, Outcome], wrong: list[tuple[str, str]]) -> list[str]:
    if refused(seen):
        return [f"{client.name} {place}: refused: {wrong[0][1]}"]
    steps: dict[str, list[str]] = {}
    for step, text in wrong:
        steps.setdefault(text, []).append(step)
    return [f"{client.name} {place}: {', '.join(named)}: {text}" for text, named in steps.items()]


if __name__ == "__main__":
    sys.exit(main())
