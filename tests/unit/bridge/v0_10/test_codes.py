"""What ends a session and what closes a channel."""

from __future__ import annotations

import pytest

from amqpgate.bridge.v0_10.codes import (
    return_reply_of,
    violation_of_channel_close,
)
from amqpgate.protocol.v0_10.codes import violation_of_exception
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import ErrorCode


@pytest.mark.parametrize("code", [403, 404, 405, 406, 503, 506, 530, 540, 541])
def test_a_channel_close_to_0_10(code: int) -> None:
    violation = violation_of_channel_close(amqp.ChannelClose(code, "NAME - text", 50, 10))
    assert (violation.code, violation.text) == (code, "NAME - text")
    # They would be taken for a class and a command of 0-10.
    assert (violation.class_id, violation.method_id) == (0, 0)


def test_a_queue_that_somebody_consumes_alone_is_locked() -> None:
    text = "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"
    violation = violation_of_channel_close(amqp.ChannelClose(403, text, 60, 20))
    assert (violation.code, violation.text) == (405, text)


@pytest.mark.parametrize(
    ("code", "error_code"), [(311, 506), (502, 503), (320, 541), (504, 541), (200, 541), (999, 541)]
)
def test_a_code_that_0_10_lacks_stands_before_the_text(code: int, error_code: int) -> None:
    violation = violation_of_channel_close(amqp.ChannelClose(code, "text"))
    assert (violation.code, violation.text) == (error_code, f"{code} text")


@pytest.mark.parametrize(
    ("error_code", "code", "text"),
    [
        (403, 403, "ACCESS_REFUSED - why"),
        (404, 404, "NOT_FOUND - why"),
        (405, 405, "RESOURCE_LOCKED - why"),
        (406, 406, "PRECONDITION_FAILED - why"),
        (408, 404, "NOT_FOUND - 408 why"),
        (409, 406, "PRECONDITION_FAILED - 409 why"),
        (503, 406, "PRECONDITION_FAILED - 503 why"),
        (506, 406, "PRECONDITION_FAILED - 506 why"),
        (530, 406, "PRECONDITION_FAILED - 530 why"),
        (531, 406, "PRECONDITION_FAILED - 531 why"),
        (540, 540, "NOT_IMPLEMENTED - why"),
        (541, 541, "INTERNAL_ERROR - why"),
        (542, 406, "PRECONDITION_FAILED - 542 why"),
    ],
)
def test_an_exception_to_0_9_1(error_code: int, code: int, text: str) -> None:
    exception = amqp10.ExecutionException(error_code=error_code, description=b"why")
    violation = violation_of_exception(exception, channel=1)
    assert (violation.code, violation.reply_text) == (code, text)


@pytest.mark.parametrize("code", ErrorCode)
def test_whatever_qpid_says_fits_a_channel_close(code: ErrorCode) -> None:
    said = amqp10.ExecutionException(error_code=code, description=b"\xff\0" * 40_000)
    violation = violation_of_exception(said, channel=1)
    assert amqp.ChannelClose(violation.code, violation.reply_text).encode()


@pytest.mark.parametrize(
    ("reject_code", "reply"),
    [
        (1, (312, "NO_ROUTE")),
        (2, (313, "NO_CONSUMERS")),
        (0, (310, "NOT_DELIVERED")),
        (None, (310, "NOT_DELIVERED")),
        (9, (310, "NOT_DELIVERED")),
    ],
)
def test_why_a_rejected_message_is_returned(reject_code: int | None, reply: tuple[int, str]) -> None:
    assert return_reply_of(reject_code) == reply
