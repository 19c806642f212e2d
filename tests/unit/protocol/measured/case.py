"""What a measured case is, and answers that come up often."""

from __future__ import annotations

import re
from collections.abc import Iterable

from attrs import frozen

from amqpgate.wire.generated import v0_9_1 as amqp


@frozen
class Case:
    """One thing done at one stage of a conversation (``playbook.STAGES``)."""

    name: str
    stage: str
    sent: bytes
    answer: tuple[str, ...]
    ours: tuple[str, ...] | None = None
    why: str = ""


def closes(code: int, ids: tuple[int, int], text: str) -> tuple[str, ...]:
    return (f"0 connection.close {code} {ids} {text}",)


def silence(code: int, ids: tuple[int, int], text: str) -> tuple[str, ...]:
    return (f"silence {code} {ids} {text}",)


#: What RabbitMQ quotes of frames, and what is said of them here: sizes.
_QUOTES = (
    (re.compile(r"(all|first 16) octets = <<.*>>"), "bytes"),
    (re.compile(r"type (\d+), \d+ bytes"), r"type \1, bytes"),
    (re.compile(r"{invalid_frame_end_marker,\d+}"), "invalid_frame_end_marker"),
    (re.compile(r"cannot decode .*"), "cannot decode"),
)


def unquoted(told: Iterable[str]) -> tuple[str, ...]:
    """Lines without what RabbitMQ shows of frames that it does not want, and amqpgate does not."""
    lines = []
    for text in told:
        for quote, instead in _QUOTES:
            text = quote.sub(instead, text)
        lines.append(text)
    return tuple(lines)


REFUSED = ("header 00 00 09 01",)
NOTHING: tuple[str, ...] = ()
#: It crashes on method ids that it does not know, and the client sees a reset.
RESET = ("reset",)
UNKNOWN_IDS = "RabbitMQ's parser crashes; the standard has a code for it"


def bad_end(frame: bytes) -> bytes:
    """The frame with 1 for an end octet."""
    return frame[:-1] + b"\x01"


def state_error(method: type[amqp.Method], state: str) -> tuple[str, ...]:
    return closes(
        504,
        (method.CLASS_ID, method.METHOD_ID),
        f"CHANNEL_ERROR - unexpected method in connection state {state}",
    )


def silent_state_error(method: type[amqp.Method], state: str) -> tuple[str, ...]:
    ids = (method.CLASS_ID, method.METHOD_ID)
    return silence(504, ids, f"unexpected method in connection state {state}")


def unimplemented(method: type[amqp.Method]) -> tuple[str, ...]:
    return closes(503, (method.CLASS_ID, method.METHOD_ID), "COMMAND_INVALID - unimplemented method")


def expected_open(class_id: int, method_id: int) -> tuple[str, ...]:
    return closes(504, (class_id, method_id), "CHANNEL_ERROR - expected 'channel.open'")


SECOND_OPEN = closes(504, (20, 10), "CHANNEL_ERROR - second 'channel.open' seen")
NO_METHOD = closes(505, (0, 0), "UNEXPECTED_FRAME - expected method frame, got non method frame instead")
NO_HEADER = closes(
    505,
    (60, 40),
    "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead",
)
NO_BODY = closes(
    505, (60, 40), "UNEXPECTED_FRAME - expected content body, got non content body frame instead"
)
GONE = ("1 channel.close 404 (50, 10) NOT_FOUND - no queue 'nope' in vhost '/'",)

CLIENT_MAY_CLOSE = "the standard lets either side close at any time, and clients do so on time-outs"
