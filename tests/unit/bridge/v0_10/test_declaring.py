"""Exchanges, queues and bindings, with the embedded broker, which answers as RabbitMQ does."""

from __future__ import annotations

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE
from amqpgate.wire.v0_10.structs import Command
from amqpgate.wire.v0_10.types import Map, Value
from tests.unit.bridge.v0_10.lab import Lab, broker_state

XMATCH = Map(((b"x-match", Value(0x95, b"any")), (b"a", Value(0x95, b"1"))))


@pytest.fixture
def lab() -> Lab:
    return Lab().open().attach()


def refused(lab: Lab, one: Command) -> int:
    """The code of the exception that ends the session, which names the command."""
    heard = lab.do(one)
    exception = heard[-2].command
    assert isinstance(exception, amqp10.ExecutionException)
    assert (exception.class_code, exception.command_code) == (one.CLASS_CODE, one.CODE)
    assert isinstance(heard[-1].control, amqp10.SessionDetach)
    return exception.error_code


def delete_behind(lab: Lab, method: Method) -> None:
    """Somebody else deletes something."""
    other = Lab(lab.state).open()
    other.give_broker(amqp.ChannelOpen(), method)


def granted(lab: Lab, one: Command) -> None:
    heard = lab.do(one)
    assert [type(sent.control) for sent in heard] == [amqp10.SessionCompleted]


def test_exchange_declare_says_all_it_can(lab: Lab) -> None:
    granted(
        lab,
        amqp10.ExchangeDeclare(
            exchange=b"x", type=b"topic", alternate_exchange=b"amq.fanout", durable=True, auto_delete=True
        ),
    )
    declare = lab.asked[-1][1]
    assert (declare.exchange, declare.type, declare.durable, declare.auto_delete) == (
        "x",
        "topic",
        True,
        True,
    )
    assert declare.arguments.get("alternate-exchange") == "amq.fanout"


def test_exchange_of_a_type_that_nobody_has_is_not_asked_for(lab: Lab) -> None:
    assert refused(lab, amqp10.ExchangeDeclare(exchange=b"x", type=b"invalid_type")) == 404
    assert "exchange.declare" not in lab.names()


def test_exchange_declared_again_with_other_flags_is_taken(lab: Lab) -> None:
    granted(lab, amqp10.ExchangeDeclare(exchange=b"x", type=b"direct"))
    granted(lab, amqp10.ExchangeDeclare(exchange=b"x", type=b"direct", durable=True))
    assert lab.asked[-1][1].passive


def test_exchange_declared_again_with_another_type_is_not(lab: Lab) -> None:
    granted(lab, amqp10.ExchangeDeclare(exchange=b"x", type=b"direct"))
    assert refused(lab, amqp10.ExchangeDeclare(exchange=b"x", type=b"topic")) == 530


def test_exchange_declared_again_with_another_alternate_is_not(lab: Lab) -> None:
    granted(lab, amqp10.ExchangeDeclare(exchange=b"x", type=b"direct"))
    again = amqp10.ExchangeDeclare(exchange=b"x", type=b"direct", alternate_exchange=b"amq.fanout")
    assert refused(lab, again) == 530


def test_exchange_declared_again_without_an_alternate_keeps_it(lab: Lab) -> None:
    granted(lab, amqp10.ExchangeDeclare(exchange=b"x", type=b"direct", alternate_exchange=b"amq.fanout"))
    granted(lab, amqp10.ExchangeDeclare(exchange=b"x", type=b"direct"))
    assert lab.asked[-1][1].passive


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (amqp10.ExchangeDeclare(exchange=b"amq.mine", type=b"direct"), 530),
        (amqp10.ExchangeDeclare(exchange=b"qpid.mine", type=b"direct"), 530),
        (amqp10.ExchangeDeclare(exchange=b"nope", passive=True), 404),
        (amqp10.ExchangeDeclare(exchange=b"qpid.nope", passive=True), 404),
        (amqp10.ExchangeDeclare(exchange=b"", type=b"direct"), 542),
        (amqp10.ExchangeDeclare(exchange=b"\xff", type=b"direct"), 542),
        (amqp10.ExchangeDelete(exchange=b"nope"), 404),
        (amqp10.ExchangeDelete(exchange=b"amq.direct"), 530),
        (amqp10.ExchangeBind(queue=b"q", exchange=b"nope", binding_key=b"k"), 404),
        (amqp10.ExchangeBind(queue=b"nope", exchange=b"amq.direct", binding_key=b"k"), 404),
        (amqp10.ExchangeBind(queue=b"q", exchange=b"", binding_key=b"k"), 542),
        (amqp10.ExchangeBind(exchange=b"amq.direct", binding_key=b"k"), 542),
        (amqp10.ExchangeUnbind(queue=b"q", exchange=b"", binding_key=b"k"), 542),
        (amqp10.ExchangeUnbind(queue=b"q", exchange=b"nope", binding_key=b"k"), 404),
        (amqp10.ExchangeUnbind(queue=b"nope", exchange=b"amq.direct", binding_key=b"k"), 404),
        (amqp10.ExchangeDeclare(exchange=b"x", type=b"direct", alternate_exchange=b"nope"), 404),
        (amqp10.QueueDeclare(queue=b"new", alternate_exchange=b"nope"), 404),
        (amqp10.QueueDeclare(), 542),
        (amqp10.QueueDeclare(queue=b"nope", passive=True), 404),
        (amqp10.QueueDelete(queue=b"nope"), 404),
        (amqp10.QueueDelete(), 542),
        (amqp10.QueuePurge(), 531),
        (amqp10.QueuePurge(queue=b"nope"), 404),
        (amqp10.DtxSelect(), 540),
        (amqp10.FileQos(), 540),
        (amqp10.StreamQos(), 540),
    ],
)
def test_refusals(lab: Lab, command: Command, code: int) -> None:
    granted(lab, amqp10.QueueDeclare(queue=b"q"))
    assert refused(lab, command) == code


@pytest.mark.parametrize(
    "command",
    [
        amqp10.ExchangeUnbind(queue=b"theirs", exchange=b"amq.direct", binding_key=b"k"),
        amqp10.QueueDeclare(queue=b"new", alternate_exchange=b"theirs"),
    ],
)
def test_what_may_not_be_asked_for_counts_as_there(lab: Lab, command: Command) -> None:
    lab.is_live = False
    lab.do(command)
    lab.tell(amqp.ChannelOpenOk(), 1)
    assert lab.asked[-1][1].passive
    lab.tell(amqp.ChannelClose(403, "ACCESS_REFUSED", 0, 0), 1)
    lab.tell(amqp.ChannelOpenOk(), 1)
    assert not getattr(lab.asked[-1][1], "passive", False)


def test_what_is_known_is_not_asked_for(lab: Lab) -> None:
    granted(lab, amqp10.QueueDeclare(queue=b"q", alternate_exchange=b"amq.fanout"))
    granted(lab, amqp10.ExchangeUnbind(queue=b"q", exchange=b"amq.direct", binding_key=b"k"))
    assert not any(getattr(method, "passive", False) for _, method in lab.asked)


def test_bind_and_unbind_have_the_same_arguments(lab: Lab) -> None:
    granted(lab, amqp10.QueueDeclare(queue=b"q"))
    bind = amqp10.ExchangeBind(queue=b"q", exchange=b"amq.match", binding_key=b"k", arguments=XMATCH)
    granted(lab, bind)
    granted(lab, amqp10.ExchangeUnbind(queue=b"q", exchange=b"amq.match", binding_key=b"k"))
    bound, unbound = (lab.asked[at][1] for at in (-2, -1))
    assert isinstance(unbound, amqp.QueueUnbind)
    assert unbound.arguments == bound.arguments != EMPTY_TABLE
    # What was not bound is not missed.
    granted(lab, amqp10.ExchangeUnbind(queue=b"q", exchange=b"amq.match", binding_key=b"k"))
    assert lab.asked[-1][1].arguments == EMPTY_TABLE


def test_binding_without_a_key_has_an_empty_one(lab: Lab) -> None:
    granted(lab, amqp10.QueueDeclare(queue=b"q"))
    granted(lab, amqp10.ExchangeBind(queue=b"q", exchange=b"amq.direct"))
    assert lab.asked[-1][1].routing_key == ""


def test_queue_declare_says_all_it_can(lab: Lab) -> None:
    granted(
        lab,
        amqp10.QueueDeclare(queue=b"q", alternate_exchange=b"amq.fanout", durable=True, auto_delete=True),
    )
    declare = lab.asked[-1][1]
    assert (declare.durable, declare.exclusive, declare.auto_delete) == (True, False, True)
    assert declare.arguments.get("x-dead-letter-exchange") == "amq.fanout"


def test_queue_declared_again_with_other_flags_is_taken(lab: Lab) -> None:
    granted(lab, amqp10.QueueDeclare(queue=b"q"))
    granted(lab, amqp10.QueueDeclare(queue=b"q", durable=True))
    assert lab.asked[-1][1].passive


def test_exclusive_queue_that_deletes_itself_goes_with_the_session() -> None:
    state = broker_state()
    lab, other = Lab(state).open().attach(), Lab(state).open().attach()
    granted(lab, amqp10.QueueDeclare(queue=b"q", exclusive=True, auto_delete=True))
    declare = lab.asked[-1][1]
    # With auto-delete it would be gone after its last consumer; in 0-10 its session is its user.
    assert (declare.exclusive, declare.auto_delete) == (True, False)
    # That it is there is nobody's secret.
    granted(other, amqp10.QueueDeclare(queue=b"q", passive=True))
    assert refused(other, amqp10.QueueDeclare(queue=b"q")) == 405
    lab.say(amqp10.SessionDetach(name=b"session"))
    assert lab.names()[-2:] == ["queue.delete", "channel.close"]
    other.say(amqp10.SessionDetached(name=b"session"))
    other.attach()
    assert refused(other, amqp10.QueueDeclare(queue=b"q", passive=True)) == 404


def test_queue_that_the_client_deletes_is_not_deleted_again(lab: Lab) -> None:
    granted(lab, amqp10.QueueDeclare(queue=b"q", exclusive=True, auto_delete=True))
    granted(lab, amqp10.QueueDelete(queue=b"q"))
    lab.say(amqp10.SessionDetach(name=b"session"))
    assert lab.names().count("queue.delete") == 1


@pytest.mark.parametrize("is_auto_delete", [True, False])
def test_exclusive_queue_is_one_sessions_alone(is_auto_delete: bool) -> None:
    lab = Lab().open().attach().attach(1, b"other")
    granted(lab, amqp10.QueueDeclare(queue=b"q", exclusive=True, auto_delete=is_auto_delete))
    granted(lab, amqp10.QueueDeclare(queue=b"q", exclusive=True, auto_delete=is_auto_delete))
    # Its own session may call it what it likes.
    granted(lab, amqp10.QueueDeclare(queue=b"q"))
    refusals = (
        amqp10.QueueDelete(queue=b"q"),
        amqp10.MessageSubscribe(queue=b"q"),
        amqp10.ExchangeBind(queue=b"q", exchange=b"amq.direct", binding_key=b"k"),
        amqp10.ExchangeUnbind(queue=b"q", exchange=b"amq.direct", binding_key=b"k"),
        amqp10.QueueDeclare(queue=b"q", exclusive=True, passive=True),
    )
    for channel, command in enumerate(refusals, 1):
        lab.attach(channel, b"other %d" % channel)
        heard = lab.do(command, channel=channel)
        assert heard[0].command.error_code == 405
    granted(lab, amqp10.QueueDeclare(queue=b"q", exclusive=True, passive=True))
    lab.attach(9, b"asks")
    heard = lab.do(amqp10.QueueDeclare(queue=b"q", passive=True), channel=9)
    assert [type(sent.control) for sent in heard] == [amqp10.SessionCompleted]


def test_exclusive_queue_with_a_time_to_wait_outlives_its_session(lab: Lab) -> None:
    wait = Map(((b"qpid.auto_delete_timeout", Value(0x22, 3)),))
    granted(lab, amqp10.QueueDeclare(queue=b"q", exclusive=True, auto_delete=True, arguments=wait))
    declare = lab.asked[-1][1]
    assert (declare.exclusive, declare.auto_delete, declare.arguments.get("x-expires")) == (
        False,
        False,
        3000,
    )
    lab.say(amqp10.SessionDetach(name=b"session"))
    assert "queue.delete" not in lab.names()


@pytest.mark.parametrize(
    "user",
    [
        amqp10.ExchangeDeclare(exchange=b"user", type=b"direct", alternate_exchange=b"x"),
        amqp10.QueueDeclare(queue=b"user", alternate_exchange=b"x"),
    ],
)
def test_alternate_exchange_is_not_deleted_while_it_is_one(lab: Lab, user: Command) -> None:
    granted(lab, amqp10.ExchangeDeclare(exchange=b"x", type=b"direct"))
    granted(lab, user)
    assert refused(lab, amqp10.ExchangeDelete(exchange=b"x")) == 530
    assert "exchange.delete" not in lab.names()
    lab.attach(1, b"other")
    # Somebody else deletes what it is for.
    is_queue = isinstance(user, amqp10.QueueDeclare)
    gone = amqp.QueueDelete(queue="user") if is_queue else amqp.ExchangeDelete(exchange="user")
    delete_behind(lab, gone)
    heard = lab.do(amqp10.ExchangeDelete(exchange=b"x"), channel=1)
    assert [type(sent.control) for sent in heard] == [amqp10.SessionCompleted]


def test_headers_are_not_bound_without_a_rule(lab: Lab) -> None:
    granted(lab, amqp10.QueueDeclare(queue=b"q"))
    assert refused(lab, amqp10.ExchangeBind(queue=b"q", exchange=b"amq.match")) == 541
    assert "queue.bind" not in lab.names()


def test_exclusive_queue_that_stays_is_locked_while_its_session_is_there() -> None:
    lab = Lab().open().attach().attach(1, b"other").attach(2, b"third")
    granted(lab, amqp10.QueueDeclare(queue=b"q", exclusive=True))
    assert not lab.asked[-1][1].exclusive
    heard = lab.do(amqp10.QueueDeclare(queue=b"q", exclusive=True), channel=1)
    assert heard[0].command.error_code == 405
    lab.say(amqp10.SessionDetach(name=b"session"))
    heard = lab.do(amqp10.QueueDeclare(queue=b"q", exclusive=True), channel=2)
    assert [type(sent.control) for sent in heard] == [amqp10.SessionCompleted]


def test_queue_delete_and_purge(lab: Lab) -> None:
    granted(lab, amqp10.QueueDeclare(queue=b"q"))
    lab.transfer(b"m", b"q")
    granted(lab, amqp10.QueuePurge(queue=b"q"))
    assert lab.query(amqp10.QueueQuery(queue=b"q")).message_count == 0
    lab.transfer(b"m", b"q")
    assert refused(lab, amqp10.QueueDelete(queue=b"q", if_empty=True)) == 406


def test_queue_is_in_use_by_a_subscription_without_credit(lab: Lab) -> None:
    granted(lab, amqp10.QueueDeclare(queue=b"q"))
    granted(lab, amqp10.MessageSubscribe(queue=b"q", destination=b"d"))
    lab.attach(1, b"other")
    heard = lab.do(amqp10.QueueDelete(queue=b"q", if_unused=True), channel=1)
    assert heard[0].command.error_code == 406
    granted(lab, amqp10.MessageCancel(destination=b"d"))
    granted(lab, amqp10.QueueDelete(queue=b"q", if_unused=True))


def test_refusal_costs_the_channel_for_questions_alone(lab: Lab) -> None:
    granted(lab, amqp10.ExchangeDeclare(exchange=b"x", type=b"direct"))
    granted(lab, amqp10.ExchangeDeclare(exchange=b"x", type=b"direct", durable=True))
    granted(lab, amqp10.QueueDeclare(queue=b"q"))
    assert lab.names().count("channel.open") == 2
    assert {channel for channel, _ in lab.asked} == {1}
