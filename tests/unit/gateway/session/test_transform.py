"""Methods and headers there and back, without a broker: what goes up comes down as it was."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.session.transform import (
    header_up,
    message_down,
    method_down,
    method_up,
    publish_up,
    renames_message,
)
from amqpgate.policy import Principal, Transform
from amqpgate.policy.engine.from_method import operation_of
from amqpgate.policy.engine.naming import Naming, NotTransformedError, Renaming
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table
from tests.unit.policy.transforms import transform
from tests.unit.wire.strategies import TABLE

BOB = Principal("bob", "prod")
NAMES = Transform("bob", Naming(Renaming("exchange", "a."), Renaming("queue", "a.")))
QUEUES = Transform("bob", Naming(queues=Renaming("queue", "a.", {"in": "corp.in"})))

NAME = st.sampled_from(["", "orders", "in", "x", "amq.topic", "amq.gen-1", "b.orders"])
KEYS = st.lists(NAME, max_size=3)
DEATHS = st.lists(
    st.fixed_dictionaries(
        {"queue": NAME, "exchange": NAME, "count": st.integers(0, 9), "routing-keys": KEYS}
    ),
    max_size=3,
)
HEADERS = st.builds(
    lambda known, others: Table((*Table.of(known).entries, *others.entries)),
    st.fixed_dictionaries(
        {}, optional={"CC": KEYS, "BCC": KEYS, "x-death": DEATHS, "x-first-death-queue": NAME}
    ),
    TABLE,
)
PROPERTIES = st.builds(
    amqp.BasicProperties,
    reply_to=st.none() | NAME,
    headers=st.none() | HEADERS,
    content_type=st.none() | st.just("text/plain"),
)


def header(properties: amqp.BasicProperties, size: int = 5) -> ContentHeader:
    return ContentHeader(60, size, properties)


@given(st.sampled_from([NAMES, QUEUES]), NAME, NAME, PROPERTIES)
def test_a_message_comes_back_as_it_was(
    changes: Transform, exchange: str, key: str, properties: amqp.BasicProperties
) -> None:
    publish = amqp.BasicPublish(exchange=exchange, routing_key=key)
    up = publish_up(changes, publish)
    content = decode_header(encode_header(header_up(changes, publish, header(properties))))
    for sent in (
        amqp.BasicDeliver("c", 1, False, up.exchange, up.routing_key),
        amqp.BasicGetOk(1, False, up.exchange, up.routing_key, 0),
        amqp.BasicReturn(312, "NO_ROUTE", up.exchange, up.routing_key),
    ):
        method, back = message_down(changes, sent, content)
        assert method == attrs.evolve(sent, exchange=exchange, routing_key=key)
        assert back == header(properties)
        assert "a." not in repr(
            (method, {k: v for k, v in back.properties.headers or () if k in ("CC", "BCC")})
        )


@given(NAME, NAME, PROPERTIES)
def test_the_broker_gets_no_name_without_its_prefix(
    exchange: str, key: str, properties: amqp.BasicProperties
) -> None:
    """But for its own, and for keys that are no names."""
    publish = amqp.BasicPublish(exchange=exchange, routing_key=key)
    up = publish_up(NAMES, publish)
    content = header_up(NAMES, publish, header(properties))
    assert isinstance(content.properties, amqp.BasicProperties)
    names = [up.exchange, content.properties.reply_to]
    if not exchange:
        names.append(up.routing_key)
        headers = content.properties.headers or Table()
        for more in ("CC", "BCC"):
            keys = headers.get(more, [])
            assert isinstance(keys, list)
            names += [str(one) for one in keys]
    assert all(not name or name.startswith(("a.", "amq.")) for name in names)


@given(st.sampled_from([NAMES, QUEUES]), NAME, NAME)
def test_what_is_not_shown_does_not_change(changes: Transform, exchange: str, key: str) -> None:
    publish = amqp.BasicPublish(exchange=exchange, routing_key=key)
    if not renames_message(changes, publish):
        assert publish_up(changes, publish) is publish
    deliver = amqp.BasicDeliver("c", 1, False, exchange, key)
    plain = header(amqp.BasicProperties(headers=Table.of({"h": "a.x"})))
    if not renames_message(changes, deliver):
        method, content = message_down(changes, deliver, plain)
        assert method is deliver
        assert content is plain


@pytest.mark.parametrize(
    ("method", "changed"),
    [
        (amqp.QueueDeclare(queue="q"), {"queue": "a.q"}),
        (amqp.QueueDeclare(), {}),
        (amqp.QueueDelete(queue="q"), {"queue": "a.q"}),
        (amqp.QueuePurge(queue="q"), {"queue": "a.q"}),
        (amqp.BasicConsume(queue="q"), {"queue": "a.q"}),
        (amqp.BasicGet(), {}),
        (amqp.QueueBind(queue="q", exchange="x", routing_key="k"), {"queue": "a.q", "exchange": "a.x"}),
        (amqp.QueueBind(exchange="amq.topic", routing_key="k"), {}),
        # The broker would take its own name for the key.
        (amqp.QueueBind(exchange="x"), {"exchange": "a.x", "routing_key": "last"}),
        (amqp.QueueUnbind(exchange="x"), {"exchange": "a.x", "routing_key": "last"}),
        (amqp.ExchangeDeclare(exchange="x"), {"exchange": "a.x"}),
        (amqp.ExchangeDelete(exchange="x"), {"exchange": "a.x"}),
        (amqp.ExchangeBind(source="s", destination="d"), {"source": "a.s", "destination": "a.d"}),
        (amqp.ExchangeUnbind(source="s", destination="d"), {"source": "a.s", "destination": "a.d"}),
        (amqp.BasicCancel("a.tag"), {}),
        (amqp.ConfirmSelect(), {}),
    ],
    ids=lambda value: value.NAME if isinstance(value, Method) else "",
)
def test_names_in_methods(method: Method, changed: dict[str, str]) -> None:
    up = method_up(NAMES, method, None, "last")
    assert up == attrs.evolve(method, **changed)  # type: ignore[misc]
    assert changed or up is method


def test_the_queue_that_the_broker_names_is_left_to_it() -> None:
    bind = amqp.QueueBind(exchange="amq.topic")
    assert method_up(NAMES, bind, None, "amq.gen-") is bind


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        ({"x-dead-letter-exchange": "dlx"}, {"x-dead-letter-exchange": "a.dlx"}),
        (
            {"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "k"},
            {"x-dead-letter-exchange": "a.dlx", "x-dead-letter-routing-key": "k"},
        ),
        (
            {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"},
            {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "a.q"},
        ),
        ({"x-dead-letter-exchange": 5}, {"x-dead-letter-exchange": 5}),
        ({"x-max-length": 5}, {"x-max-length": 5}),
    ],
)
def test_where_dead_letters_go(arguments: dict[str, object], changed: dict[str, object]) -> None:
    up = method_up(NAMES, amqp.QueueDeclare(queue="q", arguments=Table.of(arguments)), None, "")
    assert up == amqp.QueueDeclare(queue="a.q", arguments=Table.of(changed))


BINARY = Field("S", b"\xff\xfe")


@pytest.mark.parametrize(
    "method",
    [
        amqp.QueueDeclare(arguments=Table.of({"x-dead-letter-exchange": ""})),
        amqp.QueueDeclare(arguments=Table.of({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": 5})),
        amqp.ExchangeDeclare(exchange="x", arguments=Table.of({"alternate-exchange": ""})),
        amqp.QueueDeclare(arguments=Table((("x-dead-letter-exchange", BINARY),))),
        amqp.QueueDeclare(queue="x" * 254),
    ],
)
def test_what_leads_out_of_the_prefix_is_refused(method: Method) -> None:
    with pytest.raises(NotTransformedError) as caught:
        method_up(NAMES, method, None, "")
    assert caught.value.code == 406


def test_a_copy_to_a_queue_that_cannot_be_renamed_is_refused() -> None:
    publish = amqp.BasicPublish(routing_key="q")
    headers = Table((("BCC", Field("A", (BINARY,))),))
    with pytest.raises(NotTransformedError, match="BCC is not UTF-8"):
        header_up(NAMES, publish, header(amqp.BasicProperties(headers=headers)))


def test_a_second_entry_of_the_same_name_is_not_a_way_out() -> None:
    """RabbitMQ takes the first one; nobody must find the second."""
    twice = Table(
        (("x-dead-letter-exchange", Field("S", "one")), ("x-dead-letter-exchange", Field("S", "two")))
    )
    up = method_up(NAMES, amqp.QueueDeclare(queue="q", arguments=twice), None, "")
    assert isinstance(up, amqp.QueueDeclare)
    assert up.arguments == Table.of({"x-dead-letter-exchange": "a.one"})


def test_answers_of_the_broker() -> None:
    assert method_down(NAMES, amqp.QueueDeclareOk("a.q", 1, 2)) == amqp.QueueDeclareOk("q", 1, 2)
    close = amqp.ChannelClose(404, "NOT_FOUND - no queue 'a.q' in vhost '/'", 50, 10)
    assert method_down(NAMES, close) == amqp.ChannelClose(
        404, "NOT_FOUND - no queue 'q' in vhost '/'", 50, 10
    )
    ack = amqp.BasicAck(1)
    assert method_down(NAMES, ack) is ack


def test_a_dead_letter_shows_the_key_that_it_had() -> None:
    """Published to a queue by its name, dead, and delivered by another exchange."""
    history = [{"queue": "a.q", "exchange": "", "routing-keys": ["a.q", "a.copy"], "reason": "rejected"}]
    sent = header(amqp.BasicProperties(headers=Table.of({"x-death": history, "CC": ["a.copy", "a.other"]})))
    method, content = message_down(NAMES, amqp.BasicDeliver("c", 1, False, "a.dlx", "a.q"), sent)
    assert (method.exchange, method.routing_key) == ("dlx", "q")
    assert isinstance(content.properties, amqp.BasicProperties)
    assert content.properties.headers == Table.of(
        {
            "x-death": [{"queue": "q", "exchange": "", "routing-keys": ["q", "copy"], "reason": "rejected"}],
            "CC": ["copy", "a.other"],
        }
    )
    # A key of another exchange that only looks like a name.
    plain = header(amqp.BasicProperties())
    method, _ = message_down(NAMES, amqp.BasicDeliver("c", 1, False, "a.dlx", "a.q"), plain)
    assert method.routing_key == "a.q"


def test_a_reply_text_is_cut_to_what_fits() -> None:
    """A name in the map may be longer for the client than for the broker."""
    naming = Naming(queues=Renaming("queue", map={"ä" * 120: "q"}))
    close = amqp.ChannelClose(404, "NOT_FOUND - no queue 'q' in vhost '/'", 50, 10)
    down = method_down(Transform("bob", naming), close)
    assert isinstance(down, amqp.ChannelClose)
    assert 250 < len(down.reply_text.encode()) <= 255
    assert down.reply_text.endswith("...")


# -- arguments -----------------------------------------------------------------------------------------------

BOUNDED = transform(
    "arguments:\n"
    "- {id: a, operations: [queue.declare], strip: ['x-max-*'], add: {x-queue-mode: lazy},"
    " force: {x-single-active-consumer: {flag: true}}, ceilings: {x-message-ttl: 1000}}\n"
)


@pytest.mark.parametrize(
    ("given_", "ttl"),
    [
        (None, Field("I", 1000)),
        (Field("l", 5000), Field("I", 1000)),
        (Field("l", 1000), Field("l", 1000)),
        (Field("B", 7), Field("B", 7)),
        # For the broker to refuse.
        (Field("S", "5000"), Field("S", "5000")),
        (Field("d", 5000.0), Field("d", 5000.0)),
        (Field("I", -1), Field("I", -1)),
    ],
)
def test_a_ceiling_of_an_argument(given_: Field | None, ttl: Field) -> None:
    entries = () if given_ is None else (("x-message-ttl", given_),)
    method = amqp.QueueDeclare(queue="q", arguments=Table((*entries, ("x-max-length", Field("I", 5)))))
    up = method_up(BOUNDED, method, operation_of(method, BOB, ""), "")
    assert isinstance(up, amqp.QueueDeclare)
    assert up.arguments.field("x-message-ttl") == ttl
    assert up.arguments.to_python() == {
        "x-queue-mode": "lazy",
        "x-single-active-consumer": True,
        "x-message-ttl": ttl.value,
    }


def test_what_the_client_says_stands_where_it_is_only_added() -> None:
    method = amqp.QueueDeclare(arguments=Table.of({"x-queue-mode": "default"}))
    up = method_up(BOUNDED, method, operation_of(method, BOB, ""), "")
    assert isinstance(up, amqp.QueueDeclare)
    assert up.arguments.get("x-queue-mode") == "default"


def test_passive_declares_and_other_operations_are_left() -> None:
    for method in (amqp.QueueDeclare(queue="q", passive=True), amqp.BasicConsume(queue="q")):
        assert method_up(BOUNDED, method, operation_of(method, BOB, ""), "") is method


# -- messages ------------------------------------------------------------------------------------------------


def published(changes: Transform, properties: amqp.BasicProperties, size: int = 5) -> amqp.BasicProperties:
    found = header_up(changes, amqp.BasicPublish(routing_key="q"), header(properties, size)).properties
    assert isinstance(found, amqp.BasicProperties)
    return found


@given(st.integers(0, 10**12), st.integers(1, 10**6))
def test_no_expiration_is_above_the_ceiling(said: int, seconds: int) -> None:
    changes = transform(f"ceilings: {{maxTtl: {seconds}ms}}")
    for text in (str(said), f"+{said}", f"000{said}"):
        expiration = published(changes, amqp.BasicProperties(expiration=text)).expiration
        assert expiration is not None
        assert int(expiration) == min(said, seconds)
    assert published(changes, amqp.BasicProperties()).expiration == str(seconds)


@given(st.integers(0, 2**40), st.integers(1, 2**40))
def test_no_body_is_above_the_ceiling(size: int, largest: int) -> None:
    changes = transform(f"ceilings: {{maxBodyBytes: {largest}}}")
    if size <= largest:
        published(changes, amqp.BasicProperties(), size)
    else:
        with pytest.raises(NotTransformedError, match=f"message size {size} is larger than"):
            published(changes, amqp.BasicProperties(), size)


def test_who_sends_is_who_logged_in() -> None:
    changes = transform("properties: {userId: validate}")
    for user in ("bob", None):
        assert published(changes, amqp.BasicProperties(user_id=user)).user_id == user
    with pytest.raises(NotTransformedError) as caught:
        published(changes, amqp.BasicProperties(user_id="eve"))
    assert str(caught.value) == "user_id property set to 'eve' but authenticated user was 'bob'"
    # Nobody is whoever the gateway does not know.
    with pytest.raises(NotTransformedError):
        published(attrs.evolve(changes, user=None), amqp.BasicProperties(user_id="eve"))


def test_a_user_is_checked_before_it_is_set_or_stripped() -> None:
    changes = transform("properties: {userId: validate, strip: [userId], set: {userId: '{user}'}}")
    assert published(changes, amqp.BasicProperties()).user_id == "bob"
    with pytest.raises(NotTransformedError):
        published(changes, amqp.BasicProperties(user_id="eve"))


def test_strip_comes_before_set() -> None:
    changes = transform(
        "properties: {strip: [type], set: {type: t, priority: 3}}\n"
        "headers: {strip: ['x-*', drop], set: {x-by: '{user}'}}"
    )
    headers = Table.of({"x-by": "eve", "x-1": 1, "drop": 2, "keep": 3})
    found = published(changes, amqp.BasicProperties(headers=headers, type="mine", app_id="a"))
    assert found == amqp.BasicProperties(
        headers=Table.of({"keep": 3, "x-by": "bob"}), type="t", priority=3, app_id="a"
    )


def test_a_header_that_nothing_changes_is_the_same_object() -> None:
    changes = transform("properties: {userId: validate, strip: [type]}\nheaders: {strip: [x]}")
    content = header(amqp.BasicProperties(headers=Table.of({"y": 1}), app_id="a"))
    assert header_up(changes, amqp.BasicPublish(), content) is content
