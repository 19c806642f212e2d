"""The calls of one thread, by `sys.setprofile`."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import attrs

import amqpgate
from tests.support.inprocess import InProcess

SOURCE = Path(amqpgate.__file__).parent
#: Frames that are no function of anybody's.
_NOT_CALLED = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<module>"})
_RESUME = dis.opmap["RESUME"]


@attrs.frozen
class Call:
    """One call: the file below `src/amqpgate`, and the function as its class has it."""

    file: str
    function: str


@attrs.frozen
class Trace:
    """What was called, in order."""

    calls: Sequence[Call]

    @property
    def files(self) -> int:
        return len({call.file for call in self.calls})

    @property
    def legs(self) -> list[tuple[str, list[str]]]:
        """The files in the order of the calls, each with what was called in it before the next file."""
        legs: list[tuple[str, list[str]]] = []
        for call in self.calls:
            if not legs or legs[-1][0] != call.file:
                legs.append((call.file, []))
            legs[-1][1].append(call.function)
        return legs

    @property
    def moves(self) -> int:
        """How often the next call is in another file."""
        return max(len(self.legs) - 1, 0)

    def summary(self) -> str:
        return f"{len(self.calls)} calls, {self.files} files, {self.moves} moves between files"


class Recorder:
    """The calls on the gateway's thread, between the beginning and the end of `recording`."""

    def __init__(self, running: InProcess) -> None:
        self.running = running
        self.calls: list[Call] = []

    @contextmanager
    def recording(self) -> Iterator[None]:
        self.running.call(lambda: sys.setprofile(self._see))
        try:
            yield
        finally:
            self.running.call(lambda: sys.setprofile(None))

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(SOURCE)) or code.co_name in _NOT_CALLED:
            return
        if not _begins(frame):
            return
        file = Path(code.co_filename).relative_to(SOURCE)
        self.calls.append(Call(str(file), code.co_qualname))


def _begins(frame: FrameType) -> bool:
    """Whether it is a call, and not a coroutine that goes on after it has waited."""
    code = frame.f_code.co_code
    at = frame.f_lasti
    return at < 0 or code[at] != _RESUME or code[at + 1] & 3 == 0
