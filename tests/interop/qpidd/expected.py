"""What clients see of qpidd where it is not what they see of RabbitMQ, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

#: Steps that ask for what qpidd has not, or for RabbitMQ's operator, each with the reason.
NOT_PLAYED: Final[Mapping[str, str]] = {
    "server": "it is another server",
    "exchanges": "qpidd binds no exchange to another one (540); without that: test_features",
    "header_types": "a header of 70,000 bytes is more than a frame of AMQP 0-10 takes (506)",
    "confirm_nack": "a queue that is full ends the session: the channel is closed (406)",
    "acks": "an alternate exchange keeps the routing key: x-dead-letter-routing-key is 540",
    "cancel_notify": "a queue that is deleted ends the sessions of its consumers: channels are closed (404)",
    "priorities": "qpidd does not know x-priority",
    "reply_to": "amq.rabbitmq.reply-to is RabbitMQ's own",
    "quorum": "qpidd has no quorum queues (540)",
    "stream": "qpidd has no streams (540)",
    "unknown_vhost": "qpidd has one virtual host, whatever it is called",
    "update_secret": "AMQP 0-10 has no new secrets (540)",
    "blocked": "qpidd has no memory alarm",
    "operator_close": "RabbitMQ's operator does it",
    "connection_list": "RabbitMQ's operator has it",
    "connection_error": "a consumer tag in use closes the channel (530) in the place of the connection",
    "recover_same": "540 closes the channel in the place of the connection",
}

#: What the texts of errors have in common.
_ERRORS: Final = (
    "NOT_FOUND - no queue 'nothing'",
    "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'errors'",
    "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'",
)
#: qpidd tells how much of the time to live is left.
_LEFT: Final = re.compile(r"5\d{4}|60000")


def compared(step: str, what: object) -> object:
    """What was seen, or must be, less what may differ: texts, time that has passed, cluster-id."""
    if step == "properties" and isinstance(what, dict):
        properties = {name: value for name, value in what["properties"].items() if name != "cluster_id"}
        if _LEFT.fullmatch(str(properties["expiration"])):
            properties["expiration"] = "60000"
        return {**what, "properties": properties}
    if step in ("channel_errors", "errors") and isinstance(what, dict):
        return {code: _error(said) for code, said in what.items()}
    if step in ("exclusive", "wrong_password") and isinstance(what, list):
        return what[0]
    return what


def _error(said: object) -> object:
    """Of old clients the ids of class and method stand behind the text."""
    if isinstance(said, list):
        return [_error(part) for part in said]
    return next((text for text in _ERRORS if str(said).startswith(text)), said)
