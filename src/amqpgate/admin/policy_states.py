"""Which policies are in force, as all workers together say it."""

from __future__ import annotations

import json
from typing import Final

from amqpgate.admin.subject import AdminSubject
from amqpgate.gateway.server.policy_state import PolicyState, combine
from amqpgate.telemetry.answers import Answers

#: Seconds that the workers may take to say it.
_PATIENCE: Final = 0.5


async def policy_state(subject: AdminSubject) -> PolicyState:
    """What is in force, and what was wrong with what was read last."""
    return combined(await subject.call("policy_state", patience=_PATIENCE))


def combined(answers: Answers) -> PolicyState:
    """What the workers say as one."""
    said = [PolicyState.from_json(json.dumps(state)) for state in answers.values()]
    return combine([*said, *[None] * len(answers.silent)])
