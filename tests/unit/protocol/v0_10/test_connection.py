"""The connection's table, row by row, and what tune settles."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.handshake import CLOSING_STATES, PROTOCOL_HEADER_SENT, ConnectionState
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.connection import TRANSITIONS, Tuning, offered, step
from amqpgate.wire.generated import v0_10 as amqp

S = ConnectionState
EVER = "C close, S close"

#: What may be sent in each state: "C" by the client, "S" by the server. Written apart from the table.
LEGAL = {
    S.HEADER: "",
    S.GREETED: "S start, " + EVER,
    S.STARTING: "C start-ok, " + EVER,
    S.SECURING: "S secure, S tune, " + EVER,
    S.CHALLENGED: "C secure-ok, " + EVER,
    S.TUNING: "C tune-ok, " + EVER,
    S.OPENING: "C open, C heartbeat, S heartbeat, " + EVER,
    S.ASKED: "S open-ok, S redirect, C heartbeat, S heartbeat, " + EVER,
    S.OPEN: "C heartbeat, S heartbeat, " + EVER,
    S.REDIRECTED: EVER,
    S.CLIENT_CLOSING: "S close, S close-ok",
    S.SERVER_CLOSING: "C close, C close-ok",
    S.BOTH_CLOSING: "C close-ok, S close-ok",
    S.CLOSED: "",
}

CONTROLS = [cls.NAME for cls in amqp.CONTROLS.values()]


def legal(state: ConnectionState) -> set[tuple[Role, str]]:
    sides = {"C": Role.CLIENT, "S": Role.SERVER}
    pairs = (entry.split() for entry in LEGAL[state].split(", ") if entry)
    return {(sides[side], f"connection.{name}") for side, name in pairs}


@pytest.mark.parametrize("sender", Role)
@pytest.mark.parametrize("state", S)
def test_every_control_in_every_state_is_legal_dropped_or_501(state: ConnectionState, sender: Role) -> None:
    for name in CONTROLS:
        if (sender, name) in legal(state):
            assert step(state, sender, name) is TRANSITIONS[state][sender, name]
        elif state in CLOSING_STATES:
            assert step(state, sender, name) is None
        else:
            with pytest.raises(ProtocolViolation) as caught:
                step(state, sender, name)
            assert caught.value.code == 501


def test_the_table_names_every_state_and_real_controls_of_the_right_side() -> None:
    assert set(TRANSITIONS) == set(S)
    sent = {name for row in TRANSITIONS.values() for _, name in row} - {PROTOCOL_HEADER_SENT}
    assert sent == {name for name in CONTROLS if name.startswith("connection.")}


def test_every_state_is_reached_and_every_state_leads_to_closed() -> None:
    reached = {S.HEADER}
    for _ in S:
        reached |= {target for state in reached for target in TRANSITIONS[state].values()}
    assert reached == set(S)
    ends = {S.CLOSED}
    for _ in S:
        ends |= {state for state in S if ends & set(TRANSITIONS[state].values())}
    assert ends == set(S)


def test_a_second_answer_is_501() -> None:
    """CVE-2016-4432 and its like: states that are skipped or come twice."""
    for state, name in [
        (S.SECURING, "start-ok"),
        (S.SECURING, "tune-ok"),
        (S.SECURING, "open"),
        (S.TUNING, "open"),
        (S.OPENING, "tune-ok"),
        (S.OPEN, "tune-ok"),
        (S.OPEN, "open"),
        (S.OPEN, "start-ok"),
    ]:
        with pytest.raises(ProtocolViolation, match=f"connection.{name}"):
            step(state, Role.CLIENT, f"connection.{name}")


# -- tune ---------------------------------------------------------------------------------------------------

OFFER = Tuning(channel_max=100, max_frame_size=65535, heartbeat=120)


def settle(offer: Tuning = OFFER, **answer: int) -> Tuning:
    return offer.settle(amqp.ConnectionTuneOk(**answer))


def test_an_offer_leaves_no_field_out() -> None:
    """qpid-python's messaging fails without channel-max."""
    tune = Tuning().offer()
    assert tune == amqp.ConnectionTune(
        channel_max=256, max_frame_size=65535, heartbeat_min=0, heartbeat_max=120
    )
    assert offered(tune) == Tuning()


def test_an_empty_answer_takes_the_offer_without_heartbeats() -> None:
    """qpid-python's low-level API answers nothing at all."""
    assert settle() == Tuning(channel_max=100, max_frame_size=65535, heartbeat=0)


def test_an_answer_within_the_offer_holds() -> None:
    assert settle(channel_max=7, max_frame_size=4096, heartbeat=30) == Tuning(7, 4096, 30)
    assert settle(channel_max=100, max_frame_size=65535, heartbeat=120) == OFFER


@pytest.mark.parametrize(
    "answer",
    [
        {"channel_max": 101},
        {"max_frame_size": 4095},
        {"max_frame_size": 0},
        {"heartbeat": 121},
    ],
)
def test_an_answer_outside_of_the_offer_is_530(answer: dict[str, int]) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        settle(**answer)
    assert caught.value.code == 530


def test_a_heartbeat_below_the_least_is_530() -> None:
    offer = Tuning(heartbeat=120, heartbeat_min=10)
    assert settle(offer, heartbeat=10).heartbeat == 10
    for answer in ({}, {"heartbeat": 0}, {"heartbeat": 9}):
        with pytest.raises(ProtocolViolation):
            settle(offer, **answer)


def test_a_larger_frame_than_was_offered_is_530() -> None:
    with pytest.raises(ProtocolViolation):
        settle(Tuning(max_frame_size=5000), max_frame_size=5001)


@pytest.mark.parametrize(
    ("tune", "answer"),
    [
        # What qpidd offers.
        (amqp.ConnectionTune(65534, 65535, 0, 120), amqp.ConnectionTuneOk(100, 65535, 60)),
        (amqp.ConnectionTune(10, 4096, 0, 5), amqp.ConnectionTuneOk(10, 4096, 5)),
        (amqp.ConnectionTune(), amqp.ConnectionTuneOk(100, 65535, 0)),
        (amqp.ConnectionTune(heartbeat_min=90, heartbeat_max=120), amqp.ConnectionTuneOk(100, 65535, 90)),
    ],
)
def test_the_answer_to_a_broker_is_the_smaller(
    tune: amqp.ConnectionTune, answer: amqp.ConnectionTuneOk
) -> None:
    made = Tuning(channel_max=100, heartbeat=60).answer(tune)
    assert made == answer
    offered(tune).settle(made)
