"""What RabbitMQ's ``definitions.json`` declares, as requests that are looked at before an upgrade.

RabbitMQ exports durable queues alone: what clients declare as transient is in audit records only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from amqpgate.errors import ConfigError
from amqpgate.policy.tools.definitions import json_of
from amqpgate.policy.tools.preflight import BrokerRequest, Kind

#: The lists of a definitions file, and what they are.
_LISTS: Final[Mapping[str, Kind]] = {
    "queues": "queue.declare",
    "exchanges": "exchange.declare",
    "policies": "policy",
}


def requests_in(data: bytes, file: str) -> Iterator[BrokerRequest]:
    """Raises `ConfigError` for what is no definitions file."""
    said = json_of(data, file)
    if not isinstance(said, dict) or not any(key in said for key in _LISTS):
        raise ConfigError("no definitions; export them with `rabbitmqctl export_definitions FILE`", file=file)
    for key, kind in _LISTS.items():
        entries = said.get(key, [])
        if not isinstance(entries, list):
            raise ConfigError(f"'{key}' is not a list", file=file)
        for index, entry in enumerate(entries):
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise ConfigError(f"'{key}[{index}]' is no object with a name", file=file)
            yield _request(kind, entry)


def _request(kind: Kind, entry: Mapping[str, object]) -> BrokerRequest:
    arguments = entry.get("definition" if kind == "policy" else "arguments")
    known = arguments if isinstance(arguments, dict) else {}
    type_ = entry.get("type")
    if kind == "queue.declare" and isinstance(type_, str) and type_ != "classic":
        # RabbitMQ says the type beside the arguments, too, and since 3.12 instead of them.
        known = {"x-queue-type": type_, **known}
    return BrokerRequest(
        kind=kind,
        vhost=str(entry.get("vhost", "")),
        name=str(entry["name"]),
        durable=entry.get("durable") is not False,
        auto_delete=entry.get("auto_delete") is True,
        type=type_ if kind == "exchange.declare" and isinstance(type_, str) else "",
        arguments=known,
    )
