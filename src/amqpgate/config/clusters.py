"""A cluster of brokers behind one upstream's name: where they are, and when one counts as down."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.config.address import Address, is_ipv6, is_name
from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, Percent, Seconds, between, doc

#: Which endpoint a new connection tries first.
Order: TypeAlias = Literal["listed", "weighted"]

#: Which version of AMQP is spoken with a broker: those that ``bridge.VERSIONS`` has, which a test compares.
AmqpVersion: TypeAlias = Literal["auto", "0-10", "0-9-1", "0-9", "0-8"]

#: Versions of which clients cannot share connections: a pool counts on channels of 0-9-1, and on what
#: RabbitMQ answers there.
UNSHARED: Final[frozenset[AmqpVersion]] = frozenset({"0-10"})

#: Where a broker may send the gateway.
Redirects: TypeAlias = Literal["cluster", "any", "never"]


@frozen(kw_only=True)
class Endpoint:
    """One broker of a cluster. A name with several addresses is tried in the manner of RFC 8305."""

    address: Address = attrs.field(metadata=doc("where the broker listens"))
    weight: int = attrs.field(
        default=1,
        validator=between(1, 1000),
        metadata=doc("its share of new connections, with `order: weighted`"),
    )

    def __attrs_post_init__(self) -> None:
        if not is_name(self.address.host) and not is_ipv6(self.address.host):
            raise Invalid("the host is neither a name nor an address", "address")
        if not self.address.port:
            raise Invalid("a broker has no port 0", "address")


@frozen(kw_only=True)
class HealthCheck:
    """Looking after the endpoints, whether clients come or not."""

    check: Literal["tcp", "amqp"] = attrs.field(
        default="amqp",
        metadata=doc("`tcp`: it accepts connections; `amqp`: it answers the protocol header with a start"),
    )
    interval: Seconds = attrs.field(
        default=Seconds(5.0), validator=between(0.01, 3600), metadata=doc("time between two checks")
    )
    timeout: Seconds = attrs.field(
        default=Seconds(2.0), validator=between(0.001, 3600), metadata=doc("time for one check")
    )
    failures: int = attrs.field(
        default=2, validator=between(1, 100), metadata=doc("failures in a row until it counts as down")
    )
    successes: int = attrs.field(
        default=1, validator=between(1, 100), metadata=doc("successes in a row until it counts as up again")
    )


@frozen(kw_only=True)
class Outliers:
    """Endpoints that fail new connections are left out for a while."""

    failures: int = attrs.field(
        default=5, validator=between(1, 1000), metadata=doc("failures in a row until it is ejected")
    )
    base_ejection: Seconds = attrs.field(
        default=Seconds(30.0),
        validator=between(0.01, 86400),
        metadata=doc("how long; doubled each time that it fails soon after its return"),
    )
    max_ejection: Seconds = attrs.field(
        default=Seconds(300.0), validator=between(0.01, 86400), metadata=doc("the longest that it gets")
    )
    max_ejected: Percent = attrs.field(
        default=Percent(50.0),
        validator=between(0, 100),
        metadata=doc("of the endpoints, so many in a hundred are ejected at most, rounded down"),
    )


@frozen(kw_only=True)
class Retries:
    """How often another endpoint is tried before the client sees an error."""

    attempts: int = attrs.field(
        default=3,
        validator=between(1, 100),
        metadata=doc("endpoints tried for one connection; none is tried twice"),
    )
    ratio: Percent = attrs.field(
        default=Percent(20.0),
        validator=between(0, 100),
        metadata=doc("second attempts allowed for each hundred connections, beyond `burst`"),
    )
    burst: int = attrs.field(
        default=10, validator=between(0, 100_000), metadata=doc("second attempts that may be saved up")
    )
