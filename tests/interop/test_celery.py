"""A Celery worker in its own process: 200 tasks with retries and countdowns, and remote control."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
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


def play(at: Setting, tmp_path: Path, python: Path = Path(sys.executable)) -> None:
    """A worker and who sends it tasks, with the Celery of this interpreter."""
    broker = f"amqp://{at.user}:{at.password}@{at.host}:{at.port}/{at.vhost}"
    env = dict(os.environ) | {"INTEROP_BROKER": broker, "PYTHONWARNINGS": "default"}
    worker = Child(
        [
            python,
            "-m",
            "celery",
            "-A",
            MODULE,
            "worker",
            "-c",
            "2",
            "-Q",
            "celery,fast",
            "-l",
            "info",
        ],
        log=tmp_path / "worker.log",
        env=env,
        cwd=ROOT,
    )
    try:
        worker.wait_until(lambda: " ready." in worker.output(), timeout=60, what="the Celery worker")
        sender = subprocess.run(
            [python, "-m", MODULE], env=env, cwd=ROOT, capture_output=True, text=True, timeout=150
        )
        assert sender.returncode == 0, sender.stderr + worker.output()[-4000:]
        code = worker.stop(timeout=60)
    finally:
        worker.kill()

    seen = json.loads(sender.stdout)
    retries = [number % 3 + 1 if number % 5 == 0 else 0 for number in range(TASKS)]
    assert seen["results"] == [[number * number, retries[number]] for number in range(TASKS)]
    assert seen["group"] == [-number for number in range(10)]
    assert seen["ping"] == [[{"ok": "pong"}]]
    log = worker.output()
    assert log.count("succeeded in") == TASKS + 10, "a task ran twice or not at all"
    assert code == 0, log[-4000:]
    left = at.rabbitmq.rows("list_queues", "name", "messages", vhost=at.vhost)
    assert {row["name"]: row["messages"] for row in left if row["name"] in ("celery", "fast")} == {
        "celery": 0,
        "fast": 0,
    }
