"""Audit policies from short texts."""

from __future__ import annotations

from amqpgate.policy import PolicySet, Source, build

HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: AuditPolicy\nmetadata: {name: %s}\nspec:\n"


def policy(*rules: str, name: str = "p", subjects: str = "{user: bob}") -> str:
    lines = [
        f"  - {{{rule if 'id:' in rule else f'id: r{number}, {rule}'}}}" for number, rule in enumerate(rules)
    ]
    return HEAD % name + f"  subjects: [{subjects}]\n  rules:\n" + "\n".join(lines) + "\n"


def policies(*documents: str) -> PolicySet:
    return build([Source("p.yaml", "---\n".join(documents).encode())])


#: The inside of a rule: how much of a body is kept at most, and what is replaced in it.
CARDS = "operations: ['*'], level: body, maxBodyBytes: %d, redact: {bodyPatterns: [%s]}"
