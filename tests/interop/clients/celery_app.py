"""A Celery application. The worker imports it; run as a program it sends the tasks and prints what it saw.

With `INTEROP_QUORUM` in the environment its queues are quorum queues, and what has a countdown is delayed by
the broker: Celery 5.5 and later.
"""

from __future__ import annotations

import json
import os
import sys

import celery
from celery.result import ResultSet
from kombu import Exchange, Queue

TASKS = 200

#: Quorum queues, where that is not empty.
QUORUM = os.environ.get("INTEROP_QUORUM")
#: Seconds; the broker delays by whole ones, and Celery 5.6 fails for less than one.
RETRY_AFTER = 1 if QUORUM else 0.2

app = celery.Celery("interop", broker=os.environ["INTEROP_BROKER"], backend="rpc://")
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_acks_late=True,
    task_publish_retry=True,
    worker_prefetch_multiplier=4,
    worker_send_task_events=True,
    result_persistent=False,
    task_routes={"interop.fast": {"queue": "fast"}},
    broker_transport_options={"confirm_publish": True},
)

if QUORUM:
    app.conf.update(
        # Exchanges by topic: others are not delayed by the broker.
        task_queues=[
            Queue(name, Exchange(name, "topic"), name, queue_arguments={"x-queue-type": "quorum"})
            for name in ("celery", "fast")
        ],
        task_default_exchange_type="topic",
        broker_native_delayed_delivery_queue_type="quorum",
    )


@app.task(bind=True, name="interop.square", max_retries=5)
def square(self: celery.Task, number: int) -> list[int]:
    """The square of `number` and how often the task was retried; every fifth fails at first."""
    if number % 5 == 0 and self.request.retries < number % 3 + 1:
        raise self.retry(countdown=RETRY_AFTER)
    return [number * number, self.request.retries]


@app.task(name="interop.fast")
def fast(number: int) -> int:
    return -number


def main() -> None:
    sent = [
        square.apply_async((number,), countdown=1 if number % 4 == 0 else None) for number in range(TASKS)
    ]
    quick = celery.group(fast.s(number) for number in range(10)).apply_async()
    seen = {
        # All at once: asked for one by one, results that came early cost a second each.
        "results": ResultSet(sent).join_native(timeout=90),
        "group": quick.join_native(timeout=30),
        "ping": [list(answer.values()) for answer in app.control.ping(timeout=5)],
    }
    json.dump(seen, sys.stdout)
    app.close()


if __name__ == "__main__":
    main()
