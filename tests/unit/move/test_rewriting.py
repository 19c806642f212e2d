"""What becomes of a broker's objects on RabbitMQ 4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.session.compatibility import adapted
from amqpgate.move.objects import BrokerObject
from amqpgate.move.rewriting import profiles_of, rewritten, target_of
from amqpgate.policy import PolicySet, Source, build
from amqpgate.policy.engine.naming import NotTransformedError
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

PROFILE = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {{name: three}}
spec:
  subjects: [{subject}]
  as: rabbitmq-3.13
  upstreams: [green]
  deliveryLimits: [{{limit: 7}}]
"""
HOSTS = [
    BrokerObject("vhost", "v", "v", {}),
    BrokerObject("permission", "v", "other", {}),
    BrokerObject("permission", "v", "app", {}),
]


def policies(subject: str = "{}") -> PolicySet:
    return build([Source("p.yaml", PROFILE.format(subject=subject).encode())])


def queue(durable: bool = True, **arguments: object) -> BrokerObject:
    named = {name.replace("_", "-"): value for name, value in arguments.items()}
    return BrokerObject("queue", "v", "q", {"durable": durable, "auto_delete": False, "arguments": named})


def policy(**definition: object) -> BrokerObject:
    return BrokerObject("policy", "v", "p", {"pattern": ".*", "definition": definition})


@pytest.mark.parametrize(
    ("version", "target"),
    [
        ("3.10.8", None),
        ("4.0.5", "4.0"),
        ("4.2.6", "4.2"),
        ("4.3.6", "4.3"),
        ("4.9.0", "4.3"),
        ("5.0", "4.3"),
    ],
)
def test_versions(version: str, target: str | None) -> None:
    assert target_of(version) == target


@pytest.mark.parametrize(
    ("subject", "known"), [("{}", True), ("{vhosts: [v]}", True), ("{user: app}", True), ("{user: x}", False)]
)
def test_the_profile_is_that_of_the_virtual_hosts_clients(subject: str, known: bool) -> None:
    found = profiles_of(policies(subject), "green", HOSTS)
    assert set(found) == ({"v"} if known else set())
    assert not profiles_of(policies(subject), "blue", HOSTS)


def test_a_queue_is_what_a_client_would_declare() -> None:
    profiles = profiles_of(policies(), "green", HOSTS)
    made = rewritten([queue(durable=False), queue(x_queue_version=1, x_ha_policy="all")], "4.3", profiles)
    first, second = made.objects
    assert first.body["durable"] is True
    assert first.arguments == {"x-queue-type": "classic", "x-expires": 24 * 3600 * 1000}
    assert second.arguments == {}
    assert [note.says.partition(":")[0] for note in made.notes] == ["transient-queue", "retired-argument"]
    assert not any(note.is_refused for note in made.notes)


def test_without_a_profile_what_the_newer_broker_refuses_is_told_with_what_mends_it() -> None:
    made = rewritten([queue(x_queue_master_locator="random"), queue(durable=False)], "4.3", {})
    assert [(note.is_refused, note.mended_by) for note in made.notes] == [
        (True, "CompatibilityPolicy retiredArguments"),
        (False, "CompatibilityPolicy transientQueues"),
    ]
    assert not rewritten([queue(x_queue_master_locator="random")], None, {}).notes


def test_policies_lose_what_means_nothing_any_more() -> None:
    old = [
        policy(**{"ha-mode": "all", "ha-sync-mode": "automatic"}),
        policy(**{"ha-mode": "all", "max-length": 3}),
        policy(**{"queue-master-locator": "min-masters"}),
        policy(**{"max-length": 3}),
    ]
    made = rewritten(old, "4.3", {})
    assert [one.body["definition"] for one in made.objects] == [
        {"max-length": 3},
        {"queue-leader-locator": "balanced"},
        {"max-length": 3},
    ]
    assert not any(note.is_refused for note in made.notes)
    assert [one.body for one in rewritten(old, None, {}).objects] == [one.body for one in old]


NAMES = st.sampled_from(
    ["x-queue-version", "x-queue-mode", "x-ha-policy", "x-max-length", "x-expires", "x-queue-type", "x-odd"]
)
VALUES = st.one_of(
    st.integers(0, 9),
    st.sampled_from(["quorum", "classic", "random", "lazy"]),
    st.booleans(),
    st.none(),
    st.lists(st.integers(0, 3)),
)


@given(st.dictionaries(NAMES, VALUES), st.booleans())
def test_a_client_that_declares_its_queue_again_finds_the_copy(
    arguments: dict[str, object], durable: bool
) -> None:
    """What a client's declare becomes at the gateway is what was copied; and the copy is copied as it is."""
    profiles = profiles_of(policies(), "green", HOSTS)
    one = BrokerObject("queue", "v", "q", {"durable": durable, "auto_delete": False, "arguments": arguments})
    (made,) = rewritten([one], "4.3", profiles).objects
    declare = amqp.QueueDeclare(queue="q", durable=durable, arguments=Table.of(arguments))
    try:
        change = adapted(profiles["v"], declare, "v").method
    except NotTransformedError:
        assert made == one
        return
    assert isinstance(change, amqp.QueueDeclare)
    assert made.body["durable"] == change.durable
    assert made.arguments == change.arguments.to_python()
    (again,) = rewritten([made], "4.3", profiles).objects
    assert again.body == made.body


def test_what_no_table_can_hold_is_copied_as_it_is() -> None:
    profiles = profiles_of(policies(), "green", HOSTS)
    odd = queue(x_odd=2**70)
    assert rewritten([odd], "4.3", profiles).objects[0].body == odd.body
