"""What operators see of each session: a row, chosen and sorted by its columns.

Columns that are not asked for are not looked at, and nothing is looked at before somebody asks. Many sessions
are dealt with in slices, so that others get their turn in between.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

from amqpgate.datapath.tables import OPEN, Side
from amqpgate.gateway.observers.stats.rates import Rates
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.session_end import CloseState
from amqpgate.gateway.upstream.router import Router
from amqpgate.logs import without_passwords
from amqpgate.telemetry.answers import JSON, Args
from amqpgate.telemetry.time_slices import TimeSlices
from amqpgate.values import frozen

#: Characters of a column.
_LONGEST: Final = 255

#: What a session does, or waits for.
FLOWS: Final = ("running", "throttled", "blocked", "slow_broker", "slow_client", "closing")

#: A place in the order: what is unknown comes last, whichever way it is sorted.
Key: TypeAlias = "tuple[bool, str | float, str]"


@frozen
class SessionRow:
    """One session."""

    session: Session
    router: Router
    rates: Rates

    @property
    def client(self) -> str | None:
        """With the port, but where it is not the client's own: that of who sends PROXY headers."""
        source = self.session.principal.source or ""
        peer = self.session.relay.endpoints[Side.CLIENT].peer_name()
        return _shown(*peer) if peer is not None and peer[0] == source.strip("[]") else source or None

    @property
    def upstream(self) -> str:
        """The cluster."""
        return self.router.cluster_of(self.session.facts.choice, self.session.principal.listener).name

    @property
    def endpoint(self) -> str | None:
        """The broker."""
        return self.session.upstream.address

    @property
    def flow(self) -> str:
        """Whether it goes on, and what it waits for: one of ``FLOWS``."""
        session = self.session
        client, broker = session.relay.endpoints
        if not session.relay.active or session.closing is not CloseState.NO or client.halted:
            return "closing"
        if session.publishes.notice.is_by_broker or session.upstream.is_blocked:
            return "blocked"
        if client.throttled or broker.throttled:
            return "throttled"
        if client.paused:
            return "slow_broker"
        return "slow_client" if broker.paused else "running"

    @property
    def consumers(self) -> int:
        channels = self.session.channels.states.made()
        return sum(channel.consuming.count for _, channel in channels if channel.consuming is not None)

    @property
    def unacked(self) -> int | None:
        """Deliveries that the client has to acknowledge, of its open channels; None: not all are known."""
        table = self.session.relay.channels
        counts = [
            table.unacked(number)
            for number, channel in self.session.channels.states.items()
            if table.state(number) == OPEN and channel.close is None
        ]
        return None if None in counts else sum(count for count in counts if count is not None)

    def rate(self, index: int) -> float | None:
        return self.rates.rate(self.session.id, index)


def _said(row: SessionRow, name: str) -> str | None:
    """What the client says of itself, as much of it as there is room for in a list: some clients put the URL
    there that they were given."""
    text = row.session.principal.client.get(name)
    return None if text is None else without_passwords(text)[:_LONGEST]


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:_LONGEST]


_Column: TypeAlias = Callable[[SessionRow], "str | int | float | bool | None"]
COLUMNS: Final[Mapping[str, _Column]] = {
    "id": lambda row: row.session.id,
    "user": lambda row: _cut(row.session.principal.user),
    "upstream_user": lambda row: row.session.principal.upstream_user,
    "vhost": lambda row: row.session.principal.vhost,
    "client": lambda row: row.client,
    "listener": lambda row: row.session.principal.listener,
    "name": lambda row: _said(row, "connection_name"),
    "product": lambda row: _said(row, "product"),
    "tls": lambda row: row.session.relay.endpoints[Side.CLIENT].is_tls,
    "version": lambda row: row.session.facts.version(Side.CLIENT),
    "upstream_version": lambda row: row.session.facts.version(Side.UPSTREAM),
    "upstream": lambda row: row.upstream,
    "endpoint": lambda row: row.endpoint,
    "route": lambda row: None if row.session.facts.choice is None else row.session.facts.choice.route.id,
    "pooled": lambda row: row.session.upstream.is_pooled,
    "channels": lambda row: len(row.session.channels.states),
    "consumers": lambda row: row.consumers,
    "unacked": lambda row: row.unacked,
    "flow": lambda row: row.flow,
    "published": lambda row: row.session.relay.up.messages,
    "published_bytes": lambda row: row.session.relay.up.body_bytes,
    "delivered": lambda row: row.session.relay.down.messages,
    "delivered_bytes": lambda row: row.session.relay.down.body_bytes,
    "refused": lambda row: row.session.publishes.refused,
    "published_rate": lambda row: row.rate(0),
    "published_bytes_rate": lambda row: row.rate(1),
    "delivered_rate": lambda row: row.rate(2),
    "delivered_bytes_rate": lambda row: row.rate(3),
}
#: Those by which sessions are chosen: ``name`` for the value, ``name*`` for what it begins with.
FILTERS: Final = ("user", "vhost", "client", "listener", "upstream", "route", "version", "flow", "name")


def row_of(session: Session, gateway: Gateway) -> dict[str, JSON]:
    """All columns."""
    row = SessionRow(session, gateway.router, gateway.observers.rates)
    return {name: column(row) for name, column in COLUMNS.items()}


def key_of(value: JSON, tie: str, *, is_descending: bool) -> Key:
    """Where a row with that value in the column it is sorted by comes; ``tie`` is its id."""
    if value is None:
        return not is_descending, "", tie
    return is_descending, value if isinstance(value, str) else float(cast("float", value)), tie


async def sessions(gateway: Gateway, args: Args) -> JSON:
    """The first of those that are wanted.

    ``where`` has what columns must say, ``sort`` the column, with ``-`` in front of it for descending,
    ``most`` how many are wanted.
    """
    where = [
        (COLUMNS[name], str(wanted)) for name, wanted in cast("Mapping[str, str]", args["where"]).items()
    ]
    sort, most = str(args["sort"]), cast("int", args["most"])
    is_descending, column = sort.startswith("-"), COLUMNS[sort.removeprefix("-")]
    live = list(gateway.sessions.values())
    await gateway.observers.rates.look(live)
    matched = 0
    best: list[tuple[Key, Session]] = []
    turns = TimeSlices()
    for session in live:
        row = SessionRow(session, gateway.router, gateway.observers.rates)
        if all(_fits(value(row), wanted) for value, wanted in where):
            matched += 1
            # In its place at once: nothing sorts them all, while others wait.
            insort(best, (key_of(column(row), session.id, is_descending=is_descending), session))
            if len(best) > most:
                del best[0 if is_descending else -1]
        await turns.next()
    if is_descending:
        best.reverse()
    rows = []
    for _, session in best:
        rows.append(row_of(session, gateway))
        await turns.next()
    return {"total": len(live), "matched": matched, "sessions": rows}


def _fits(value: str | float | None, wanted: str) -> bool:
    text = "" if value is None else str(value)
    return text.startswith(wanted[:-1]) if wanted.endswith("*") else text == wanted


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
