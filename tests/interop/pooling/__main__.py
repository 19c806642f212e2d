"""Measure what pooling is good for, on a real RabbitMQ.

    python -m tests.interop.pooling [--only errands|idle] [--clients 1000] [--at-once 4] [--round-trip 50]

**errands**: clients that each open a connection and a channel, publish one message with a confirm, and close
both, with a round trip of 50 ms more to the broker: directly through the relay that delays, and to a gateway
beside the client that has the relay between itself and the broker. Every message must be in the queue at the
end. The same without delay shows what the machine and the client themselves take.

**idle**: 5,000 clients with a channel each, and how many connections RabbitMQ's own list has for them.

Exit code 1 if a mark is missed, 3 if something could not be had.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.interop.pooling import marks
from tests.interop.pooling.ways import WAYS
from tests.support.rabbitmq import RabbitMQ, script_folder


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=["errands", "idle"], help="only this (default: both)")
    parser.add_argument("--way", action="append", choices=WAYS, help="only this one (default: all)")
    parser.add_argument("--clients", type=int, default=marks.ERRANDS, help="errands (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=marks.AT_ONCE, help="errands at any time")
    parser.add_argument("--round-trip", type=float, default=marks.ROUND_TRIP * 1000, help="milliseconds")
    parser.add_argument("--pika", type=int, default=100, help="errands with pika as well (0: none)")
    parser.add_argument("--idle", type=int, default=marks.IDLE, help="idle clients (default: %(default)s)")
    options = parser.parse_args()
    if script_folder() is None:
        print("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)", file=sys.stderr)
        return 3
    ways = list(options.way or WAYS)
    missed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="amqpgate-pooling-") as folder:
        rabbitmq = RabbitMQ(config=marks.BROKER)
        try:
            rabbitmq.start()
            if options.only != "idle":
                missed += marks.errands(
                    rabbitmq,
                    Path(folder),
                    ways,
                    clients=options.clients,
                    at_once=options.at_once,
                    round_trip=options.round_trip / 1000,
                    pika=options.pika,
                )
            if options.only != "errands":
                missed += marks.idle(rabbitmq, [way for way in ways if way == "pooled"], options.idle)
        finally:
            rabbitmq.destroy()
    for each in missed:
        print(f"MISSED: {each}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
