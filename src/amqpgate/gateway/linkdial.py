"""A connection to a broker that no single client opens: dialled, logged in, its virtual host open."""

from __future__ import annotations

import contextlib

import attrs
import trio

from amqpgate.config import Address
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.broker_handshake import NOT_A_VERDICT, UpstreamFaultError
from amqpgate.gateway.conversation import await_close_ok
from amqpgate.gateway.dialling import Dialler, Line
from amqpgate.gateway.hop import Hop, HopClosedError
from amqpgate.gateway.own_login import LoginRefusedError, NotLetInError, log_in
from amqpgate.gateway.upstream import UpstreamUnavailableError
from amqpgate.protocol.handshake import Tune
from amqpgate.protocol.sasl import Credentials
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

#: What the gateway understands on a link, whatever its clients do.
_CAPABILITIES = (
    "authentication_failure_close",
    "basic.nack",
    "connection.blocked",
    "consumer_cancel_notify",
    "exchange_exchange_bindings",
    "publisher_confirms",
)


@attrs.frozen
class Opened:
    """It may be used."""

    hop: Hop
    tune: Tune
    address: Address


async def open_connection(
    dialler: Dialler, login: Credentials, vhost: str, *, name: str, version: str, entry: dict[str, object]
) -> Opened:
    """Try the endpoints until one has answered; a refusal is an answer. ``entry`` is shown in the broker's
    list of connections beside ``name``.

    Raises ``UpstreamUnavailableError``, ``LoginRefusedError``, and ``ConfigError``.
    """
    about = Table.of(
        {
            "product": "amqpgate",
            "version": version,
            "connection_name": f"amqpgate {name}",
            "capabilities": dict.fromkeys(_CAPABILITIES, True),
            "amqpgate": entry,
        }
    )
    settings = dialler.settings
    timeout = settings.handshake_timeout or settings.connect_timeout
    while True:
        line = await dialler.connect()
        try:
            with trio.fail_after(timeout):
                tune = await _let_in(line, login, vhost, about, dialler)
        except (UpstreamFaultError, trio.TooSlowError) as fault:
            line.hop.close()
            why = str(fault) or f"did not let us in within {timeout:g} s"
            error = UpstreamUnavailableError(f"upstream {line.endpoint.address}: {why}")
            dialler.give_up(line.endpoint, error, answered=True)
            continue
        except BaseException:
            line.hop.close()
            raise
        dialler.cluster.succeeded(line.endpoint)
        dialler.cluster.tune = amqp.ConnectionTune(tune.channel_max, tune.frame_max, tune.heartbeat)
        return Opened(line.hop, tune, line.endpoint.address)


async def part_with(hop: Hop, why: str, deadline_in: float) -> None:
    """Close a connection that is not needed, within so many seconds."""
    try:
        with trio.move_on_after(deadline_in), contextlib.suppress(HopClosedError):
            await hop.send_method(amqp.ConnectionClose(200, why, 0, 0))
            await await_close_ok(hop)
            await hop.linger()
    finally:
        hop.close()


async def _let_in(line: Line, login: Credentials, vhost: str, about: Table, dialler: Dialler) -> Tune:
    try:
        return await log_in(line.hop, line.greeting, login, vhost, about, dialler.settings)
    except LoginRefusedError as error:
        if error.refusal.reply_code in NOT_A_VERDICT:
            raise UpstreamFaultError(str(error)) from error
        await line.hop.send_method(amqp.ConnectionCloseOk())
        raise
    except (NotLetInError, HopClosedError, ProtocolViolation) as error:
        raise UpstreamFaultError(str(error)) from error
