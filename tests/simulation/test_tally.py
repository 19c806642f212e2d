"""What a run has come to, from the lines that it has left."""

from __future__ import annotations

from pathlib import Path

from tests.simulation.play import Outcome
from tests.simulation.story import story_of
from tests.simulation.tally import Tally, write


def outcome(seed: str, failure: str = "") -> Outcome:
    return Outcome(story_of(seed), failure, "", "", 1800.0, {"messages": 3}, {"stall": 2}, [], cpu=0.5)


def test_files_are_summed_up_and_each_story_counts_once(tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    for told in (outcome("a.0"), outcome("a.1", "Violation: told\nof more")):
        write(told, one)
    for told in (outcome("a.1", "Violation: told\nof more"), outcome("b.0")):
        write(told, other)
    tally = Tally.of([one, other])
    assert (tally.stories, tally.virtual, tally.cpu) == (3, 5400.0, 1.5)
    assert (tally.figures, tally.happened) == ({"messages": 9}, {"stall": 6})
    assert tally.failed == {"a.1": "of more"}
    assert tally.lines()[0] == "1.50 virtual hours in 2 s of CPU, 3 stories, 1 failed"


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    write(outcome("a.0"), file)
    with file.open("a") as end:
        end.write('{"seed": "a.1", "virt')
    assert Tally.of([file]).stories == 1
