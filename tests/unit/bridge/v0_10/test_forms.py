"""What is kept of messages says what they would be, each made anew."""

from __future__ import annotations

import pytest
from attrs import evolve

from amqpgate.bridge.v0_10.forms import MOST_FORMS, PublishForms, QuickHeaders, TransferForms
from amqpgate.bridge.v0_10.no_local import PUBLISHER_HEADER
from amqpgate.bridge.v0_10.properties import from_canonical
from amqpgate.bridge.v0_10.publishing import Incoming, publish_of
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.codec import encode_header as encode_content
from amqpgate.wire.generated.v0_9_1 import BasicProperties
from amqpgate.wire.generated.v0_10 import DeliveryProperties, MessageProperties, MessageTransfer
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.codec import encode_header
from amqpgate.wire.v0_10.structs import Struct
from amqpgate.wire.v0_10.types import Map, Value
from tests.unit.bridge.v0_10.test_quick_header import HEADERS

FULL = BasicProperties(
    "text/plain", "utf-8", Table.of({"a": 1}), 2, 4, "c", "q", "1000", "m", 1700000000, "t", "guest", "app"
)


def check(structs: tuple[Struct, ...], login: str = "guest", exchange: bytes = b"amq.topic") -> bool:
    """Whether there is a form; then it is the message that the long way makes."""
    form = PublishForms().form(exchange, encode_header(structs), login)
    if form is not None:
        transfer = Incoming(0, MessageTransfer(destination=exchange), structs)
        made = publish_of(transfer, login=login, reject_unroutable=False)
        assert form == (made.method.encode(), encode_content(ContentHeader(60, 0, made.properties)))
    return form is not None


@pytest.mark.parametrize("structs", HEADERS)
def test_what_a_transfer_publishes(structs: tuple[Struct, ...]) -> None:
    is_immediate = any(isinstance(one, DeliveryProperties) and one.immediate for one in structs)
    assert check(structs) is not is_immediate


@pytest.mark.parametrize("user", [b"guest", b"guest@QPID", b"guestling", b"other", b"@", b"", bytes(300)])
@pytest.mark.parametrize("login", ["guest", "", "\udcff"])
def test_a_user_id_is_that_of_the_login_or_none(user: bytes, login: str) -> None:
    assert check((MessageProperties(user_id=user, app_id=b"app"),), login) is (len(user) < 256)


def test_what_cannot_be_said_is_taken_apart() -> None:
    assert not check((DeliveryProperties(routing_key=b"\xff"),))
    assert not check((DeliveryProperties(),), exchange=b"\xff")
    assert check((DeliveryProperties(routing_key="ä".encode()),), exchange="ö".encode())
    mark = Map(((PUBLISHER_HEADER.encode(), Value(TypeCode.STR16, b"somebody")),))
    assert not check((MessageProperties(application_headers=mark),))


@pytest.mark.parametrize("properties", [BasicProperties(), FULL, BasicProperties(headers=Table.of({}))])
@pytest.mark.parametrize("is_brief", [False, True])
@pytest.mark.parametrize("milliseconds", [False, True])
def test_the_header_of_a_delivery(properties: BasicProperties, is_brief: bool, milliseconds: bool) -> None:
    forms = TransferForms()
    for size in (0, 16, 2**33):
        header = encode_content(ContentHeader(60, size, properties))
        found = forms.form(
            header, "k", exchange="e", redelivered=True, milliseconds=milliseconds, is_brief=is_brief
        )
        delivery, message = from_canonical(
            properties,
            routing_key="k",
            exchange="e",
            redelivered=True,
            milliseconds=milliseconds,
            body_size=size,
        )
        says_nothing = is_brief and message == MessageProperties(size)
        assert found.header(size) == encode_header((delivery,) if says_nothing else (delivery, message))


def test_what_differs_is_another_header() -> None:
    forms = TransferForms()
    header = encode_content(ContentHeader(60, 1, BasicProperties()))
    ways: list[dict[str, bool]] = [
        {},
        {"redelivered": True},
        {"discard_unroutable": True},
        {"immediate": True},
        {"is_brief": True},
    ]
    found = [forms.form(header, "k", **way).header(1) for way in ways]
    found += [forms.form(header, "k2").header(1), forms.form(header, "k", exchange="e").header(1)]
    assert len(set(found)) == len(found)


def test_so_many_are_kept() -> None:
    publish, quick, transfer = PublishForms(), QuickHeaders(), TransferForms()
    for number in range(3 * MOST_FORMS):
        key = str(number)
        header = encode_header((DeliveryProperties(routing_key=key.encode()),))
        assert publish.form(b"e", header, "guest") is not None
        assert quick.of(header) is not None
        assert publish.form(b"e", header, "guest") is publish.form(b"e", header, "guest")
        content = encode_content(ContentHeader(60, 0, evolve(FULL, message_id=key)))
        transfer.form(content, key)
    assert len(publish._known) == len(quick._known) == len(transfer._known) == MOST_FORMS
    large = encode_header(
        (MessageProperties(content_type=b"x" * 200, app_id=b"y" * 255, user_id=b"guest" * 40),)
    )
    before = set(quick._known)
    assert quick.of(large) is not None
    assert set(quick._known) == before
