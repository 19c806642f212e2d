"""Child processes that cannot outlive the test run.

Each child leads a process group of its own, which `kill` ends as a whole; an `atexit` hook ends what a test
forgot; and where util-linux's `setpriv` exists, the kernel ends the child when the test run itself is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_alive: set[Child] = set()

# A shell has its background jobs ignore Ctrl-C, and what they start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class ChildDied(Exception):
    """A child ended before it was ready. The text holds the end of its log."""


class Child:
    """A running program. Standard output and error both go to the file `log`."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.command = [str(part) for part in command]
        self.log = log
        setpriv = shutil.which("setpriv")
        guard = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                guard + self.command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=dict(env) if env is not None else None,
                cwd=cwd,
                start_new_session=True,
            )
        _alive.add(self)

    @property
    def pid(self) -> int:
        """The process id, which is the process group's too."""
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def output(self) -> str:
        """All that the program has written until now."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program alone, not to its children."""
        self._process.send_signal(number)

    def wait(self, timeout: float = 30) -> int:
        """The exit code. `subprocess.TimeoutExpired` after `timeout` seconds."""
        code = self._process.wait(timeout)
        self._bury()
        return code

    def stop(self, timeout: float = 30) -> int:
        """SIGTERM, wait up to `timeout` seconds, then SIGKILL. The exit code (negative: the signal)."""
        if self.running:
            self.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout)
        return self.kill()

    def kill(self) -> int:
        """SIGKILL to the whole group. The exit code (negative: the signal)."""
        self._bury()
        return self._process.wait(30)

    def _bury(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        _alive.discard(self)

    def wait_until(self, ready: Callable[[], bool], *, timeout: float, what: str) -> None:
        """Poll `ready` until it is true. `ChildDied` when the program ends or `timeout` seconds pass."""
        deadline = time.monotonic() + timeout
        while not ready():
            if not self.running:
                raise ChildDied(f"{what}: exit code {self._process.returncode}\n{self._tail()}")
            if time.monotonic() > deadline:
                raise ChildDied(f"{what}: not ready after {timeout} s\n{self._tail()}")
            time.sleep(0.05)

    def _tail(self) -> str:
        return f"$ {' '.join(self.command)}\n" + "\n".join(self.output().splitlines()[-40:])


@atexit.register
def _end_all() -> None:
    for child in list(_alive):
        child.kill()
