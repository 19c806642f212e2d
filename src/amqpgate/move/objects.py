"""What a broker has, as its management interface lists it and takes it.

An object's ``body`` is what a ``PUT`` of it says. Objects are equal if another broker would take the one for
the other (`is_same`): what RabbitMQ 4 spells out, RabbitMQ 3 leaves away.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias, cast, get_args
from urllib.parse import quote

import attrs

from amqpgate.logs import on_one_line

#: In the order in which they are made: each needs those before it only.
ObjectKind: TypeAlias = Literal[
    "vhost",
    "user",
    "user-limit",
    "permission",
    "topic-permission",
    "limit",
    "operator-policy",
    "policy",
    "parameter",
    "exchange",
    "queue",
    "binding",
]
KINDS: Final[tuple[ObjectKind, ...]] = get_args(ObjectKind)

#: What the management interface says: an object, or a list of objects.
Listed: TypeAlias = "Sequence[Mapping[str, object]]"

#: Exchanges that a move makes for itself, by the beginning of their names.
OWN: Final = "amqpgate.move"
#: How the names of all queues and exchanges begin that federation makes.
_FEDERATION: Final = "federation: "

_NOTHING: Final[Mapping[str, object]] = {}


@attrs.frozen
class BrokerObject:
    """A queue, an exchange, a user, ..."""

    kind: ObjectKind
    #: Empty for users.
    vhost: str
    #: Unique for its kind in its virtual host.
    name: str
    body: Mapping[str, object] = attrs.field(eq=False)

    @property
    def key(self) -> tuple[ObjectKind, str, str]:
        return self.kind, self.vhost, self.name

    @property
    def arguments(self) -> Mapping[str, object]:
        found = self.body.get("arguments")
        return found if isinstance(found, dict) else _NOTHING

    def with_body(self, **said: object) -> BrokerObject:
        return attrs.evolve(self, body={**self.body, **said})

    def __str__(self) -> str:
        where = "" if self.kind in ("vhost", "user", "user-limit") else f"{self.vhost} "
        # Clients choose names.
        return on_one_line(f"{self.kind} {where}{self.name}")


@attrs.frozen
class BrokerLists:
    """What the management interface says of a broker."""

    #: As ``GET /api/definitions`` has it.
    definitions: Mapping[str, Listed]
    #: Of the virtual hosts that move: ``GET /api/queues/VHOST`` and so on. One that is not there is left
    #: out.
    queues: Mapping[str, Listed]
    exchanges: Mapping[str, Listed]
    bindings: Mapping[str, Listed]


def objects_of(
    lists: BrokerLists, vhosts: Iterable[str], *, every_user: bool = False
) -> Iterator[BrokerObject]:
    """All that belongs to these virtual hosts, in the order of `KINDS`; and the users who may use them, or
    all that the broker has."""
    wanted = set(vhosts)
    found = [*_common(lists.definitions, wanted, every_user=every_user), *_topology(lists, wanted)]
    yield from sorted(found, key=lambda one: KINDS.index(one.kind))


def _common(
    definitions: Mapping[str, Listed], wanted: set[str], *, every_user: bool
) -> Iterator[BrokerObject]:
    def rows(key: str) -> Iterator[Mapping[str, object]]:
        return (row for row in definitions.get(key, ()) if row.get("vhost") in wanted)

    for row in definitions.get("vhosts", ()):
        if row.get("name") in wanted:
            meta = cast("Mapping[str, object]", row.get("metadata") or row)
            body = {key: meta[key] for key in ("description", "tags", "default_queue_type") if meta.get(key)}
            if body.get("default_queue_type") == "undefined":
                del body["default_queue_type"]
            yield BrokerObject("vhost", str(row["name"]), str(row["name"]), body)
    users = set()
    for row in rows("permissions"):
        users.add(row["user"])
        yield BrokerObject(
            "permission", str(row["vhost"]), str(row["user"]), _only(row, "configure", "write", "read")
        )
    for row in rows("topic_permissions"):
        name = f"{row['user']} {row['exchange']}"
        body = _only(row, "user", "exchange", "write", "read")
        yield BrokerObject("topic-permission", str(row["vhost"]), name, body)
    for row in definitions.get("users", ()):
        if every_user or row["name"] in users:
            yield from _user(row)
    for row in rows("policies"):
        body = _only(row, "pattern", "definition", "priority", "apply-to")
        yield BrokerObject("policy", str(row["vhost"]), str(row["name"]), body)
    for row in rows("parameters"):
        yield from _parameter(row)


def _user(row: Mapping[str, object]) -> Iterator[BrokerObject]:
    tags = row.get("tags", "")
    name = str(row["name"])
    body = {
        **_only(row, "password_hash", "hashing_algorithm"),
        "tags": ",".join(map(str, tags)) if isinstance(tags, list) else str(tags),
    }
    yield BrokerObject("user", "", name, body)
    limits = row.get("limits")
    for limit, value in limits.items() if isinstance(limits, dict) else ():
        yield BrokerObject(
            "user-limit", "", f"{name} {limit}", {"user": name, "limit": limit, "value": value}
        )


def _parameter(row: Mapping[str, object]) -> Iterator[BrokerObject]:
    component, vhost, name = str(row["component"]), str(row["vhost"]), str(row["name"])
    value = row.get("value")
    if component == "operator_policy" and isinstance(value, dict):
        yield BrokerObject("operator-policy", vhost, name, dict(value))
    elif component == "vhost-limits" and isinstance(value, dict):
        for limit, most in value.items():
            yield BrokerObject("limit", vhost, str(limit), {"value": most})
    else:
        yield BrokerObject(
            "parameter", vhost, f"{component} {name}", {"component": component, "value": value}
        )


def _topology(lists: BrokerLists, wanted: set[str]) -> Iterator[BrokerObject]:
    for vhost in sorted(wanted):
        queues = set()
        for row in lists.queues.get(vhost, ()):
            name = str(row["name"])
            if row.get("exclusive") or not is_copied(name):
                continue
            queues.add(name)
            body = _only(row, "durable", "auto_delete", "arguments", "type")
            yield BrokerObject("queue", vhost, name, body)
        exchanges = {""}
        for row in lists.exchanges.get(vhost, ()):
            name = str(row["name"])
            exchanges.add(name)
            if name and is_copied(name):
                body = _only(row, "type", "durable", "auto_delete", "internal", "arguments")
                yield BrokerObject("exchange", vhost, name, body)
        for row in lists.bindings.get(vhost, ()):
            source, kind, to = (str(row[key]) for key in ("source", "destination_type", "destination"))
            known = queues if kind == "queue" else exchanges
            if source and to in known and is_copied(source, to) and not source.startswith(OWN):
                yield _binding(vhost, row)


def _binding(vhost: str, row: Mapping[str, object]) -> BrokerObject:
    body = _only(row, "source", "destination_type", "destination", "routing_key", "arguments")
    arguments = row.get("arguments")
    more = f" {json.dumps(arguments, sort_keys=True)}" if arguments else ""
    name = (
        f"{row['source']} to {row['destination_type']} {row['destination']} by '{row['routing_key']}'{more}"
    )
    return BrokerObject("binding", vhost, name, body)


def is_copied(*names: str) -> bool:
    """Whether queues and exchanges of these names are copied: not those that the broker names or has itself.
    As ends of a binding, ``amq.topic`` and the like are everywhere.

    A queue of federation's would fill on the target, where nobody empties it."""
    if len(names) > 1:
        return not any(name.startswith(("amq.gen-", _FEDERATION, OWN)) for name in names)
    return not names[0].startswith(("amq.", _FEDERATION, OWN))


def _only(row: Mapping[str, object], *keys: str) -> dict[str, object]:
    return {key: row[key] for key in keys if key in row}


def path_of(one: BrokerObject) -> tuple[str, str, Mapping[str, object]]:
    """The request that makes it: verb, path below ``/api``, body."""
    vhost, name, body = _part(one.vhost), _part(one.name), one.body
    said = {key: value for key, value in body.items() if key not in _IN_PATHS.get(one.kind, ())}
    match one.kind:
        case "vhost":
            return "PUT", f"/vhosts/{name}", said
        case "user":
            return "PUT", f"/users/{name}", said
        case "user-limit":
            return "PUT", f"/user-limits/{_part(body['user'])}/{_part(body['limit'])}", said
        case "permission":
            return "PUT", f"/permissions/{vhost}/{name}", said
        case "topic-permission":
            return "PUT", f"/topic-permissions/{vhost}/{_part(body['user'])}", said
        case "limit":
            return "PUT", f"/vhost-limits/{vhost}/{name}", said
        case "operator-policy":
            return "PUT", f"/operator-policies/{vhost}/{name}", said
        case "policy":
            return "PUT", f"/policies/{vhost}/{name}", said
        case "parameter":
            _, _, plain = one.name.partition(" ")
            return "PUT", f"/parameters/{_part(body['component'])}/{vhost}/{_part(plain)}", said
        case "exchange":
            return "PUT", f"/exchanges/{vhost}/{name}", said
        case "queue":
            return "PUT", f"/queues/{vhost}/{name}", said
        case "binding":
            letter = "q" if body["destination_type"] == "queue" else "e"
            ends = f"{_part(body['source'])}/{letter}/{_part(body['destination'])}"
            return "POST", f"/bindings/{vhost}/e/{ends}", said


_IN_PATHS: Final[Mapping[ObjectKind, tuple[str, ...]]] = {
    "user-limit": ("user", "limit"),
    "topic-permission": ("user",),
    "parameter": ("component",),
    # That is in the arguments, too, where it is not the virtual host's own.
    "queue": ("type",),
    "binding": ("source", "destination_type", "destination"),
}


def _part(value: object) -> str:
    return quote(str(value), safe="")


def is_same(wanted: BrokerObject, there: BrokerObject) -> bool:
    """Whether a client that declares the one would get the other, or an operator would say so."""
    if wanted.kind == "queue":
        return _queue_facts(wanted, there) == _queue_facts(there, wanted)
    if wanted.kind in ("vhost", "binding"):
        return True
    return _compared(wanted) == _compared(there)


def _queue_facts(one: BrokerObject, other: BrokerObject) -> tuple[object, object, object]:
    arguments = dict(one.arguments)
    kind = arguments.get("x-queue-type")
    if kind == other.body.get("type", "classic") and "x-queue-type" not in other.arguments:
        # Said by the one, and left to the virtual host by the other.
        del arguments["x-queue-type"]
    return one.body.get("durable"), one.body.get("auto_delete"), arguments


def _compared(one: BrokerObject) -> Mapping[str, object]:
    if one.kind == "exchange":
        return {"durable": True, "auto_delete": False, "internal": False, "arguments": {}, **one.body}
    if one.kind == "user":
        return _only(one.body, "password_hash", "hashing_algorithm")
    return one.body
