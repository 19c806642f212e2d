"""What does not go together in values of the chart, as its templates refuse it; and what is told besides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from amqpgate.chart.finding import at, items, last, text
from amqpgate.config.address import is_loopback
from amqpgate.errors import ConfigError
from amqpgate.yamldoc import Mapping, Mark, Node
from amqpgate.yamldoc import Sequence as Items

#: What the chart says where nothing is said.
_PROBES: Final = "0.0.0.0:15681"
_FOLDER: Final = "/etc/amqpgate/policies"
#: A password in a URL, which is not one of the environment's.
_IN_URL: Final = re.compile(r"://[^/@]*:[^@]+@")


def errors_together(roots: Sequence[Node]) -> Iterator[ConfigError]:
    """Of all values, as Helm merges them."""
    yield from _of_routes(roots)
    yield from _of_ports(roots)
    folder = last(roots, "config", "policies")
    documents = last(roots, "policies")
    has_others = bool(text(last(roots, "existingPolicies"))) or (
        isinstance(documents, Mapping) and bool(documents.entries)
    )
    if folder is not None and text(folder) not in ("", _FOLDER) and has_others:
        yield folder.mark.error(
            "is another folder than the one with policies and existingPolicies; say either"
        )


def _of_routes(roots: Sequence[Node]) -> Iterator[ConfigError]:
    """Each is called after its port, and leads to the Service of a gateway."""
    routes, mode = last(roots, "tcpRoutes"), text(last(roots, "mode"))
    if routes is not None and items(routes) and mode not in ("", "gateway"):
        yield routes.mark.error(f"lead to the Service of a gateway; with mode: {mode} there is none")
        return
    taken: dict[str, int] = {}
    for index, route in enumerate(items(routes)):
        port = at(route, ["port"])
        if port is not None and taken.setdefault(text(port), index) != index:
            first = taken[text(port)]
            yield port.mark.error(
                f"port {text(port)} has a route already; "
                f"put both Gateways into the parentRefs of tcpRoutes[{first}]"
            )


def _of_ports(roots: Sequence[Node]) -> Iterator[ConfigError]:
    """The API server takes no Service that has one twice, and a gateway does not start."""
    binds: list[tuple[str, str, Mark | None]] = []
    for index, listener in enumerate(items(last(roots, "config", "listeners"))):
        node = at(listener, ["bind"])
        if node is not None:
            binds.append((f"config.listeners[{index}].bind", text(node), node.mark))
    for key, default in (("probes", _PROBES), ("bind", "")):
        node = last(roots, "config", "admin", key)
        said = text(node) or default
        binds.append((f"config.admin.{key}", said, None if node is None else node.mark))
    taken: dict[str, tuple[str, Mark | None]] = {}
    for where, bind, mark in binds:
        host, _, port = bind.rpartition(":")
        if "${" in bind or not port.isdecimal() or port == "0":
            continue
        first, first_mark = taken.setdefault(bind if is_loopback(host.strip("[]")) else port, (where, mark))
        # That of the probes may be a default, which has no place of its own.
        place = mark or first_mark
        if first != where and place is not None:
            yield place.error(f"{where}: port {port} is taken by {first}")


def notes_in(roots: Sequence[Node]) -> Iterator[ConfigError]:
    """What may be meant so: passwords in clear, in a ConfigMap that many may read."""
    for root in roots:
        yield from _clear(at(root, ["config"]))


def _clear(node: Node | None, key: str = "") -> Iterator[ConfigError]:
    if isinstance(node, Mapping):
        for name, value in node.entries.items():
            yield from _clear(value, name)
    elif isinstance(node, Items):
        for item in node.items:
            yield from _clear(item)
    elif (said := text(node)) and "${" not in said and (key == "password" or _IN_URL.search(said)):
        assert node is not None
        yield node.mark.error(
            "a password in clear, for all who may read the ConfigMap: say passwordFile, with the Secret in "
            "secretMounts; or ${NAME}, with the Secret in extraEnv"
        )
