"""Which policies are in force: what several workers say together."""

from __future__ import annotations

import pytest

from amqpgate.gateway.server.policy_state import PolicyState, combine

DONE = PolicyState("done", "a" * 64, 100.0)
WRONG = PolicyState("refused", "a" * 64, 100.0, "unknown key", "p.yaml", 3, 4)


@pytest.mark.parametrize(
    ("states", "status"),
    [
        ([], "unknown"),
        ([None], "unknown"),
        ([DONE, DONE], "done"),
        ([DONE, None], "unknown"),
        ([DONE, WRONG, None], "refused"),
        ([DONE, PolicyState("done", "b" * 64, 101.0)], "unknown"),
    ],
)
def test_what_several_workers_say(states: list[PolicyState | None], status: str) -> None:
    combined = combine(states)
    assert combined.status == status
    assert (combined.error is None) == (status == "done")
    assert PolicyState.from_json(combined.as_json()) == combined
