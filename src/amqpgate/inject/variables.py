"""The environment variables of a pod that hold AMQP URLs, and what is to be known of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import attrs

from amqpgate.inject.urls import REFERENCE, Url, url_in
from amqpgate.inject.values import NotInjectedError, mapping_at, mappings_at, text_at
from amqpgate.yamldoc.schema import Json

Entry: TypeAlias = dict[str, Json]

#: Sources of a value that the sidecar can have as well, and the application need not have.
_SHAREABLE: Final = ("secretKeyRef", "configMapKeyRef")


@attrs.frozen
class Variable:
    """One entry of a container's environment."""

    name: str
    container: str
    #: The entry itself, in the pod.
    entry: Entry
    #: What is in it; None where that is in a Secret or a ConfigMap.
    url: Url | None
    #: All entries of its container.
    siblings: list[Entry]

    @property
    def shown(self) -> str:
        """For errors."""
        return f"{self.name} of container {self.container}"

    def lead_to(self, port: int) -> None:
        """Put the sidecar in the broker's place. `NotInjectedError` where that cannot be."""
        try:
            text = f"amqp://127.0.0.1:{port}" if self.url is None else self.url.at(port)
        except NotInjectedError as error:
            raise NotInjectedError(f"{self.shown}: {error}") from None
        self.entry.pop("valueFrom", None)
        self.entry["value"] = text

    def upstream(self) -> list[Entry]:
        """The sidecar's environment, if this is what says where the broker is; its last entry is the URL."""
        if self.url is None:
            return [{"name": UPSTREAM, "valueFrom": self.entry["valueFrom"]}]
        try:
            text = self.url.upstream
        except NotInjectedError as error:
            raise NotInjectedError(f"{self.shown}: {error}") from None
        return [*self._defined(self.url.server), {"name": UPSTREAM, "value": text}]

    def _defined(self, text: str) -> list[Entry]:
        """The entries that ``text`` refers to, and those that they refer to, in the container's order."""
        wanted = set(REFERENCE.findall(text))
        found: list[Entry] = []
        # Only what stands before an entry is put into it.
        before = self.siblings[: self.siblings.index(self.entry)]
        for entry in reversed(before):
            name = text_at(entry, "name", "env")
            if name in wanted:
                wanted.remove(name)
                found.insert(0, entry)
                wanted |= set(REFERENCE.findall(text_at(entry, "value", name)))
        if wanted:
            raise NotInjectedError(
                f"{self.shown} names its broker by $({min(wanted)}), which its container does not define: "
                "name the broker in annotation amqpgate.io/upstream"
            )
        return found


#: The sidecar's own variable, as ``amqpgate run`` reads it.
UPSTREAM: Final = "AMQPGATE_UPSTREAM"
#: By which the protocol is clear, where the value cannot be seen.
_TELLING: Final = ("AMQP", "RABBIT")


def variables_in(containers: list[Entry], names: tuple[str, ...], *, named: bool) -> Iterator[Variable]:
    """The variables of ``containers`` that hold AMQP URLs, to brokers outside of the pod.

    ``named``: the pod itself says that ``names`` do. `NotInjectedError` where it cannot be told.
    """
    for container in containers:
        label = text_at(container, "name", "container")
        entries = mappings_at(container, "env", f"container {label}")
        for entry in entries:
            name = text_at(entry, "name", "env")
            if name not in names:
                continue
            variable = Variable(name, label, entry, url_in(text_at(entry, "value", name)), entries)
            if "valueFrom" in entry:
                _check_source(variable, named)
                yield variable
            elif variable.url is None:
                if named:
                    raise NotInjectedError(f"{variable.shown} is no AMQP URL, such as amqp://host")
            elif not variable.url.is_local:
                yield variable


def _check_source(variable: Variable, named: bool) -> None:
    source = mapping_at(variable.entry, "valueFrom", variable.name)
    if not any(kind in source for kind in _SHAREABLE):
        raise NotInjectedError(f"{variable.shown} comes neither from a Secret nor from a ConfigMap")
    if not named and not any(word in variable.name for word in _TELLING):
        raise NotInjectedError(
            f"{variable.shown} comes from elsewhere, and may be of another protocol: name it in annotation "
            "amqpgate.io/env if it is an AMQP URL, or say amqpgate.io/inject: disabled"
        )
