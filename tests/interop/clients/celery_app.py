"""A Celery application. The worker imports it; run as a program it sends the tasks and prints what it saw."""

from __future__ import annotations

import json
import os
import sys

import celery
from celery.result import ResultSet

TASKS = 200

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


@app.task(bind=True, name="interop.square", max_retries=5)
def square(self: celery.Task, number: int) -> list[int]:
    """The square of `number` and how often the task was retried; every fifth fails at first."""
    if number % 5 == 0 and self.request.retries < number % 3 + 1:
        raise self.retry(countdown=0.2)
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
