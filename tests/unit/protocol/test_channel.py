"""A channel's table: complete, and crossing closes."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.channel import CLOSING_STATES, TRANSITIONS, ChannelState, step
from amqpgate.protocol.methods import Role
from amqpgate.wire.codec import methods
from amqpgate.wire.dialects import QPID_0_9, RABBITMQ_0_8, RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.protocol.test_methods import ALL, OF_BROKERS

S = ChannelState
C, B = Role.CLIENT, Role.SERVER

#: The methods that move a channel, written apart from the table: state, sender, method, next state.
MOVES = {
    (S.CLOSED, C, "open"): S.OPENING,
    (S.OPENING, B, "open-ok"): S.OPEN,
    (S.OPENING, C, "close"): S.CLIENT_CLOSING,
    (S.OPENING, B, "close"): S.SERVER_CLOSING,
    (S.OPEN, C, "close"): S.CLIENT_CLOSING,
    (S.OPEN, B, "close"): S.SERVER_CLOSING,
    (S.CLIENT_CLOSING, B, "close"): S.BOTH_CLOSING,
    (S.CLIENT_CLOSING, B, "close-ok"): S.CLOSED,
    (S.SERVER_CLOSING, C, "close"): S.BOTH_CLOSING,
    (S.SERVER_CLOSING, C, "close-ok"): S.CLOSED,
    (S.BOTH_CLOSING, C, "close-ok"): S.CLIENT_CLOSING,
    (S.BOTH_CLOSING, B, "close-ok"): S.SERVER_CLOSING,
}
MOVING = {"channel.open", "channel.open-ok", "channel.close", "channel.close-ok"}


def expected(state: ChannelState, sender: Role, method) -> ChannelState | int | None:
    """The next state, None for dropped, or the code that it is answered with."""
    name = method.NAME
    if name.startswith("channel.") and (state, sender, name[8:]) in MOVES:
        return MOVES[state, sender, name[8:]]
    if name == "channel.open" and sender is C:
        return 504
    if state in CLOSING_STATES:
        return None
    if state is S.CLOSED:
        return 504
    if name in MOVING or name.startswith("connection.") or (name, sender) not in ALL | OF_BROKERS:
        return 503
    return 503 if (state, sender) == (S.OPENING, B) else state


@pytest.mark.parametrize("dialect", [RABBITMQ_0_9_1, RABBITMQ_0_8, QPID_0_9], ids=lambda d: d.name)
@pytest.mark.parametrize("sender", Role)
@pytest.mark.parametrize("state", S)
def test_every_method_in_every_state_is_legal_dropped_or_answered(state, sender, dialect) -> None:
    for method in methods(dialect).values():
        outcome = expected(state, sender, method)
        if not isinstance(outcome, int):
            assert step(state, sender, method, 9) is outcome, method.NAME
            continue
        with pytest.raises(ProtocolViolation) as caught:
            step(state, sender, method, 9)
        error = caught.value
        assert (error.code, error.channel) == (outcome, 9), method.NAME
        assert (error.class_id, error.method_id) == (method.CLASS_ID, method.METHOD_ID)
        assert error.scope == "connection"


def test_the_table_names_every_state() -> None:
    assert set(TRANSITIONS) == set(S)
    assert {(state, *key): to for state, keys in TRANSITIONS.items() for key, to in keys.items()} == {
        (state, side, f"channel.{name}"): to for (state, side, name), to in MOVES.items()
    }


@pytest.mark.parametrize("first", Role)
@pytest.mark.parametrize("answers_first", Role)
def test_a_number_is_free_when_both_crossing_closes_are_answered(first: Role, answers_first: Role) -> None:
    state: ChannelState | None = S.OPEN
    for sender, method in (
        (first, amqp.ChannelClose),
        (first.peer, amqp.ChannelClose),
        (answers_first, amqp.ChannelCloseOk),
        (answers_first.peer, amqp.ChannelCloseOk),
    ):
        assert state not in (None, S.CLOSED)
        with pytest.raises(ProtocolViolation, match=r"second 'channel\.open' seen"):
            step(state, C, amqp.ChannelOpen, 1)
        state = step(state, sender, method, 1)
    assert state is S.CLOSED
    assert step(state, C, amqp.ChannelOpen, 1) is S.OPENING
