"""HTTPS whose certificate is read again when its files change: of the admin interface, and of the webhook."""

from __future__ import annotations

import logging
import ssl

import hypercorn.config

from amqpgate.config import ListenerTls
from amqpgate.gateway.transport.tls import TlsContexts


class ServerConfig(hypercorn.config.Config):
    """How hypercorn serves one address; ``tls`` None is plain HTTP.

    Raises ``ConfigError`` where its files cannot be used.
    """

    def __init__(self, address: str, tls: ListenerTls | None) -> None:
        self.bind = [address]
        self.accesslog = None
        self.errorlog = logging.getLogger("hypercorn.error")
        self._tls = tls
        self._contexts = TlsContexts()
        if tls is not None:
            # That there is TLS; `create_ssl_context` makes it.
            self.certfile, self.keyfile = str(tls.cert), str(tls.key)
            # What cannot be used is found before there is a socket.
            self._newest(tls)

    def create_ssl_context(self) -> ssl.SSLContext | None:
        """The context of the socket; each connection that begins gets the one with the newest certificate."""
        if self._tls is None:
            return None
        first = self._newest(self._tls)
        tls = self._tls

        def choose(connection: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext) -> None:
            connection.context = self._newest(tls)

        first.sni_callback = choose
        return first

    def _newest(self, tls: ListenerTls) -> ssl.SSLContext:
        context = self._contexts.for_listener(tls)
        # OpenSSL asks the connection's context, not the socket's, which protocols there are.
        context.set_alpn_protocols(self.alpn_protocols)
        return context
