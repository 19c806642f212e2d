"""What passes in a login of 0-10: mechanisms, and properties that change how a client is treated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from amqpgate.wire.v0_10.types import Map

#: Mechanisms with security layers: what follows open would be encrypted between client and broker, and nobody
#: in between could read it. They are not offered, though qpidd and its clients prefer them.
SECURITY_LAYERS: Final = frozenset({b"GSSAPI", b"DIGEST-MD5", b"KERBEROS_V4"})
#: Of 0-8 to 0-9-1 only: its response is a field table.
_NOT_OF_0_10: Final = frozenset({b"AMQPLAIN"})

#: Client properties that make qpidd treat a connection as a link of its federation, with other permissions.
LINK_PROPERTIES: Final = frozenset({b"qpid.fed_link", b"qpid.federation_tag"})


def passable(mechanisms: Iterable[bytes]) -> tuple[bytes, ...]:
    """Those of the mechanisms that can be offered to a 0-10 client, in their order."""
    return tuple([name for name in mechanisms if name.upper() not in SECURITY_LAYERS | _NOT_OF_0_10])


def without_link_properties(properties: Map) -> Map:
    """Client properties for a broker, without those of `LINK_PROPERTIES`."""
    return Map(tuple([entry for entry in properties.entries if entry[0] not in LINK_PROPERTIES]))
