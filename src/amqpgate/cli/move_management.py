"""A broker's management interface, as a move asks it."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias, cast
from urllib.parse import quote

import attrs

from amqpgate.cli.asking import connection_to
from amqpgate.cli.failures import Failure
from amqpgate.logs import on_one_line

if TYPE_CHECKING:
    from amqpgate.move.document import MoveEnd
    from amqpgate.move.objects import BrokerLists, BrokerObject
    from amqpgate.move.refusals import QueueFacts

Answer: TypeAlias = "Mapping[str, object]"

#: Seconds for each word of an answer: a broker with very many queues begins to list them late.
PATIENCE: Final = 60.0
#: Seconds for a whole answer, however slowly it comes.
_WITHIN: Final = 300.0
#: Bytes of an answer: at 2 KB for a queue with its statistics, 100,000 of them in one virtual host.
_MOST: Final = 256 << 20
#: What of an answer that says no is shown.
_SHOWN: Final = 500
#: Bytes of it that are looked at.
_REASON: Final = 64 << 10


class SaysNo(Failure):
    """The broker refuses a request."""


class NotThere(SaysNo):
    """The broker has no such thing (404)."""


@attrs.define(eq=False)
class Management:
    """One broker's."""

    end: MoveEnd
    password: str = attrs.field(repr=False)
    #: Seconds for each word, and for all of an answer; and how many bytes that may have.
    timeout: float = PATIENCE
    within: float = _WITHIN
    most: int = _MOST

    def get(self, path: str) -> object:
        """What it says. Raises ``Failure``, ``NotThere`` where there is no such thing."""
        text = self._said("GET", path, None).decode("utf-8", "replace")
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise self._not(path, "JSON") from None

    def table(self, path: str) -> Answer:
        """What it says in an object of JSON."""
        found = self.get(path)
        if not isinstance(found, dict):
            raise self._not(path, "object of JSON")
        return found

    def rows(self, path: str) -> list[Answer]:
        """What it says in a list of objects."""
        found = self.get(path)
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            raise self._not(path, "list of objects of JSON")
        return found

    def _not(self, path: str, what: str) -> Failure:
        return Failure(
            f"amqpgate: {self.end.upstream} at {self.end.management} answers GET {path} with no {what}: "
            "is that the management port?"
        )

    def create(self, one: BrokerObject) -> None:
        """Make it. It is no error if it is there already."""
        from amqpgate.move.objects import path_of

        verb, path, body = path_of(one)
        try:
            self._said(verb, path, body)
        except SaysNo as failure:
            raise SaysNo(f"{one}: {failure.message}") from None

    def _said(self, verb: str, path: str, body: Answer | None) -> bytes:
        import http.client

        from amqpgate.config import Address, HttpsAddress
        from amqpgate.telemetry.http_request import exchange, why_of

        url = self.end.management
        kind = HttpsAddress if url.scheme == "https" else Address
        login = b64encode(f"{self.end.user}:{self.password}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        connection = connection_to(kind(url.host, url.port), self.timeout)
        sent = None if body is None else json.dumps(body)
        try:
            answer, data = exchange(
                connection, verb, f"/api{path}", sent, headers, within=self.within, most=self.most
            )
        except (OSError, http.client.HTTPException) as error:
            raise Failure(
                f"amqpgate: no answer from {self.end.upstream} at {url}: {why_of(error)}"
            ) from error
        finally:
            connection.close()
        if answer.status >= HTTPStatus.BAD_REQUEST:
            kind_of_failure = NotThere if answer.status == HTTPStatus.NOT_FOUND else SaysNo
            raise kind_of_failure(
                f"amqpgate: {self.end.upstream} says {answer.status} to {verb} {path}: {_reason(data)}"
            )
        if answer.status // 100 != 2:
            to = on_one_line(answer.getheader("location") or "")[:_SHOWN]
            raise Failure(
                f"amqpgate: {self.end.upstream} at {url} answers {verb} {path} with {answer.status}"
                f"{f' to {to}' if to else ''}, which is not followed: is that the management port?"
            )
        return data

    # -- what a move asks ------------------------------------------------------------------------------------

    def overview(self) -> tuple[str, frozenset[str]]:
        """The broker's version, and the types of exchanges that it knows."""
        said = self.table("/overview")
        types = cast("Sequence[Answer]", said.get("exchange_types", ()))
        return str(said.get("rabbitmq_version", "")), frozenset(str(one["name"]) for one in types)

    def lists(self, vhosts: Iterable[str]) -> BrokerLists:
        """All that a move copies, and what is there of it."""
        from amqpgate.move.objects import BrokerLists

        definitions = cast("Mapping[str, list[Answer]]", self.table("/definitions"))
        listed: dict[str, dict[str, list[Answer]]] = {"queues": {}, "exchanges": {}, "bindings": {}}
        for vhost in vhosts:
            for kind, found in listed.items():
                try:
                    found[vhost] = self.rows(f"/{kind}/{quote(vhost, safe='')}")
                except NotThere:
                    break
        return BrokerLists(definitions, listed["queues"], listed["exchanges"], listed["bindings"])

    def queue_names(self, vhost: str) -> list[str]:
        """Of all queues that an operator can look at: no exclusive ones, no streams."""
        path = f"/queues/{quote(vhost, safe='')}?columns=name,exclusive,type"
        try:
            found = self.rows(path)
        except NotThere:
            return []
        return [str(row["name"]) for row in found if not row.get("exclusive") and row.get("type") != "stream"]

    def queue_type(self, vhost: str, name: str) -> str:
        """Classic, quorum, ... Classic where there is no such queue."""
        path = f"/queues/{quote(vhost, safe='')}/{quote(name, safe='')}?columns=type"
        try:
            return str(self.table(path).get("type", "classic"))
        except NotThere:
            return "classic"

    def strangers(self, vhosts: Iterable[str]) -> tuple[str, ...] | None:
        """Connections that are no gateway's, in words; None: the broker's statistics are off."""
        found = []
        for vhost in vhosts:
            columns = "user,peer_host,peer_port,client_properties,protocol"
            try:
                rows = self.rows(f"/vhosts/{quote(vhost, safe='')}/connections?columns={columns}")
            except NotThere:
                continue
            except SaysNo:
                return None
            for row in rows:
                said = row.get("client_properties")
                if isinstance(said, dict) and "amqpgate" in said:
                    continue
                user, host = on_one_line(str(row.get("user"))), row.get("peer_host")
                found.append(f"user '{user}' at {host}:{row.get('peer_port')} in '{vhost}'")
        return tuple(sorted(found))

    def alarms(self) -> tuple[str, ...]:
        """Those of all nodes, in words."""
        found = []
        for row in self.rows("/nodes?columns=name,mem_alarm,disk_free_alarm,running"):
            for key, what in (("mem_alarm", "memory"), ("disk_free_alarm", "disk space")):
                if row.get(key) is True:
                    found.append(f"node {row.get('name')} is short of {what}")
            if row.get("running") is False:
                found.append(f"node {row.get('name')} does not run")
        return tuple(found)

    def delayed(self, vhosts: Iterable[str]) -> Mapping[str, int]:
        """Messages that exchanges of the plugin for delayed messages keep."""
        found = {}
        for vhost in vhosts:
            for row in self._of_vhost("exchanges", vhost):
                count = row.get("messages_delayed")
                if isinstance(count, int):
                    found[f"{vhost} {row['name']}"] = count
        return found

    def queue_facts(self, vhosts: Iterable[str]) -> tuple[QueueFacts, ...]:
        return tuple(_facts(vhost, row) for vhost in vhosts for row in self._of_vhost("queues", vhost))

    def unknown_vhosts(self, vhosts: Iterable[str]) -> tuple[str, ...]:
        """Those that are not there, or that this user may not use."""
        mine = {str(row["vhost"]) for row in self.rows(f"/users/{quote(self.end.user, safe='')}/permissions")}
        return tuple(vhost for vhost in vhosts if vhost not in mine)

    def _of_vhost(self, kind: str, vhost: str) -> list[Answer]:
        try:
            return self.rows(f"/{kind}/{quote(vhost, safe='')}")
        except NotThere:
            return []


def _facts(vhost: str, row: Answer) -> QueueFacts:
    from amqpgate.move.refusals import QueueFacts

    stats = row.get("message_stats")
    rates = stats if isinstance(stats, dict) else {}

    def rate(*names: str) -> float:
        details = (rates.get(f"{name}_details") for name in names)
        return sum(float(one.get("rate", 0)) for one in details if isinstance(one, dict))

    def table(key: str) -> Mapping[str, object]:
        found = row.get(key)
        return found if isinstance(found, dict) else {}

    def count(key: str) -> int:
        found = row.get(key)
        return found if isinstance(found, int) else 0

    return QueueFacts(
        vhost=vhost,
        name=str(row["name"]),
        type=str(row.get("type", "classic")),
        exclusive=bool(row.get("exclusive")),
        auto_delete=bool(row.get("auto_delete")),
        arguments=table("arguments"),
        policy=table("effective_policy_definition"),
        messages=count("messages"),
        unacked=count("messages_unacknowledged"),
        consumers=count("consumers"),
        acked_rate=rate("ack", "deliver_no_ack"),
        published_rate=rate("publish"),
    )


def _reason(data: bytes) -> str:
    """What the broker says is wrong, on one line."""
    text = data[:_REASON].decode("utf-8", "replace")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    reason = said.get("reason") if isinstance(said, dict) else None
    return on_one_line(" ".join(str(reason or text).split()))[:_SHOWN]
