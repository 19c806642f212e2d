"""The table of attachment, row by row."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.attachment import (
    ATTACHMENT,
    DETACHING_STATES,
    SPEAKERS,
    TRANSITIONS,
    SessionState,
    step,
)
from amqpgate.wire.generated import v0_10 as amqp

S = SessionState

#: What may be sent in each state, and what follows. Written apart from the table; "*" are all other controls.
LEGAL = {
    S.DETACHED: "C attach ATTACHING",
    S.ATTACHING: "S attached ATTACHED, S detached DETACHED, C detach CLIENT_DETACHING, C * ATTACHING",
    S.ATTACHED: "C attach ATTACHED, S attached ATTACHED, C detach CLIENT_DETACHING,"
    " S detach SERVER_DETACHING, C detached DETACHED, S detached DETACHED, C * ATTACHED, S * ATTACHED",
    S.CLIENT_DETACHING: "S detached DETACHED, S detach CLIENT_DETACHING, C detached CLIENT_DETACHING,"
    " S attached CLIENT_DETACHING",
    S.SERVER_DETACHING: "C detached DETACHED, C detach CLIENT_DETACHING",
}

CONTROLS = [cls.NAME for cls in amqp.CONTROLS.values() if cls.NAME.startswith("session.")]


def legal(state: SessionState) -> dict[tuple[Role, str], SessionState]:
    sides = {"C": Role.CLIENT, "S": Role.SERVER}
    rows = {}
    for entry in LEGAL[state].split(","):
        side, name, following = entry.split()
        names = set(CONTROLS) - ATTACHMENT if name == "*" else {f"session.{name}"}
        rows |= {(sides[side], one): S[following] for one in names}
    return rows


@pytest.mark.parametrize("sender", Role)
@pytest.mark.parametrize("state", S)
def test_every_control_in_every_state_is_legal_dropped_or_503(state: SessionState, sender: Role) -> None:
    for name in CONTROLS:
        following = legal(state).get((sender, name))
        if following is not None:
            assert step(state, sender, name) is following
        elif state in DETACHING_STATES:
            assert step(state, sender, name) is None
        else:
            with pytest.raises(ProtocolViolation) as caught:
                step(state, sender, name)
            assert caught.value.code == 503


def test_the_tables_name_every_state() -> None:
    assert set(TRANSITIONS) == set(SPEAKERS) == set(S)
    assert {name for row in TRANSITIONS.values() for _, name in row} == ATTACHMENT <= set(CONTROLS)


def test_every_state_is_reached_and_leads_to_detached() -> None:
    reached = {S.DETACHED}
    for _ in S:
        reached |= {target for state in reached for target in TRANSITIONS[state].values()}
    assert reached == set(S)
    ends = {S.DETACHED}
    for _ in S:
        ends |= {state for state in S if ends & set(TRANSITIONS[state].values())}
    assert ends == set(S)
