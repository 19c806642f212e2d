"""A store that fails again and again is left alone for a while."""

from __future__ import annotations

from amqpgate.gateway.objects.circuit import MOST, REST, Circuit


def test_a_store_that_fails_is_left_alone_and_then_asked_again() -> None:
    circuit = Circuit()
    for _ in range(MOST - 1):
        circuit.failed(100)
    assert not circuit.is_open(100)
    circuit.failed(100)
    assert circuit.is_open(100 + REST - 1)
    assert not circuit.is_open(100 + REST)
    circuit.failed(200)
    assert circuit.is_open(201), "the first that is tried again says it"
    circuit.worked()
    assert not circuit.is_open(201)
