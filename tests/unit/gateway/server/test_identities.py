"""The issuers that settings name, and what is said of settings and policies that do not fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amqpgate.config import Settings, parse
from amqpgate.errors import ConfigError
from amqpgate.gateway.handshake.identities import UnverifiedTokens
from amqpgate.gateway.server import identities as module
from amqpgate.gateway.server.identities import check_identity, identities_of
from amqpgate.gateway.server.policy_fit import notes_on
from amqpgate.telemetry.metrics import Metrics
from tests.unit.policy.build_set import document, policies

SETTINGS = """
listeners:
- {name: a, bind: "127.0.0.1:0"}
- {name: b, bind: "127.0.0.1:0"}
- {name: c, bind: "127.0.0.1:0", oauth: {issuer: "https://c.example.org", audience: [x]}}
upstreams: [{name: broker, host: 127.0.0.1}]
"""
PLAIN = SETTINGS.replace(', oauth: {issuer: "https://c.example.org", audience: [x]}', "")
OAUTH = 'identity: {oauth: {issuer: "https://a.example.org", audience: [x], claims: [unit]}}\n'


def settings(text: str) -> Settings:
    return parse(text, {})


def test_each_listener_has_its_own_issuer_or_that_of_all() -> None:
    metrics = Metrics(lambda: None).tokens
    unverified = UnverifiedTokens(metrics.unverified)
    found, running = identities_of(settings(SETTINGS + OAUTH), None, metrics, unverified)  # type: ignore[arg-type]
    assert found is not None
    issuers = {name: issuer.oauth.issuer for name, issuer in found.issuers.items()}
    assert issuers == {
        "a": "https://a.example.org",
        "b": "https://a.example.org",
        "c": "https://c.example.org",
    }
    assert found.issuers["a"] is found.issuers["b"]
    assert len(running) == 2
    assert identities_of(settings(PLAIN), None, metrics, unverified) == (None, ())  # type: ignore[arg-type]


def test_what_verifies_tokens_may_not_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'amqpgate\[oauth\]'"):
        check_identity(settings(SETTINGS + OAUTH))
    check_identity(settings(PLAIN))


def test_who_verifies_nothing_imports_nothing_for_it() -> None:
    program = (
        "import sys\n"
        "from amqpgate.app import wiring\n"
        "from amqpgate.config import parse\n"
        "text = 'listeners: [{name: a, bind: \"127.0.0.1:0\"}]\\nupstreams: [{name: b, host: 127.0.0.1}]'\n"
        "wiring.build(parse(text, {}))\n"
        "print({'jwt', 'cryptography', 'h11'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_subjects_that_nobody_can_be_are_told() -> None:
    by_claim = policies(
        document(subjects="{claims: {unti: x}}"), document(name="q", subjects="{scopes: [a]}")
    )
    assert notes_on(settings(PLAIN), by_claim) == (
        "AccessPolicy p, AccessPolicy q: nobody has scopes or claims, for the settings have no "
        "`identity.oauth`",
    )
    (note,) = notes_on(settings(SETTINGS + OAUTH), by_claim)
    assert note == (
        "AccessPolicy p: nobody is selected by claim 'unti', which no identity.oauth.claims names "
        "(did you mean 'unit'?)"
    )


def test_listeners_that_verify_no_tokens_beside_one_that_does_are_told() -> None:
    (note,) = notes_on(settings(SETTINGS), policies(document()))
    assert note.startswith("listener a, b: no tokens are verified there, and at others they are")
    assert notes_on(settings(SETTINGS + OAUTH), policies(document())) == ()
    assert notes_on(settings(PLAIN), policies(document())) == ()


def test_an_upstream_with_a_login_may_be_open_to_who_has_a_token(tmp_path: Path) -> None:
    text = """
listeners: [{name: a, bind: "0.0.0.0:5672"}]
upstreams: [{name: broker, host: 127.0.0.1, user: guest, password: guest}]
"""
    with pytest.raises(ConfigError, match="tokens"):
        settings(text)
    settings(text + OAUTH)
    with pytest.raises(ConfigError, match="tokens"):
        settings(text + OAUTH.replace("claims:", "require: false, claims:"))
