"""What is typed into `amqpgate top`, and what it shows as text; the whole is in tests/interop/test_top.py."""

from __future__ import annotations

import re

import pytest

from amqpgate.cli.top_text import explanation_lines, filters_of, match_of, request_of
from amqpgate.policy.engine.taps import parse


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("app", {"user": "app*"}),
        ("app-*  vhost=/ flow=throttled", {"user": "app-*", "vhost": "/", "flow": "throttled"}),
        ("client=a=b", {"client": "a=b"}),
    ],
)
def test_filters(text: str, found: dict[str, str]) -> None:
    assert filters_of(text) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [("vhots=/", "no filter 'vhots' (did you mean 'vhost'?)"), ("=", "no filter ''; there are user, ")],
)
def test_no_filters(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        filters_of(text)


@pytest.mark.parametrize("user", ["guest", None, 'a" or user="b', "a and b", "ü\n*"])
@pytest.mark.parametrize("client", ["10.0.0.7:5", "[::1]:5", "-"])
def test_a_tap_looks_for_one_session_whatever_its_names_are(user: str | None, client: str) -> None:
    text = match_of({"user": user, "vhost": "/", "client": client})
    assert str(parse(text)).count(" or ") == (user or "").count(" or ")


def test_what_is_asked_of_a_denial_is_what_was_denied() -> None:
    nothing = dict.fromkeys(("exchange", "destination", "routing_key", "client", "user"))
    decision = {**nothing, "operation": "queue.declare", "vhost": "v", "queue": "q", "kind": "shadow"}
    asked = request_of(decision, {"queue.declare": ["queue", "durable"]})
    request = {"as": {"user": None, "vhost": "v"}, "op": "queue.declare", "queue": "q"}
    assert asked == {"request": request, "shadow": True}


def test_an_explanation_drives_no_terminal() -> None:
    step = {"request": "r\x1b", "verdict": "deny", "rules": []}
    said = {"request": "\x1b[2J", "verdict": "deny", "reason": "\n", "steps": [step, step], "policies": []}
    assert not any(set(line) & set("\x1b\n") for line in explanation_lines(said))
