"""A connection to a mirror: dialled, logged in, its virtual host open."""

from __future__ import annotations

import attrs
import trio

from amqpgate.config import USUAL_FRAME_MAX, Upstream
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.observers.mirror.line import MirrorFaultError
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.broker_side import NOT_A_VERDICT
from amqpgate.gateway.upstream.cluster import Cluster, EndpointHealth
from amqpgate.gateway.upstream.dialer import UpstreamUnavailableError, call
from amqpgate.gateway.upstream.own_login import (
    LoginRefusedError,
    NotLetInError,
    log_in,
    open_vhost,
    own_credentials,
)
from amqpgate.protocol.handshake import Tune
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table


@attrs.frozen
class Dialled:
    """Ready for messages."""

    hop: MethodStream
    tune: Tune
    user: str


class _MirrorRefusedError(MirrorFaultError):
    """The broker has answered: it does not want the login, and neither will another one of the cluster."""


async def dial_mirror(
    cluster: Cluster, settings: Upstream, contexts: TlsContexts, *, version: str, name: str
) -> Dialled:
    """Try the endpoints of ``cluster`` until one has answered; ``settings`` are its own, with the mirror's
    login and virtual host.

    Raises ``UpstreamUnavailableError``, ``MirrorFaultError``, ``StreamClosedError``, ``ProtocolViolation``
    and ``ConfigError``.
    """
    for endpoint in (endpoints := cluster.order(name, trio.current_time())):
        try:
            dialled = await _dial(endpoint, settings, contexts, version, name)
        except _MirrorRefusedError:
            endpoint.succeeded()
            raise
        except (UpstreamUnavailableError, MirrorFaultError, StreamClosedError, ProtocolViolation):
            # With an answer to the header it is not let in yet: the next one may do better.
            cluster.failed(endpoint, trio.current_time())
            if endpoint is endpoints[-1]:
                raise
        else:
            endpoint.succeeded()
            return dialled
    raise AssertionError("a cluster has endpoints")


async def _dial(
    endpoint: EndpointHealth, settings: Upstream, contexts: TlsContexts, version: str, name: str
) -> Dialled:
    line = await call(endpoint, settings, contexts, frame_max=USUAL_FRAME_MAX, name=f"mirror {name}")
    timeout = settings.answer_timeout
    try:
        with trio.fail_after(timeout):
            return await _log_in(line.hop, line.greeting, settings, version, name)
    except trio.TooSlowError:
        line.hop.close()
        raise MirrorFaultError(f"{endpoint.address} did not let us in within {timeout:g} s") from None
    except BaseException:
        line.hop.close()
        raise


async def _log_in(
    hop: MethodStream,
    greeting: amqp.ConnectionStart | amqp.ConnectionClose,
    settings: Upstream,
    version: str,
    name: str,
) -> Dialled:
    if not hop.interpreter.is_native:
        raise MirrorFaultError(f"it speaks {hop.interpreter.version}, which has no publisher confirms")
    if isinstance(greeting, amqp.ConnectionStart) and not _offers_confirms(greeting):
        raise MirrorFaultError("it offers no publisher confirms")
    login = own_credentials(settings)
    assert login is not None, "checked with the policies"
    can = ("authentication_failure_close", "basic.nack", "connection.blocked", "publisher_confirms")
    about = {
        "product": "amqpgate",
        "version": version,
        "connection_name": f"amqpgate mirror {name}",
        "capabilities": dict.fromkeys(can, True),
    }
    try:
        asked = await log_in(hop, greeting, login, Table.of(about), settings)
        tune = await open_vhost(hop, asked, settings.vhost or "/", settings)
    except LoginRefusedError as error:
        is_answer = error.refusal.reply_code not in NOT_A_VERDICT
        raise (_MirrorRefusedError if is_answer else MirrorFaultError)(str(error)) from error
    except NotLetInError as error:
        raise MirrorFaultError(str(error)) from error
    return Dialled(hop, tune, login.user)


def _offers_confirms(start: amqp.ConnectionStart) -> bool:
    offered = start.server_properties.field("capabilities")
    return (
        offered is not None
        and isinstance(offered.value, Table)
        and bool(offered.value.get("publisher_confirms"))
    )
