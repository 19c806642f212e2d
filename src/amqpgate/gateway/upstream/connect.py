"""Dialling the broker: TCP to any of its addresses, TLS where it is asked for."""

from __future__ import annotations

import socket
import ssl

import trio

from amqpgate.config import Address, Upstream
from amqpgate.errors import AmqpgateError
from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.gateway.transport.socket_options import prepare
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.protocol.methods import Role


class UpstreamUnavailableError(AmqpgateError):
    """The broker could not be reached; the text says which and why, and holds no credentials."""


async def dial(
    upstream: Upstream, contexts: TlsContexts, *, address: Address, frame_max: int
) -> MethodStream:
    """Connect to one endpoint within ``upstream.connect_timeout`` seconds, TLS handshake included.

    A name with several addresses is tried in the manner of RFC 8305. Raises
    ``UpstreamUnavailableError``.
    """
    where = str(address)
    hop: MethodStream | None = None
    try:
        with trio.fail_after(upstream.connect_timeout):
            stream = await trio.open_tcp_stream(address.host, address.port)
            # The raw socket is what the data path works on; its owner from here on is the hop.
            sock = socket.socket(fileno=stream.socket.detach())
            prepare(sock)
            hop = MethodStream(sock, frame_max=frame_max, peer=Role.SERVER)
            if upstream.tls is not None:
                await hop.start_tls(
                    contexts.for_upstream(upstream.tls),
                    server_side=False,
                    name=upstream.tls.server_name or address.host,
                )
    except trio.TooSlowError:
        _drop(hop)
        raise UpstreamUnavailableError(
            f"upstream {where} did not answer within {upstream.connect_timeout:g} s"
        ) from None
    except ssl.SSLError as error:
        _drop(hop)
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"its certificate is not trusted: {error.verify_message}"
        else:
            why = error.reason or str(error)
        raise UpstreamUnavailableError(f"TLS with upstream {where} failed: {why}") from error
    except OSError as error:
        _drop(hop)
        cause = error.__cause__ or error
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        raise UpstreamUnavailableError(f"cannot connect to upstream {where}: {cause}") from error
    except BaseException:
        _drop(hop)
        raise
    return hop


def _drop(hop: MethodStream | None) -> None:
    if hop is not None:
        hop.close()
