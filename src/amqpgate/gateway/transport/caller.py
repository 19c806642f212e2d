"""Who a connection comes from, as far as its transport tells: the address, and the TLS certificate."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from amqpgate.config import Listener
from amqpgate.policy import Principal, TlsIdentity
from amqpgate.values import frozen


@frozen
class Caller:
    """Who is calling, before it has said a word of AMQP."""

    session_id: str
    #: "10.0.0.7:51234"; from the PROXY header where there is one.
    address: str
    #: The client's verified certificate.
    tls: TlsIdentity | None = None
    #: The client's IP address.
    source: str = attrs.field(init=False)

    @source.default
    def _source(self) -> str:
        return self.address.rpartition(":")[0]

    @property
    def tls_name(self) -> str:
        """Common name of the client's verified certificate, or ""."""
        return self.tls.common_name if self.tls is not None else ""

    def principal(
        self,
        listener: Listener,
        user: str | None,
        vhost: str,
        said: Mapping[str, str],
        upstream_user: str | None = None,
    ) -> Principal:
        """The principal of this caller, given what it says of itself, and whom the broker is told."""
        return Principal(
            user=user,
            vhost=vhost,
            source=self.source,
            listener=listener.name,
            tls=self.tls,
            client=said,
            upstream_user=upstream_user,
        )
