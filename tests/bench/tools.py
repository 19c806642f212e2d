"""The sink and the load tool as objects."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

#: Longer than any phase of any case; what takes longer hangs.
PATIENCE = 120.0


class ToolError(Exception):
    """A tool failed; the text is what it wrote to standard error."""


class Tool:
    """A program that is spoken with in lines."""

    def __init__(self, command: Sequence[str | Path]) -> None:
        self._process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def say(self, line: str = "") -> None:
        """Send a line."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._fail()

    def hear(self, timeout: float = PATIENCE) -> str:
        """The next line; `ToolError` if the program ends instead, or says nothing."""
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            self.kill()
            raise ToolError(f"said nothing for {timeout:g} s") from None
        if not line:
            self._fail()
        return line.rstrip("\n")

    def hear_json(self, timeout: float = PATIENCE) -> dict[str, object]:
        """The next line as JSON object."""
        answer = json.loads(self.hear(timeout))
        assert isinstance(answer, dict)
        return answer

    def _fail(self) -> None:
        assert self._process.stderr is not None
        self._process.wait(10)
        text = self._process.stderr.read().strip()
        raise ToolError(text or f"exit code {self._process.returncode}")

    def finish(self, timeout: float = PATIENCE) -> None:
        """Close its standard input and wait for its end."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ToolError(f"did not end within {timeout:g} s") from None
        if code:
            self._fail()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


@attrs.frozen
class Counts:
    """What the sink has seen since it started."""

    published: int
    byte_count: int
    delivered: int
    connections: int
    errors: int
    last_error: str

    def since(self, before: Counts) -> Counts:
        """The difference; connections and the last error as they are now."""
        return attrs.evolve(
            self,
            published=self.published - before.published,
            byte_count=self.byte_count - before.byte_count,
            delivered=self.delivered - before.delivered,
            errors=self.errors - before.errors,
        )


class Sink(Tool):
    """The counting sink, listening on loopback."""

    def __init__(self, program: Path, port: int) -> None:
        super().__init__([program, "127.0.0.1", str(port)])
        self.port = port
        self.hear()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def counts(self) -> Counts:
        """Its totals now."""
        self.say()
        answer = self.hear_json(10)
        names = [field.name for field in attrs.fields(Counts)]
        return Counts(**{name: answer[name] for name in names})


@contextlib.contextmanager
def load(program: Path, mode: str, address: str, *arguments: str) -> Iterator[Tool]:
    """The load tool, which waits for a line when it is warm. Killed at the end of the block."""
    host, _, port = address.rpartition(":")
    with Tool([program, mode, "--host", host, "--port", port, "--wait", *arguments]) as tool:
        yield tool


def load_once(program: Path, mode: str, address: str, *arguments: str) -> dict[str, object]:
    """Run the load tool to its end; its result."""
    host, _, port = address.rpartition(":")
    with Tool([program, mode, "--host", host, "--port", port, *arguments]) as tool:
        result = tool.hear_json()
        tool.finish()
        return result
