"""A connection to a broker that no single client opens: dialled, logged in, its virtual host open."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NoReturn

import attrs
import trio

from amqpgate.config import Address, Upstream
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.transport.conversation import say_close
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.gateway.upstream.broker_side import NOT_A_VERDICT, UpstreamFaultError
from amqpgate.gateway.upstream.cluster import Destination
from amqpgate.gateway.upstream.dialer import DialedBroker, Dialer, UpstreamUnavailableError
from amqpgate.gateway.upstream.own_login import LoginRefusedError, NotLetInError, log_in, open_vhost
from amqpgate.protocol.handshake import Tune
from amqpgate.protocol.sasl import Credentials
from amqpgate.values import frozen
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

#: What the gateway understands on a shared connection, whatever its clients do.
_CAPABILITIES = (
    "authentication_failure_close",
    "basic.nack",
    "connection.blocked",
    "consumer_cancel_notify",
    "exchange_exchange_bindings",
    "publisher_confirms",
)


@frozen
class Preauthenticated:
    """Logged in; its virtual host is not open yet."""

    broker: DialedBroker
    asked: amqp.ConnectionTune


@frozen
class Opened:
    """It may be used."""

    hop: MethodStream
    tune: Tune
    address: Address


async def preauthenticate(
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
    settings = dialler.destination.settings
    while True:
        broker = await dialler.connect()
        try:
            with _answering(broker, settings):
                asked = await log_in(broker.hop, broker.greeting, login, about, settings)
                return Preauthenticated(broker, asked)
        except UpstreamFaultError as fault:
            _give_up(broker, dialler, fault)
        except LoginRefusedError as error:
            await _part_rejected(broker, error)


async def open_on(preauthenticated: Preauthenticated, to: Destination, vhost: str) -> Opened:
    """Open a virtual host. Raises ``UpstreamFaultError``, ``LoginRefusedError``; the hop is closed then."""
    broker = preauthenticated.broker
    try:
        with _answering(broker, to.settings):
            tune = await open_vhost(broker.hop, preauthenticated.asked, vhost, to.settings)
    except LoginRefusedError as error:
        await _part_rejected(broker, error)
    broker.endpoint.succeeded()
    to.cluster.offered(amqp.ConnectionTune(tune.channel_max, tune.frame_max, tune.heartbeat))
    return Opened(broker.hop, tune, broker.endpoint.address)


async def open_connection(
    dialler: Dialer, login: Credentials, vhost: str, *, name: str, version: str, entry: dict[str, object]
) -> Opened:
    """Both. Raises as `preauthenticate`."""
    while True:
        first = await preauthenticate(dialler, login, name=name, version=version, entry=entry)
        try:
            return await open_on(first, dialler.destination, vhost)
        except UpstreamFaultError as fault:
            _give_up(first.broker, dialler, fault)


@contextlib.contextmanager
def _answering(broker: DialedBroker, settings: Upstream) -> Iterator[None]:
    """What goes wrong in here, or takes too long, is the broker's fault, and the hop is closed."""
    timeout = settings.answer_timeout
    try:
        with trio.fail_after(timeout):
            yield
    except LoginRefusedError as error:
        if error.refusal.reply_code in NOT_A_VERDICT:
            broker.hop.close()
            raise UpstreamFaultError(str(error)) from error
        raise
    except trio.TooSlowError:
        broker.hop.close()
        raise UpstreamFaultError(f"did not answer within {timeout:g} s") from None
    except (NotLetInError, StreamClosedError, ProtocolViolation) as error:
        broker.hop.close()
        raise UpstreamFaultError(str(error)) from error
    except BaseException:
        broker.hop.close()
        raise


def _give_up(broker: DialedBroker, dialler: Dialer, fault: UpstreamFaultError) -> None:
    error = UpstreamUnavailableError(f"upstream {broker.endpoint.address}: {fault}")
    dialler.give_up(broker.endpoint, error, answered=True)


async def _part_rejected(broker: DialedBroker, error: LoginRefusedError) -> NoReturn:
    """The broker does not want the login: that is an answer, and is answered."""
    broker.endpoint.succeeded()
    with contextlib.suppress(StreamClosedError):
        await broker.hop.send_method(amqp.ConnectionCloseOk())
    broker.hop.close()
    raise error


async def part_with(hop: MethodStream, why: str, deadline_in: float) -> None:
    """Close a connection that is not needed, within so many seconds."""
    try:
        with trio.move_on_after(deadline_in), contextlib.suppress(StreamClosedError):
            await say_close(hop, ProtocolViolation(200, why))
    finally:
        hop.close()


@frozen
class PoolDialer:
    """Opens the connections of one login in one virtual host."""

    #: As the session gets there whose login was the first.
    destination: Destination
    login: Credentials = attrs.field(repr=False)
    vhost: str
    #: What operators see of the pool, in the broker's lists and in the gateway's own.
    shown: str
    #: Of the gateway.
    version: str

    async def open(self, session: str = "", *, clients: int = 1) -> Opened:
        """A connection for a session, or for so many clients. Raises as `open_connection`."""
        name = f"session {session}" if session else f"pool {self.shown}"
        return await open_connection(
            Dialer(self.destination, name),
            self.login,
            self.vhost,
            name=name,
            version=self.version,
            entry={"pool": self.shown, "session": session, "clients": clients},
        )

    async def open_on(self, preauthenticated: Preauthenticated) -> Opened:
        """One that has logged in. Raises as ``dial.open_on``."""
        return await open_on(preauthenticated, self.destination, self.vhost)
