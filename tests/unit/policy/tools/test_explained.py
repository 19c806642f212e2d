"""An explanation for programs: all that people read of it, as JSON has it."""

from __future__ import annotations

import json

import pytest

from amqpgate.policy import Operation, PolicySet, Principal
from amqpgate.policy.tools.explain import explain
from amqpgate.policy.tools.explained import as_data
from tests.unit.policy.build_set import BOB, document, policies

SET = policies(
    document(
        "id: yes, effect: allow, operations: [queue.bind, basic.get], queue: q",
        "id: no, effect: deny, operations: [basic.get], queue: secret",
        name="one",
    ),
    document("effect: allow, operations: ['*']", name="eves", subjects="{user: eve}"),
)


def said(policy_set: PolicySet, operation: Operation) -> dict[str, object]:
    """As a program reads it."""
    found: dict[str, object] = json.loads(json.dumps(as_data(explain(policy_set, operation))))
    return found


def test_what_a_rule_decides() -> None:
    found = said(SET, Operation(BOB, "basic.get", queue="q"))
    assert found == {
        "request": "basic.get queue 'q'",
        "verdict": "allow",
        "by": "one/yes",
        "reason": "one/yes",
        "steps": [
            {
                "request": "basic.get queue 'q'",
                "verdict": "allow",
                "rules": [
                    {
                        "policy": "one",
                        "rule": "yes",
                        "effect": "allow",
                        "matches": True,
                        "decides": True,
                        "whyNot": None,
                    },
                    {
                        "policy": "one",
                        "rule": "no",
                        "effect": "deny",
                        "matches": False,
                        "decides": False,
                        "whyNot": "queue 'q' is not literal 'secret'",
                    },
                ],
            }
        ],
        "policies": [
            {"policy": "eves", "counts": False, "why": "user 'bob' is not eve"},
            {"policy": "one", "counts": True, "why": None},
        ],
        "mirror": None,
        "login": None,
    }


def test_what_no_rule_decides() -> None:
    found = said(SET, Operation(BOB, "basic.get", queue="x"))
    assert (found["verdict"], found["by"]) == ("deny", "default")
    assert found["reason"] == "default: no rule allows it for this queue"


@pytest.mark.parametrize("policy_set", [PolicySet.empty(), SET])
def test_whom_no_policy_selects(policy_set: PolicySet) -> None:
    found = said(policy_set, Operation(Principal("al", "prod"), "basic.get", queue="q"))
    assert (found["verdict"], found["by"]) == ("allow", "default")
    assert found["reason"] == "defaultAccess: no policy selects"
    assert found["steps"] == [{"request": "basic.get queue 'q'", "verdict": "allow", "rules": []}]


def test_names_that_are_no_text_are_still_json() -> None:
    """As they come from a peer's bytes."""
    found = said(SET, Operation(BOB, "basic.get", queue='\udcff\n"'))
    assert found["request"] == "basic.get queue '\udcff\n\"'"
