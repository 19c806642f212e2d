"""Clients that come before a gateway's port is open: ``python -m tests.interop.starts --starts 150``.

Who comes too early is refused, and tries again. Who is taken hears connection.start; a connection that
is reset, or closed without a word, is a fault.
"""

from __future__ import annotations

import argparse
import socket
import threading
import time
from collections import Counter

import attrs

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

#: Clients of one start that are there before it; and logins once they have been served.
EARLY = 8
LOGINS = 2
#: Seconds until a gateway is there, where others want the machine.
PATIENCE = 120.0
#: The least that a connection.start takes.
_LEAST = 12

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: broker, url: "amqp://{address}"}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s}}
workers: {workers}
"""


@attrs.define(eq=False)
class Start:
    """One start, and what became of who came."""

    gateway: Gateway
    outcomes: Counter[str] = attrs.field(factory=Counter)

    def come(self, pause: float) -> None:
        """A client that comes until it is taken, and speaks after a pause."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                sock = socket.create_connection((self.gateway.host, self.gateway.port), timeout=PATIENCE)
            except ConnectionRefusedError:
                time.sleep(0.0005)
                continue
            with sock:
                time.sleep(pause)
                self.outcomes[_heard(sock)] += 1
            return
        self.outcomes["never taken"] += 1

    def run(self) -> None:
        """Start it among clients, log in, and stop it."""
        threads = [threading.Thread(target=self.come, args=(0.01 * (number % 2),)) for number in range(EARLY)]
        for thread in threads:
            thread.start()
        self.gateway.start_child()
        for thread in threads:
            thread.join()
        for _ in range(LOGINS):
            with Talker.dial(self.gateway.port, timeout=PATIENCE) as client:
                client.open()
                client.bye()
        self.outcomes[f"exit code {self.gateway.stop().code}"] += 1


def _heard(sock: socket.socket) -> str:
    """What a client hears that says its protocol header."""
    data = b""
    try:
        sock.sendall(amqp.PROTOCOL_HEADER)
        while len(data) < _LEAST:
            piece = sock.recv(4096)
            if not piece:
                return "closed"
            data += piece
    except OSError as error:
        return type(error).__name__
    return "served" if data[0] == amqp.FRAME_METHOD else "something else"


def outcomes(rabbitmq: RabbitMQ, starts: int, workers: int) -> Counter[str]:
    """What became of all clients of so many starts."""
    found: Counter[str] = Counter()
    for _ in range(starts):
        start = Start(Gateway(config=CONFIG.format(address=rabbitmq.address, workers=workers)))
        start.run()
        found += start.outcomes
    return found


def main() -> None:
    """Play so many, and print what there was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=150, help="for each number of workers")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    chosen = parser.parse_args()
    rabbitmq = RabbitMQ()
    rabbitmq.start()
    try:
        for workers in chosen.workers:
            print(f"{workers} workers:", dict(outcomes(rabbitmq, chosen.starts, workers)), flush=True)
    finally:
        rabbitmq.destroy()


if __name__ == "__main__":
    main()
