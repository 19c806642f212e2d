"""HTTPS whose certificate is read again when its files change: of the admin interface, and of the webhook."""

from __future__ import annotations

import ssl
from typing import Final

from amqpgate.config import ListenerTls
from amqpgate.gateway.transport.tls import TlsContexts

#: What a TLS handshake may settle on (RFC 7301). With HTTP/2 one connection could ask, and take back, any
#: number of questions at once.
PROTOCOLS: Final = ("http/1.1",)


class Certificates:
    """The newest certificate of one address. Raises ``ConfigError`` where its files cannot be used."""

    def __init__(self, tls: ListenerTls) -> None:
        self._tls = tls
        self._contexts = TlsContexts()
        # What cannot be used is found before there is a socket.
        self._newest()

    def context(self) -> ssl.SSLContext:
        """The context of the socket; each connection that begins gets the one with the newest certificate."""
        first = self._newest()

        def choose(connection: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext) -> None:
            connection.context = self._newest()

        first.sni_callback = choose
        return first

    def _newest(self) -> ssl.SSLContext:
        context = self._contexts.for_listener(self._tls)
        # OpenSSL asks the connection's context, not the socket's, which protocols there are.
        context.set_alpn_protocols(PROTOCOLS)
        return context
