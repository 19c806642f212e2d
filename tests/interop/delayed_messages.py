"""Delayed messages for a while, and kills amid: what is lost, what comes twice, how late.

    python -m tests.interop.delayed_messages --seconds 3600 --rate 100 --kill-every 60

starts a RabbitMQ 4 of its own and a gateway before it, and kills one or the other, or both (SIGKILL). What
was not confirmed when its connection ended is published again, as another copy. Each copy has a name. What
has not come at the end is lost if nothing is in the ladder any more, and late if there is. Prints a line each
minute, and at the end the report and a line to cite. SIGINT or SIGTERM ends the publishing, not the run. Exit
code 1 if something is lost, came twice without a mark, or came otherwise than the plugin shows it.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial

from tests.interop.delayed.course import Course, course
from tests.interop.delayed.report import Report, report


def run(
    *,
    seconds: float,
    rate: float = 100,
    kill_every: float = 0,
    calm: float = 0,
    together: bool = False,
    shortest: float = 0.1,
    longest: float = 60,
    publishers: int = 4,
    drain: float = 420,
    confirm_timeout: int = 0,
    direct: bool = False,
    cut: threading.Event | None = None,
) -> Report:
    """Publish for so long, then wait until the last one is due, and `drain` more where some are missing and
    the ladder is not empty: a queue that lost a confirm to a kill dead-letters again after three minutes, or
    six, unless `confirm_timeout` (ms) is something else. `cut` ends the publishing before its time.
    """
    with course(
        seconds=seconds,
        rate=rate,
        shortest=shortest,
        longest=longest,
        publishers=publishers,
        confirm_timeout=confirm_timeout,
        direct=direct,
        cut=cut,
    ) as made:
        threads = [threading.Thread(target=made.publish, args=(lane,)) for lane in range(publishers)]
        consumer = threading.Thread(target=made.consume)
        for thread in (*threads, consumer):
            thread.start()
        try:
            for victim in made.kills(kill_every, calm, together=together):
                print(f"{time.strftime('%X')} killed the {victim}: {progress(made)}", flush=True)
        finally:
            made.publishing.clear()
            for thread in threads:
                thread.join()
        return report(made, made.finish(consumer, longest * 1.01 + drain, partial(tell, made)))


def pending(count: int, *, publishers: int = 4, shortest: float = 240, longest: float = 900) -> Report:
    """So many messages, published at once: all of them wait before the first one is due."""
    with course(rate=0, shortest=shortest, longest=longest, publishers=publishers, dead_letters=512) as made:
        threads = [
            threading.Thread(target=made.publish_many, args=(lane, count // publishers))
            for lane in range(publishers)
        ]
        consumer = threading.Thread(target=made.consume)
        for thread in (*threads, consumer):
            thread.start()
        for thread in threads:
            thread.join()
        return report(made, made.finish(consumer, longest * 1.01 + 60, partial(tell, made)))


def progress(course: Course) -> str:
    return f"{len(course.confirmed)} confirmed, {len(course.came)} came"


def tell(course: Course, waiting: int) -> None:
    print(f"{time.strftime('%X')} waits for {waiting} in the ladder: {progress(course)}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--rate", type=float, default=100, help="messages a second")
    parser.add_argument("--kill-every", type=float, default=60, help="seconds; 0: nobody is killed")
    parser.add_argument("--together", action="store_true", help="kill both within the same second")
    parser.add_argument("--calm", type=float, default=0, help="seconds without kills at the end")
    parser.add_argument("--longest", type=float, default=60, help="longest delay, in seconds")
    parser.add_argument(
        "--confirm-timeout",
        type=int,
        default=0,
        metavar="MS",
        help="the broker's (default: three minutes)",
    )
    parser.add_argument(
        "--direct",
        action="store_true",
        help="past the gateway: what RabbitMQ does by itself",
    )
    told = parser.parse_args(arguments)
    cut = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: cut.set())
    found = run(
        seconds=told.seconds,
        rate=told.rate,
        kill_every=told.kill_every,
        calm=told.calm,
        together=told.together,
        longest=told.longest,
        confirm_timeout=told.confirm_timeout,
        direct=told.direct,
        cut=cut,
    )
    print(found.text())
    print(found.line())
    return 0 if found.is_as_expected else 1


if __name__ == "__main__":
    sys.exit(main())
