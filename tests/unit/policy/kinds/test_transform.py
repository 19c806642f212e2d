"""What policy check says of transform policies, and what operators see of them."""

from __future__ import annotations

import pytest

from tests.unit.policy.build_set import found
from tests.unit.policy.transforms import NAMES, transforms


@pytest.mark.parametrize(
    ("names", "room"),
    [
        ("both: {prefix: t1.}", "exchanges and queues 252 bytes"),
        ("queues: {prefix: 'é-'}", "queues 252 bytes"),
        ("exchanges: {prefix: '{user}.'}", "exchanges 255 bytes less those of the prefix '{user}.'"),
    ],
)
def test_a_prefix_leaves_less_room(names: str, room: str) -> None:
    transform = (
        "apiVersion: amqpgate.io/v1alpha1\nkind: TransformPolicy\nmetadata: {name: t}\nspec:\n"
        f"  subjects: [{{}}]\n  names: {{{names}}}\n"
    )
    (one,) = found(transform)
    assert one == f"6 note policy 't' leaves names of {room} at most: a longer one is denied with 406"


def test_a_map_of_names_leaves_all_room() -> None:
    transform = (
        "apiVersion: amqpgate.io/v1alpha1\nkind: TransformPolicy\nmetadata: {name: t}\nspec:\n"
        "  subjects: [{}]\n  names: {queues: {map: {a: b}}}\n"
    )
    assert found(transform) == []


def test_operators_see_that_it_is_there() -> None:
    assert list(transforms("mode: off\n" + NAMES % "a.").rows()) == [
        {"kind": "TransformPolicy", "name": "p0", "mode": "off", "rules": []}
    ]
