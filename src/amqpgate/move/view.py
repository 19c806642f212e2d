"""What brokers and gateways say at one moment of a move."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from amqpgate.logs import on_one_line
from amqpgate.move.document import Leftovers
from amqpgate.move.objects import BrokerObject


@attrs.frozen
class Course:
    """From where to where, for whom. The way back is the same with the ends exchanged."""

    source: str
    target: str
    routes: tuple[str, ...]
    leftovers: Leftovers = "refuse"
    #: Seconds after which queues that do not get empty are not waited for where messages may be moved.
    drain_for: float = 30.0
    #: Whether this command changes the routes itself.
    edits: bool = False


@attrs.frozen(kw_only=True)
class SeenRoute:
    """A route at a gateway."""

    gateway: str
    route: str
    #: Names of upstreams.
    upstreams: tuple[str, ...]
    paused: bool
    #: New connections that wait.
    waiting: int = 0

    def leads_to(self, upstream: str) -> bool:
        return self.upstreams == (upstream,)


@attrs.frozen(kw_only=True)
class SeenSession:
    """A session whose messages go to the source."""

    gateway: str
    id: str
    user: str = ""
    client: str = ""
    consumers: int = 0
    #: Deliveries that the client has not acknowledged; None: that is not known.
    unacked: int | None = 0
    published: int = 0
    #: Messages that it was given.
    delivered: int = 0
    is_closing: bool = False


@attrs.frozen(kw_only=True)
class SeenQueue:
    """A queue of the source, as the broker answers a passive declare."""

    vhost: str
    name: str
    #: Messages that are ready for delivery.
    ready: int
    consumers: int = 0

    def __str__(self) -> str:
        return on_one_line(f"{self.vhost} {self.name}")


@attrs.frozen(kw_only=True)
class View:
    """All of it."""

    routes: tuple[SeenRoute, ...]
    sessions: tuple[SeenSession, ...] = ()
    queues: tuple[SeenQueue, ...] = ()
    #: Who uses the source's virtual hosts, and is not of these routes; in words.
    strangers: tuple[str, ...] = ()
    #: What the target lacks.
    missing: tuple[BrokerObject, ...] = ()
    #: Whether nobody was given a message, or gave one back, while the queues were looked at one by one.
    is_quiet: bool = True
    #: Queues of the target with messages that another run of the command may have moved, by virtual host: one
    #: of them may be marked as redelivered nowhere.
    unsure: tuple[tuple[str, str], ...] = ()
    #: Seconds for which this command has waited for empty queues.
    drained_for: float = 0.0

    @property
    def ready(self) -> int:
        return sum(queue.ready for queue in self.queues)

    @property
    def unacked(self) -> int:
        return sum(session.unacked or 0 for session in self.sessions)

    def has_begun(self, course: Course) -> bool:
        """Whether anybody waits, or goes to the target: what is made there before is nobody's yet."""
        return any(route.paused or route.leads_to(course.target) for route in self.routes)

    def has_switched(self, course: Course) -> bool:
        """Whether every route leads to the target."""
        return all(route.leads_to(course.target) for route in self.routes)


@attrs.frozen
class CreateObject:
    """Make it on the target."""

    object: BrokerObject


@attrs.frozen
class PauseRoute:
    """Have new connections of the route wait."""

    gateway: str
    route: str


@attrs.frozen
class ResumeRoute:
    """Have those that wait go on."""

    gateway: str
    route: str


@attrs.frozen
class CloseSession:
    """Close it when its confirms and commits are answered."""

    gateway: str
    id: str


@attrs.frozen
class MoveMessages:
    """Publish a queue's messages to the target's queue of that name, and acknowledge them on the source."""

    vhost: str
    queue: str


@attrs.frozen
class MarkMessages:
    """Have a queue's messages marked as redelivered on the target."""

    vhost: str
    queue: str


@attrs.frozen
class SwitchRoutes:
    """Have the routes lead to the target."""

    routes: tuple[str, ...]
    #: Those whose gateways have not read it yet.
    gateways: tuple[str, ...]


Order: TypeAlias = (
    CreateObject | PauseRoute | ResumeRoute | CloseSession | MoveMessages | MarkMessages | SwitchRoutes
)
