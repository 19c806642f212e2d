"""The steps that every client library plays, and what each must see: directly and through the gateway alike.

A driver in `clients/` has a function (or a script has a branch) for each step that its library can play; it
returns the values that the library showed, as JSON. Every driver has a vhost of its own, with its name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import attrs

from tests.support.rabbitmq import RabbitMQ

BIG_BODY = bytes(range(256)) * (3 * 1024 * 1024 // 256)

#: Header values that every library can write and read back as the same JSON.
HEADERS: Mapping[str, object] = {
    "text": "grün",
    "int": 7,
    "big": 5_000_000_000,
    "negative": -3,
    "yes": True,
    "none": None,
    "list": [1, "two", [3]],
    "table": {"deep": {"deeper": 1}},
}

PROPERTIES: Mapping[str, object] = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "delivery_mode": 2,
    "priority": 5,
    "correlation_id": "c-1",
    "reply_to": "answers",
    "expiration": "60000",
    "message_id": "m-1",
    "timestamp": 1_700_000_000,
    "type": "greeting",
    "user_id": "guest",
    "app_id": "interop",
}

#: What each step must see. `{vhost}` stands for the driver's vhost; `...` for a check of its own in the test.
EXPECTED: Mapping[str, object] = {
    # All that connection.start tells.
    "server": ...,
    # queue.declare, passive declare, a server-named queue, purge after one publish, delete. (RabbitMQ lets a
    # passive declare overtake a publish on the same channel, but not a purge.)
    "declare": {
        "named": ["declare", 0, 0],
        "passive": ["declare", 0, 0],
        "server_named": True,
        "purged": 1,
        "deleted": 0,
    },
    # Messages that arrive in the queues `red` and `blue`: key red; any key; `*.fast.#` against `slow.*` with
    # car.fast.now, slow.car and car.fast; x-match all {a:1,b:x} against any {a:1,c:true} with {a:1,b:x} and
    # {a:1}; an exchange bound to the direct one, and unbound; blue alone still bound to the fanout exchange.
    "exchanges": {
        "direct": [1, 0],
        "fanout": [1, 1],
        "topic": [2, 1],
        "headers": [1, 2],
        "exchange_bind": [1, 0],
        "exchange_unbind": [0, 0],
        "queue_unbind": [0, 1],
    },
    # All of PROPERTIES and HEADERS, published and got back.
    "properties": {"properties": PROPERTIES, "headers": HEADERS},
    # Headers of every type that the library writes, as sent and as got back: must be equal.
    "header_types": ...,
    # 100 messages in confirm mode.
    "confirms": {"acked": 100, "nacked": 0, "in_queue": 100},
    # Two messages to a queue with x-max-length 1 and x-overflow reject-publish.
    "confirm_nack": ["ack", "nack"],
    # A mandatory message `lost` to the default exchange with the key `nowhere`.
    "returns": [312, "NO_ROUTE", "", "nowhere", "lost"],
    # Prefetch 1: nack with requeue, ack, reject to a dead-letter queue, ack.
    "acks": {
        "deliveries": [["one", False], ["one", True], ["two", False], ["three", False]],
        "dead": ["two", "rejected"],
    },
    # Redelivered flag of a message got, recovered, got again.
    "recover": [False, True],
    # basic.get on an empty queue, and on one with two messages: body, redelivered, messages left.
    "get": {"empty": None, "full": ["one", False, 1]},
    # A consumer with the tag `reader`: ten bodies, then basic.cancel.
    "consume": {"tag": "reader", "bodies": [f"m{n}" for n in range(10)], "left": 0},
    # Messages purged after tx.rollback of one and tx.commit of two.
    "tx": {"rolled_back": 0, "committed": 2},
    # Tag of the consumer whose queue is deleted under it.
    "cancel_notify": "watcher",
    # Declaring another connection's exclusive queue.
    "exclusive": [
        405,
        "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine' in vhost '{vhost}'. It could"
        " be originally declared on another connection or the exclusive property value does not match that of"
        " the original declaration.",
    ],
    # A request with reply_to amq.rabbitmq.reply-to, answered over the pseudo-queue that the server sees.
    "reply_to": {"pseudo_queue": True, "answer": "pong"},
    # Which of two consumers (x-priority 10 and 1) gets five messages.
    "priorities": ["high"] * 5,
    # x-delivery-count of a message in a quorum queue, first delivery and after nack with requeue.
    "quorum": [None, 1],
    # A stream read from its first message: bodies and x-stream-offset.
    "stream": [["s0", 0], ["s1", 1], ["s2", 2]],
    # Size and SHA-256 of a body of 3 MiB and of an empty one.
    "bodies": [
        [len(BIG_BODY), hashlib.sha256(BIG_BODY).hexdigest()],
        [0, hashlib.sha256(b"").hexdigest()],
    ],
    # Channel errors: passive declare of nothing, another durability, a reserved name; then the same
    # connection's next channel still works.
    "channel_errors": {
        "404": "NOT_FOUND - no queue 'nothing' in vhost '{vhost}'",
        "406": "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'errors' in vhost '{vhost}':"
        " received 'false' but current is 'true'",
        "403": "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'",
        "usable": True,
    },
    "wrong_password": [
        403,
        "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker"
        " logfile.",
    ],
    "unknown_vhost": [530, "NOT_ALLOWED - vhost nowhere not found"],
    # Log in with the mechanism AMQPLAIN and declare a queue.
    "amqplain": ["amqplain", 0, 0],
    # connection.update-secret, then a queue is declared.
    "update_secret": ["update_secret", 0, 0],
    # The broker's memory alarm goes on and off under an open connection that has published.
    "blocked": ["low on memory", "unblocked"],
    # The operator closes the connection.
    "operator_close": [320, "CONNECTION_FORCED - maintenance tonight"],
    # Rows of the broker's own list.
    "connection_list": ...,
}


@attrs.frozen
class Setting:
    """Where a driver plays its steps."""

    host: str
    port: int
    vhost: str
    through_gateway: bool
    rabbitmq: RabbitMQ
    user: str = "guest"
    password: str = "guest"

    def ask(self, what: str) -> Sequence[object]:
        """An operator's act: `alarm`, `clear`, `close` the vhost's connections, or list its `connections`."""
        if what == "alarm":
            self.rabbitmq.set_memory_alarm(True)
        elif what == "clear":
            self.rabbitmq.set_memory_alarm(False)
        elif what == "close":
            self.rabbitmq.close_connections("maintenance tonight", vhost=self.vhost)
        elif what == "connections":
            return [row for row in self.rabbitmq.connections() if row["vhost"] == self.vhost]
        else:
            raise ValueError(what)
        return []


def expected(step: str, vhost: str) -> object:
    """What `step` must see on `vhost`."""
    return _fill(EXPECTED[step], vhost)


def _fill(value: object, vhost: str) -> object:
    if isinstance(value, str):
        return value.replace("{vhost}", vhost)
    if isinstance(value, list):
        return [_fill(item, vhost) for item in value]
    if isinstance(value, Mapping):
        return {key: _fill(item, vhost) for key, item in value.items()}
    return value
