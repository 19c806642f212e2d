"""The settings as operators see them."""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from amqpgate.admin.settings import shown
from amqpgate.config import parse

SECRET = "s3cr3t-"

#: Everywhere where a secret can be.
TEXT = f"""
listeners:
- {{name: main, bind: "127.0.0.1:5673", upstream: url}}
upstreams:
- {{name: url, url: "amqp://user:{SECRET}1@broker/vhost"}}
- {{name: keys, host: broker, user: u, password: "{SECRET}2"}}
- {{name: file, host: broker, user: u, passwordFile: password}}
- {{name: environment, url: "${{URL}}"}}
- {{name: "amqp://careless:{SECRET}3@broker", host: broker}}
admin: {{tokenFile: token}}
sharedLimits: {{redis: "redis://cache", replicas: 1, user: u, password: "{SECRET}4"}}
tracing: {{endpoint: "http://127.0.0.1:4318/v1/traces", headersFile: headers}}
"""


def test_no_secret_is_shown(tmp_path: Path) -> None:
    for number, name in enumerate(("password", "token"), 5):
        (tmp_path / name).write_text(f"{SECRET}{number}\n")
    (tmp_path / "headers").write_text(f"authorization: {SECRET}7\n")
    url = f"amqps://user:{SECRET}8%40@broker"
    settings = parse(TEXT, {"URL": url}, file=str(tmp_path / "amqpgate.yaml"))
    text = json.dumps(shown(settings))
    assert SECRET not in text
    told = json.loads(text)
    by_name = {upstream["name"]: upstream for upstream in told["upstreams"]}
    assert by_name["url"]["url"] == "amqp://user:***@broker:5672/vhost"
    assert (by_name["url"]["user"], by_name["url"]["password"]) == ("user", "***")
    assert by_name["keys"]["password"] == told["sharedLimits"]["password"] == "***"
    assert by_name["file"]["password"] is None
    assert by_name["file"]["passwordFile"] == str(tmp_path / "password")
    assert "amqp://careless:***@broker" in by_name


def test_it_has_the_keys_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    settings = parse(
        "listeners: [{name: a, bind: '127.0.0.1:1', frameMax: 64Ki}]\n"
        "upstreams: [{name: b, host: h}]\npolicies: policies\nadmin: {}\n",
        {},
        file=str(tmp_path / "c.yaml"),
    )
    told = shown(settings)
    assert isinstance(told, dict)
    assert told["policies"] == str(tmp_path / "policies")
    assert told["admin"] == {
        "bind": "127.0.0.1:15680",
        "tokenFile": None,
        "tls": None,
        "allowPlaintext": False,
        "probes": None,
    }
    assert told["listeners"][0]["frameMax"] == 65536
    assert told["limits"]["maxConnections"] == 10_000


def test_what_nobody_has_thought_of_is_not_shown() -> None:
    @attrs.frozen
    class Strange:
        odd_thing: object

    assert shown(Strange(object())) == {"oddThing": "***"}
