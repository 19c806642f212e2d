"""The file that describes a move."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpgate.errors import ConfigError
from amqpgate.move.document import ManagementUrl, MoveDocument
from amqpgate.yamldoc import compose, structure

END = "{{upstream: {name}, management: 'http://{name}', amqp: 'amqp://{name}:5672', user: u, passwordEnv: P}}"
BLUE, GREEN = END.format(name="blue"), END.format(name="green")
TEXT = f"routes: [prod]\nvhosts: [v]\ngateways: [{{admin: 'a:1'}}]\nfrom: {BLUE}\nto: {GREEN}\n"


def parsed(text: str, folder: Path) -> MoveDocument:
    (node,) = compose(text, str(folder / "move.yaml"))
    return structure(node, MoveDocument)


def test_what_is_left_away(tmp_path: Path) -> None:
    move = parsed(TEXT, tmp_path)
    assert (move.leftovers, move.switch, move.edits, move.allow, move.drain_for) == (
        "refuse",
        "edit",
        False,
        (),
        30,
    )
    (tmp_path / "policies").mkdir()
    assert parsed(f"{TEXT}policies: policies\n", tmp_path).edits
    assert not parsed(f"{TEXT}policies: policies\nswitch: wait\n", tmp_path).edits


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("passwordEnv: P", "passwordEnv: P, passwordFile: secret", "passwordFile or passwordEnv"),
        (", passwordEnv: P", "", "passwordFile or passwordEnv"),
        ("amqp://blue:5672", "amqp://u:p@blue:5672", "no user"),
        ("amqp://blue:5672", "amqp://blue/v", "no virtual host"),
        ("upstream: green", "upstream: blue", "where they come from"),
        ("http://blue", "http://u:p@blue", "without a user"),
        ("http://blue", "ftp://blue", "http://host"),
        ("routes: [prod]", "routes: []", "empty"),
        ("routes: [prod]\n", "", "routes"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in TEXT
    (tmp_path / "secret").write_text("s")
    with pytest.raises(ConfigError, match=says):
        parsed(TEXT.replace(old, new), tmp_path)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://a", "http://a:15672"),
        ("https://a/", "https://a:15671"),
        ("http://a:1", "http://a:1"),
        ("http://[::1]:1", "http://[::1]:1"),
        ("http://[::1]", "http://[::1]:15672"),
    ],
)
def test_ports_that_are_left_away(text: str, shown: str) -> None:
    assert str(ManagementUrl.parse(text)) == shown
