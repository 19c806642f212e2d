"""An explanation as JSON has it: of ``amqpgate policy explain --json``, and of the admin interface."""

from __future__ import annotations

from amqpgate.policy.engine.requests import words_for
from amqpgate.policy.tools.explain import Explanation
from amqpgate.yamldoc.nodes import Plain


def as_data(said: Explanation) -> dict[str, Plain]:
    """The explanation for programs."""
    return {
        "request": words_for(said.operation),
        "verdict": said.verdict.effect,
        "by": said.verdict.name if said.verdict.policy is not None else said.verdict.rule,
        "reason": said.by,
        "steps": [
            {
                "request": words_for(step.operation),
                "verdict": step.verdict.effect,
                "rules": [
                    {
                        "policy": rule.policy,
                        "rule": rule.rule,
                        "effect": rule.effect,
                        "matches": rule.matches,
                        "decides": rule.decides,
                        "whyNot": rule.mismatch or None,
                    }
                    for rule in step.rules
                ],
            }
            for step in said.steps
        ],
        "policies": [
            {"policy": policy.policy, "counts": policy.counts, "why": policy.why or None}
            for policy in said.policies
        ],
        "mirror": said.mirror,
        "login": said.login,
    }
