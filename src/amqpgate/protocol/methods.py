"""Who may send which method: the directions of AMQP 0-8, 0-9 and 0-9-1 as data.

The specifications write it as ``<chassis name="server">`` (a server must take it, so a client sends it);
the answer to a question goes the other way. Names are those of the specification; a name that means the
same in several versions is here once. What each dialect knows of it, ``wire.codec.methods`` says.

Methods of class connection are for channel 0, all others for the other channels.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

CONNECTION_CLASS: Final = 10


class Role(Enum):
    """The two ends of a connection."""

    #: The one that connected and sent the protocol header.
    CLIENT = "client"
    #: The one that listened.
    SERVER = "server"

    # There is one of each: an enum's own hashes its name, in Python.
    __hash__ = object.__hash__

    @property
    def peer(self) -> Role:
        """The other one."""
        return Role.SERVER if self is Role.CLIENT else Role.CLIENT


def _names(class_name: str, method_names: str) -> frozenset[str]:
    return frozenset(f"{class_name}.{name}" for name in method_names.split())


FROM_CLIENT: Final[frozenset[str]] = frozenset().union(
    _names("connection", "start-ok secure-ok tune-ok open close close-ok update-secret"),
    _names("channel", "open flow flow-ok close close-ok resume ping pong ok"),
    _names("access", "request"),
    _names("exchange", "declare delete bind unbind bound"),
    _names("queue", "declare bind unbind purge delete"),
    _names(
        "basic", "qos consume cancel publish get ack reject nack recover recover-async recover-sync credit"
    ),
    _names("confirm", "select"),
    _names("tx", "select commit rollback"),
    _names("dtx", "select start"),
    _names("file", "qos consume cancel open open-ok stage publish ack reject"),
    _names("stream", "qos consume cancel publish"),
    _names("tunnel", "request"),
    _names("test", "integer integer-ok string string-ok table table-ok content content-ok"),
    _names(
        "message",
        "transfer consume cancel get recover open close append checkpoint resume qos ok empty reject offset",
    ),
)

#: ``basic.cancel`` is RabbitMQ's consumer cancel notification and asks for no answer, so a client's
#: ``basic.cancel-ok`` answers nothing: RabbitMQ refuses it, and so does this table.
FROM_SERVER: Final[frozenset[str]] = frozenset().union(
    _names("connection", "start secure tune open-ok redirect close close-ok"),
    _names("connection", "blocked unblocked update-secret-ok"),
    _names("channel", "open-ok flow flow-ok alert close close-ok ping pong ok"),
    _names("access", "request-ok"),
    _names("exchange", "declare-ok delete-ok bind-ok unbind-ok bound-ok"),
    _names("queue", "declare-ok bind-ok unbind-ok purge-ok delete-ok"),
    _names("basic", "qos-ok consume-ok cancel cancel-ok return deliver get-ok get-empty ack nack"),
    _names("basic", "recover-ok recover-sync-ok credit-ok credit-drained"),
    _names("confirm", "select-ok"),
    _names("tx", "select-ok commit-ok rollback-ok"),
    _names("dtx", "select-ok start-ok"),
    _names("file", "qos-ok consume-ok cancel-ok open open-ok stage return deliver"),
    _names("stream", "qos-ok consume-ok cancel-ok return deliver"),
    _names("test", "integer integer-ok string string-ok table table-ok content content-ok"),
    _names("message", "transfer open close append checkpoint resume ok empty reject offset"),
)

SENT_BY: Final[dict[Role, frozenset[str]]] = {Role.CLIENT: FROM_CLIENT, Role.SERVER: FROM_SERVER}
