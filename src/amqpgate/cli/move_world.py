"""The brokers and the gateways of a move: what they say, and what they are told to do."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

import attrs

from amqpgate.cli.failures import WRONG, Failure, reported
from amqpgate.cli.move_amqp import MoveLink
from amqpgate.cli.move_carry import carry, mark
from amqpgate.cli.move_management import Management, SaysNo
from amqpgate.cli.watching import Row, WatchedGateway, gateway_at, rows_of
from amqpgate.logs import on_one_line
from amqpgate.move.objects import OWN

if TYPE_CHECKING:
    from amqpgate.move.document import MoveDocument, MoveEnd
    from amqpgate.move.view import Course, Order, SeenQueue, SeenRoute, SeenSession, View
    from amqpgate.policy import PolicySet

#: Rows of one answer of a gateway, and how far it lets one leaf: others come when these have gone.
_PAGE: Final = 1000
_FARTHEST: Final = 20_000


class HeldElsewhere(Failure):
    """Another command moves the same clients."""


class RefusedByBroker(Failure):
    """A broker does not take what it should: to ask again would not help."""


@attrs.define(eq=False)
class MoveBroker:
    """One end of the move."""

    end: MoveEnd
    password: str = attrs.field(repr=False)
    management: Management
    _links: dict[str, MoveLink] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, end: MoveEnd) -> MoveBroker:
        password = _password(end)
        return cls(end, password, Management(end, password))

    def link(self, vhost: str) -> MoveLink:
        """A connection to that virtual host, which is kept."""
        link = self._links.get(vhost)
        if link is None:
            link = MoveLink(self.end, vhost, self.password)
            link.open()
            self._links[vhost] = link
        return link

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()


def _password(end: MoveEnd) -> str:
    from amqpgate.config.upstream import read_secret

    if end.password_file is not None:
        with reported():
            return read_secret(end.password_file)
    name = cast("str", end.password_env)
    try:
        return os.environ[name]
    except KeyError:
        raise Failure(f"amqpgate: no environment variable {name}: it has the password", WRONG) from None


@attrs.define(eq=False)
class MoveWorld:
    """All of them. ``Failure`` where one does not answer, or says no."""

    document: MoveDocument
    source: MoveBroker
    target: MoveBroker
    #: By the address of the admin interface.
    gateways: Mapping[str, WatchedGateway]
    _holder: MoveLink | None = attrs.field(default=None, init=False)
    #: Queues whose messages this process has moved, or marked.
    _sure: set[tuple[str, str]] = attrs.field(factory=set, init=False)

    @classmethod
    def of(cls, document: MoveDocument, timeout: float) -> MoveWorld:
        gateways = {one.admin: gateway_at(one.admin, one.token_file, timeout) for one in document.gateways}
        return cls(document, MoveBroker.of(document.source), MoveBroker.of(document.target), gateways)

    def close(self) -> None:
        """Connections that are open; nothing else changes."""
        self.source.close()
        self.target.close()
        if self._holder is not None:
            self._holder.close()
            self._holder = None

    def ends(self, course: Course) -> tuple[MoveBroker, MoveBroker]:
        """Where clients are, and where they go."""
        both = self.source, self.target
        return both if course.source == self.document.source.upstream else both[::-1]

    def hold(self) -> None:
        """Be the only one that moves. It ends with this process, however that ends."""
        if self._holder is None:
            broker = self.source
            holder = MoveLink(broker.end, self.document.vhosts[0], broker.password)
            holder.open()
            if not holder.hold(OWN):
                holder.close()
                raise HeldElsewhere(
                    f"amqpgate: another move of '{self.document.vhosts[0]}' is at work "
                    f"(it has the queue {OWN} on {broker.end.upstream})"
                )
            self._holder = holder

    # -- looking ---------------------------------------------------------------------------------------------

    def look(self, course: Course, *, is_back: bool = False) -> View:
        """What is seen now, but for what the target lacks."""
        from amqpgate.move.view import View

        source, target = self.ends(course)
        routes = tuple(self.routes())
        sessions, others = self._sessions(course)
        are_back = not sessions and all(one.leads_to(course.target) for one in routes)
        if is_back and are_back and course.leftovers != "move":
            # Nobody is there, and nothing was moved there. That broker may be dead.
            return View(routes=routes)
        strangers = source.management.strangers(self.document.vhosts) or ()
        queues = tuple(self._queues(source))
        is_quiet = True
        if sessions and not any(queue.ready for queue in queues):
            # A message that was delivered, or given back, after its queue was looked at is in no count.
            before = {one.id: (one.delivered, one.unacked) for one in sessions}
            sessions, others = self._sessions(course)
            is_quiet = before == {one.id: (one.delivered, one.unacked) for one in sessions}
        unsure: tuple[tuple[str, str], ...] = ()
        if (
            not sessions
            and course.leftovers == "move"
            and all(one.paused and one.leads_to(course.source) for one in routes)
        ):
            there = self._queues(target)
            unsure = tuple((one.vhost, one.name) for one in there if one.ready)
        return View(
            routes=routes,
            sessions=tuple(sessions),
            queues=queues,
            strangers=(*others, *strangers),
            is_quiet=is_quiet,
            unsure=tuple(one for one in unsure if one not in self._sure),
        )

    def routes(self) -> list[SeenRoute]:
        """Those that move, at every gateway. ``Failure`` where one has not all of them."""
        found = []
        for name, gateway in self.gateways.items():
            rows = {str(row["id"]): row for row in rows_of(gateway.get("/routes"), "routes")}
            for route in self.document.routes:
                if route not in rows:
                    raise Failure(f"amqpgate: {name} has no route '{route}'")
                found.append(_route(name, rows[route]))
        return found

    def rows(self, gateway: WatchedGateway, upstream: str) -> Iterator[Row]:
        """The sessions with that upstream which matter to the move."""
        for offset in range(0, _FARTHEST + 1, _PAGE):
            answer = gateway.get("/sessions", upstream=upstream, sort="id", limit=_PAGE, offset=offset)
            found = rows_of(answer, "sessions")
            for row in found:
                if row["route"] in self.document.routes or row["vhost"] in self.document.vhosts:
                    yield row
            if len(found) < _PAGE:
                return

    def _sessions(self, course: Course) -> tuple[list[SeenSession], list[str]]:
        """Those of the routes that move; and others there, in words."""
        mine: list[SeenSession] = []
        others: list[str] = []
        for name, gateway in self.gateways.items():
            for row in self.rows(gateway, course.source):
                if row["route"] in self.document.routes:
                    mine.append(_session(name, row))
                else:
                    user, client = (on_one_line(str(row[key])) for key in ("user", "client"))
                    others.append(f"user '{user}' at {client} by another route of {name}")
        return mine, others

    def _queues(self, source: MoveBroker) -> Iterator[SeenQueue]:
        from amqpgate.move.view import SeenQueue

        for vhost in self.document.vhosts:
            names = source.management.queue_names(vhost)
            if not names:
                continue
            for name, (ready, consumers) in source.link(vhost).depths(names).items():
                yield SeenQueue(vhost=vhost, name=name, ready=ready, consumers=consumers)

    # -- doing -----------------------------------------------------------------------------------------------

    def carry_out(self, course: Course, order: Order, tell: Callable[[str, str], None]) -> None:
        """Do it, and ``tell`` how far that is: what it is about, and the words. What is done already is no
        error."""
        from amqpgate.move import view

        source, target = self.ends(course)
        match order:
            case view.CreateObject(one):
                try:
                    target.management.create(one)
                except SaysNo as failure:
                    raise RefusedByBroker(failure.message) from None
            case view.PauseRoute(gateway, route):
                self._post(gateway, f"/routes/{quote(route, safe='')}/pause")
            case view.ResumeRoute(gateway, route):
                self._post(gateway, f"/routes/{quote(route, safe='')}/resume")
            case view.CloseSession(gateway, session):
                with _gone_is_fine():
                    self.gateways[gateway].post(
                        f"/sessions/{quote(session, safe='')}/close",
                        {"reason": f"moving to {course.target}"},
                    )
            case view.MoveMessages(vhost, queue):
                links = source.link(vhost), target.link(vhost)
                kind, moved = target.management.queue_type(vhost, queue), 0
                name = on_one_line(f"{vhost} {queue}")
                try:
                    for count in carry(queue, *links, type_there=kind):
                        moved += count
                        tell(name, f"{moved} messages of {name} are on {course.target} so far")
                    tell(f"{name}, done", f"{moved} messages of {name} are on {course.target}")
                except Failure as failure:
                    # Again and again would make copies, each of them marked.
                    raise RefusedByBroker(failure.message) from None
                self._sure.add((vhost, queue))
            case view.MarkMessages(vhost, queue):
                mark(queue, target.link(vhost), target.management.queue_type(vhost, queue))
                self._sure.add((vhost, queue))
            case view.SwitchRoutes(routes, gateways):
                self._switch(course, routes, gateways)

    def _post(self, gateway: str, path: str) -> None:
        self.gateways[gateway].order(path)

    def _switch(self, course: Course, routes: Sequence[str], gateways: Sequence[str]) -> None:
        assert self.document.policies is not None
        edit_routes(self.document.policies, frozenset(routes), course.source, course.target)
        for name in gateways:
            self.gateways[name].post("/reload", {})


@contextlib.contextmanager
def _gone_is_fine() -> Iterator[None]:
    """A session may have left by itself."""
    try:
        yield
    except Failure as failure:
        if "no session of that id" not in failure.message:
            raise


def _route(gateway: str, row: Row) -> SeenRoute:
    from amqpgate.move.view import SeenRoute

    return SeenRoute(
        gateway=gateway,
        route=str(row["id"]),
        upstreams=tuple(cast("Sequence[str]", row["upstreams"])),
        paused=bool(row["paused"]),
        waiting=_count(row, "waiting"),
    )


def _session(gateway: str, row: Row) -> SeenSession:
    from amqpgate.move.view import SeenSession

    # Gateways of before do not say it.
    unacked = row.get("unacked")
    return SeenSession(
        gateway=gateway,
        id=str(row["id"]),
        user=on_one_line(str(row["user"])),
        client=on_one_line(str(row["client"])),
        consumers=_count(row, "consumers"),
        unacked=unacked if isinstance(unacked, int) else None,
        published=_count(row, "published"),
        delivered=_count(row, "delivered"),
        is_closing=row["flow"] == "closing",
    )


def _count(row: Row, key: str) -> int:
    found = row.get(key)
    return found if isinstance(found, int) else 0


def policies_in(folder: Path) -> PolicySet:
    from amqpgate.policy import load_folder

    with reported():
        return load_folder(folder)


def edit_routes(folder: Path, routes: frozenset[str], source: str, target: str) -> None:
    """Have these routes lead there, in the files of the policies. A file is replaced whole, and only with
    what is a set of policies afterwards."""
    from amqpgate.move.route_file import with_cluster
    from amqpgate.policy.loader import Source, build, read_folder

    with reported():
        before = read_folder(folder)
        after = [
            Source(
                one.name,
                with_cluster(one.data.decode(), routes, source, target, one.name).encode(),
            )
            for one in before
        ]
        build(after)
        for old, new in zip(before, after, strict=True):
            if new.data != old.data:
                _replace(Path(new.name), new.data)


def _replace(path: Path, data: bytes) -> None:
    if path.is_symlink():
        raise Failure(f"amqpgate: {path} is a link, which others swap: change it there, with `switch: wait`")
    # Files whose name begins with a dot are no policies.
    handle, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(path)
