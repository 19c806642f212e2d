"""How far requests walk through the source: no farther than docs/architecture.md says.

Calls are counted, not timed. `python -m tests.tracer --update` writes down a scene that has become shorter.
"""

from __future__ import annotations

import logging
import sys

import pytest

from amqpgate.datapath.build import COMPILED
from amqpgate.errors import cut_reply
from tests.tracer import record
from tests.tracer.figures import SCENES, documented, figures
from tests.tracer.record import Call, Recorder, Trace


@pytest.fixture(autouse=True)
def unlogged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers of logs that commands have set up walk, too."""
    own = [one for one in logging.root.handlers if not type(one).__module__.startswith("amqpgate.")]
    monkeypatch.setattr(logging.root, "handlers", own)


@pytest.mark.skipif(not COMPILED, reason="the data path is not compiled: in plain Python it makes calls too")
@pytest.mark.parametrize("name", SCENES)
def test_no_request_walks_farther_than_it_did(name: str) -> None:
    most = documented()[name]
    # What the gateway does every second may come between: that makes a path longer, and never shorter.
    for _ in range(6):
        trace = SCENES[name].play()
        if fits := all(now <= was for now, was in zip(figures(trace), most, strict=True)):
            break
    assert fits, f"{trace.summary()}, was {most}; `python -m tests.tracer` shows the path"
    # What the scene is about has happened.
    said = "Acceptor.establish" if "handshake" in name else "ChannelClose.encode"
    assert said in {call.function for call in trace.calls}


def test_what_a_trace_comes_to() -> None:
    trace = Trace([Call("a.py", "f"), Call("a.py", "g"), Call("b.py", "h"), Call("a.py", "f")])
    assert figures(trace) == (4, 2, 2)
    assert trace.legs == [("a.py", ["f", "g"]), ("b.py", ["h"]), ("a.py", ["f"])]
    assert figures(Trace([])) == (0, 0, 0)


class Here:
    """Runs what it is given on this thread."""

    def call(self, function: object) -> None:
        function()  # type: ignore[operator]


def test_calls_are_counted_once_and_only_those_of_the_project() -> None:
    recorder = Recorder(Here())  # type: ignore[arg-type]
    with recorder.recording():
        cut_reply("x")
        [len(str(number)) for number in range(3)]
        cut_reply("y")
    assert recorder.calls == [Call("errors.py", "cut_reply")] * 2
    assert sys.getprofile() is None


def test_a_coroutine_that_goes_on_is_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "SOURCE", record.Path(__file__).parent)
    recorder = Recorder(Here())  # type: ignore[arg-type]
    pauses = _pauses()
    with recorder.recording():
        assert list(pauses) == [1, 2]
    assert [call.function for call in recorder.calls].count("_pauses") == 1


def _pauses() -> object:
    yield 1
    yield 2
