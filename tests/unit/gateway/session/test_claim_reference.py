"""References: what is signed is read, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.errors import ConfigError
from amqpgate.gateway.session.claim_reference import (
    CLAIM,
    VARIABLE,
    ClaimKeys,
    Reference,
    claim_of,
    has_headers,
    new_key,
    referring,
    restored,
)
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

KEYS = ClaimKeys.of({VARIABLE: "a" * 32})
REFERENCE = Reference(new_key("/"), 17 << 20, "0f" * 32, True)


def test_what_is_signed_is_read() -> None:
    assert KEYS.read(KEYS.sign(REFERENCE, "/"), "/") == REFERENCE


def test_another_virtual_host_or_key_reads_nothing() -> None:
    value = KEYS.sign(REFERENCE, "/")
    assert KEYS.read(value, "other") is None
    assert ClaimKeys.of({VARIABLE: "b" * 32}).read(value, "/") is None


def test_keys_are_changed_one_after_the_other() -> None:
    both = ClaimKeys.of({VARIABLE: f"{'b' * 32}, {'a' * 32}"})
    assert both.read(KEYS.sign(REFERENCE, "/"), "/") == REFERENCE
    assert KEYS.read(both.sign(REFERENCE, "/"), "/") is None


@given(st.one_of(st.text(), st.none(), st.integers(), st.binary(), st.booleans()))
def test_nothing_else_is_read(value: object) -> None:
    assert KEYS.read(value, "/") is None


@given(st.data())
def test_not_a_letter_may_change(data: st.DataObject) -> None:
    value = KEYS.sign(REFERENCE, "/")
    at = data.draw(st.integers(0, len(value) - 1))
    letter = data.draw(st.characters().filter(lambda one: one != value[at]))
    assert KEYS.read(value[:at] + letter + value[at + 1 :], "/") is None


@pytest.mark.parametrize("said", ["", "short", f"{'a' * 32},short"])
def test_keys_that_are_missing_or_short_are_refused_and_not_told(said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ClaimKeys.of({VARIABLE: said})
    assert "aaa" not in str(caught.value)
    assert "aaa" not in repr(KEYS)


@pytest.mark.parametrize("headers", [None, Table(), Table.of({"x": 1, "y": [True, None]})])
def test_a_message_is_as_it_was(headers: Table | None) -> None:
    header = ContentHeader(
        60, REFERENCE.byte_count, amqp.BasicProperties(content_type="a/b", headers=headers, priority=3)
    )
    reference = Reference(REFERENCE.key, REFERENCE.byte_count, REFERENCE.digest, has_headers(header))
    sent = referring(header, reference, KEYS.sign(reference, "/"))
    assert sent.body_size < 200
    read = KEYS.read(claim_of(sent), "/")
    assert read == reference
    assert restored(sent, reference) == header


def test_what_a_broker_adds_stays_and_what_a_client_forges_goes() -> None:
    header = ContentHeader(60, 5, amqp.BasicProperties(headers=Table.of({CLAIM: "mine"})))
    reference = Reference(REFERENCE.key, 5, REFERENCE.digest, True)
    sent = referring(header, reference, "true")
    assert claim_of(sent) == "true"
    assert isinstance(sent.properties, amqp.BasicProperties)
    assert sent.properties.headers is not None
    added = ContentHeader(
        60, sent.body_size, amqp.BasicProperties(headers=sent.properties.headers.with_("x-delivery-count", 2))
    )
    back = restored(added, reference)
    assert back.properties == amqp.BasicProperties(headers=Table.of({"x-delivery-count": 2}))


def test_keys_of_objects_are_not_alike() -> None:
    assert len({new_key("/") for _ in range(100)}) == 100
    assert new_key("/")[:16] == new_key("/")[:16] != new_key("other")[:16]
