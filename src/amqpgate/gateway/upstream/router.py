"""Where a new connection goes: the clusters there are, the routes in force, and the choice for a session."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

import attrs
import trio

from amqpgate.config import Listener, Secret, Settings, Upstream
from amqpgate.config.clusters import UNSHARED
from amqpgate.errors import ConfigError
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.transport.waiting import in_trio
from amqpgate.gateway.upstream.cluster import Cluster, Destination
from amqpgate.gateway.upstream.dialer import Dialer
from amqpgate.gateway.upstream.route_pause import PausedError, RoutePauses
from amqpgate.policy import Choice, Chosen, Mirror, PolicySet, Principal, Route, RouteTable, Target
from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.upstreams import UpstreamMetrics
from amqpgate.values import define
from amqpgate.yamldoc import Invalid, nearest

#: Of clients where there are no routes.
_UNROUTED: Final = Chosen()


@define(eq=False)
class Router:
    """The clusters and the routes in force of one gateway."""

    settings: Settings
    contexts: TlsContexts
    metrics: UpstreamMetrics
    clusters: dict[str, Cluster] = attrs.field(init=False)
    #: By the name of a listener, where its clients go that no route takes.
    _homes: dict[str, Cluster] = attrs.field(init=False)
    table: RouteTable = attrs.field(factory=RouteTable, init=False)
    pauses: RoutePauses = attrs.field(factory=RoutePauses, init=False)

    def __attrs_post_init__(self) -> None:
        self.clusters = {upstream.name: Cluster(upstream) for upstream in self.settings.upstreams}
        self._homes = {
            listener.name: self.clusters[self.settings.upstream_of(listener).name]
            for listener in self.settings.listeners
        }
        for cluster in self.clusters.values():
            for endpoint in cluster.endpoints:
                self.metrics.knows(cluster.name, endpoint.name)

    def use(self, policies: PolicySet) -> None:
        """Other routes hold for new connections, and for those that wait."""
        self.table = RouteTable(policies.routes, policies.membership)
        self.pauses.use({route.id: route for _, route in self.table.routes})

    def states(self) -> list[dict[str, JSON]]:
        """All routes in the order in which they are tried, for operators."""
        found: list[dict[str, JSON]] = []
        for policy, route in self.table.routes:
            pause = self.pauses.routes[route.id]
            upstreams = [share.cluster for share in route.upstream.shares]
            found.append(
                {
                    "id": route.id,
                    "policy": policy,
                    "paused": pause.is_paused,
                    "waiting": pause.waiting,
                    "most_waiting": route.pause.most,
                    "longest_wait": route.pause.timeout,
                    "upstreams": upstreams,
                    "mirror": route.upstream.mirror.shown if route.upstream.mirror is not None else "",
                }
            )
        return found

    # -- choosing ----------------------------------------------------------------------------

    def candidates(self, listener: Listener, principal: Principal, session: str) -> list[Cluster]:
        """Where a client may go that has said nothing yet."""
        names = self.table.candidates(principal, session, self._homes[listener.name].name)
        return [self.clusters[name] for name in names]

    def is_paused(self, found: Chosen) -> bool:
        """Whether who goes there has to wait for somebody to resume its route."""
        return found.choice is not None and self.pauses.is_paused(found.choice.route)

    async def dialler(
        self, listener: Listener, principal: Principal, session: str, *, early: Chosen | None
    ) -> Dialer:
        """The attempts of one session. Waits while its route is paused; raises ``PausedError``,
        and ``ConfigError`` where the password that a route names cannot be read.

        ``early`` is what `choose_early` has just given; None: the client has said all of itself."""
        until: float | None = None
        found = early or self.table.choose(principal, session)
        while True:
            if found.choice is None or not self.is_paused(found):
                break
            route = found.choice.route
            until = trio.current_time() + route.pause.timeout if until is None else until
            try:
                await in_trio(self.pauses.wait, route, until)
            except PausedError as error:
                self.metrics.waited(route.id, error.outcome)
                raise
            self.metrics.waited(route.id, "resumed")
            found = self._choose_again(listener, principal, session, is_early=early is not None)
        if early is None:
            self.count_shadow(found)
        cluster = self.cluster_of(found.choice, listener.name)
        settings = cluster.settings
        if found.choice is not None:
            self.took(found.choice)
            settings = rewritten(settings, found.choice.route.upstream)
        return Dialer(self._destination(cluster, settings, found.choice), session)

    def _destination(self, cluster: Cluster, settings: Upstream, choice: Choice | None) -> Destination:
        frame_max = self.settings.largest_frame
        return Destination(cluster, settings, self.contexts, frame_max, self.metrics, choice)

    def certain(self, listener: Listener, principal: Principal, session: str) -> Dialer | None:
        """The attempts of a session that will not go elsewhere, whatever it says; None where it may, or must
        wait. Raises as `dialler`."""
        destination = self._towards(self.table.choose_early(principal, session), listener)
        return None if destination is None else Dialer(destination, session)

    def early(self, listener: Listener, caller: Caller) -> Destination | None:
        """Where a client goes that has said nothing yet; None where it may go elsewhere, or must wait. Raises
        ``ConfigError``. The route is not counted: `took`."""
        found = self.choose_early(listener, caller.principal(listener, None, "", {}), caller.session_id)
        return self._towards(found, listener)

    def home(self, listener: Listener) -> Destination | None:
        """Where a listener's clients go while there are no routes. None: more must be known of a client, who
        shares connections."""
        cluster = self._homes[listener.name]
        if cluster.settings.connections != "own":
            return None
        return self._destination(cluster, cluster.settings, None)

    def _towards(self, found: Chosen | None, listener: Listener) -> Destination | None:
        if found is None or self.is_paused(found):
            return None
        cluster = self.cluster_of(found.choice, listener.name)
        settings = cluster.settings
        if found.choice is not None:
            settings = rewritten(settings, found.choice.route.upstream)
        return self._destination(cluster, settings, found.choice)

    def took(self, choice: Choice) -> None:
        """A session goes there."""
        self._count(choice, "enforce")

    def plain_dialler(self, name: str, session: str) -> Dialer:
        """The attempts of one session at a cluster, as its settings have it."""
        cluster = self.clusters[name]
        return Dialer(self._destination(cluster, cluster.settings, None), session)

    def count_shadows(self, principal: Principal, session: str) -> None:
        """As `count_shadow`, of a client that has said all of itself, and whose broker was chosen before."""
        self.count_shadow(self.table.choose(principal, session))

    def count_shadow(self, found: Chosen) -> None:
        """Policies that are only for show would have chosen otherwise."""
        for choice in found.shadow:
            self._count(choice, "shadow")

    def _choose_again(
        self, listener: Listener, principal: Principal, session: str, *, is_early: bool
    ) -> Chosen:
        if not is_early:
            return self.table.choose(principal, session)
        found = self.choose_early(listener, principal, session)
        if found is None:
            # Since it came, routes have come into force that ask for more than is known.
            raise PausedError("changed", "the routes have changed: connect again")
        return found

    def choose_early(self, listener: Listener, principal: Principal, session: str) -> Chosen | None:
        """Where a client goes that has said nothing yet; None: what it will say may choose another route, or
        a pool, so that no broker may be dialled for it yet."""
        found = self.table.choose_early(principal, session) if self.table.policies else _UNROUTED
        if found is None:
            return None
        connections = self.cluster_of(found.choice, listener.name).settings.connections
        if found.choice is not None:
            connections = found.choice.route.upstream.connections or connections
        return found if connections == "own" else None

    def cluster_of(self, choice: Choice | None, listener: str | None) -> Cluster:
        """Where a session of the listener goes, given the route that was taken."""
        return self.clusters[choice.cluster] if choice is not None else self._homes[listener or ""]

    def _count(self, choice: Choice, mode: str) -> None:
        self.metrics.chosen(choice.policy, choice.route.id, choice.cluster, mode)


def rewritten(upstream: Upstream, target: Target | Mirror) -> Upstream:
    """The cluster's settings with what a route or mirror changes. ``ConfigError`` for a password's source."""
    if target.vhost is not None:
        upstream = attrs.evolve(upstream, url=None, vhost=target.vhost)
    if isinstance(target, Target):
        upstream = attrs.evolve(
            upstream,
            version=target.version or upstream.version,
            connections=target.connections or upstream.connections,
        )
    if target.user is None:
        return upstream
    password = None if target.password_env is None else Secret(_from(os.environ, target.password_env))
    return attrs.evolve(
        upstream, url=None, user=target.user, password=password, password_file=target.password_file
    )


def check_routes(settings: Settings, policies: PolicySet, environ: Mapping[str, str]) -> None:
    """Whether the settings have what the routes name, and nobody gets a login for nothing.

    Raises ``ConfigError``.
    """
    upstreams = {upstream.name: upstream for upstream in settings.upstreams}
    errors: list[ConfigError] = []
    for policy in policies.routes:
        if policy.spec.mode == "off":
            continue
        placed = policies.places.get(policy.metadata.name)
        for index, route in enumerate(policy.spec.routes):
            for wrong in _wrong_with(settings, environ, route, upstreams):
                message = f"RoutePolicy '{policy.metadata.name}', route '{route.id}'{wrong}"
                if placed is None:
                    errors.append(ConfigError(message))
                else:
                    errors.append(
                        placed.mark("spec", "routes", index, "upstream", *wrong.path).error(message)
                    )
    if errors:
        raise ConfigError.together(errors)


def _wrong_with(
    settings: Settings, environ: Mapping[str, str], route: Route, upstreams: Mapping[str, Upstream]
) -> Iterator[Invalid]:
    """What follows the route's name; paths start at its ``upstream``."""
    target, mirror = route.upstream, route.upstream.mirror
    unknown = False
    for position, share in enumerate(target.shares):
        if share.cluster in upstreams:
            yield from _about_sharing(target, upstreams[share.cluster])
            continue
        unknown = True
        listed = ("clusters", position, "cluster") if target.clusters else ("cluster",)
        yield Invalid(f": {_no_upstream(share.cluster, upstreams)}", *listed)
    yield from _about_password(target, environ)
    if not unknown:
        yield from _about_login(route, settings, upstreams)
    if mirror is not None:
        yield from _about_mirror(target, mirror, upstreams)
        yield from _about_password(mirror, environ, "mirror")


def _no_upstream(name: str, upstreams: Mapping[str, Upstream], which: str = "") -> str:
    return (
        f"no upstream is named '{name}' in the settings{which}{nearest(name, upstreams)}; "
        f"there are {', '.join(upstreams)}"
    )


def _about_sharing(target: Target, upstream: Upstream) -> Iterator[Invalid]:
    """What the route changes fits what it leaves as it is."""
    version = target.version or upstream.version
    if version in UNSHARED and (target.connections or upstream.connections) == "pooled":
        yield Invalid(
            f": clients cannot share connections of AMQP {version}, and with what upstream "
            f"'{upstream.name}' says they are to: say 'connections: own' here"
        )


def _about_password(target: Target | Mirror, environ: Mapping[str, str], *path: str) -> Iterator[Invalid]:
    if target.password_env is not None:
        try:
            _from(environ, target.password_env)
        except ConfigError as error:
            yield Invalid(f"{', mirror' if path else ''}: {error}", *path, "password_env")


def _about_mirror(target: Target, mirror: Mirror, upstreams: Mapping[str, Upstream]) -> Iterator[Invalid]:
    """It logs in as itself, and is another place."""
    if mirror.cluster not in upstreams:
        said = _no_upstream(mirror.cluster, upstreams, ", which is to be the mirror")
        yield Invalid(f": {said}", "mirror", "cluster")
        return
    if mirror.user is None and not upstreams[mirror.cluster].has_login:
        yield Invalid(
            ": a mirror needs a login of its own, for the clients' passwords are not kept: give the "
            f"mirror user and passwordFile or passwordEnv, or upstream '{mirror.cluster}' user and password",
            "mirror",
        )
    same = any(share.cluster == mirror.cluster for share in target.shares)
    if same and (mirror.vhost is None or mirror.vhost == target.vhost):
        yield Invalid(
            ": the mirror is the route's own cluster, which would get messages twice: name another "
            "cluster, or a virtual host",
            "mirror",
            "cluster",
        )


def _about_login(route: Route, settings: Settings, upstreams: Mapping[str, Upstream]) -> Iterator[Invalid]:
    """A login that is not the client's own needs a client that has proven who it is."""
    lent = route.upstream.user is not None or any(
        upstreams[share.cluster].has_login for share in route.upstream.shares
    )
    if not lent or route.match.tls is not None:
        return
    for listener in settings.listeners:
        names = route.match.listeners
        reaches = names is None or any(name.matches(listener.name) for name in names)
        if reaches and not settings.proves_clients(listener) and not listener.allow_anonymous:
            yield Invalid(
                " logs in as a user of its own, and the password of who comes by listener "
                f"'{listener.name}' is not checked: match by tls, name listeners that are on loopback or "
                "require client certificates or tokens, or say allowAnonymous: true there"
            )
            return


def _from(environ: Mapping[str, str], name: str) -> str:
    password = environ.get(name)
    if not password:
        raise ConfigError(f"the environment variable {name} is not set; it is to hold a password")
    return password
