"""A Celery worker in its own process: 200 tasks with retries and countdowns, and remote control."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import pytest

from tests.interop.steps import Setting
from tests.support.environments import NotHere, environment
from tests.support.missing import missing
from tests.support.processes import Child

ROOT = Path(__file__).parents[2]
MODULE = "tests.interop.clients.celery_app"
TASKS = 200


RELEASES = {
    "5.4": "celery==5.4.0\nkombu==5.4.2\n",
    "5.6": "celery==5.6.3\nkombu==5.6.2\n",
}


@attrs.frozen
class Celery:
    """One as it is in the field."""

    release: str
    #: Whether its queues are quorum queues.
    is_quorum: bool = False

    @property
    def name(self) -> str:
        return f"{self.release}-quorum" if self.is_quorum else self.release

    def play(self, at: Setting, folder: Path) -> None:
        """Two workers of it."""
        try:
            python = environment(ROOT / ".cache" / f"celery-{self.release}", RELEASES[self.release])
        except NotHere as error:
            missing(str(error))
        play(at, folder, python, workers=2, settings={"INTEROP_QUORUM": "1"} if self.is_quorum else {})


IN_THE_FIELD = (Celery("5.4"), Celery("5.6"), Celery("5.6", is_quorum=True))


@pytest.mark.timeout(240)
def test_worker(setting: Callable[[str], Setting], tmp_path: Path) -> None:
    play(setting("celery"), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("celery", IN_THE_FIELD, ids=lambda celery: celery.name)
def test_workers_in_the_field(celery: Celery, setting: Callable[[str], Setting], tmp_path: Path) -> None:
    celery.play(setting(f"celery-{celery.name}"), tmp_path)


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
