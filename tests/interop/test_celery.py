"""A Celery worker in its own process: 200 tasks with retries and countdowns, and remote control."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.interop.steps import Setting
from tests.support.processes import Child

ROOT = Path(__file__).parents[2]
MODULE = "tests.interop.clients.celery_app"
TASKS = 200


@pytest.mark.timeout(240)
def test_worker(setting: Callable[[str], Setting], tmp_path: Path) -> None:
    play(setting("celery"), tmp_path)


def play(
    at: Setting,
    tmp_path: Path,
    python: Path = Path(sys.executable),
    *,
    workers: int = 1,
    settings: Mapping[str, str] = {},
) -> None:
    """Workers, and who sends them tasks, with the Celery of this interpreter.

    ``settings`` are for the environment (`clients.celery_app`).
    """
    broker = f"amqp://{at.user}:{at.password}@{at.host}:{at.port}/{at.vhost}"
    env = dict(os.environ) | {"INTEROP_BROKER": broker, "PYTHONWARNINGS": "default"} | dict(settings)
    with contextlib.ExitStack() as stack:
        started: list[Child] = []
        for number in range(workers):
            command = ["-m", "celery", "-A", MODULE, "worker", "-c", "2", "-Q", "celery,fast", "-l", "info"]
            worker = Child(
                [python, *command, "-n", f"w{number}@%h"],
                log=tmp_path / f"worker{number}.log",
                env=env,
                cwd=ROOT,
            )
            stack.callback(worker.kill)
            # One after the other: who comes later asks those that are there (mingle).
            worker.wait_until(
                lambda worker=worker: " ready." in worker.output(), timeout=60, what="the Celery worker"
            )
            started.append(worker)
        sender = subprocess.run(
            [python, "-m", MODULE], env=env, cwd=ROOT, capture_output=True, text=True, timeout=150
        )
        assert sender.returncode == 0, sender.stderr + "".join(one.output()[-4000:] for one in started)
        codes = [one.stop(timeout=60) for one in started]
    log = "".join(one.output() for one in started)

    seen = json.loads(sender.stdout)
    retries = [number % 3 + 1 if number % 5 == 0 else 0 for number in range(TASKS)]
    assert seen["results"] == [[number * number, retries[number]] for number in range(TASKS)]
    assert seen["group"] == [-number for number in range(10)]
    assert seen["ping"] == [[{"ok": "pong"}]] * workers
    assert log.count("mingle: sync with") == workers - 1
    assert log.count("succeeded in") == TASKS + 10, "a task ran twice or not at all"
    assert codes == [0] * workers, log[-4000:]
    left = at.rabbitmq.rows("list_queues", "name", "messages", vhost=at.vhost)
    assert {row["name"]: row["messages"] for row in left if row["name"] in ("celery", "fast")} == {
        "celery": 0,
        "fast": 0,
    }
