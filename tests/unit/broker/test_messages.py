"""Messages and the memory that they take."""

from __future__ import annotations

import pytest

from amqpgate.broker.messages import ENTRY_OVERHEAD, BrokerMessage, Memory, make_message
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated.v0_9_1 import BasicProperties
from amqpgate.wire.tables import Table

from .client import EMPTY, refusal


def _made(**headers: object) -> BrokerMessage:
    return make_message("x", "k", BasicProperties(headers=Table.of(headers)), b"body")


def test_more_routing_keys() -> None:
    message = _made(CC=["a", 1, b"b"], BCC=["c"], other=1)
    assert message.routing_key == "k"
    # Bytes in a table have a type of their own, which is not that of text.
    assert message.routing_keys == ("k", "a", "c")
    assert message.properties.headers == Table.of({"CC": ["a", 1, b"b"], "other": 1})


@pytest.mark.parametrize(("name", "value", "type_"), [("CC", "a", "longstr"), ("BCC", 1, "signedint")])
def test_routing_keys_that_are_none(name: str, value: object, type_: str) -> None:
    with pytest.raises(ProtocolViolation) as refused:
        _made(**{name: value})
    assert refusal(refused.value) == (
        406,
        f'invalid message: {{unacceptable_type_in_header,"{name}",{type_}}}',
    )


@pytest.mark.parametrize("mode", [0, 3, 255])
def test_delivery_modes_that_are_none(mode: int) -> None:
    with pytest.raises(ProtocolViolation) as refused:
        make_message("", "k", BasicProperties(delivery_mode=mode), b"")
    assert refusal(refused.value) == (406, f"invalid message: {{delivery_mode_unknown,{mode}}}")


def test_a_message_counts_once_however_many_hold_it() -> None:
    memory, message = Memory(10_000), _made()
    memory.hold(message)
    memory.hold(message)
    assert memory.used == message.size
    memory.release(message)
    assert memory.used == message.size
    memory.release(message)
    assert memory.used == 0


def test_size() -> None:
    properties = BasicProperties(headers=Table.of({"a": [1, {"b": "x" * 1000}]}))
    data = len(properties.encode()) - len(BasicProperties().encode())
    message = make_message("", "", properties, b"12345")
    assert message.size == EMPTY + 5 + data + 4 * ENTRY_OVERHEAD


def test_room() -> None:
    message = _made()
    memory = Memory(message.size)
    assert memory.has_room_for(message)
    memory.hold(message)
    assert memory.has_room_for(message)
    assert not memory.has_room_for(_made())
    assert not Memory(message.size - 1).has_room_for(_made())
