"""The injector's settings file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amqpgate.errors import ConfigError
from amqpgate.inject import Injector, describe, inject, parse, schema

from .pods import URL, container, env, pod

ROOT = Path(__file__).parents[3]


def test_an_empty_file_has_all_defaults() -> None:
    assert parse("", {}) == Injector()


def test_every_key() -> None:
    settings = parse(
        """
image: registry.example/amqpgate:${VERSION}
imagePullPolicy: Always
sidecar: classic
port: 5673
variables: [QUEUE]
policies: usual
onError: open
resources: {requests: {cpu: 1, memory: 64Mi}}
bind: 127.0.0.1:8443
log: {format: json}
""",
        {"VERSION": "2"},
    )
    assert (settings.image, settings.sidecar, settings.on_error) == (
        "registry.example/amqpgate:2",
        "classic",
        "open",
    )
    injection = inject(pod(container(env("QUEUE", URL))), settings)
    assert injection is not None
    sidecar = injection.pod["spec"]["containers"][1]
    assert sidecar["resources"] == {"requests": {"cpu": 1, "memory": "64Mi"}}
    assert sidecar["imagePullPolicy"] == "Always"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("imagee: x", "s.yaml:1:1: unknown key 'imagee'"),
        ("port: 0", "s.yaml:1:7: must be between 1 and 65535"),
        ("sidecar: modern", "s.yaml:1:10: expected one of native, classic"),
        ("variables: []", "s.yaml:1:12: must not be empty"),
        ("tls: {cert: nowhere.pem, key: nowhere.pem}", "s.yaml:1:13: no such file"),
        ("port: 1\n---\nport: 2", "s.yaml:3:1: a settings file is one document"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, {}, file="s.yaml")
    assert str(caught.value).startswith(message)


def test_the_committed_schema_is_that_of_the_code() -> None:
    """Repair it with: python -m amqpgate.inject --schema > spec/schema/injector.json"""
    assert json.loads((ROOT / "spec" / "schema" / "injector.json").read_text()) == schema()
    assert "`onError`" in describe()
