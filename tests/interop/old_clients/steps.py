"""The steps that the old clients play, and what each must see: the round trip, and habits of old clients.

As in `tests.interop.steps`, a program has a piece of code for each step that its library can play.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from tests.interop import steps as new

PROPERTIES: Mapping[str, object] = {**new.PROPERTIES, "cluster_id": "c-1"}

#: The message that the operator publishes for the step `foreign` has types that old clients cannot read.
FOREIGN_BODY = b"foreign"
FOREIGN_HEADERS: Mapping[str, object] = {
    "array": [1, "two", {"three": 3}],
    "big": 5_000_000_000,
    "bytes": b"\x00\x7f",
    "none": None,
    "text": "plain",
    "yes": True,
}

#: What each step must see. `{vhost}` stands for the client's vhost. What depends on the library stands in
#: `clients`.
ROUND_TRIP: Mapping[str, object] = {
    "declare": new.EXPECTED["declare"],
    # As `exchanges` of the newer clients, without bindings between exchanges; then an exchange is deleted,
    # and declaring it passively is answered by 404.
    "bindings": {
        "direct": [1, 0],
        "fanout": [1, 1],
        "topic": [2, 1],
        "headers": [1, 2],
        "unbind": [0, 1],
        "deleted": 404,
    },
    "bodies": new.EXPECTED["bodies"],
    "returns": new.EXPECTED["returns"],
    # Prefetch 1: reject with requeue, ack, reject to a dead-letter queue, ack; messages left in both queues.
    "acks": {
        "deliveries": [["one", False], ["one", True], ["two", False], ["three", False]],
        "dead": 1,
        "left": 0,
    },
    "recover": [False, True],
    "get": new.EXPECTED["get"],
    "consume": new.EXPECTED["consume"],
    # Five messages, prefetch 2: how many are left in the queue after two deliveries; both are acked at once.
    "qos": {"ready": 3, "then": ["m0", "m1", "m2", "m3"]},
    "tx": {"rolled_back": 0, "committed": 2},
    # The ticket of access.request, and a message that was published and got with it.
    "access": [1, "ticket"],
    # Channel errors, each with its text and the ids of the class and method at fault; then the same
    # connection's next channel still works.
    "errors": {
        "404": ["NOT_FOUND - no queue 'nothing' in vhost '{vhost}'", [50, 10]],
        "406": [
            "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'errors' in vhost '{vhost}': received"
            " 'false' but current is 'true'",
            [50, 10],
        ],
        "403": ["ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'", [40, 10]],
        "usable": True,
    },
    # connection.close as the client sees it.
    "connection_error": [530, "NOT_ALLOWED - attempt to reuse consumer tag 'reader'", [60, 20]],
    "unknown_vhost": [530, "NOT_ALLOWED - vhost nowhere not found", [10, 40]],
    "operator_close": [320, "CONNECTION_FORCED - maintenance tonight", [0, 0]],
    # channel.close and connection.close by the client, both answered.
    "close": True,
}

#: Habits that RabbitMQ refuses: through the gateway they work.
HABITS: Mapping[str, object] = {
    # channel.flow(false) with a consumer, a message published, channel.flow(true), and the message comes.
    "flow": {"off": False, "meanwhile": [], "on": True, "then": ["later"]},
    # basic.qos with a prefetch-size, and a message got.
    "prefetch_size": "x",
    # A message with delivery-mode 0, got: its body and its delivery-mode.
    "delivery_mode_0": ["x", 1],
    # basic.publish with immediate: what closes the channel. RabbitMQ closes the connection.
    "immediate": [406, "PRECONDITION_FAILED - immediate is not implemented by the broker", [60, 40]],
    # tune-ok with channel-max 0, frame-max 0 or frame-max 4096; a body of 200,000 bytes goes and comes.
    "channel_max_0": True,
    "frame_max_0": True,
    "small_frame_max": True,
    # PLAIN with an empty response in start-ok, and the credentials in secure-ok; the same round trip.
    "empty_response": True,
    # A message with FOREIGN_HEADERS: its body and the names of its headers.
    "foreign": [FOREIGN_BODY.decode(), sorted(FOREIGN_HEADERS)],
}


#: A habit that the gateway leaves to RabbitMQ to refuse: basic.recover without requeue.
LEFT_TO_RABBITMQ: Mapping[str, object] = {
    "recover_same": [540, "NOT_IMPLEMENTED - requeue=false", [60, 100]],
}


def properties(headers: Mapping[str, object]) -> object:
    """What the step `properties` must see with these headers."""
    return {"properties": PROPERTIES, "headers": headers}


def server(version: tuple[int, int]) -> object:
    """What connection.start and open-ok tell a client of this version (major, minor)."""
    return {
        "version": list(version),
        "product": "RabbitMQ",
        "mechanisms": ["AMQPLAIN", "PLAIN"],
        "known_hosts": "",
    }


def digest(body: bytes) -> list[object]:
    """Size and SHA-256 of a body, as the programs show them."""
    return [len(body), hashlib.sha256(body).hexdigest()]
