"""A connection to a broker that no single client opens: dialled, logged in, its virtual host open."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NoReturn

import attrs
import trio

from amqpgate.config import Address
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.transport.conversation import say_close
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.gateway.upstream.broker_side import NOT_A_VERDICT, UpstreamFaultError
from amqpgate.gateway.upstream.connect import UpstreamUnavailableError
from amqpgate.gateway.upstream.dialer import DialedBroker, Dialer
from amqpgate.gateway.upstream.login import LoginRefusedError, NotLetInError, log_in, open_vhost
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
class Preauthenticated:
    """Logged in; its virtual host is not open yet."""

    line: DialedBroker
    asked: amqp.ConnectionTune


@attrs.frozen
class Opened:
    """It may be used."""

    hop: MethodStream
    tune: Tune
    address: Address


async def knock(
    dialler: Dialer, login: Credentials, *, name: str, version: str, entry: dict[str, object]
) -> Preauthenticated:
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
    while True:
        line = await dialler.connect()
        try:
            with _answering(line, dialler):
                return Preauthenticated(
                    line, await log_in(line.hop, line.greeting, login, about, dialler.settings)
                )
        except UpstreamFaultError as fault:
            _give_up(line, dialler, fault)
        except LoginRefusedError as error:
            await _turn_away(line, error)


async def enter(knocked: Preauthenticated, dialler: Dialer, vhost: str) -> Opened:
    """Open a virtual host. Raises ``UpstreamFaultError``, ``LoginRefusedError``; the hop is closed then."""
    line = knocked.line
    try:
        with _answering(line, dialler):
            tune = await open_vhost(line.hop, knocked.asked, vhost, dialler.settings)
    except LoginRefusedError as error:
        await _turn_away(line, error)
    dialler.cluster.succeeded(line.endpoint)
    dialler.cluster.tune = amqp.ConnectionTune(tune.channel_max, tune.frame_max, tune.heartbeat)
    return Opened(line.hop, tune, line.endpoint.address)


async def open_connection(
    dialler: Dialer, login: Credentials, vhost: str, *, name: str, version: str, entry: dict[str, object]
) -> Opened:
    """Both. Raises as `knock`."""
    while True:
        knocked = await knock(dialler, login, name=name, version=version, entry=entry)
        try:
            return await enter(knocked, dialler, vhost)
        except UpstreamFaultError as fault:
            _give_up(knocked.line, dialler, fault)


@contextlib.contextmanager
def _answering(line: DialedBroker, dialler: Dialer) -> Iterator[None]:
    """What goes wrong in here, or takes too long, is the broker's fault, and the hop is closed."""
    timeout = dialler.settings.handshake_timeout or dialler.settings.connect_timeout
    try:
        with trio.fail_after(timeout):
            yield
    except LoginRefusedError as error:
        if error.refusal.reply_code in NOT_A_VERDICT:
            line.hop.close()
            raise UpstreamFaultError(str(error)) from error
        raise
    except trio.TooSlowError:
        line.hop.close()
        raise UpstreamFaultError(f"did not answer within {timeout:g} s") from None
    except (NotLetInError, StreamClosedError, ProtocolViolation) as error:
        line.hop.close()
        raise UpstreamFaultError(str(error)) from error
    except BaseException:
        line.hop.close()
        raise


def _give_up(line: DialedBroker, dialler: Dialer, fault: UpstreamFaultError) -> None:
    error = UpstreamUnavailableError(f"upstream {line.endpoint.address}: {fault}")
    dialler.give_up(line.endpoint, error, answered=True)


async def _turn_away(line: DialedBroker, error: LoginRefusedError) -> NoReturn:
    """The broker does not want the login: that is an answer, and is answered."""
    line.endpoint.failures = 0
    with contextlib.suppress(StreamClosedError):
        await line.hop.send_method(amqp.ConnectionCloseOk())
    line.hop.close()
    raise error


async def part_with(hop: MethodStream, why: str, deadline_in: float) -> None:
    """Close a connection that is not needed, within so many seconds."""
    try:
        with trio.move_on_after(deadline_in), contextlib.suppress(StreamClosedError):
            await say_close(hop, ProtocolViolation(200, why))
    finally:
        hop.close()
