"""Whom policies judge where the broker is told another user."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from amqpgate.gateway.handshake import principals as principals_module
from amqpgate.gateway.handshake.client_side import ClientHandshake
from amqpgate.gateway.handshake.principals import Principals
from amqpgate.gateway.upstream.cluster import Destination
from amqpgate.policy import TlsIdentity
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.handshake.clients import asking, client_of

#: Clients of `main` log in themselves at home, those of `other` do not; both go to the shop.
TEXT = """
listeners:
- {{name: main, bind: 127.0.0.1:0, upstream: home}}
- {{name: other, bind: 127.0.0.1:0, upstream: shop}}
upstreams:
- {{name: home, host: 127.0.0.1, port: {port}}}
- {{name: shop, host: 127.0.0.1, port: {port}, user: svc, password: x}}
limits: {{{limits}}}
"""
CN = TlsIdentity("CN=orders", "orders")


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage(text=TEXT, limits="closeTimeout: 100ms")


@pytest.fixture
def principals(stage: Stage) -> Principals:
    return stage.running.gateway.acceptor.context.principals


@pytest.fixture
def shop(stage: Stage) -> Destination:
    return stage.running.gateway.router.plain_dialler("shop", "s").destination


@pytest.fixture
def bob(stage: Stage) -> Iterator[ClientHandshake]:
    with client_of(stage) as client:
        yield client


Ask = Callable[[], str | None]


@pytest.fixture
def ask(stage: Stage, principals: Principals, bob: ClientHandshake, shop: Destination) -> Ask:
    """Who bob is, where nobody need be asked any more."""
    return lambda: stage.running.ask(partial(principals.user_of, bob, shop, "bob"))


def asked(
    stage: Stage, principals: Principals, bob: ClientHandshake, shop: Destination, answer: Method
) -> str | None:
    """Who bob is, where the broker at home is asked and answers so."""
    is_right = isinstance(answer, amqp.ConnectionTune)
    with asking(stage, partial(principals.user_of, bob, shop, "bob")) as answers, stage.door.accept() as home:
        home.greet()
        assert home.expect(amqp.ConnectionStartOk).response == b"\0bob\0right"
        home.say(answer)
        home.expect(amqp.ConnectionClose if is_right else amqp.ConnectionCloseOk)
        if is_right:
            home.say(amqp.ConnectionCloseOk())
    (user,) = answers
    return user


def test_where_clients_log_in_themselves_the_broker_says_whether_the_name_is_true(
    stage: Stage, principals: Principals, bob: ClientHandshake, shop: Destination, ask: Ask
) -> None:
    assert asked(stage, principals, bob, shop, amqp.ConnectionTune(2047, 131072, 0)) == "bob"
    # It is not asked again for a while.
    stage.door.close()
    assert ask() == "bob"


def test_whom_the_broker_does_not_take_is_nobody(
    stage: Stage,
    principals: Principals,
    bob: ClientHandshake,
    shop: Destination,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert asked(stage, principals, bob, shop, amqp.ConnectionClose(403, "ACCESS_REFUSED - no")) is None
    (told,) = [record.getMessage() for record in caplog.records if "has not confirmed" in record.getMessage()]
    assert "upstream home" in told
    assert "right" not in told


def test_one_that_does_not_answer_is_left_alone_for_a_while(
    stage: Stage, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.door.close()
    attempts: list[object] = []
    preauthenticate = principals_module.preauthenticate

    async def noted(*args: object, **options: object) -> object:
        attempts.append(args)
        return await preauthenticate(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(principals_module, "preauthenticate", noted)
    assert [ask(), ask(), len(attempts)] == [None, None, 1]
    now = time.monotonic() + principals_module.PATIENCE
    monkeypatch.setattr(principals_module.time, "monotonic", lambda: now)
    assert [ask(), len(attempts)] == [None, 2]


@pytest.mark.parametrize(
    ("listener", "mechanism", "tls", "user"),
    [
        # Nobody has checked what it says.
        ("other", "PLAIN", None, "svc"),
        ("other", "PLAIN", CN, "orders"),
        ("main", "EXTERNAL", CN, "orders"),
        ("main", "EXTERNAL", None, None),
        # A mechanism whose answer cannot be repeated.
        ("main", "SCRAM-SHA-256", CN, None),
    ],
)
def test_whose_login_is_not_checked_is_known_otherwise_or_not(
    stage: Stage,
    principals: Principals,
    shop: Destination,
    listener: str,
    mechanism: str,
    tls: TlsIdentity | None,
    user: str | None,
) -> None:
    with client_of(stage, listener=listener, mechanism=mechanism, tls=tls) as client:
        assert stage.running.ask(partial(principals.user_of, client, shop, "bob")) == user
        # Before that, by whom its login is counted.
        is_checked = mechanism.startswith("SCRAM")
        assert principals.at_login(client, shop, "bob") == ("bob" if is_checked else user)


def test_who_says_no_name_is_not_asked_about(
    stage: Stage, principals: Principals, bob: ClientHandshake, shop: Destination
) -> None:
    assert stage.running.ask(partial(principals.user_of, bob, shop, None)) is None
