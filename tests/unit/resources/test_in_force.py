"""How much gets in force: what is above the bounds is refused, and takes no room from others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from amqpgate.resources import in_force
from amqpgate.resources.documents import Resource, ResourceKey, WrittenResource, written
from amqpgate.resources.in_force import (
    MOST_BYTES,
    MOST_BYTES_OF_TENANT,
    MOST_OF_TENANT,
    MOST_RESOURCES,
    Found,
    ResourceJudge,
    ResourcesInForce,
    SettledResources,
)
from amqpgate.resources.settings import parse

JUDGE = ResourceJudge.of(parse('tenants: [{namespace: shop, subjects: [{user: "*"}]}]', {}), "mq")
NOTHING = ResourcesInForce({})


POLICY: Resource = {
    "spec": {
        "subjects": [{"user": "orders"}],
        "rules": [{"id": "a", "effect": "allow", "operations": ["basic.publish"], "exchange": "orders"}],
    }
}


def made(names: Iterable[str], namespace: str = "mq", size: int = 0) -> list[Found]:
    """Each the same as the first, but for its name: to read a thousand of them takes long."""
    found = []
    first: WrittenResource | None = None
    for name in names:
        key = ResourceKey("AccessPolicy", namespace, name)
        first = first or written(key, name, POLICY, 1)
        judged = attrs.evolve(first, key=key, text=first.text + "#" * size)
        found.append(Found(key, name, 1, name, judged))
    return found


def numbered(count: int, *args: Any, start: int = 0) -> list[Found]:
    return made([f"n{number:05}" for number in range(start, start + count)], *args)


def settled(found: list[Found], before: ResourcesInForce = NOTHING) -> SettledResources:
    return JUDGE.settle(before, found)


def why(now: SettledResources) -> dict[str, str]:
    return {key.name: refused.reason for key, refused in now.refused.items()}


def test_a_thousand_are_in_force_and_the_first_that_came_stay() -> None:
    found = numbered(MOST_RESOURCES + 2)
    now = settled(found)
    assert len(now.in_force.resources) == len(now.in_force.files) == MOST_RESOURCES
    assert why(now) == {"n01000": "TooMany", "n01001": "TooMany"}
    # The oldest goes, and the next has room; who is there may change.
    changed = made(["n00001"], "mq", 100)
    now = settled([*changed, *found[2:]], now.in_force)
    assert why(now) == {"n01001": "TooMany"}
    assert now.in_force.resources[changed[0].key] == changed[0].judged


def test_a_tenant_takes_no_room_from_others() -> None:
    now = settled([*numbered(MOST_OF_TENANT + 5, "shop"), *made(["own"])])
    assert set(why(now).values()) == {"TooMany"}
    assert len(why(now)) == 5
    assert ResourceKey("AccessPolicy", "mq", "own") in now.in_force.resources


def test_bytes_of_a_tenant() -> None:
    found = numbered(4, "shop", 60_000)
    now = settled(found)
    assert why(now) == {"n00003": "TooLarge"}
    assert sum(map(len, now.in_force.files.values())) <= MOST_BYTES_OF_TENANT
    # One that shrinks makes room.
    smaller = made(["n00000"], "shop", 10)
    assert why(settled([*smaller, *found[1:]], now.in_force)) == {}


def test_all_of_it_fits_a_config_map() -> None:
    found = numbered(12, "mq", 100_000)
    now = settled(found)
    assert set(why(now).values()) == {"TooLarge"}
    files = now.in_force.files
    size = sum(len(name) + len(text.encode()) for name, text in files.items())
    assert MOST_BYTES - 101_000 < size <= MOST_BYTES < 1 << 20
    # What is full stays as it is, and one that grows keeps its version of before.
    larger = made([found[0].key.name], "mq", 250_000)
    after = settled([*larger, *found[1:]], now.in_force)
    assert why(after)[found[0].key.name] == "TooLarge"
    assert after.in_force.resources[found[0].key] == found[0].judged


def test_bytes_are_counted_not_characters() -> None:
    (found,) = made(["a"])
    assert isinstance(found.judged, WrittenResource)
    wide = attrs.evolve(found.judged, text=found.judged.text + "é" * 100)
    assert in_force._size(wide) - in_force._size(found.judged) == 200
