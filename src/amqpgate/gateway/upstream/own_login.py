"""A connection of the gateway's own to a broker that has said its start: logged in, its virtual host open.

::

    gateway                        broker
      │ start-ok ─────────────────▶ │
      │ ◀─ secure, secure-ok ──────▶│  as often as the mechanism has it (`protocol.login`)
      │ ◀─────────────────────── tune, or its refusal
      │ tune-ok, open ────────────▶ │
      │ ◀──────────────────── open-ok, or its refusal

Mirrors have such connections, and pools, whose links no single client opens.
"""

from __future__ import annotations

from typing import TypeVar

import trio

from amqpgate.config import USUAL_FRAME_MAX, Upstream
from amqpgate.errors import AmqpgateError
from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.gateway.transport.waiting import in_trio
from amqpgate.gateway.upstream.redaction import without_login
from amqpgate.protocol.frames import method_frame
from amqpgate.protocol.handshake import MAX_CHANNELS, Tune, negotiate, too_small
from amqpgate.protocol.login import Exchange, exchange
from amqpgate.protocol.sasl import Credentials, offered_by
from amqpgate.protocol.scram import SaslError
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

M = TypeVar("M", bound=Method)


class NotLetInError(AmqpgateError):
    """The broker said something else than what was due."""


class LoginRefusedError(NotLetInError):
    """It said connection.close."""

    def __init__(self, refusal: amqp.ConnectionClose) -> None:
        self.refusal = without_login(refusal)
        super().__init__(f"refused: {refusal.reply_code} {self.refusal.reply_text}")


def own_credentials(settings: Upstream) -> Credentials | None:
    """The upstream's own user; None: each client logs in as itself. Raises ``ConfigError``."""
    login = settings.login()
    return None if login is None else Credentials(login.user, login.password.reveal().encode())


async def log_in(
    hop: MethodStream,
    greeting: amqp.ConnectionStart | amqp.ConnectionClose,
    login: Credentials,
    about: Table,
    settings: Upstream,
) -> amqp.ConnectionTune:
    """What the broker proposes to whom it has let in. ``about`` is what its lists show of the connection.

    Raises ``NotLetInError``, ``StreamClosedError`` and ``ProtocolViolation``; deadlines are the caller's.
    """
    start = _expect(greeting, amqp.ConnectionStart)
    try:
        said = exchange(offered_by(start.mechanisms), login, settings.mechanisms)
        await hop.send_method(amqp.ConnectionStartOk(about, said.mechanism, said.first(), "en_US"))
        method = await hop.next_method()
        while isinstance(method, amqp.ConnectionSecure):
            await hop.send_method(await secure_ok(said, method))
            method = await hop.next_method()
        tune = _expect(method, amqp.ConnectionTune)
        said.finish()
    except SaslError as error:
        raise NotLetInError(str(error)) from error
    return tune


async def secure_ok(said: Exchange, secure: amqp.ConnectionSecure) -> amqp.ConnectionSecureOk:
    """The answer to a challenge. Raises `SaslError`."""
    # It hashes for milliseconds, in which others are served.
    return amqp.ConnectionSecureOk(await in_trio(trio.to_thread.run_sync, said.answer, secure.challenge))


async def open_vhost(hop: MethodStream, asked: amqp.ConnectionTune, vhost: str, settings: Upstream) -> Tune:
    """What holds on the hop, whose vhost is open now. Raises as `log_in`."""
    why_not = too_small(asked.frame_max)
    if why_not is not None:
        raise NotLetInError(why_not)
    wanted = settings.heartbeat
    tune = Tune(
        frame_max=negotiate(asked.frame_max, settings.frame_max or USUAL_FRAME_MAX),
        channel_max=negotiate(asked.channel_max, settings.channel_max or MAX_CHANNELS),
        heartbeat=asked.heartbeat if wanted is None else hop.interpreter.heartbeat(wanted, asked.heartbeat),
    )
    tune_ok = amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, tune.heartbeat)
    await hop.send(method_frame(0, tune_ok) + method_frame(0, amqp.ConnectionOpen(vhost)))
    _expect(await hop.next_method(), amqp.ConnectionOpenOk)
    return tune


def _expect(method: Method, expected: type[M]) -> M:
    if isinstance(method, expected):
        return method
    if isinstance(method, amqp.ConnectionClose):
        raise LoginRefusedError(method)
    raise NotLetInError(f"expected '{expected.NAME}', got '{method.NAME}'")
