"""Whoever is tested: where it listens, how to log in, and the way there."""

from __future__ import annotations

import ssl

import attrs
import trio


@attrs.frozen
class PeerLogin:
    """Whoever is tested, and how to log in."""

    host: str
    port: int
    user: str
    password: str = attrs.field(repr=False)
    vhost: str
    tls: ssl.SSLContext | None = None


async def dialled(target: PeerLogin, patience: float) -> trio.abc.Stream:
    """A stream to the peer. Raises ``OSError`` and `trio.TooSlowError`."""
    with trio.fail_after(patience):
        stream: trio.abc.Stream = await trio.open_tcp_stream(target.host, target.port)
        if target.tls is not None:
            tls = trio.SSLStream(stream, target.tls, server_hostname=target.host, https_compatible=True)
            try:
                await tls.do_handshake()
            except trio.BrokenResourceError as error:
                await trio.aclose_forcefully(stream)
                raise ConnectionError(f"no TLS: {_reason(error)}") from None
            stream = tls
        return stream


def _reason(error: BaseException) -> str:
    """Why a handshake failed, in the words of who knows most of it."""
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError) and cause.reason:
        return cause.reason.replace("_", " ").lower()
    return str(cause or error) or "it hangs up"
