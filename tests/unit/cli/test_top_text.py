"""What is typed into `amqpgate top`, and what it shows as text; the whole is in tests/interop/test_top.py."""

from __future__ import annotations

import re

import pytest

from amqpgate.cli.top_text import FILTERS, explanation_lines, filters_of, match_of, request_of
from amqpgate.operator.sessions import FILTERS as OPERATOR_FILTERS
from amqpgate.policy.engine.taps import parse


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("app", {"user": "app*"}),
        ("app-*  vhost=/ flow=throttled", {"user": "app-*", "vhost": "/", "flow": "throttled"}),
        ("client=a=b", {"client": "a=b"}),
        ('"my app" vhost="a ""b"" c"', {"user": "my app", "vhost": 'a "b" c'}),
        ('"my a"* listener=tls', {"user": "my a*", "listener": "tls"}),
        ('user="" vhost=', {"user": "", "vhost": ""}),
        ('"vhost=x"', {"user": "vhost=x"}),
        ('o"neil', {"user": 'o"neil*'}),
    ],
)
def test_filters(text: str, found: dict[str, str]) -> None:
    assert filters_of(text) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vhots=/", "no filter 'vhots' (did you mean 'vhost'?)"),
        ("=", "no filter ''; there are user, "),
        ("app web", "user twice, app* and web*: one is looked for"),
        ("app user=web", "user twice, app* and web: "),
        ("vhost=a vhost=b", "vhost twice, a and b: "),
        ('user="a b', "a quoted text ends in"),
        ('"a"b', "a quoted text ends in"),
    ],
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


def test_all_that_was_known_of_who_asked_is_sent_back_as_it_is() -> None:
    who = {"user": "u", "vhost": "v", "groups": ["g"], "listener": "tls", "anything": {"new": 1}}
    nothing = dict.fromkeys(("exchange", "destination", "routing_key"))
    other = {"client": "10.0.0.7", "user": "u", "vhost": "v", "kind": "denied"}
    decision = {**nothing, **other, "operation": "basic.get", "queue": "q", "as": who}
    request = {"as": who, "op": "basic.get", "queue": "q"}
    assert request_of(decision, {"basic.get": ["queue"]}) == {"request": request, "shadow": False}
    # A gateway that does not tell it.
    asked = request_of({**decision, "as": None}, {"basic.get": ["queue"]})
    assert asked["request"] == {**request, "as": {"user": "u", "vhost": "v", "source": "10.0.0.7"}}


def test_sessions_are_found_by_all_that_the_gateway_finds_them_by() -> None:
    assert FILTERS == OPERATOR_FILTERS


def test_an_explanation_drives_no_terminal() -> None:
    step = {"request": "r\x1b", "verdict": "deny", "rules": []}
    said = {"request": "\x1b[2J", "verdict": "deny", "reason": "\n", "steps": [step, step], "policies": []}
    assert not any(set(line) & set("\x1b\n") for line in explanation_lines(said, {"kind": "denied"}))
    allowed = {**said, "verdict": "allow"}
    note = "which are not kept"
    assert note in "\n".join(explanation_lines(allowed, {"kind": "denied"}))
    assert note not in "\n".join(explanation_lines(allowed, {"kind": "shadow"}))
    assert note not in "\n".join(explanation_lines({**said, "verdict": "deny"}, {"kind": "denied"}))
