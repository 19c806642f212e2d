"""What stories have in them, whatever the seed."""

from __future__ import annotations

import pytest

from tests.simulation.story import PACES, Story, story_of


def stories(seconds: float | None = None) -> list[Story]:
    return [story_of(f"told.{number}", seconds) for number in range(60)]


def test_what_is_denied_is_tried() -> None:
    """By somebody who hears of confirms: by their numbers it is seen what counts as passed."""
    denying = [story for story in stories() if story.setup.on_deny]
    for story in denying:
        tried = [one for one in story.clients if one.kind == "publisher" and one.user == "mallory"]
        assert any(one.secret and one.confirms and one.version == "0-9-1" for one in tried)
    assert {story.setup.on_deny for story in denying} == {"close", "nack", "drop", "return"}


def test_who_shares_a_connection_breaks_off_amid_messages() -> None:
    """Nobody else's may hear of it."""
    pooled = [story for story in stories() if story.setup.connections == "pooled"]
    assert pooled
    for story in pooled:
        assert any(one.kind == "hostile" and one.weaves == 1 for one in story.clients)


def test_channels_of_a_client_are_woven() -> None:
    publishers = [one for story in stories() for one in story.clients if one.kind == "publisher"]
    assert any(one.weaves and one.channels > 1 and one.version == "0-9-1" for one in publishers)


def test_names_are_one_clients() -> None:
    for story in stories():
        assert len({one.name for one in story.clients}) == len(story.clients)


def test_all_lengths_are_told() -> None:
    assert {story.seconds for story in stories()} == {pace.seconds for pace in PACES}


@pytest.mark.parametrize(("seconds", "looks"), [(20, 1.0), (120, 1.0), (40_000, 10.0), (200_000, 30.0)])
def test_a_story_is_as_busy_as_others_of_its_length(seconds: float, looks: float) -> None:
    assert {story.setup.looks for story in stories(seconds)} == {looks}
