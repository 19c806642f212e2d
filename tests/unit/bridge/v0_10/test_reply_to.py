"""A reply-to of two parts, and of one text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.bridge.v0_10.reply_to import reply_text, reply_to_of
from amqpgate.wire.generated.v0_10 import ReplyTo
from tests.unit.wire.strategies import SHORTSTR
from tests.unit.wire.v0_10.strategies import REPLY_TO


@pytest.mark.parametrize(
    ("reply_to", "text", "exchange"),
    [
        (ReplyTo(routing_key=b"queue"), "queue", None),
        (ReplyTo(routing_key=b"a/b"), "a/b", None),
        (ReplyTo(routing_key=b""), "", None),
        (ReplyTo(b"amq.direct", b"key"), "amq.direct/key", b"amq.direct"),
        (ReplyTo(b"a/b", b"c/d"), "a/b/c/d", b"a/b"),
        (ReplyTo(b"topics", b""), "topics/", b"topics"),
        (ReplyTo(b"topics"), "topics", b"topics"),
        (ReplyTo(b"\xff", b"\xfe"), "\udcff/\udcfe", b"\xff"),
        (ReplyTo(b"x" * 127, b"y" * 127), f"{'x' * 127}/{'y' * 127}", b"x" * 127),
    ],
)
def test_both_ways(reply_to: ReplyTo, text: str, exchange: bytes | None) -> None:
    assert reply_text(reply_to) == (text, exchange)
    assert reply_to_of(text, exchange) == reply_to


@pytest.mark.parametrize(
    ("reply_to", "text"),
    [
        (ReplyTo(b"", b"queue"), "queue"),
        (ReplyTo(), None),
        (ReplyTo(b""), None),
        (ReplyTo(b"x" * 128, b"y" * 127), None),
        (ReplyTo(b"x" * 255, b"y" * 255), None),
    ],
)
def test_what_does_not_come_back(reply_to: ReplyTo, text: str | None) -> None:
    assert reply_text(reply_to) == (text, None)


@pytest.mark.parametrize(
    ("text", "exchange", "reply_to"),
    [
        # A header that is of another message: applications copy them.
        ("queue", b"amq.direct", ReplyTo(routing_key=b"queue")),
        ("amq.directory/key", b"amq.direct", ReplyTo(routing_key=b"amq.directory/key")),
        ("amq.direct/key", b"", ReplyTo(routing_key=b"amq.direct/key")),
        ("amq.rabbitmq.reply-to.g2dk", None, ReplyTo(routing_key=b"amq.rabbitmq.reply-to.g2dk")),
        ("direct://amq.direct//?routingkey='key'", None, ReplyTo(b"amq.direct", b"key")),
        ("direct://amq.direct//queue", None, ReplyTo(b"amq.direct", b"queue")),
        ("direct://amq.direct/there/", None, ReplyTo(b"amq.direct", b"there")),
        ("direct://amq.direct/a/b?durable='true'&routingkey='k'", None, ReplyTo(b"amq.direct", b"k")),
        ("direct:////queue", None, ReplyTo(routing_key=b"queue")),
        ("topic://amq.topic/a.b/queue?durable='true'", None, ReplyTo(b"amq.topic", b"a.b")),
        ("topic://amq.topic//queue?routingkey='a.b',durable='true'", None, ReplyTo(b"amq.topic", b"a.b")),
        ("fanout://amq.fanout", None, ReplyTo(b"amq.fanout", b"")),
        ("http://host//queue", None, ReplyTo(routing_key=b"http://host//queue")),
        ("direct://a/b/c/d", None, ReplyTo(routing_key=b"direct://a/b/c/d")),
        ("direct://a//q?notroutingkey='k'", None, ReplyTo(b"a", b"q")),
    ],
)
def test_texts_of_others(text: str, exchange: bytes | None, reply_to: ReplyTo) -> None:
    assert reply_to_of(text, exchange) == reply_to


@given(REPLY_TO)
def test_from_0_10_and_back(reply_to: ReplyTo) -> None:
    text, exchange = reply_text(reply_to)
    if text is None:
        assert len(reply_to.exchange or b"") + len(reply_to.routing_key or b"") > 254 or (
            not reply_to.exchange and reply_to.routing_key is None
        )
        return
    assert len(text.encode("utf-8", "surrogateescape")) <= 255
    if exchange is None and "://" in text:
        return
    assert reply_to_of(text, exchange) == ReplyTo(reply_to.exchange or None, reply_to.routing_key)


@given(SHORTSTR, st.none() | st.binary(max_size=255))
def test_from_0_9_1_and_back(text: str, exchange: bytes | None) -> None:
    if "://" not in text:
        assert reply_text(reply_to_of(text, exchange))[0] == text


@given(st.text(alphabet="direct:/?&,='routingkey", max_size=40).map("direct://".__add__))
def test_any_url_has_a_reply_to(text: str) -> None:
    reply_to = reply_to_of(text, None)
    assert reply_to.routing_key is not None
    assert len(reply_to.encode()) <= len(text) + 4
