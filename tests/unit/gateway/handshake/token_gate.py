"""A gateway that verifies tokens, before the embedded broker, and clients that log in by them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from amqpgate.broker.server import DEFAULT_USERS
from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.embedded import embedded_broker
from tests.support.inprocess import InProcess, serving
from tests.support.talker import CAPABILITIES, Gone, Talker
from tests.support.tokens import AUDIENCE, ISSUER, claims, jwk, key_for, key_set, token

SETTINGS = """
listeners:
- {{name: main, bind: "127.0.0.1:0"{listener}}}
- {{name: open, bind: "127.0.0.1:0"{other}}}
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}{upstream}}}]
limits: {{closeTimeout: 1s, drainTimeout: 2s, handshakeFrameMax: 8192}}
policies: policies
watchPolicies: false
defaultAccess: {default}
{more}
"""
OAUTH = (
    f"{{issuer: '{ISSUER}', audience: [{AUDIENCE}], jwksFile: keys.json, claims: [unit], clockSkew: 0s%s}}"
)
OWN = ", user: guest, password: guest"


@contextlib.contextmanager
def gate(
    folder: Path,
    policies: str = "",
    *,
    oauth: str = "",
    upstream: str = OWN,
    port: int | None = None,
    default: str = "allow",
    listener: str = "",
    more: str = "",
    users: Mapping[str, str] = DEFAULT_USERS,
) -> Iterator[InProcess]:
    """A gateway whose listener `main` verifies tokens; `open` does not. ``port``: its broker's."""
    (folder / "policies").mkdir(exist_ok=True)
    (folder / "policies" / "policy.yaml").write_text(policies)
    (folder / "keys.json").write_bytes(key_set(jwk(key_for("ES256"), "k")))
    with contextlib.ExitStack() as stack:
        if port is None:
            _, port = stack.enter_context(embedded_broker(users=users))
        text = SETTINGS.format(
            listener=f", oauth: {OAUTH % oauth}{listener}",
            other=", allowAnonymous: true",
            port=port,
            upstream=upstream,
            default=default,
            more=more,
        )
        yield stack.enter_context(serving(text, folder=folder))


def now_token(user: str = "bob", **more: object) -> bytes:
    """A token that is right now."""
    return token(claims(time.time()) | {"sub": user} | more, key_id="k")


def logged_in(
    running: InProcess,
    password: bytes | str,
    user: str = "somebody",
    listener: str = "main",
    properties: Table = CAPABILITIES,
) -> Talker:
    """A client, after its start-ok."""
    client = running.dial(listener)
    client.raw(amqp.PROTOCOL_HEADER)
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(properties, "PLAIN", plain_response(user, password), "en_US"))
    return client


def opened(running: InProcess, password: bytes | str, user: str = "somebody", **more: str) -> Talker:
    """A client whose virtual host is open, with channel 1."""
    client = logged_in(running, password, user, **more)
    tune = client.expect(amqp.ConnectionTune)
    client.frame_max = tune.frame_max
    client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
    client.ask(amqp.ConnectionOpen(virtual_host="/"), amqp.ConnectionOpenOk)
    client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
    return client


def answer_to(client: Talker) -> Method | None:
    """What it hears next; None: the connection ends."""
    try:
        return client.hear()[1]
    except Gone:
        return None


def principals(running: InProcess) -> list[tuple[str | None, list[str], list[str]]]:
    """Of each session its user, groups and scopes."""
    return running.call(
        lambda: [
            (
                one.principal.user,
                sorted(one.principal.groups),
                sorted(one.principal.token.scopes) if one.principal.token is not None else [],
            )
            for one in running.gateway.sessions.values()
        ]
    )


def counted(running: InProcess, name: str = "amqpgate_tokens_total") -> dict[str, int]:
    """A metric's samples that are not 0, by the value of the label."""
    return {
        ",".join(sample.labels.values()): int(sample.value)
        for metric in running.gateway.metrics.registry.collect()
        for sample in metric.samples
        if sample.name == name and sample.value
    }
