"""A connection to the broker that only one session uses: what operators are told, and that all passes."""

from __future__ import annotations

from functools import partial

from amqpgate.datapath.tables import Side
from amqpgate.gateway.session.upstream import OwnUpstream
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.guarded import through


def upstream_of(stage: Stage) -> OwnUpstream:
    (session,) = stage.running.gateway.sessions.values()
    assert isinstance(session.upstream, OwnUpstream)
    return session.upstream


def test_channels_have_the_clients_numbers_and_the_broker_hears_of_them(stage: Stage) -> None:
    client, broker = stage.opened()
    upstream = upstream_of(stage)

    def number_of(channel: int) -> int | None:
        return stage.running.call(partial(upstream.number_of, channel))

    assert [number_of(7), number_of(0)] == [None, None]
    through(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 7)
    assert [number_of(7), number_of(8)] == [7, None]
    through(client, broker, amqp.ChannelClose(200), amqp.ChannelCloseOk(), 7)
    assert number_of(7) is None


def test_what_operators_are_told_of_it(stage: Stage) -> None:
    client, broker = stage.opened()
    upstream = upstream_of(stage)
    facts = (upstream.is_pooled, upstream.connection_id, upstream.is_blocked)
    assert facts == (False, None, False)
    assert upstream.address == f"127.0.0.1:{stage.door.port}"
    # Of one whose broker is gone there is nothing to be told, and no error.
    sock = upstream.relay.endpoints[Side.UPSTREAM].sock
    assert sock is not None
    client.close()
    broker.close()
    stage.running.wait_idle()
    assert upstream.address is None


def test_what_it_need_not_be_asked_changes_nothing(stage: Stage) -> None:
    """A session asks only those that are not transparent; this one would answer so."""
    stage.opened()
    upstream, method = upstream_of(stage), amqp.QueueDeclare()
    assert upstream.is_transparent
    assert (upstream.ignores(1), upstream.holds_up(1, method), upstream.make_room(1, method)) == (False,) * 3
    assert (upstream.may_tell(1, method), upstream.hears(1, method)) == (True, True)
    assert not upstream.confirms(1, amqp.ConfirmSelect())
    assert (upstream.closes_at_once(1), upstream.close_connection()) == (False, False)
