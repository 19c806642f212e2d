"""What a transform document may say."""

from __future__ import annotations

import pytest

from amqpgate.errors import ConfigError
from tests.unit.policy.transforms import NAMES, transforms


@pytest.mark.parametrize(
    ("spec", "where", "why"),
    [
        ("mode: shadow\n" + NAMES % "a.", "6:9", "expected one of enforce, off; not 'shadow'"),
        ("enforcePercent: 5\n" + NAMES % "a.", "6:3", "is not for transform policies"),
        ("mode: enforce", "5:3", "changes nothing"),
        (NAMES % "amq.x", "6:26", "RabbitMQ keeps names that start with amq. for itself"),
        (NAMES % "{user}", "6:26", "a variable needs a separator behind it"),
        (NAMES % "{user}{vhost}.", "6:26", "a variable needs a separator behind it"),
        (NAMES % "{usr}.", "6:26", r"unknown variable \{usr\}"),
        (NAMES % ("x" * 200), "6:26", "would leave no room for names"),
        ("names: {both: {prefix: a.}, queues: {prefix: b.}}", "6:17", "give both, or exchanges and queues"),
        ("names: {both: {}}", "6:17", "say prefix, map, or both"),
        ("names: {both: {map: {a: x, b: x}}}", "6:33", "'a' and 'b' would be the same to the broker"),
        ("names: {both: {map: {'': x}}}", "6:", "the default exchange and server-named queues keep"),
        ("names: {both: {map: {a: '{user}.x'}}}", "6:", "variables are not expanded here"),
        ("arguments: [{id: r, operations: [queue.declare]}]", "6:15", "changes nothing"),
        (
            "arguments: [{id: r, operations: [queue.declare], exchange: x, strip: [y]}]",
            "6:36",
            "'queue.declare' has no exchange",
        ),
        (
            "arguments: [{id: r, operations: [queue.declare], add: {x: {number: 1, flag: true}}}]",
            "6:",
            "exactly one of text, number and flag",
        ),
        ("arguments: [{id: r, operations: [basic.get], strip: [y]}]", "6:", "expected one of queue.declare"),
        (
            "arguments: [{id: r, operations: [queue.declare], force: {a: b}, ceilings: {a: 5}}]",
            "6:",
            "is forced already",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(spec: str, where: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        transforms(spec)
    assert f"p.yaml:{where}" in str(caught.value)
