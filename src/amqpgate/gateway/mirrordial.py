"""A connection to a mirror: dialled, logged in, its virtual host open."""

from __future__ import annotations

from typing import TypeVar

import attrs
import trio

from amqpgate.config import USUAL_FRAME_MAX, Upstream
from amqpgate.gateway.client_handshake import MAX_CHANNELS
from amqpgate.gateway.clusters import Cluster
from amqpgate.gateway.dialling import call
from amqpgate.gateway.hop import Hop
from amqpgate.gateway.mirrorline import MirrorFaultError
from amqpgate.gateway.tls import TlsContexts
from amqpgate.gateway.upstream import UpstreamUnavailableError
from amqpgate.protocol.frames import method_frame
from amqpgate.protocol.handshake import Tune, negotiate
from amqpgate.protocol.sasl import PLAIN, plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

M = TypeVar("M", bound=Method)


@attrs.frozen
class Dialled:
    """Ready for messages."""

    hop: Hop
    tune: Tune
    user: str


async def dial_mirror(
    cluster: Cluster, settings: Upstream, contexts: TlsContexts, *, version: str, name: str
) -> Dialled:
    """Try the endpoints of ``cluster``; ``settings`` are its own, with the mirror's login and virtual host.

    Raises ``UpstreamUnavailableError``, ``MirrorFaultError``, ``HopClosedError``, ``ProtocolViolation`` and
    ``ConfigError``.
    """
    for endpoint in (endpoints := cluster.order(name, trio.current_time())):
        try:
            line = await call(endpoint, settings, contexts, frame_max=USUAL_FRAME_MAX)
        except UpstreamUnavailableError:
            cluster.failed(endpoint, trio.current_time())
            if endpoint is endpoints[-1]:
                raise
            continue
        cluster.succeeded(endpoint)
        timeout = settings.handshake_timeout or settings.connect_timeout
        try:
            with trio.fail_after(timeout):
                return await _log_in(line.hop, line.greeting, settings, version, name)
        except trio.TooSlowError:
            line.hop.close()
            raise MirrorFaultError(f"{endpoint.address} did not let us in within {timeout:g} s") from None
        except BaseException:
            line.hop.close()
            raise
    raise AssertionError("a cluster has endpoints")


async def _log_in(
    hop: Hop,
    greeting: amqp.ConnectionStart | amqp.ConnectionClose,
    settings: Upstream,
    version: str,
    name: str,
) -> Dialled:
    start = _expect(greeting, amqp.ConnectionStart)
    if not hop.interpreter.is_house:
        raise MirrorFaultError(f"it speaks {hop.interpreter.version}, which has no publisher confirms")
    offered = start.server_properties.field("capabilities")
    if offered is None or not isinstance(offered.value, Table) or not offered.value.get("publisher_confirms"):
        raise MirrorFaultError("it offers no publisher confirms")
    login = settings.login()
    assert login is not None, "checked with the policies"
    can = ("authentication_failure_close", "basic.nack", "connection.blocked", "publisher_confirms")
    about = {
        "product": "amqpgate",
        "version": version,
        "connection_name": f"amqpgate mirror {name}",
        "capabilities": dict.fromkeys(can, True),
    }
    response = plain_response(login.user, login.password.reveal())
    await hop.send_method(amqp.ConnectionStartOk(Table.of(about), PLAIN, response, "en_US"))
    asked = _expect(await hop.next_method(), amqp.ConnectionTune)
    tune = Tune(
        frame_max=negotiate(asked.frame_max, settings.frame_max or USUAL_FRAME_MAX),
        channel_max=negotiate(asked.channel_max, settings.channel_max or MAX_CHANNELS),
        heartbeat=asked.heartbeat if settings.heartbeat is None else settings.heartbeat,
    )
    tune_ok = amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, tune.heartbeat)
    request = amqp.ConnectionOpen(settings.vhost or "/")
    await hop.send(method_frame(0, tune_ok) + method_frame(0, request))
    _expect(await hop.next_method(), amqp.ConnectionOpenOk)
    return Dialled(hop, tune, login.user)


def _expect(method: Method, expected: type[M]) -> M:
    if isinstance(method, expected):
        return method
    if isinstance(method, amqp.ConnectionClose):
        raise MirrorFaultError(f"refused: {method.reply_code} {method.reply_text}")
    raise MirrorFaultError(f"expected '{expected.NAME}', got '{method.NAME}'")
