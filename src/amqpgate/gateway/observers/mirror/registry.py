"""All mirrors of a process, and which one a session feeds.

A mirror is there while a session feeds it or its task runs. Routes whose mirrors have the same cluster, login
and buffer share one per virtual host.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import attrs
import trio

from amqpgate.gateway.limits.sampler import Sampler
from amqpgate.gateway.session.observer import SessionObserver
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.upstream.cluster import Cluster
from amqpgate.gateway.upstream.router import Router, rewritten
from amqpgate.policy import Choice, PolicySet, Principal, RouteTable
from amqpgate.policy import Mirror as Document
from amqpgate.telemetry.faults import FAULTS, contained
from amqpgate.telemetry.mirrors import MirrorMetrics
from amqpgate.values import define
from amqpgate.yamldoc import Percent, Size

if TYPE_CHECKING:
    from amqpgate.gateway.observers.mirror.dial import Dialled
    from amqpgate.gateway.observers.mirror.mirror import MirrorWorker
    from amqpgate.gateway.observers.mirror.session import Feed

PART: Final = "mirrors"


@define(eq=False)
class MirrorRegistry:
    """One per gateway, and the factory of its observers."""

    part = PART

    routing: Router
    version: str
    metrics: MirrorMetrics
    #: By what makes mirrors the same.
    _mirrors: WeakValueDictionary[Document, MirrorWorker] = attrs.field(
        factory=WeakValueDictionary, init=False
    )
    #: By policy and route, of these routes.
    _samplers: dict[tuple[str, str], Sampler] = attrs.field(factory=dict, init=False)
    _table: RouteTable | None = attrs.field(default=None, init=False)
    #: Where the mirrors' tasks run, while they may.
    _nursery: trio.Nursery | None = attrs.field(default=None, init=False)

    async def run(self) -> None:
        """Have the mirrors' tasks run until cancelled; what waits then is dropped."""
        try:
            async with trio.open_nursery() as self._nursery:
                await trio.sleep_forever()
        finally:
            self._nursery = None
            for mirror in list(self._mirrors.values()):
                mirror.queue.close("stopped")

    async def finish(self, until: float) -> None:
        """No session is left: send what waits. ``until`` is a time of trio's clock."""
        with trio.move_on_at(until):
            async with trio.open_nursery() as nursery:
                for mirror in list(self._mirrors.values()):
                    nursery.start_soon(_contained, mirror.finish)

    def looks_on(self, policies: PolicySet) -> bool:
        """Whether any route has a mirror."""
        routes = (route for policy in policies.routes for route in policy.spec.routes)
        return any(route.upstream.mirror is not None for route in routes)

    def observer_for(
        self, session: Session, policies: PolicySet, before: SessionObserver | None
    ) -> SessionObserver | None:
        """None: no mirror has got anything of the session yet."""
        feed = self.feed(session.facts.choice, session.principal, session.id)
        if feed is None and before is None:
            return None
        from amqpgate.gateway.observers.mirror.session import MirrorObserver

        if isinstance(before, MirrorObserver):
            before.follow(feed)
            return before
        if feed is None:
            return None
        is_native = session.bridge is None
        return MirrorObserver(session.relay.channels, session.channels.states, feed, is_native)

    @contained(PART, None)
    def feed(self, choice: Choice | None, principal: Principal, session: str) -> Feed | None:
        """Where a session's copies go by the routes in force; None: there are none.

        ``principal`` is who it is at the primary broker, ``choice`` the route that it was opened by.
        """
        if choice is None:
            return None
        table = self.routing.table
        route = table.find(choice.policy, choice.route.id, session)
        document = route.upstream.mirror if route is not None else None
        if document is None or not document.percent:
            return None
        vhost = document.vhost or self.routing.clusters[document.cluster].settings.vhost or principal.vhost
        if (document.cluster, vhost) == (choice.cluster, principal.vhost):
            # The primary would get it twice.
            return None
        if self._table is not table:
            self._table = table
            self._samplers.clear()
        # Loaded with the first mirror: most gateways have none.
        from amqpgate.gateway.observers.mirror.session import Feed

        key = choice.policy, choice.route.id
        if key not in self._samplers:
            self._samplers[key] = Sampler(document.percent / 100)
        return Feed(document, self._samplers[key], self._mirror(document, vhost).queue)

    def _mirror(self, document: Document, vhost: str) -> MirrorWorker:
        plain = attrs.evolve(
            document, percent=Percent(100.0), exchanges=None, max_body_bytes=Size(0), vhost=vhost
        )
        mirror = self._mirrors.get(plain)
        if mirror is None:
            from amqpgate.gateway.observers.mirror.mirror import MirrorWorker

            upstream = self.routing.clusters[document.cluster].settings
            name = f"{document.cluster} (vhost {vhost})"
            # Beliefs of its own, so that clients of the same cluster are not concerned.
            cluster = Cluster(upstream)

            async def dial() -> Dialled:
                from amqpgate.gateway.observers.mirror.dial import dial_mirror

                settings = attrs.evolve(rewritten(upstream, plain), connections="own")
                return await dial_mirror(
                    cluster, settings, self.routing.contexts, version=self.version, name=name
                )

            mirror = self._mirrors[plain] = MirrorWorker(
                name, dial, self.metrics.account(document.cluster), document.buffer, self._start
            )
        return mirror

    def _start(self, job: Callable[[], Awaitable[None]]) -> None:
        if self._nursery is not None:
            self._nursery.start_soon(_contained, job)


async def _contained(job: Callable[[], Awaitable[None]]) -> None:
    """One mirror's fault ends that mirror."""
    try:
        await job()
    except Exception:
        FAULTS.caught(PART, "a mirror's task")
