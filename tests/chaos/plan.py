"""What a set-up's clients are told: a file of JSON, which `clients` reads."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from pathlib import Path

import attrs

#: Messages that a publisher sends at once. Those of a batch go to one queue.
BATCH = 50

#: How many messages wait for consumers at most.
BACKLOG = 20_000


@attrs.frozen
class Plan:
    #: One of these at random, for each connection.
    ports: tuple[int, ...]
    folder: str
    version: str = "0-9-1"
    queues: tuple[str, ...] = ("chaos-0", "chaos-1")
    #: Queues that transactions may go to: quorum queues have none.
    tx_queues: tuple[str, ...] = ("chaos-0",)
    publishers: int = 2
    transactions: int = 1
    consumers: int = 2
    #: A routing key that a policy denies, answered by a nack; empty: there is none.
    denied: str = ""
    #: Headers that a transform sets.
    added: Mapping[str, str] = attrs.field(factory=dict)
    ca: str = ""
    seed: int = 0
    #: Messages a second that all publishers have together; 0: as many as may be.
    rate: float = 0
    #: Messages without a confirm, per publisher.
    window: int = 1000

    def tls(self) -> ssl.SSLContext | None:
        return ssl.create_default_context(cafile=self.ca) if self.ca else None

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(attrs.asdict(self)))

    @classmethod
    def load(cls, path: Path) -> Plan:
        told = json.loads(path.read_text())
        for name in ("ports", "queues", "tx_queues"):
            told[name] = tuple(told[name])
        return cls(**told)
