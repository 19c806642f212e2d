"""Policy sets from short texts."""

from __future__ import annotations

from amqpgate.policy import PolicySet, Principal, Source, build
from amqpgate.policy.loader import documents_of
from amqpgate.policy.tools.checks import findings

BOB = Principal("bob", "prod")

HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: AccessPolicy\nmetadata: {name: %s}\nspec:\n"


def document(*rules: str, name: str = "p", subjects: str = "{user: bob}") -> str:
    """One AccessPolicy; each rule is the inside of a flow mapping, its id is r0, r1, ... unless given."""
    lines = [
        f"  - {{{rule if 'id:' in rule else f'id: r{index}, {rule}'}}}" for index, rule in enumerate(rules)
    ]
    body = "  rules:\n" + "\n".join(lines) if rules else "  rules: []"
    return HEAD % name + f"  subjects: [{subjects}]\n{body}\n"


def policies(*documents: str) -> PolicySet:
    """The set of these documents."""
    return build([Source("p.yaml", "---\n".join(documents).encode())])


def rules(*rules: str) -> PolicySet:
    """The set of one policy about the user bob."""
    return policies(document(*rules))


def found(*documents: str) -> list[str]:
    """Line, level and sentence of each finding."""
    sources = [Source("p.yaml", "---\n".join(documents).encode())]
    return [f"{one.mark.line} {one.level} {one.text}" for one in findings(documents_of(sources))]
