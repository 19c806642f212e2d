"""Exchanges, queues and bindings of a virtual host. (What clients see of it: the differential suite.)"""

from __future__ import annotations

from amqpgate.broker.exchanges import BindingDestination, ExchangeBinding
from amqpgate.broker.messages import BrokerMessage
from amqpgate.broker.vhost import VirtualHost
from amqpgate.wire.generated.v0_9_1 import BasicProperties, ExchangeDeclare, QueueDeclare
from amqpgate.wire.tables import EMPTY_TABLE

from .client import new_state

_USER = object()
_Q = BindingDestination("queue", "q")
_Y = BindingDestination("exchange", "y")


def _vhost() -> VirtualHost:
    """Exchanges x and y, queue q; x leads to y, y to q."""
    vhost = new_state().vhosts["/"]
    for name in ("x", "y"):
        vhost.declare_exchange(ExchangeDeclare(exchange=name, type="topic", auto_delete=True))
    vhost.declare_queue(QueueDeclare(queue="q"), _USER)
    vhost.bind("x", ExchangeBinding.of(_Y, "#", EMPTY_TABLE), _USER)
    vhost.bind("y", ExchangeBinding.of(_Q, "a.*", EMPTY_TABLE), _USER)
    return vhost


def _routes(vhost: VirtualHost, exchange: str, key: str) -> list[str]:
    message = BrokerMessage(exchange, (key,), BasicProperties(), b"")
    return vhost.route(vhost.exchange(exchange), message)


def test_routes() -> None:
    vhost = _vhost()
    assert _routes(vhost, "x", "a.b") == ["q"]
    assert _routes(vhost, "x", "b") == []
    assert _routes(vhost, "", "q") == ["q"]


def test_nothing_is_left_when_the_queue_goes() -> None:
    vhost = _vhost()
    vhost.delete_queue("q", _USER, if_unused=False, if_empty=False)
    assert sorted(vhost.exchanges) == [
        "",
        *(f"amq.{n}" for n in ("direct", "fanout", "headers", "match", "topic")),
    ]
    assert vhost._leading_to == {}


def test_nothing_is_left_when_the_exchange_goes() -> None:
    vhost = _vhost()
    vhost.delete_exchange("y", if_unused=False)
    assert "x" not in vhost.exchanges
    assert vhost._leading_to == {}


def test_nothing_is_left_when_bindings_go() -> None:
    vhost = _vhost()
    vhost.bind("x", ExchangeBinding.of(_Y, "b", EMPTY_TABLE), _USER)
    vhost.unbind("x", ExchangeBinding.of(_Y, "#", EMPTY_TABLE), _USER)
    assert "x" in vhost.exchanges
    vhost.unbind("x", ExchangeBinding.of(_Y, "b", EMPTY_TABLE), _USER)
    assert "x" not in vhost.exchanges
    assert list(vhost._leading_to) == [_Q]


def test_exclusive_queues_go_with_their_owner() -> None:
    vhost = _vhost()
    vhost.declare_queue(QueueDeclare(queue="mine", exclusive=True), _USER)
    vhost.declare_queue(QueueDeclare(queue="theirs", exclusive=True), object())
    vhost.drop_queues_of(_USER)
    assert sorted(vhost.queues) == ["q", "theirs"]
