"""What connections say again: kept by its bytes, and no login among it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqpgate.gateway.transport import repeated
from amqpgate.gateway.transport.repeated import HEARD, START_FRAMES, Derived, frame_of, keep
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

TUNE_OK = amqp.ConnectionTuneOk(2047, 131072, 60)
OPEN = amqp.ConnectionOpen("/")
LOGIN = amqp.ConnectionStartOk(Table(()), "PLAIN", b"\0guest\0secret", "en_US")


@pytest.fixture(autouse=True)
def nothing_heard() -> Iterator[None]:
    HEARD.clear()
    yield
    HEARD.clear()


def _keep(method: Method, rest: bytes = b"") -> bytes:
    data = method_frame(0, method) + rest
    keep(data, method, method.encode())
    return data


@pytest.mark.parametrize("method", [TUNE_OK, OPEN, amqp.ConnectionOpenOk(), amqp.ConnectionStart(0, 9)])
def test_what_repeats_is_kept(method: Method) -> None:
    data = _keep(method)
    assert {data: (method, b"")} == HEARD


def test_a_tune_ok_is_kept_with_the_open_behind_it() -> None:
    rest = method_frame(0, OPEN)
    data = _keep(TUNE_OK, rest)
    assert {data: (TUNE_OK, rest)} == HEARD


@pytest.mark.parametrize(
    "rest",
    [
        method_frame(0, LOGIN),
        method_frame(0, OPEN)[:-1],
        method_frame(0, OPEN)[:-1] + b"\x00",
        method_frame(1, OPEN),
        method_frame(0, OPEN) * 2,
        method_frame(0, amqp.ConnectionOpen("v" * 100)),
        b"\x08",
    ],
)
def test_a_tune_ok_is_kept_with_nothing_else(rest: bytes) -> None:
    _keep(TUNE_OK, rest)
    assert not HEARD


@pytest.mark.parametrize("method", [LOGIN, amqp.ConnectionSecureOk(b"secret"), amqp.ConnectionClose(200)])
def test_no_login_is_kept(method: Method) -> None:
    _keep(method)
    assert not HEARD


def test_only_some_are_kept() -> None:
    for channel_max in range(1000):
        _keep(amqp.ConnectionTuneOk(channel_max, 4096, 0))
        assert frame_of(amqp.ConnectionTune, channel_max, 4096, 0) == method_frame(
            0, amqp.ConnectionTune(channel_max, 4096, 0)
        )
        assert len(HEARD) <= 256
        assert len(repeated._SAID) <= 64


def test_what_is_made_of_an_object_is_made_once() -> None:
    made: list[Table] = []
    derived = Derived[Table, int](lambda table: made.append(table) or len(made))  # type: ignore[func-returns-value]
    first, equal = Table(()), Table(())
    assert [derived.of(first), derived.of(equal), derived.of(first)] == [1, 2, 1]
    for _ in range(100):
        derived.of(Table(()))
    assert len(derived._made) <= 64
    assert derived.of(first) == 103, "it was dropped"


def test_a_start_is_said_as_it_is() -> None:
    start = amqp.ConnectionStart(0, 9, Table.of({"product": "RabbitMQ"}), b"PLAIN", b"en_US")
    assert START_FRAMES.of(start) == method_frame(0, start) == START_FRAMES.of(start)
