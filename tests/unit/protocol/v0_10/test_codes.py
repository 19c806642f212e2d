"""Reply codes, both ways."""

from __future__ import annotations

import pytest

from amqpgate.errors import REPLY_NAMES
from amqpgate.protocol.handshake import ConnectionState
from amqpgate.protocol.v0_10.codes import (
    FROM_ERROR_CODE,
    TO_ERROR_CODE,
    close_of,
    violation_of_close,
    violation_of_exception,
)
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import CloseCode, ErrorCode


@pytest.mark.parametrize(
    ("code", "close_code", "text"),
    [
        (200, 200, b"why"),
        (320, 320, b"why"),
        (402, 402, b"why"),
        (403, 320, b"why"),
        (501, 501, b"why"),
        (502, 320, b"502 why"),
        (503, 320, b"503 why"),
        (504, 501, b"why"),
        (505, 501, b"why"),
        (506, 320, b"506 why"),
        (530, 320, b"why"),
        (540, 320, b"540 why"),
        (541, 320, b"541 why"),
    ],
)
def test_closes_to_0_10(code: int, close_code: int, text: bytes) -> None:
    assert close_of(code, "why") == amqp.ConnectionClose(reply_code=close_code, reply_text=text)


def test_every_code_has_a_close() -> None:
    assert {close_of(code, "").reply_code for code in (*REPLY_NAMES, *ErrorCode)} == set(CloseCode)


def test_texts_are_cut() -> None:
    assert len(close_of(541, "x" * 400).reply_text) == 255
    exception = amqp.ExecutionException(error_code=541, description=b"x" * 60_000)
    assert len(violation_of_exception(exception, 1).reply_text) <= 255


@pytest.mark.parametrize("code", [200, 320, 402, 501])
def test_closes_from_0_10_are_as_they_are(code: int) -> None:
    close = amqp.ConnectionClose(reply_code=code, reply_text=b"why")
    violation = violation_of_close(close, ConnectionState.OPEN)
    assert (violation.code, violation.text) == (code, "why")


@pytest.mark.parametrize(
    ("state", "code"),
    [(ConnectionState.SECURING, 403), (ConnectionState.CHALLENGED, 403), (ConnectionState.ASKED, 530)],
)
def test_a_forced_close_in_answer_is_a_refusal(state: ConnectionState, code: int) -> None:
    text = b"connection-forced: Authentication failed"
    violation = violation_of_close(amqp.ConnectionClose(320, text), state)
    assert (violation.code, violation.text) == (code, text.decode())
    assert violation_of_close(amqp.ConnectionClose(501, text), state).code == 501
    for other in (ConnectionState.GREETED, ConnectionState.TUNING, ConnectionState.OPEN):
        assert violation_of_close(amqp.ConnectionClose(320, text), other).code == 320


@pytest.mark.parametrize(("code", "text"), [(None, "why"), (999, "999 why")])
def test_a_close_with_a_code_of_no_list_is_541(code: int | None, text: str) -> None:
    violation = violation_of_close(amqp.ConnectionClose(code, b"why"), ConnectionState.OPEN)
    assert (violation.code, violation.text) == (541, text)


@pytest.mark.parametrize(
    ("code", "error_code"),
    [
        (311, 506),
        (403, 403),
        (404, 404),
        (405, 405),
        (406, 406),
        (409, 409),
        (502, 503),
        (503, 503),
        (506, 506),
        (530, 530),
        (531, 531),
        (540, 540),
        (541, 541),
        (542, 542),
    ],
)
def test_exceptions_to_0_10(code: int, error_code: int) -> None:
    assert TO_ERROR_CODE[code] == error_code


@pytest.mark.parametrize("code", [200, 310, 312, 313, 320, 402, 501, 504, 505])
def test_codes_that_end_no_session_alone(code: int) -> None:
    assert code not in TO_ERROR_CODE


@pytest.mark.parametrize(
    ("error_code", "code", "text"),
    [
        (403, 403, "why"),
        (404, 404, "why"),
        (405, 405, "why"),
        (406, 406, "why"),
        (408, 404, "408 why"),
        (409, 406, "409 why"),
        (503, 406, "503 why"),
        (506, 406, "506 why"),
        (530, 406, "530 why"),
        (531, 406, "531 why"),
        (540, 540, "why"),
        (541, 541, "why"),
        (542, 406, "542 why"),
        (777, 541, "777 why"),
        (None, 541, "why"),
    ],
)
def test_exceptions_from_0_10(error_code: int | None, code: int, text: str) -> None:
    exception = amqp.ExecutionException(error_code=error_code, description=b"why")
    violation = violation_of_exception(exception, 7)
    assert (violation.code, violation.text, violation.channel) == (code, text, 7)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"not-found: none (/x/qpid/broker/QueueRegistry.cpp:176)", "not-found: none"),
        (b"none (qpid/Plugin.h:1)", "none"),
        (b"(a.cpp:1) none", "(a.cpp:1) none"),
        (b"none (of a.cpp:1)", "none (of a.cpp:1)"),
        (b"none (a.cpp:1) (b.cpp:2)", "none (a.cpp:1)"),
    ],
)
def test_where_in_its_source_qpidd_raised_it_is_left_out(said: bytes, told: str) -> None:
    exception = amqp.ExecutionException(error_code=404, description=said)
    assert violation_of_exception(exception, 1).text == told


def test_every_exception_of_0_10_has_a_channel_close() -> None:
    assert set(FROM_ERROR_CODE) == set(ErrorCode)


def test_not_allowed_that_speaks_of_access_is_403() -> None:
    exception = amqp.ExecutionException(error_code=530, description=b"Access denied to x")
    violation = violation_of_exception(exception, 1)
    assert (violation.code, violation.text) == (403, "530 Access denied to x")


def test_texts_of_peers_are_made_readable() -> None:
    exception = amqp.ExecutionException(error_code=404, description=b"a\x00b\x1b[31m\n\xff")
    assert violation_of_exception(exception, 1).text == "a?b?[31m?\\xff"
    assert violation_of_exception(amqp.ExecutionException(error_code=404), 1).text == ""
