"""Where audit records go: the settings."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from amqpgate.config import Audit, audit, parse
from amqpgate.errors import ConfigError

TEXT = """
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: rabbit, host: 127.0.0.1}]
"""


def settled(text: str) -> Audit:
    settings = parse(TEXT + f"audit: {{{text}}}\n", {})
    assert settings.audit is not None
    return settings.audit


def test_what_it_says(tmp_path: Path) -> None:
    assert parse(TEXT, {}).audit is None
    found = settled(f"format: parquet, folder: '{tmp_path}', gateway: gw-1.eu, window: 1m, maxQueue: 1Mi")
    assert (found.folder, found.name, found.window, found.max_queue) == (tmp_path, "gw-1.eu", 60, 1 << 20)
    assert settled("format: json").folder is None


@pytest.mark.parametrize(
    ("host", "name"),
    [("node-1.example", "node-1.example"), ("_x y/ä", "x-y--"), ("..", "gateway"), ("h" * 200, "h" * 100)],
)
def test_a_host_has_a_name_that_files_can_have(monkeypatch: pytest.MonkeyPatch, host: str, name: str) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    assert settled("format: json").name == name
    assert settled(f"format: json, gateway: '{name}'").gateway == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format: csv", "expected one of parquet, json"),
        ("window: 10", "where do records go?"),
        ("format: parquet", "needs a folder"),
        ("format: parquet, folder: /no/such", "no such folder"),
        ("format: json, folder: .", "is for parquet"),
        ("format: json, gateway: _x", "letters, digits"),
        ("format: json, gateway: a/b", "letters, digits"),
        ("format: json, window: 0", "must be between"),
    ],
)
def test_refusals(text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        settled(text)
    assert message in str(caught.value)
    assert "config.yaml:4:" in str(caught.value)


def test_parquet_needs_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"config.yaml:4:.*pip install 'amqpgate\[audit\]'"):
        settled(f"format: parquet, folder: '{tmp_path}'")
    assert settled("format: json").format == "json"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("folder: /no/such", ["where do records go?", "no such folder"]),
        ("format: json, folder: /no/such", ["no such folder", "is for parquet"]),
        ("format: parquet, gateway: .b", ["parquet needs a folder", "letters, digits"]),
        # What could not be read is there all the same.
        ("format: jsn", ["expected one of parquet, json"]),
    ],
)
def test_all_that_is_wrong_is_told_at_once(text: str, said: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        settled(text)
    found = [one.message for one in caught.value.all]
    assert len(found) == len(said)
    assert all(any(words in one for one in found) for words in said)
