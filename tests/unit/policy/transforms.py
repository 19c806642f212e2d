"""Transform policies from short texts."""

from __future__ import annotations

from amqpgate.policy import PolicySet, Principal, Source, Transform, build

BOB = Principal("bob", "prod")

HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: TransformPolicy\nmetadata: {name: %s}\nspec:\n"


def transforms(*specs: str, subjects: str = "{user: '*'}") -> PolicySet:
    """Policies named p0, p1, ...; each spec is what stands in it besides the subjects."""
    documents = []
    for index, spec in enumerate(specs):
        lines = spec.strip().splitlines()
        if not any(line.startswith("subjects:") for line in lines):
            lines.insert(0, f"subjects: [{subjects}]")
        documents.append(HEAD % f"p{index}" + "".join(f"  {line}\n" for line in lines))
    return build([Source("p.yaml", "---\n".join(documents).encode())])


def transform(*specs: str, principal: Principal = BOB) -> Transform:
    found = transforms(*specs).transform_for(principal)
    assert found is not None
    return found


NAMES = "names: {both: {prefix: '%s'}}"
