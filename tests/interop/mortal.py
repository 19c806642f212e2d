"""A RabbitMQ node that tests may pause, kill and start again; one for a whole run, for a start takes long."""

from __future__ import annotations

import functools

from tests.support.missing import missing
from tests.support.rabbitmq import RabbitMQ, script_folder


@functools.cache
def _node() -> RabbitMQ:
    # It ends itself when the run ends.
    return RabbitMQ()


def running_node() -> RabbitMQ:
    """The node, running. Whoever kills it need not start it again."""
    if script_folder() is None:
        missing("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
    node = _node()
    if not node.running:
        node.start()
    return node
