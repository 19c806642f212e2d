"""The header of a transfer, and the properties of a message of 0-9-1."""

from __future__ import annotations

from hashlib import md5
from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.bridge.v0_10.properties import from_canonical, to_canonical, uuid_of
from amqpgate.bridge.v0_10.reply_to import reply_text, reply_to_of
from amqpgate.bridge.v0_10.tables import from_table, to_table
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import Role
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated.v0_9_1 import BasicProperties
from amqpgate.wire.generated.v0_10 import DeliveryProperties, MessageProperties, ReplyTo
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table
from amqpgate.wire.v0_10 import codec
from amqpgate.wire.v0_10.types import EMPTY_MAP, Map, Value
from tests.support.said_0_10 import NAMES, conversations, sent_by
from tests.unit.wire import strategies as wire
from tests.unit.wire.v0_10 import strategies as wire10

ID = bytes(range(16))
ID_TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"
LONG = b"\xfe" * 500


# -- delivery-properties --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delivery", "properties"),
    [
        (DeliveryProperties(priority=0), BasicProperties(priority=0)),
        (DeliveryProperties(priority=9), BasicProperties(priority=9)),
        (DeliveryProperties(priority=200), BasicProperties(priority=200)),
        (DeliveryProperties(delivery_mode=1), BasicProperties(delivery_mode=1)),
        (DeliveryProperties(delivery_mode=2), BasicProperties(delivery_mode=2)),
        # RabbitMQ closes the channel for these.
        (DeliveryProperties(delivery_mode=0), BasicProperties()),
        (DeliveryProperties(delivery_mode=3), BasicProperties()),
        (DeliveryProperties(ttl=5000), BasicProperties(expiration="5000")),
        (DeliveryProperties(ttl=0), BasicProperties()),
        (DeliveryProperties(ttl=2**64 - 1), BasicProperties(expiration="18446744073709551615")),
        (DeliveryProperties(timestamp=1_795_370_545), BasicProperties(timestamp=1_795_370_545)),
        (DeliveryProperties(timestamp=10**11), BasicProperties(timestamp=10**11)),
        (DeliveryProperties(timestamp=1_795_370_545_946), BasicProperties(timestamp=1_795_370_545)),
        (DeliveryProperties(timestamp=0), BasicProperties(timestamp=0)),
        (DeliveryProperties(expiration=5, resume_id=b"x", resume_ttl=5), BasicProperties()),
        (DeliveryProperties(discard_unroutable=True, immediate=True, redelivered=True), BasicProperties()),
        (DeliveryProperties(exchange=b"x", routing_key=b"y"), BasicProperties()),
    ],
)
def test_delivery_properties(delivery: DeliveryProperties, properties: BasicProperties) -> None:
    assert to_canonical(delivery, None) == properties


@pytest.mark.parametrize(
    ("properties", "delivery"),
    [
        (BasicProperties(), DeliveryProperties()),
        (BasicProperties(priority=9), DeliveryProperties(priority=9)),
        (BasicProperties(priority=10), DeliveryProperties(priority=9)),
        (BasicProperties(priority=255), DeliveryProperties(priority=9)),
        (BasicProperties(delivery_mode=1), DeliveryProperties(delivery_mode=1)),
        (BasicProperties(delivery_mode=2), DeliveryProperties(delivery_mode=2)),
        (BasicProperties(delivery_mode=0), DeliveryProperties()),
        (BasicProperties(expiration="5000"), DeliveryProperties(ttl=5000)),
        (BasicProperties(expiration="0"), DeliveryProperties(ttl=1)),
        (BasicProperties(expiration="00"), DeliveryProperties(ttl=1)),
        (BasicProperties(expiration="9" * 255), DeliveryProperties(ttl=2**64 - 1)),
        (BasicProperties(expiration=""), DeliveryProperties()),
        (BasicProperties(expiration="-1"), DeliveryProperties()),
        (BasicProperties(expiration="1.5"), DeliveryProperties()),
        (BasicProperties(expiration="\u0663"), DeliveryProperties()),
        (BasicProperties(expiration="\udcff"), DeliveryProperties()),
        (BasicProperties(timestamp=2**64 - 1), DeliveryProperties(timestamp=2**64 - 1)),
    ],
)
def test_delivery_properties_back(properties: BasicProperties, delivery: DeliveryProperties) -> None:
    assert from_canonical(properties, routing_key="")[0] == attrs.evolve(delivery, routing_key=b"")


@pytest.mark.parametrize(
    ("given_", "made"), [(5, 5000), (10**11, 10**14), (10**11 + 1, 10**11 + 1), (2**64 - 1, 2**64 - 1)]
)
def test_a_client_of_jms_gets_milliseconds(given_: int, made: int) -> None:
    delivery, _ = from_canonical(BasicProperties(timestamp=given_), routing_key="", milliseconds=True)
    assert delivery.timestamp == made


def test_what_a_method_says_is_in_the_header() -> None:
    delivery, message = from_canonical(
        BasicProperties(),
        routing_key="k\udcff",
        exchange="",
        redelivered=True,
        discard_unroutable=True,
        immediate=True,
        body_size=7,
    )
    assert delivery == DeliveryProperties(
        discard_unroutable=True, immediate=True, redelivered=True, exchange=b"", routing_key=b"k\xff"
    )
    assert message == MessageProperties(content_length=7)


# -- message-properties ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "properties"),
    [
        (MessageProperties(content_length=7), BasicProperties()),
        (MessageProperties(message_id=ID), BasicProperties(message_id=ID_TEXT)),
        (MessageProperties(correlation_id=b"c" * 255), BasicProperties(correlation_id="c" * 255)),
        (MessageProperties(correlation_id=b"\xff"), BasicProperties(correlation_id="\udcff")),
        (
            MessageProperties(correlation_id=LONG),
            BasicProperties(headers=Table((("x-amqp-correlation-id", Field("x", LONG)),))),
        ),
        (MessageProperties(reply_to=ReplyTo(routing_key=b"q")), BasicProperties(reply_to="q")),
        (
            MessageProperties(reply_to=ReplyTo(b"amq.direct", b"q")),
            BasicProperties(
                reply_to="amq.direct/q",
                headers=Table((("x-amqp-reply-to-exchange", Field("S", "amq.direct")),)),
            ),
        ),
        (MessageProperties(reply_to=ReplyTo(b"x" * 200, b"y" * 200)), BasicProperties()),
        (
            MessageProperties(content_type=b"amqp/map", content_encoding=b"utf-8"),
            BasicProperties(content_type="amqp/map", content_encoding="utf-8"),
        ),
        (MessageProperties(user_id=b"guest@QPID"), BasicProperties(user_id="guest@QPID")),
        (MessageProperties(user_id=LONG, app_id=LONG), BasicProperties()),
        (MessageProperties(app_id=b"a" * 255), BasicProperties(app_id="a" * 255)),
        (MessageProperties(application_headers=EMPTY_MAP), BasicProperties(headers=EMPTY_TABLE)),
        (
            MessageProperties(application_headers=Map(((b"a", Value(0x02, 1)),))),
            BasicProperties(headers=Table((("a", Field("B", 1)),))),
        ),
        (
            MessageProperties(application_headers=Map(((b"x-jms-type", Value(0x95, b"t")),))),
            BasicProperties(type="t"),
        ),
        (
            MessageProperties(application_headers=Map(((b"x-jms-type", Value(0x90, b"t")),))),
            BasicProperties(type="t"),
        ),
        (
            MessageProperties(application_headers=Map(((b"x-jms-type", Value(0x02, 1)),))),
            BasicProperties(headers=Table((("x-jms-type", Field("B", 1)),))),
        ),
        (
            MessageProperties(application_headers=Map(((b"x-jms-type", Value(0x95, b"t" * 256)),))),
            BasicProperties(headers=Table((("x-jms-type", Field("S", "t" * 256)),))),
        ),
        (
            MessageProperties(
                application_headers=Map(
                    ((b"x-jms-type", Value(0x95, b"1")), (b"x-jms-type", Value(0x95, b"2")))
                )
            ),
            BasicProperties(type="2"),
        ),
    ],
)
def test_message_properties(message: MessageProperties, properties: BasicProperties) -> None:
    assert to_canonical(None, message) == properties


@pytest.mark.parametrize(
    ("user_id", "login", "kept"),
    [
        (b"guest", "guest", "guest"),
        (b"guest@QPID", "guest", "guest"),
        (b"a@b.c@QPID", "a@b.c", "a@b.c"),
        (b"other", "guest", None),
        (b"guests@QPID", "guest", None),
        (b"other@QPID", "guest", None),
        (b"guest", "guest@QPID", None),
        (LONG, "guest", None),
        (None, "guest", None),
    ],
)
def test_a_publisher_is_who_it_is_to_the_broker(user_id: bytes | None, login: str, kept: str | None) -> None:
    made = to_canonical(None, MessageProperties(user_id=user_id), login=login)
    assert made == BasicProperties(user_id=kept)


def test_a_number_that_is_none_is_refused_of_publishers_only() -> None:
    headers = MessageProperties(application_headers=Map(((b"a", Value(0x33, b"\x7f\xf8" + bytes(6))),)))
    with pytest.raises(ProtocolViolation) as caught:
        to_canonical(None, headers)
    assert caught.value.code == 542
    assert to_canonical(None, headers, lenient=True).headers == Table((("a", Field("S", "nan")),))


def test_no_header_at_all() -> None:
    assert to_canonical(None, None) == BasicProperties()


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (BasicProperties(message_id=ID_TEXT), MessageProperties(message_id=ID)),
        (
            BasicProperties(message_id=f"ID:{ID_TEXT}"),
            MessageProperties(
                message_id=ID,
                application_headers=Map(((b"x-amqp-message-id", Value(0x95, f"ID:{ID_TEXT}".encode())),)),
            ),
        ),
        (
            BasicProperties(message_id=ID_TEXT.upper()),
            MessageProperties(
                message_id=ID,
                application_headers=Map(((b"x-amqp-message-id", Value(0x95, ID_TEXT.upper().encode())),)),
            ),
        ),
        (
            BasicProperties(message_id="4711"),
            MessageProperties(
                message_id=UUID(bytes=md5(b"4711", usedforsecurity=False).digest(), version=3).bytes,
                application_headers=Map(((b"x-amqp-message-id", Value(0x95, b"4711")),)),
            ),
        ),
        (
            BasicProperties(type="t"),
            MessageProperties(application_headers=Map(((b"x-jms-type", Value(0x95, b"t")),))),
        ),
        (
            BasicProperties(type="t", headers=Table((("x-jms-type", Field("S", "u")), ("a", Field("B", 1))))),
            MessageProperties(
                application_headers=Map(((b"a", Value(0x02, 1)), (b"x-jms-type", Value(0x95, b"t"))))
            ),
        ),
        (BasicProperties(headers=EMPTY_TABLE), MessageProperties(application_headers=EMPTY_MAP)),
        (BasicProperties(reply_to="a/b"), MessageProperties(reply_to=ReplyTo(routing_key=b"a/b"))),
        (
            BasicProperties(reply_to="a/b", headers=Table((("x-amqp-reply-to-exchange", Field("S", "a")),))),
            MessageProperties(reply_to=ReplyTo(b"a", b"b")),
        ),
        (
            BasicProperties(headers=Table((("x-amqp-correlation-id", Field("x", LONG)),))),
            MessageProperties(correlation_id=LONG),
        ),
        (BasicProperties(correlation_id="\udcff"), MessageProperties(correlation_id=b"\xff")),
        (
            BasicProperties(user_id="u", app_id="a", reserved="c"),
            MessageProperties(user_id=b"u", app_id=b"a"),
        ),
        (
            BasicProperties(content_type="text/plain", content_encoding="gzip"),
            MessageProperties(content_type=b"text/plain", content_encoding=b"gzip"),
        ),
    ],
)
def test_message_properties_back(properties: BasicProperties, message: MessageProperties) -> None:
    assert from_canonical(properties, routing_key="")[1] == message


# -- the bridge's own headers ---------------------------------------------------------------------------

_OWN = ("x-amqp-message-id", "x-amqp-correlation-id", "x-amqp-reply-to-exchange")


@pytest.mark.parametrize(
    "value", [Value(0x95, b"stale"), Value(0x95, LONG), Value(0xA0, LONG), Value(0x02, 1), Value(0xF0, None)]
)
def test_a_header_of_another_message_counts_for_nothing_in_0_10(value: Value) -> None:
    stale = Map(tuple((name.encode(), value) for name in _OWN))
    message = MessageProperties(
        message_id=ID, correlation_id=b"c", reply_to=ReplyTo(routing_key=b"q"), application_headers=stale
    )
    assert to_canonical(None, message) == BasicProperties(
        message_id=ID_TEXT, correlation_id="c", reply_to="q"
    )
    assert to_canonical(None, MessageProperties(application_headers=stale)) == BasicProperties()


@pytest.mark.parametrize(
    "field", [Field("S", "stale"), Field("x", b"stale"), Field("B", 1), Field("V", None)]
)
def test_a_header_of_another_message_counts_for_nothing_in_0_9_1(field: Field) -> None:
    stale = Table(tuple((name, field) for name in _OWN))
    properties = BasicProperties(message_id=ID_TEXT, correlation_id="c", reply_to="q", headers=stale)
    assert from_canonical(properties, routing_key="")[1] == MessageProperties(
        message_id=ID, correlation_id=b"c", reply_to=ReplyTo(routing_key=b"q")
    )
    assert from_canonical(BasicProperties(headers=stale), routing_key="")[1] == MessageProperties()


def test_the_edges_of_short_strings() -> None:
    """255 bytes are one, 256 are none."""
    correlated = to_canonical(None, MessageProperties(correlation_id=b"c" * 256))
    assert correlated == BasicProperties(headers=Table((("x-amqp-correlation-id", Field("x", b"c" * 256)),)))
    # A text that is no short string cannot have been a message-id.
    text = "x" * 256
    headers = Map(((b"x-amqp-message-id", Value(0x95, text.encode())),))
    made = to_canonical(None, MessageProperties(message_id=uuid_of(text), application_headers=headers))
    assert made == BasicProperties(message_id=str(UUID(bytes=uuid_of(text))))


def test_a_long_correlation_id_gives_way_to_the_property() -> None:
    headers = Table((("x-amqp-correlation-id", Field("x", LONG)),))
    _, message = from_canonical(BasicProperties(correlation_id="c", headers=headers), routing_key="")
    assert message == MessageProperties(correlation_id=b"c")


def test_the_uuid_of_a_text() -> None:
    assert uuid_of(ID_TEXT) == uuid_of(f"ID:{ID_TEXT.upper()}") == ID
    for text in (
        "",
        "ID:",
        ID_TEXT[:-1],
        ID_TEXT.replace("-", ""),
        f"{{{ID_TEXT}}}",
        f"{ID_TEXT}\n",
        "\udcff",
    ):
        made = UUID(bytes=uuid_of(text))
        assert (made.version, made.variant) == (3, "specified in RFC 4122"), text


# -- any header ------------------------------------------------------------------------------------------

_DELIVERY = st.builds(
    DeliveryProperties,
    discard_unroutable=wire10.BIT,
    priority=st.none() | wire10.UINT8,
    delivery_mode=st.none() | wire10.UINT8,
    ttl=st.none() | wire10.UINT64,
    timestamp=st.none() | wire10.UINT64,
    expiration=st.none() | wire10.UINT64,
    exchange=st.none() | wire10.STR8,
    routing_key=st.none() | wire10.STR8,
)
_OWN_MAPS = st.dictionaries(
    st.sampled_from([name.encode() for name in (*_OWN, "x-jms-type", "qpid.subject")]), wire10.VALUE
).map(lambda entries: Map(tuple(entries.items())))
_MESSAGE = st.builds(
    MessageProperties,
    content_length=st.none() | wire10.UINT64,
    message_id=st.none() | wire10.UUID,
    correlation_id=st.none() | wire10.VBIN16,
    reply_to=st.none() | wire10.REPLY_TO,
    content_type=st.none() | wire10.STR8,
    content_encoding=st.none() | wire10.STR8,
    user_id=st.none() | wire10.VBIN16,
    app_id=st.none() | wire10.VBIN16,
    application_headers=st.none() | wire10.MAP | _OWN_MAPS,
)
_OWN_TABLES = st.dictionaries(st.sampled_from((*_OWN, "x-jms-type", "qpid.subject")), wire.FIELD).map(
    lambda fields: Table(tuple(fields.items()))
)
_PROPERTIES = st.builds(
    BasicProperties,
    **{
        name: st.none() | wire.SHORTSTR
        for name in (
            "content_type",
            "content_encoding",
            "correlation_id",
            "reply_to",
            "type",
            "user_id",
            "app_id",
        )
    },
    message_id=st.none() | wire.SHORTSTR | st.uuids().map(str) | st.uuids().map("ID:{}".format),
    headers=st.none() | wire.TABLE | _OWN_TABLES,
    delivery_mode=st.none() | wire.OCTET,
    priority=st.none() | wire.OCTET,
    expiration=st.none() | wire.SHORTSTR | st.integers(0, 2**70).map(str),
    timestamp=st.none() | wire.LONGLONG,
    reserved=st.none() | wire.SHORTSTR,
)


def _crosses(properties: BasicProperties) -> BasicProperties:
    """As the other side of a canonical hop has it."""
    found = decode_header(encode_header(ContentHeader(60, 0, properties))).properties
    assert isinstance(found, BasicProperties)
    return found


@given(st.none() | _DELIVERY, st.none() | _MESSAGE)
def test_any_header_becomes_properties_that_rabbitmq_reads(
    delivery: DeliveryProperties | None, message: MessageProperties | None
) -> None:
    made = to_canonical(delivery, message, lenient=True)
    assert _crosses(made) == made


@given(_PROPERTIES)
def test_any_properties_become_a_header(properties: BasicProperties) -> None:
    structs = from_canonical(properties, routing_key="")
    assert codec.decode_header(codec.encode_header(structs)) == structs


# -- there and back --------------------------------------------------------------------------------------


def _usual(message: MessageProperties) -> MessageProperties:
    """What comes back of a message of 0-10, as documented."""
    given_ = message.application_headers
    headers = None if given_ is None else from_table(to_table(given_, lenient=True))
    reply_to = None
    if message.reply_to is not None:
        text, exchange = reply_text(message.reply_to)
        reply_to = None if text is None else reply_to_of(text, exchange)
        if exchange is not None:
            headers = headers if headers and headers.entries else None
    if len(message.correlation_id or b"") > 255:
        headers = headers if headers and headers.entries else None
    return attrs.evolve(
        message,
        content_length=None,
        reply_to=reply_to,
        user_id=message.user_id if len(message.user_id or b"") < 256 else None,
        app_id=message.app_id if len(message.app_id or b"") < 256 else None,
        application_headers=headers,
    )


@given(_MESSAGE.filter(lambda message: not _names(message) & {*_OWN, "x-jms-type"}))
def test_a_message_of_0_10_and_back(message: MessageProperties) -> None:
    _, back = from_canonical(to_canonical(None, message, lenient=True), routing_key="")
    assert back == _usual(message)


def _names(message: MessageProperties) -> set[str]:
    headers = message.application_headers
    return {key.decode("utf-8", "replace") for key, _ in headers.entries} if headers else set()


@given(
    st.builds(
        DeliveryProperties,
        priority=st.none() | st.integers(0, 9),
        delivery_mode=st.sampled_from([None, 1, 2]),
        ttl=st.none() | st.integers(1, 2**64 - 1),
        timestamp=st.none() | st.integers(0, 10**11),
        routing_key=st.just(b""),
    )
)
def test_delivery_properties_and_back(delivery: DeliveryProperties) -> None:
    assert from_canonical(to_canonical(delivery, None), routing_key="")[0] == delivery


@given(_PROPERTIES.filter(lambda properties: not {name for name, _ in properties.headers or ()} & set(_OWN)))
def test_properties_of_0_9_1_and_back(properties: BasicProperties) -> None:
    made = to_canonical(*from_canonical(properties, routing_key=""), lenient=True)
    timestamp, expiration = properties.timestamp, properties.expiration
    if expiration is not None:
        is_number = expiration.isascii() and expiration.isdigit()
        expiration = str(min(int(expiration), 2**64 - 1) or 1) if is_number else None
    assert made == attrs.evolve(
        properties,
        reserved=None,
        headers=made.headers,
        priority=None if properties.priority is None else min(properties.priority, 9),
        delivery_mode=properties.delivery_mode if properties.delivery_mode in (1, 2) else None,
        timestamp=timestamp // 1000 if timestamp is not None and timestamp > 10**11 else timestamp,
        expiration=expiration,
        # A URL, and a header that is a type in 0-10.
        reply_to=made.reply_to if "://" in (properties.reply_to or "") else properties.reply_to,
        type=made.type if properties.type is None else properties.type,
    )
    if made.type is not None:
        given_ = to_table(from_table(properties.headers or EMPTY_TABLE), lenient=True)
        headers = (made.headers or EMPTY_TABLE).without("x-amqp-reply-to-exchange")
        assert headers == given_.without("x-jms-type")


# -- what real peers have sent ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_recorded_messages_and_back(name: str) -> None:
    """But for bytes and other widths nothing is lost of what Qpid's clients and its broker send."""
    seen = 0
    for conversation in conversations(name):
        for sender in Role:
            for sent in sent_by(sender, conversation):
                if not sent.structs:
                    continue
                delivery = next((s for s in sent.structs if isinstance(s, DeliveryProperties)), None)
                message = next((s for s in sent.structs if isinstance(s, MessageProperties)), None)
                made = to_canonical(delivery, message)
                assert _crosses(made) == made
                back = from_canonical(made, routing_key="")
                assert to_canonical(*back) == made
                seen += 1
                if message is not None:
                    assert _sorted(back[1]) == _sorted(_usual(message))
    assert seen


def _sorted(message: MessageProperties) -> tuple[MessageProperties, set[bytes]]:
    """A type comes back at the end of the headers."""
    headers = message.application_headers
    entries = headers.entries if headers else ()
    return attrs.evolve(message, application_headers=None), {repr(entry).encode() for entry in entries}
