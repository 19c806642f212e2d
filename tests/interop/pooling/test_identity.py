"""Who may be on whose link: credentials are proven at the login, and again after a stated time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amqpgate.protocol.sasl import amqplain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.interop.pooling.conftest import Same
from tests.interop.pooling.ways import WAYS, Place, in_step, opened
from tests.interop.test_gateway_login import refusal
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import CAPABILITIES, Talker

USER, PASSWORD = "pooled-user", "right"
#: Seconds for which a proof holds in these tests.
PROOF = 1


@pytest.fixture
def user(place: Place) -> Iterator[str]:
    """A user of the place's vhost alone."""
    put_user(place.rabbitmq, PASSWORD)
    grant(place)
    yield USER
    delete_user(place.rabbitmq)


def put_user(rabbitmq: RabbitMQ, password: str) -> None:
    """Make the user, or change its password."""
    rabbitmq.eval(
        f'rabbit_auth_backend_internal:put_user(#{{name => <<"{USER}">>, password => <<"{password}">>,'
        ' tags => <<>>}, <<"test">>).'
    )


def delete_user(rabbitmq: RabbitMQ) -> None:
    """If it is there."""
    rabbitmq.eval(f'catch rabbit_auth_backend_internal:delete_user(<<"{USER}">>, <<"test">>).')


def grant(place: Place) -> None:
    place.rabbitmq.eval(
        f'All = <<".*">>, rabbit_auth_backend_internal:set_permissions('
        f'<<"{USER}">>, <<"{place.vhost}">>, All, All, All, <<"test">>).'
    )


def opening(vhost: str, user: str, password: str) -> Callable[[Talker], None]:
    def play(client: Talker) -> None:
        client.open(vhost=vhost, user=user, password=password, properties=CAPABILITIES)

    return play


def refused(place: Place, user: str, password: str, vhost: str | None = None) -> list[Method | str]:
    """What a client with these hears instead of what it expects."""
    return refusal(place.way.port, opening(place.vhost if vhost is None else vhost, user, password))


def code(told: list[Method | str]) -> int:
    (close,) = (method for method in told if isinstance(method, amqp.ConnectionClose))
    return close.reply_code


def let_in(place: Place, user: str, password: str) -> bool:
    """Whether such a client gets as far as a channel that works."""
    try:
        with contextlib.closing(place.client(user=user, password=password)) as client:
            in_step(client)
            client.bye()
    except Exception:
        return False
    return True


# -- refusals ------------------------------------------------------------------------------------------------


def test_wrong_credentials_right_after_right_ones(place: Place, same: Same, user: str) -> None:
    """At the login, in the broker's words, while the right ones are in use and after."""
    right = place.client(user=user, password=PASSWORD)
    told = [refused(place, user, wrong) for wrong in ("wrong", "", "RIGHT", "right ")]
    told.append(refused(place, "nobody", PASSWORD))
    told.append(refused(place, user.upper(), PASSWORD))
    told.append(refused(place, "guest", PASSWORD))
    assert [code(each) for each in told] == [403] * len(told)
    in_step(right)
    right.bye()
    told.append(refused(place, user, "wrong"))
    assert code(told[-1]) == 403
    same(told)
    # And the right ones are right as before.
    place.client(user=user, password=PASSWORD).bye()


def test_virtual_hosts_that_are_not_there_or_not_allowed(place: Place, same: Same, user: str) -> None:
    right = place.client(user=user, password=PASSWORD)
    told = [refused(place, user, PASSWORD, "nowhere"), refused(place, user, PASSWORD, "/")]
    told.append(refused(place, "guest", "guest", "nowhere"))
    assert [code(each) for each in told] == [530] * 3
    same(told)
    in_step(right)


def test_each_user_is_itself(place: Place, same: Same, user: str) -> None:
    """Two users in one vhost: each with its own permissions, and user-id is checked against its own."""
    place.rabbitmq.eval(
        f'None = <<"^$">>, All = <<".*">>, rabbit_auth_backend_internal:set_permissions('
        f'<<"{USER}">>, <<"{place.vhost}">>, None, None, All, <<"test">>).'
    )
    free, bound = place.client(), place.client(user=user, password=PASSWORD)
    told = []
    for client in (bound, free):
        client.say(amqp.QueueDeclare(queue="q"), 1)
        told.append(client.hear()[1])
    assert [type(each) for each in told] == [amqp.ChannelClose, amqp.QueueDeclareOk]
    free.publish(b"x", "q", properties=amqp.BasicProperties(user_id="guest"))
    in_step(free)
    free.publish(b"x", "q", properties=amqp.BasicProperties(user_id=user))
    close = free.expect(amqp.ChannelClose, 1)
    assert close.reply_code == 406
    same([*told, close])
    assert len(place.connections()) == 2


def test_a_password_that_plain_cannot_say(place: Place, user: str) -> None:
    """A NUL ends the password in PLAIN; AMQPLAIN counts its bytes."""
    put_user(place.rabbitmq, r"with\0nul")
    client = place.dial()
    client.raw(amqp.PROTOCOL_HEADER)
    client.expect(amqp.ConnectionStart)
    response = amqplain_response(user, "with\0nul")
    tune = client.ask(
        amqp.ConnectionStartOk(CAPABILITIES, "AMQPLAIN", response, "en_US"), amqp.ConnectionTune
    )
    client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
    client.ask(amqp.ConnectionOpen(place.vhost), amqp.ConnectionOpenOk)
    client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
    in_step(client)
    client.bye()


def test_failed_logins_leave_nothing(place: Place, user: str) -> None:
    open_before = files(place.way.gateway)
    before = place.connections()
    for number in range(8):
        assert code(refused(place, user, f"wrong {number}")) == 403
        assert code(refused(place, f"nobody {number}", "x")) == 403
        assert code(refused(place, user, PASSWORD, f"nowhere {number}")) == 530
    assert place.connections() == before
    # (The broker is asked for each; a gateway keeps no connection for one that failed.)
    eventually(lambda: files(place.way.gateway) <= open_before)


def files(gateway: Gateway | None) -> int:
    """Open files of the gateway's process."""
    return 0 if gateway is None else len(os.listdir(Path(f"/proc/{gateway.child.pid}/fd")))


# -- what is found out ---------------------------------------------------------------------------------------


@pytest.fixture(params=WAYS)
def brief(request: pytest.FixtureRequest, rabbitmq: RabbitMQ) -> Iterator[Place]:
    """A place where a proof holds for a second."""
    vhost = "brief"
    rabbitmq.fresh_vhost(vhost)
    with opened(request.param, rabbitmq, proofTtl=f"{PROOF}s") as way:
        place = Place(way, vhost)
        put_user(rabbitmq, PASSWORD)
        grant(place)
        yield place
        for client in place.clients:
            client.close()
    delete_user(rabbitmq)


def found_out(brief: Place) -> None:
    """What was right is so no more: at once where each client has its own connection."""
    if brief.way.is_pooled:
        eventually(lambda: not let_in(brief, USER, PASSWORD), every=0.1)
    assert not let_in(brief, USER, PASSWORD)


def test_a_changed_password_is_found_out(brief: Place) -> None:
    early = brief.client(user=USER, password=PASSWORD)
    assert let_in(brief, USER, PASSWORD)
    put_user(brief.rabbitmq, "new")
    # The new one is good at once, the old one no longer than the proof holds, though it is tried on and on.
    assert let_in(brief, USER, "new")
    found_out(brief)
    assert code(refused(brief, USER, PASSWORD)) == 403
    assert let_in(brief, USER, "new")
    # RabbitMQ does not end connections for it.
    in_step(early)


def test_a_user_that_is_gone_is_found_out(brief: Place) -> None:
    assert let_in(brief, USER, PASSWORD)
    delete_user(brief.rabbitmq)
    found_out(brief)
    assert code(refused(brief, USER, PASSWORD)) == 403


def test_access_that_is_taken_away_is_found_out(brief: Place) -> None:
    assert let_in(brief, USER, PASSWORD)
    brief.rabbitmq.eval(
        f'rabbit_auth_backend_internal:clear_permissions(<<"{USER}">>, <<"{brief.vhost}">>, <<"test">>).'
    )
    found_out(brief)
    assert code(refused(brief, USER, PASSWORD)) == 530
