"""The connection's table: complete, and as the standard's grammar has it."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.handshake import (
    CLOSING_STATES,
    SERVER_TURN,
    TRANSITIONS,
    ConnectionState,
    Tune,
    negotiate,
    step,
)
from amqpgate.protocol.methods import SENT_BY, Role
from amqpgate.wire.codec import methods
from amqpgate.wire.dialects import QPID_0_9, RABBITMQ_0_8, RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp

S = ConnectionState
EVER_CLOSE = "C close, S close"

#: What may be sent in each state: "C" by the client, "S" by the server. Written apart from the table.
LEGAL = {
    S.HEADER: "",
    S.GREETED: "S start, " + EVER_CLOSE,
    S.STARTING: "C start-ok, " + EVER_CLOSE,
    S.SECURING: "S secure, S tune, " + EVER_CLOSE,
    S.CHALLENGED: "C secure-ok, " + EVER_CLOSE,
    S.TUNING: "C tune-ok, " + EVER_CLOSE,
    S.OPENING: "C open, " + EVER_CLOSE,
    S.ASKED: "S open-ok, S redirect, " + EVER_CLOSE,
    S.OPEN: "C update-secret, S update-secret-ok, S blocked, S unblocked, " + EVER_CLOSE,
    S.REDIRECTED: EVER_CLOSE,
    S.CLIENT_CLOSING: "S close, S close-ok",
    S.SERVER_CLOSING: "C close, C close-ok",
    S.BOTH_CLOSING: "C close-ok, S close-ok",
    S.CLOSED: "",
}


def legal(state: ConnectionState) -> set[tuple[Role, str]]:
    sides = {"C": Role.CLIENT, "S": Role.SERVER}
    pairs = (entry.split() for entry in LEGAL[state].split(", ") if entry)
    return {(sides[side], f"connection.{name}") for side, name in pairs}


@pytest.mark.parametrize("dialect", [RABBITMQ_0_9_1, RABBITMQ_0_8, QPID_0_9], ids=lambda d: d.name)
@pytest.mark.parametrize("sender", Role)
@pytest.mark.parametrize("state", S)
def test_every_method_in_every_state_is_legal_dropped_or_answered(state, sender, dialect) -> None:
    for method in methods(dialect).values():
        if (sender, method.NAME) in legal(state):
            assert step(state, sender, method) is TRANSITIONS[state][sender, method.NAME]
        elif state in CLOSING_STATES:
            assert step(state, sender, method) is None
        else:
            with pytest.raises(ProtocolViolation) as caught:
                step(state, sender, method)
            error = caught.value
            assert (error.code, error.class_id, error.method_id) == (504, method.CLASS_ID, method.METHOD_ID)
            assert error.text == f"unexpected method in connection state {state.value}"
            assert error.scope == "connection"


def test_the_table_names_every_state_and_real_methods_of_the_right_side() -> None:
    assert set(TRANSITIONS) == set(S)
    known = {cls.NAME for dialect in (RABBITMQ_0_9_1, RABBITMQ_0_8) for cls in methods(dialect).values()}
    for transitions in TRANSITIONS.values():
        for side, name in transitions:
            assert name == "protocol header" or (name in known and name in SENT_BY[side])


def test_every_state_is_reached_and_every_state_leads_to_closed() -> None:
    reached = {S.HEADER}
    for _ in S:
        reached |= {target for state in reached for target in TRANSITIONS[state].values()}
    assert reached == set(S)
    ends = {S.CLOSED}
    for _ in S:
        ends |= {state for state in S if ends & set(TRANSITIONS[state].values())}
    assert ends == set(S)


def test_a_state_is_the_servers_turn_where_only_the_server_may_go_on() -> None:
    """Besides closing, which both may do at any time."""
    for state, transitions in TRANSITIONS.items():
        if state in CLOSING_STATES | {S.HEADER, S.REDIRECTED}:
            continue
        speakers = {side for side, name in transitions if name != "connection.close"}
        assert (speakers == {Role.SERVER}) == (state in SERVER_TURN)


def test_crossing_closes_are_done_when_both_are_answered() -> None:
    for first, second in ((Role.CLIENT, Role.SERVER), (Role.SERVER, Role.CLIENT)):
        for answer in (first, second):
            state: ConnectionState | None = S.OPEN
            for sender, method in (
                (first, amqp.ConnectionClose),
                (second, amqp.ConnectionClose),
                (answer, amqp.ConnectionCloseOk),
                (answer.peer, amqp.ConnectionCloseOk),
            ):
                assert state not in (None, S.CLOSED)
                state = step(state, sender, method)
            assert state is S.CLOSED


@pytest.mark.parametrize(
    ("offer", "wish", "agreed"), [(0, 0, 0), (0, 5, 5), (5, 0, 5), (5, 7, 5), (7, 5, 5), (5, 5, 5)]
)
def test_the_smaller_value_is_agreed_and_0_is_no_limit(offer: int, wish: int, agreed: int) -> None:
    assert negotiate(offer, wish) == agreed


CAPS = Tune(frame_max=65_536, channel_max=100)


@pytest.mark.parametrize(
    ("offer", "answer", "settled"),
    [
        (Tune(131_072, 2047, 60), Tune(4096, 1, 0), Tune(4096, 1, 0)),
        (Tune(131_072, 2047, 60), Tune(131_072, 2047, 600), Tune(131_072, 2047, 600)),
        (Tune(131_072, 2047, 60), Tune(0, 0, 60), Tune(131_072, 2047, 60)),
        (Tune(0, 0, 60), Tune(0, 0, 60), Tune(65_536, 100, 60)),
        (Tune(0, 0, 60), Tune(1_000_000, 65_535, 1), Tune(1_000_000, 65_535, 1)),
    ],
)
def test_what_a_tune_ok_settles(offer: Tune, answer: Tune, settled: Tune) -> None:
    assert offer.settle(answer, CAPS) == settled


@pytest.mark.parametrize("answer", [Tune(131_073, 1), Tune(4095, 1), Tune(1, 1), Tune(4096, 2048)])
def test_a_tune_ok_above_the_offer_or_below_the_minimum_is_refused(answer: Tune) -> None:
    with pytest.raises(ProtocolViolation, match="negotiated") as caught:
        Tune(131_072, 2047).settle(answer, CAPS)
    assert (caught.value.code, caught.value.class_id, caught.value.method_id) == (530, 10, 31)
