"""One session of `amqpgate top` as text: who it is for policies, too."""

from __future__ import annotations

from typing import Any

import pytest

from amqpgate.cli.top_session_text import session_lines, who_of

SESSION: dict[str, Any] = {
    "id": "7f",
    "user": "alice",
    "vhost": "/",
    "client": "10.0.0.7:5",
    "version": "0-9-1",
    "flow": "slow_broker",
    "listener": "tls",
    "tls": True,
    "tls_name": "alice.example",
    "name": "worker 1",
    "product": None,
    "upstream": "rabbit",
    "endpoint": "10.0.0.9:5672",
    "upstream_user": "svc",
    "route": "blue",
    "groups": ["billing", "ops"],
    "token": {
        "issuer": "https://id.example",
        "scopes": ["read:all"],
        "claims": {"dep": ["a", "b"]},
        "ends": 7260.0,
    },
    "published": 1,
    "published_rate": None,
    "delivered": 2,
    "delivered_rate": 1.5,
    "refused": 3,
    "policies": ["shop"],
    "shadow_policies": ["later"],
    "limits": [],
    "open_channels": [],
    "flows": {"publish": [], "deliver": []},
}


def test_it_says_who_it_is_to_policies_and_to_the_broker() -> None:
    lines = list(session_lines(SESSION, 60.0))
    for line in (
        "listener   tls, TLS as alice.example",
        "client     worker 1",
        "upstream   rabbit at 10.0.0.9:5672 as user svc, by route blue",
        "groups     billing, ops",
        "scopes     read:all",
        "claim      dep: a, b",
        "in shadow  later",
    ):
        assert line in lines
    token = next(line for line in lines if line.startswith("token"))
    assert "of https://id.example, ends at 1970-01-0" in token
    assert token.endswith(", in 2:00:00")


@pytest.mark.parametrize(
    ("ends", "said"), [(None, "without an end"), (10.0, "ended at"), (1e300, "without an end to live to see")]
)
def test_ends_of_tokens(ends: float | None, said: str) -> None:
    session = {**SESSION, "token": {**SESSION["token"], "ends": ends}}
    assert any(said in line for line in session_lines(session, 60.0))


def test_without_a_token_there_is_nothing_of_one() -> None:
    shown = list(session_lines({**SESSION, "token": None, "tls": False, "groups": []}))
    assert "listener   tls" in shown
    assert "groups     -" in shown
    assert not [line for line in shown if line.startswith(("token", "scopes", "claim"))]


def test_a_question_has_room_for_whom_it_is_about() -> None:
    assert len(who_of({**SESSION, "user": "x" * 300, "client": "\x1b" * 300})) < 150
