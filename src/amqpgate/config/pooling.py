"""Connections to the broker that many clients share: how many, how long, and what one client may hold."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, Seconds, Size, between, doc

#: Whose a connection to the broker is: one client's, or that of all who log in alike.
Connections: TypeAlias = Literal["own", "pooled"]

#: Likewise, of clients that consume.
Consumers: TypeAlias = Literal["shared", "own"]


@frozen(kw_only=True)
class Pooling:
    """One pool for each virtual host and login, in each process."""

    max_links: int = attrs.field(
        default=8,
        validator=between(1, 1000),
        metadata=doc(
            "connections of one pool at once, those being made or closed included; when all their channels "
            "are taken, clients that open one wait. To ask about a login takes one more for a moment"
        ),
    )
    channels_per_link: int = attrs.field(
        default=1024,
        validator=between(1, 65535),
        metadata=doc("most channels on one connection; fewer if the broker allows fewer"),
    )
    spare_channels: int = attrs.field(
        default=16,
        validator=between(0, 65535),
        metadata=doc(
            "channels kept open ahead of need on each connection, as far as it has room; once clients use "
            "confirms, as many again in confirm mode; more while many are opened"
        ),
    )
    consumers: Consumers = attrs.field(
        default="own",
        metadata=doc(
            "`own`: clients that consume get connections of their own. `shared`: they share, too, if they "
            "set a prefetch count and acknowledge; but while the broker blocks such a connection for a "
            "memory or disk alarm, since somebody publishes there, it reads no acknowledgements, "
            "so nobody drains it"
        ),
    )
    idle_timeout: Seconds = attrs.field(
        default=Seconds(60.0),
        validator=between(0.01, 86400),
        metadata=doc(
            "a connection that no client has channels on is closed after so long; the last one that has room "
            "stays while clients are there"
        ),
    )
    max_age: Seconds = attrs.field(
        default=Seconds(3600.0),
        validator=between(0.01, 30 * 86400),
        metadata=doc(
            "age at which a connection is replaced: it gets no new clients once another has room, and is "
            "closed when its last one has left"
        ),
    )
    proof_ttl: Seconds = attrs.field(
        default=Seconds(300.0),
        validator=between(0, 86400),
        metadata=doc(
            "how long a login that the broker has accepted is not asked again; so long, too, may a password "
            "that has been changed still open new sessions. 0: each is asked"
        ),
    )
    failed_logins: int = attrs.field(
        default=10,
        validator=between(1, 1_000_000),
        metadata=doc(
            "failed logins of one source address in `failedLoginsPeriod`; after them its logins that are not "
            "known to be right wait"
        ),
    )
    failed_logins_period: Seconds = attrs.field(
        default=Seconds(1.0),
        validator=between(0.01, 86400),
        metadata=doc("time in which so many may fail; in each process, and of IPv6 the /64 counts"),
    )
    max_body: Size = attrs.field(
        default=Size(1 << 20),
        validator=between(0, 1 << 30),
        metadata=doc(
            "largest body that goes by a shared connection; for a larger one the client gets a connection of "
            "its own, if it holds nothing at the broker that this would lose"
        ),
    )
    max_collected: Size = attrs.field(
        default=Size(16 << 20),
        validator=between(0, 1 << 30),
        metadata=doc(
            "largest body of a client that can get no connection of its own: held until it is whole; larger "
            "ones are refused"
        ),
    )
    max_waiting: Size = attrs.field(
        default=Size(8 << 20),
        validator=between(8192, 1 << 30),
        metadata=doc(
            "bytes from the broker that wait for a client that does not read; beyond that its session is "
            "ended, for the shared connection goes on"
        ),
    )

    def __attrs_post_init__(self) -> None:
        if self.max_collected < self.max_body:
            raise Invalid("maxCollected must not be less than maxBody", "max_collected")
