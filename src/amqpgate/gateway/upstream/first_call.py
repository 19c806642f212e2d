"""The call of a broker that has answered others just so, without a coroutine: to an address, and without TLS.

::

    known ──▶ begin ──▶ connecting ──▶ greeted ──▶ answered ──▶ `DialedBroker`
                 └──────────┴────────────┴── anything else: the `Dialer` goes on with it
"""

from __future__ import annotations

import os
import socket
from typing import Final

import attrs
import trio

from amqpgate.bridge import VERSIONS
from amqpgate.gateway.transport.connecting import begin, prepare
from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.gateway.transport.repeated import HEARD
from amqpgate.gateway.upstream.cluster import Destination, EndpointHealth
from amqpgate.gateway.upstream.dialer import BegunCall, DialedBroker, Dialer, too_slow, unreachable
from amqpgate.protocol.methods import Role
from amqpgate.values import define
from amqpgate.wire.dialects import HEADER_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp

#: The version that is spoken.
_VERSION: Final = VERSIONS.named("0-9-1")


@define(eq=False)
class FirstCall:
    """The first attempt of one session."""

    destination: Destination
    session: str
    endpoint: EndpointHealth
    #: What it said to others, in the canonical model.
    start: amqp.ConnectionStart
    #: The connection, once it has begun; it may not stand yet.
    sock: socket.socket | None = attrs.field(default=None, init=False)
    #: On trio's clock: since when it is tried, and until when its next answer is waited for.
    since: float = attrs.field(default=0.0, init=False)
    until: float = attrs.field(default=0.0, init=False)
    _is_told: bool = attrs.field(default=False, init=False)
    #: What is tried where it fails.
    _left: list[EndpointHealth] | None = attrs.field(default=None, init=False)
    _dialler: Dialer | None = attrs.field(default=None, init=False)

    @classmethod
    def known(cls, destination: Destination, session: str, now: float) -> FirstCall | None:
        """Of the endpoint that is next; None: it is not known what it will say, or it is for a dialler."""
        settings = destination.settings
        if settings.has_login or settings.tls is not None:
            return None
        endpoint = destination.cluster.ordered(session, now)[0]
        start, met = endpoint.starts.known(settings.version, now), endpoint.starts.met
        if start is None or met is None or met.start is not start or met.asked is not _VERSION:
            return None
        return cls(destination, session, endpoint, start)

    def dialler(self) -> Dialer:
        """Who goes on."""
        if self._dialler is None:
            self._dialler = Dialer(self.destination, self.session, self._left)
        return self._dialler

    def begin(self) -> bool | None:
        """Whether it stands, and has been told the protocol header; None: the dialler goes on.

        False: it is writable when it stands (`connected`).
        """
        now = self.since = trio.current_time()
        self._left = self.destination.cluster.order(self.session, now)
        endpoint = self.endpoint = self._left.pop(0)
        try:
            attempt = begin(endpoint.address.host, endpoint.address.port)
            if attempt is None:
                self.dialler().put_back(endpoint)
                return None
            self.sock = attempt.sock
            if attempt.is_pending:
                self.until = now + self.destination.settings.connect_timeout
                return False
            attempt.settle()
            return self._greet(attempt.sock, now)
        except OSError as error:
            self._failed(error)
            return None

    def connected(self) -> bool | None:
        """As `begin`, of one that stands now, or never will."""
        sock = self.sock
        assert sock is not None, "it has begun"
        try:
            error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error))
            return self._greet(sock, trio.current_time())
        except OSError as error:
            self._failed(error)
            return None

    def _greet(self, sock: socket.socket, now: float) -> bool | None:
        prepare(sock, self.endpoint.address.host)
        self.until = now + self.destination.settings.answer_timeout
        try:
            if sock.send(HEADER_0_9_1) == len(HEADER_0_9_1):
                self._is_told = True
                return True
        except OSError:
            pass
        self.leave()
        return None

    def _failed(self, error: OSError) -> None:
        """The dialler tries another one."""
        self.close()
        self.dialler().give_up(self.endpoint, unreachable(self.endpoint.address, error))

    def answers(self, data: bytes) -> bool:
        """Whether what has come is its start, as it was before."""
        method, rest = HEARD.get(data, (None, b""))
        endpoint, version = self.endpoint, self.destination.settings.version
        met = endpoint.starts.met
        if rest or met is None or met.start is not self.start or not isinstance(method, amqp.ConnectionStart):
            return False
        if not met.is_again(method, _VERSION, is_set=version != "auto"):
            return False
        now = trio.current_time()
        endpoint.starts.heard(version, self.start, now)
        self.destination.answered(endpoint, self.start, now - self.since)
        endpoint.succeeded()
        return True

    def dialed(self, received: bytes | OSError) -> DialedBroker:
        """It has answered; this came after that."""
        return DialedBroker(self.endpoint, self._hop(received), self.start)

    def leave(self, received: bytes | OSError = b"") -> None:
        """The dialler goes on, with what has been received."""
        if self.sock is None:
            return
        if self._is_told:
            begun = BegunCall(self.endpoint, self._hop(received), self.since, self.until)
            self.dialler().resume(begun)
            return
        self.close()
        if trio.current_time() < self.until:
            self.dialler().put_back(self.endpoint)
        else:
            self.dialler().give_up(self.endpoint, too_slow(self.endpoint.address, self.destination.settings))

    def _hop(self, received: bytes | OSError) -> MethodStream:
        assert self.sock is not None, "it has been told something"
        return MethodStream(
            self.sock, frame_max=self.destination.frame_max, peer=Role.SERVER, received=received
        )

    def close(self) -> None:
        """Close at once. Idempotent."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None
