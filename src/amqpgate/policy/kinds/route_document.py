"""Route policies: which cluster of brokers a connection is for, and as whom it goes there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Literal

import attrs

from amqpgate.config.clusters import UNSHARED, AmqpVersion
from amqpgate.policy.engine.subjects import NamePattern, Subject
from amqpgate.policy.kinds.common import Metadata, Mode, check_ids, check_mode
from amqpgate.policy.kinds.mirror import SECRET, Mirror, check_login
from amqpgate.values import frozen
from amqpgate.yamldoc import FilePath, Invalid, Percent, Seconds, between, doc, not_empty

#: What a route may be called: its name stands in paths of the admin interface.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


@frozen(kw_only=True)
class WeightedCluster:
    """One of several clusters, and its share."""

    cluster: str = attrs.field(validator=not_empty(), metadata=doc("name of an upstream in the settings"))
    weight: int = attrs.field(
        default=1, validator=between(1, 1000), metadata=doc("its share of the route's connections")
    )


@frozen(kw_only=True)
class Target:
    """Where a connection goes, and what the broker is told in the place of what the client said."""

    cluster: str | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("name of an upstream in the settings"),
    )
    clusters: tuple[WeightedCluster, ...] = attrs.field(
        default=(), metadata=doc("several of them, chosen by weight and a hash of the session", default="one")
    )
    vhost: str | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("virtual host to open", default="the upstream's, or the client's own"),
    )
    user: str | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc(
            "user to log in as, whatever the client's own login is: it is not checked, so such a route needs "
            "`match.tls`, or listeners that prove who calls",
            default="the upstream's, or the client's own",
        ),
    )
    version: AmqpVersion | None = attrs.field(
        default=None,
        metadata=doc("version of AMQP to speak with the broker", default="the upstream's"),
    )
    connections: Literal["own", "pooled"] | None = attrs.field(
        default=None,
        metadata=doc(
            "`own`: each client has a connection to the broker of its own; `pooled`: clients with the same "
            "virtual host and login share a few, as the upstream's `pool` says",
            default="the upstream's",
        ),
    )
    password_file: FilePath | None = attrs.field(
        default=None, metadata=doc("file that holds the password of `user`, read at every login")
    )
    password_env: str | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("environment variable that holds the password of `user`"),
    )

    mirror: Mirror | None = attrs.field(
        default=None, metadata=doc("another cluster, which gets a share of what is published as well")
    )

    RESERVED_KEYS: ClassVar[dict[str, str]] = {"password": SECRET}

    def __attrs_post_init__(self) -> None:
        if (self.cluster is None) == (not self.clusters):
            raise Invalid("say cluster or clusters", "clusters" if self.clusters else "cluster")
        names = [one.cluster for one in self.clusters]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise Invalid(f"'{name}' is listed already", "clusters", index, "cluster")
        if self.connections == "pooled" and self.version in UNSHARED:
            raise Invalid(
                f"clients cannot share connections of AMQP {self.version}: leave out 'connections: pooled'",
                "connections",
            )
        check_login(self)

    @property
    def shares(self) -> tuple[WeightedCluster, ...]:
        """All clusters that it may lead to."""
        if self.cluster is not None:
            return (WeightedCluster(cluster=self.cluster),)
        return self.clusters


@frozen(kw_only=True)
class Pause:
    """What becomes of new connections while a route is paused."""

    most: int = attrs.field(
        default=100, validator=between(0, 100_000), metadata=doc("connections that wait; more are rejected")
    )
    timeout: Seconds = attrs.field(
        default=Seconds(30.0), validator=between(0.001, 3600), metadata=doc("how long they wait; then 320")
    )


@frozen(kw_only=True)
class Route:
    """Some connections, and where they go."""

    id: str = attrs.field(
        validator=not_empty(),
        metadata=doc("name in metrics and for `pause`; unique among all routes of the folder"),
    )
    match: Subject = attrs.field(
        factory=Subject, metadata=doc("the connections that it is for", default="all of them")
    )
    upstream: Target = attrs.field(metadata=doc("where they go"))
    paused: bool = attrs.field(
        default=False,
        metadata=doc("new connections wait until it is resumed, by the admin interface or without this key"),
    )
    pause: Pause = attrs.field(factory=Pause, metadata=doc("how many wait while it is paused, and how long"))

    def __attrs_post_init__(self) -> None:
        if not _ID.match(self.id):
            raise Invalid("letters, digits and . _ - only, for it stands in paths", "id")

    @property
    def is_late(self) -> bool:
        """Whether it asks for more than is known when a client has said nothing yet."""
        match = self.match
        return match.user != _ANYBODY or match.vhosts is not None or bool(match.client) or match.asks_login

    def lent(self, logins: Mapping[str, str | None]) -> str | None:
        """Where brokers are told another user than the client's own, in words; None: nowhere.

        ``logins`` has, by upstream, the user that it logs in as, if it does.
        """
        target = self.upstream
        users = {share.cluster: target.user or logins.get(share.cluster) for share in target.shares}
        found = [f"{cluster} as user '{user}'" for cluster, user in users.items() if user is not None]
        if not found:
            return None
        return f"route {self.id} leads to {', '.join(found)}; policies judge the client's own user"


_ANYBODY = NamePattern("", True)


@frozen(kw_only=True)
class RouteSpec:
    """Who goes where."""

    routes: tuple[Route, ...] = attrs.field(
        validator=not_empty(), metadata=doc("the first that matches holds, in the order of the list")
    )
    priority: int = attrs.field(
        default=0,
        validator=between(-1000, 1000),
        metadata=doc("policies of higher priority come first, and those of the same in the order of names"),
    )
    mode: Mode = attrs.field(
        default="enforce",
        metadata=doc("`shadow`: its choice is counted only; `off`: as if the policy were not there"),
    )
    enforce_percent: Percent = attrs.field(
        default=Percent(0.0),
        validator=between(0, 100),
        metadata=doc("in mode `shadow`: of so many sessions in a hundred, chosen by hash, it is enforced"),
    )

    def __attrs_post_init__(self) -> None:
        check_mode(self.mode, self.enforce_percent)
        check_ids([route.id for route in self.routes], "route")


@frozen(kw_only=True)
class RoutePolicy:
    """Which cluster a connection is for. One that no route matches goes to its listener's upstream."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(
        metadata=doc("version of the document's format")
    )
    kind: Literal["RoutePolicy"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: RouteSpec = attrs.field(metadata=doc("what the document says"))
