"""Names there and back: nothing is lost, nothing is shared, and no client sees its prefix."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from amqpgate.policy.engine.naming import Naming, NotTransformedError, Renaming

NAMES = st.one_of(
    st.text(min_size=1, max_size=20),
    st.sampled_from(["orders", "a.orders", "corp", "amq.topic", "amq.gen-x", "a.", "b.orders", "a", "a.a.x"]),
)
PREFIXES = st.sampled_from(["", "a.", "a", "a.b.", "tenant/", "ä.", "am"])
MAPS = st.dictionaries(NAMES, NAMES, max_size=4).filter(
    lambda mapping: len(set(mapping.values())) == len(mapping)
)


def renamed(renaming: Renaming, name: str) -> str | None:
    try:
        return renaming.up(name)
    except NotTransformedError:
        return None


@given(PREFIXES, MAPS, NAMES)
def test_there_and_back_is_the_identity(prefix: str, mapping: dict[str, str], name: str) -> None:
    renaming = Renaming("queue", prefix, mapping)
    theirs = renamed(renaming, name)
    assume(theirs is not None)
    assert theirs is not None
    assert renaming.down(theirs) == name


@given(PREFIXES, MAPS, NAMES, NAMES)
def test_no_two_names_are_one_to_the_broker(
    prefix: str, mapping: dict[str, str], one: str, other: str
) -> None:
    renaming = Renaming("queue", prefix, mapping)
    assume(one != other)
    theirs = renamed(renaming, one)
    assert theirs is None or theirs != renamed(renaming, other)


@given(NAMES, NAMES)
def test_tenants_share_no_name_but_the_brokers_own(one: str, other: str) -> None:
    mine, yours = Renaming("queue", "a."), Renaming("queue", "b.")
    first, second = renamed(mine, one), renamed(yours, other)
    assume(first is not None)
    assert first != second or one.startswith("amq.")


@given(st.text(alphabet="abc.amq-", min_size=1, max_size=30))
def test_a_client_never_sees_its_prefix(name: str) -> None:
    renaming = Renaming("exchange", "tenant-7.")
    theirs = renamed(renaming, name)
    assert theirs is not None
    assert "tenant-7." not in renaming.down(theirs)


@pytest.mark.parametrize(
    ("prefix", "mapping", "name", "theirs"),
    [
        ("a.", {}, "orders", "a.orders"),
        ("a.", {}, "", ""),
        ("a.", {}, "amq.topic", "amq.topic"),
        ("a.", {}, "amq.gen-123", "amq.gen-123"),
        ("a.", {}, "amq.rabbitmq.reply-to", "amq.rabbitmq.reply-to"),
        ("a.", {}, "a.orders", "a.a.orders"),
        ("a.", {"orders": "corp.orders"}, "orders", "corp.orders"),
        ("a.", {"shared": "shared"}, "shared", "shared"),
        ("a.", {"amq.topic": "a-topic"}, "amq.topic", "a-topic"),
        ("", {"orders": "corp"}, "other", "other"),
    ],
)
def test_what_is_renamed(prefix: str, mapping: dict[str, str], name: str, theirs: str) -> None:
    renaming = Renaming("exchange", prefix, mapping)
    assert renaming.up(name) == theirs
    assert renaming.down(theirs) == name


@pytest.mark.parametrize(
    ("prefix", "mapping", "name"),
    [
        # Another name is that one already.
        ("", {"orders": "corp"}, "corp"),
        ("a.", {"orders": "a.x"}, "x"),
        # RabbitMQ strips these from names in some methods.
        ("a.", {}, "or\nders"),
        ("a.", {}, "orders\r"),
        # Would come out as one of the broker's own.
        ("am", {}, "q.topic"),
    ],
)
def test_names_that_would_be_anothers_are_refused(prefix: str, mapping: dict[str, str], name: str) -> None:
    with pytest.raises(NotTransformedError, match="is not available") as caught:
        Renaming("exchange", prefix, mapping).up(name)
    assert caught.value.code == 403


def test_a_name_must_fit_with_its_prefix() -> None:
    renaming = Renaming("queue", "tenant.")
    assert len(renaming.up("x" * 248)) == 255
    with pytest.raises(NotTransformedError, match="queue name is longer than 248 bytes") as caught:
        renaming.up("x" * 249)
    assert caught.value.code == 406
    with pytest.raises(NotTransformedError):
        renaming.up("ä" * 125)


@pytest.mark.parametrize("name", ["b.orders", "a.", "amq.direct", "orders"])
def test_what_is_not_the_sessions_is_shown_as_it_is(name: str) -> None:
    assert Renaming("exchange", "a.").down(name) == name


NAMING = Naming(
    Renaming("exchange", "a.", {"orders": "corp.orders"}), Renaming("queue", "a.", {"in": "corp.in"})
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("NOT_FOUND - no queue 'a.q' in vhost 'a.v'", "NOT_FOUND - no queue 'q' in vhost 'a.v'"),
        ("NOT_FOUND - no exchange 'a.x' in vhost '/'", "NOT_FOUND - no exchange 'x' in vhost '/'"),
        ("no exchange 'corp.orders' in vhost '/'", "no exchange 'orders' in vhost '/'"),
        ("no queue 'corp.orders' in vhost '/'", "no queue 'corp.orders' in vhost '/'"),
        ("queue 'corp.in' in vhost '/' in use", "queue 'in' in vhost '/' in use"),
        ("exchange name 'a.amq.x' contains reserved", "exchange name 'amq.x' contains reserved"),
        (
            "no binding 'a.k' between exchange 'a.x' in vhost '/' and queue 'a.it's' in vhost '/'",
            "no binding 'a.k' between exchange 'x' in vhost '/' and queue 'it's' in vhost '/'",
        ),
        (
            "inequivalent arg 'x-dead-letter-exchange' for queue 'a.q' in vhost '/': received the value "
            "'a.x' of type 'longstr' but current is the value 'corp.orders' of type 'longstr'",
            "inequivalent arg 'x-dead-letter-exchange' for queue 'q' in vhost '/': received the value "
            "'x' of type 'longstr' but current is the value 'orders' of type 'longstr'",
        ),
        (
            "inequivalent arg 'alternate-exchange' for exchange 'a.x' in vhost '/': received none but "
            "current is the value 'a.y' of type 'longstr'",
            "inequivalent arg 'alternate-exchange' for exchange 'x' in vhost '/': received none but "
            "current is the value 'y' of type 'longstr'",
        ),
        (
            "inequivalent arg 'x-dead-letter-routing-key' for queue 'a.q' in vhost '/': received 'a.k' but "
            "current is 'corp.in'",
            "inequivalent arg 'x-dead-letter-routing-key' for queue 'q' in vhost '/': received 'k' but "
            "current is 'in'",
        ),
        (
            "inequivalent arg 'x-queue-type' for queue 'a.q' in vhost '/': received the value 'a.x'",
            "inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received the value 'a.x'",
        ),
        ("message size 7 is larger than", "message size 7 is larger than"),
    ],
)
def test_reply_texts_have_the_clients_names(text: str, shown: str) -> None:
    assert NAMING.text_down(text) == shown


def test_a_routing_key_is_a_queue_only_in_the_default_exchange() -> None:
    assert NAMING.key_up("", "q") == "a.q"
    assert NAMING.key_up("x", "q") == "q"
    assert NAMING.key_down("", "a.q") == "q"
    assert NAMING.key_down("x", "a.q") == "a.q"
    assert Naming(exchanges=Renaming("exchange", "a.")).key_up("", "q") == "q"
