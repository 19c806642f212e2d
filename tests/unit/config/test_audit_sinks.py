"""What is said of who gets audit records, and what is not taken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amqpgate.config import Audit, parse
from amqpgate.errors import ConfigError

SETTINGS = """
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: rabbit, host: 127.0.0.1}]
"""


def audit_of(text: str, folder: Path) -> Audit:
    found = parse(f"{SETTINGS}audit: {text}\n", {}, file=str(folder / "amqpgate.yaml")).audit
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "where do records go?"),
        ("{folder: f, amqp: {url: 'amqp://h', exchange: e}}", "is for format: parquet"),
        ("{amqp: {url: 'amqp://h'}}", "exchange"),
        ("{amqp: {url: 'amqp://h', exchange: ''}}", "must not be empty"),
        ("{amqp: {url: 'amqp://u:p@h', exchange: e, password: q}}", "there is a password in the URL"),
        ("{amqp: {url: 'amqp://u@h', exchange: e}}", "a user needs password or passwordFile"),
        ("{amqp: {url: 'amqp://h', exchange: e, ca: ca}}", "is for amqps:// only"),
        ("{openSearch: {url: 'http://h', index: Upper}}", "lower case letters"),
        ("{openSearch: {url: 'http://h', index: _x}}", "lower case letters"),
        ("{openSearch: {url: 'http://h', index: 'a/b'}}", "lower case letters"),
        ("{openSearch: {url: 'http://h', user: u}}", "a user needs password or passwordFile"),
        ("{openSearch: {url: 'http://h', password: p}}", "a password needs a user"),
        ("{openSearch: {url: 'http://h', user: u, password: p, tokenFile: two}}", "exclude each other"),
        ("{openSearch: {url: 'http://h', tokenFile: two}}", "expected one token"),
        ("{openSearch: {url: 'http://h', ca: ca}}", "is for https:// only"),
        ("{openSearch: {url: 'http://h', idx: i}}", "did you mean 'index'?"),
        ("{openSearch: {url: 'http://h', whenFull: block}}", "wait"),
        ("{otlp: {url: 'http://u:p@h'}}", "a login belongs in headersFile"),
        ("{otlp: {url: 'http://h', headersFile: two}}", "expected 'name: value'"),
    ],
)
def test_what_does_not_go_together_is_told(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "two").write_text("secret\nlines of two\n")
    (tmp_path / "f").mkdir()
    (tmp_path / "ca").write_text("")
    with pytest.raises(ConfigError, match=re.escape(why)) as refused:
        audit_of(text, tmp_path)
    assert "secret" not in str(refused.value)


def test_logins(tmp_path: Path) -> None:
    amqp = audit_of("{amqp: {url: 'amqp://h', exchange: e}}", tmp_path).amqp
    assert amqp is not None
    assert (amqp.login().user, amqp.login().password.reveal()) == ("guest", "guest")
    assert amqp.shown == "amqp://h:5672 exchange e"
    named = audit_of("{amqp: {url: 'amqps://u:p%40@h/v', exchange: e}}", tmp_path).amqp
    assert named is not None
    assert (named.login().user, named.login().password.reveal()) == ("u", "p@")
    assert "p@" not in named.shown
