"""A cluster of RabbitMQ nodes on this machine: one cookie, one name server, each its own ports and folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .rabbitmq import RabbitMQ


class RabbitCluster:
    """Started at once; `destroy` ends it."""

    def __init__(self, size: int, *, root: Path | None = None, config: Sequence[str] = ()) -> None:
        first = RabbitMQ(root=root, config=config)
        self.nodes = [first, *(RabbitMQ(root=root, config=config, beside=first) for _ in range(size - 1))]
        try:
            first.start()
            for node in self.nodes[1:]:
                node.start()
                node.ctl("stop_app")
                node.ctl("join_cluster", first.node)
                node.ctl("start_app", timeout=120)
        except BaseException:
            self.destroy()
            raise

    def destroy(self) -> None:
        for node in reversed(self.nodes):
            node.destroy()
