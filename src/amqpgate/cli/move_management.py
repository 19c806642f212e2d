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

#: Seconds for an answer: a broker with very many queues lists them slowly.
PATIENCE: Final = 60.0
#: What of an answer that says no is shown.
_SHOWN: Final = 500


class SaysNo(Failure):
    """The broker refuses a request."""


class NotThere(SaysNo):
    """The broker has no such thing (404)."""


@attrs.define(eq=False)
class Management:
    """One broker's."""

    end: MoveEnd
    password: str = attrs.field(repr=False)
    timeout: float = PATIENCE

    def get(self, path: str) -> object:
        """What it says. Raises ``Failure``, ``NotThere`` where there is no such thing."""
        return self._said("GET", path, None)

    def rows(self, path: str) -> list[Answer]:
        found = self.get(path)
        return [cast("Answer", row) for row in found] if isinstance(found, list) else []

    def create(self, one: BrokerObject) -> None:
        """Make it. It is no error if it is there already."""
        from amqpgate.move.objects import path_of

        verb, path, body = path_of(one)
        try:
            self._said(verb, path, body)
        except SaysNo as failure:
            raise SaysNo(f"{one}: {failure.message}") from None

    def _said(self, verb: str, path: str, body: Answer | None) -> object:
        import http.client

        from amqpgate.config import Address, HttpsAddress

        url = self.end.management
        kind = HttpsAddress if url.scheme == "https" else Address
        login = b64encode(f"{self.end.user}:{self.password}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        connection = connection_to(kind(url.host, url.port), self.timeout)
        try:
            connection.request(
                verb, f"/api{path}", None if body is None else json.dumps(body), headers=headers
            )
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Failure(f"amqpgate: no answer from {self.end.upstream} at {url}: {why}") from error
        finally:
            connection.close()
        if answer.status >= HTTPStatus.BAD_REQUEST:
            kind_of_failure = NotThere if answer.status == HTTPStatus.NOT_FOUND else SaysNo
            raise kind_of_failure(
                f"amqpgate: {self.end.upstream} says {answer.status} to {verb} {path}: {_reason(text)}"
            )
        return json.loads(text) if text.strip() else None

    # -- what a move asks ------------------------------------------------------------------------------------

    def overview(self) -> tuple[str, frozenset[str]]:
        """The broker's version, and the types of exchanges that it knows."""
        said = cast("Answer", self.get("/overview"))
        types = cast("Sequence[Answer]", said.get("exchange_types", ()))
        return str(said.get("rabbitmq_version", "")), frozenset(str(one["name"]) for one in types)

    def lists(self, vhosts: Iterable[str]) -> BrokerLists:
        """All that a move copies, and what is there of it."""
        from amqpgate.move.objects import BrokerLists

        definitions = cast("Mapping[str, list[Answer]]", self.get("/definitions"))
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
            return str(cast("Answer", self.get(path)).get("type", "classic"))
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


def _reason(text: str) -> str:
    """What the broker says is wrong, on one line."""
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    reason = said.get("reason") if isinstance(said, dict) else None
    return on_one_line(" ".join(str(reason or text).split()))[:_SHOWN]
