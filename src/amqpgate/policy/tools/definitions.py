"""RabbitMQ's ``definitions.json``: who has which permissions.

Only what permissions need is read: users, vhosts, permissions, topic permissions, and the types of exchanges.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs

from amqpgate.errors import ConfigError

#: Of the exchanges that every vhost has, those whose type is topic.
_PREDECLARED_TOPIC = ("amq.topic", "amq.rabbitmq.trace")


@attrs.frozen
class Permission:
    """What a user may do in a vhost: regular expressions for names."""

    user: str
    vhost: str
    configure: str
    write: str
    read: str


@attrs.frozen
class TopicPermission:
    """Which keys a user may use with a topic exchange: regular expressions for keys."""

    user: str
    vhost: str
    exchange: str
    write: str
    read: str


@attrs.frozen
class Definitions:
    """What ``definitions.json`` says of permissions."""

    users: tuple[str, ...]
    vhosts: tuple[str, ...]
    permissions: tuple[Permission, ...]
    topic_permissions: tuple[TopicPermission, ...]
    #: (vhost, exchange): type.
    exchanges: dict[tuple[str, str], str]

    def is_topic(self, vhost: str, exchange: str) -> bool | None:
        """Whether the exchange is a topic exchange; None where the file does not say."""
        if exchange == "" or exchange.startswith("amq."):
            return exchange in _PREDECLARED_TOPIC
        kind = self.exchanges.get((vhost, exchange))
        return None if kind is None else kind == "topic"


def json_of(data: bytes, file: str) -> object:
    """What a file of JSON says; `ConfigError` for what is none."""
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        raise ConfigError(f"not JSON: {error.msg}", file=file, line=error.lineno) from None
    except ValueError as error:
        raise ConfigError(f"not JSON: {getattr(error, 'reason', error)}", file=file) from None
    except RecursionError:
        raise ConfigError("not JSON: nested too deeply", file=file) from None


def parse(data: bytes, file: str) -> Definitions:
    """The definitions in ``data``; `ConfigError` says what is missing."""
    return of_json(json_of(data, file), file)


def of_json(said: object, file: str) -> Definitions:
    """The definitions in what JSON says; `ConfigError` says what is missing."""
    if not isinstance(said, dict) or "permissions" not in said:
        raise ConfigError(
            "no list 'permissions' in it; export with `rabbitmqctl export_definitions FILE`", file=file
        )
    top: dict[object, object] = said

    def entries(key: str) -> Iterator[tuple[str, dict[object, object]]]:
        found = top.get(key, [])
        if not isinstance(found, list):
            raise ConfigError(f"'{key}' is not a list", file=file)
        for index, entry in enumerate(found):
            if not isinstance(entry, dict):
                raise ConfigError(f"'{key}[{index}]' is not an object", file=file)
            yield f"{key}[{index}]", entry

    def text(where: str, entry: dict[object, object], key: str) -> str:
        value = entry.get(key)
        if not isinstance(value, str):
            hint = "; export all vhosts, not a single one" if key == "vhost" else ""
            raise ConfigError(f"'{where}.{key}' is missing or no text{hint}", file=file)
        return value

    permissions = tuple(
        Permission(*(text(where, entry, key) for key in ("user", "vhost", "configure", "write", "read")))
        for where, entry in entries("permissions")
    )
    topics = tuple(
        TopicPermission(*(text(where, entry, key) for key in ("user", "vhost", "exchange", "write", "read")))
        for where, entry in entries("topic_permissions")
    )
    users = [text(where, entry, "name") for where, entry in entries("users")]
    vhosts = [text(where, entry, "name") for where, entry in entries("vhosts")]
    return Definitions(
        tuple(dict.fromkeys([*users, *(permission.user for permission in permissions)])),
        tuple(dict.fromkeys([*vhosts, *(permission.vhost for permission in permissions)])),
        permissions,
        topics,
        {
            (text(where, entry, "vhost"), text(where, entry, "name")): text(where, entry, "type")
            for where, entry in entries("exchanges")
        },
    )
