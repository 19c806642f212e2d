"""Objects of a broker: as its management interface lists them, and as it takes them."""

from __future__ import annotations

import pytest

from amqpgate.move.objects import BrokerLists, BrokerObject, is_same, objects_of, path_of

DEFINITIONS = {
    "vhosts": [{"name": "prod"}, {"name": "other"}],
    "users": [
        {
            "name": "app",
            "password_hash": "h",
            "hashing_algorithm": "sha",
            "tags": ["a", "b"],
            "limits": {"max-connections": 3},
        },
        {"name": "stranger", "password_hash": "h", "hashing_algorithm": "sha", "tags": []},
    ],
    "permissions": [
        {"user": "app", "vhost": "prod", "configure": "", "write": ".*", "read": ".*"},
        {"user": "stranger", "vhost": "other", "configure": "", "write": ".*", "read": ".*"},
    ],
    "topic_permissions": [{"user": "app", "vhost": "prod", "exchange": "t", "write": "w", "read": "r"}],
    "policies": [
        {
            "vhost": "prod",
            "name": "p",
            "pattern": "^q",
            "definition": {"a": 1},
            "priority": 0,
            "apply-to": "all",
        }
    ],
    "parameters": [
        {"component": "vhost-limits", "name": "limits", "vhost": "prod", "value": {"max-queues": 9}},
        {"component": "operator_policy", "name": "op", "vhost": "prod", "value": {"pattern": "x"}},
        {"component": "shovel", "name": "s h", "vhost": "prod", "value": {"src-uri": "a"}},
    ],
}
QUEUES = [
    {"name": "federation: ex -> far", "durable": True, "auto_delete": False, "arguments": {}},
    {
        "name": "q/1",
        "durable": True,
        "auto_delete": False,
        "arguments": {"x-max-length": 1},
        "type": "classic",
    },
    {"name": "mine", "durable": False, "auto_delete": False, "exclusive": True, "arguments": {}},
    {"name": "amq.gen-x", "durable": False, "auto_delete": True, "arguments": {}},
    {"name": "amqpgate.move", "durable": False, "auto_delete": False, "arguments": {}},
]
EXCHANGES = [
    {"name": "", "type": "direct", "durable": True, "arguments": {}},
    {"name": "amq.topic", "type": "topic", "durable": True, "arguments": {}},
    {"name": "amqpgate.move.0", "type": "fanout", "durable": True, "arguments": {}},
    {"name": "ex", "type": "topic", "durable": True, "auto_delete": False, "internal": True, "arguments": {}},
]


def binding(source: str, kind: str, to: str, key: str = "k") -> dict[str, object]:
    return {
        "source": source,
        "destination_type": kind,
        "destination": to,
        "routing_key": key,
        "arguments": {},
        "vhost": "prod",
    }


BINDINGS = [
    binding("", "queue", "q/1"),
    binding("amq.topic", "queue", "q/1"),
    binding("ex", "exchange", "amq.topic"),
    binding("ex", "queue", "mine"),
    binding("ex", "queue", "amq.gen-x"),
    binding("ex", "queue", "federation: ex -> far"),
    binding("ex", "exchange", "federation: ex -> far"),
    binding("amqpgate.move.0", "queue", "q/1"),
]
LISTS = BrokerLists(DEFINITIONS, {"prod": QUEUES}, {"prod": EXCHANGES}, {"prod": BINDINGS})


def test_what_belongs_to_the_virtual_hosts_is_copied_in_the_order_in_which_it_is_made() -> None:
    assert [str(one) for one in objects_of(LISTS, ["prod"])] == [
        "vhost prod",
        "user app",
        "user-limit app max-connections",
        "permission prod app",
        "topic-permission prod app t",
        "limit prod max-queues",
        "operator-policy prod op",
        "policy prod p",
        "parameter prod shovel s h",
        "exchange prod ex",
        "queue prod q/1",
        "binding prod amq.topic to queue q/1 by 'k'",
        "binding prod ex to exchange amq.topic by 'k'",
    ]


def test_users_without_a_permission_there_count_as_what_a_broker_has() -> None:
    users = [one.name for one in objects_of(LISTS, ["prod"], every_user=True) if one.kind == "user"]
    assert users == ["app", "stranger"]


def test_each_is_made_by_one_request() -> None:
    assert [path_of(one)[:2] for one in objects_of(LISTS, ["prod"])] == [
        ("PUT", "/vhosts/prod"),
        ("PUT", "/users/app"),
        ("PUT", "/user-limits/app/max-connections"),
        ("PUT", "/permissions/prod/app"),
        ("PUT", "/topic-permissions/prod/app"),
        ("PUT", "/vhost-limits/prod/max-queues"),
        ("PUT", "/operator-policies/prod/op"),
        ("PUT", "/policies/prod/p"),
        ("PUT", "/parameters/shovel/prod/s%20h"),
        ("PUT", "/exchanges/prod/ex"),
        ("PUT", "/queues/prod/q%2F1"),
        ("POST", "/bindings/prod/e/amq.topic/q/q%2F1"),
        ("POST", "/bindings/prod/e/ex/e/amq.topic"),
    ]
    bodies = {one.kind: path_of(one)[2] for one in objects_of(LISTS, ["prod"])}
    assert bodies["user"] == {"password_hash": "h", "hashing_algorithm": "sha", "tags": "a,b"}
    assert bodies["user-limit"] == {"value": 3}
    assert bodies["topic-permission"] == {"exchange": "t", "write": "w", "read": "r"}
    assert bodies["parameter"] == {"value": {"src-uri": "a"}}
    assert bodies["queue"] == {"durable": True, "auto_delete": False, "arguments": {"x-max-length": 1}}
    assert bodies["binding"] == {"routing_key": "k", "arguments": {}}


def queue(kind: str = "classic", durable: bool = True, **arguments: object) -> BrokerObject:
    named = {name.replace("_", "-"): value for name, value in arguments.items()}
    body = {"durable": durable, "auto_delete": False, "arguments": named, "type": kind}
    return BrokerObject("queue", "prod", "q", body)


@pytest.mark.parametrize(
    ("wanted", "there", "same"),
    [
        (queue(), queue(), True),
        # RabbitMQ 4 spells out what 3 leaves away.
        (queue(), queue(x_queue_type="classic"), True),
        (queue(x_queue_type="quorum", kind="quorum"), queue(x_queue_type="quorum", kind="quorum"), True),
        (queue(), queue(x_queue_type="quorum", kind="quorum"), False),
        (queue(), queue(durable=False), False),
        (queue(x_max_length=1), queue(), False),
    ],
)
def test_queues_are_the_same_if_a_client_could_declare_both(
    wanted: BrokerObject, there: BrokerObject, same: bool
) -> None:
    assert is_same(wanted, there) is same
    assert is_same(there, wanted) is same


def test_no_name_is_a_command_for_a_terminal() -> None:
    assert "\x1b" not in str(BrokerObject("queue", "v", "q\x1b[2J\n", {}))


def test_users_are_the_same_by_their_hash_alone() -> None:
    one = BrokerObject("user", "", "u", {"password_hash": "h", "hashing_algorithm": "s", "tags": "a"})
    assert is_same(one, one.with_body(tags=""))
    assert not is_same(one, one.with_body(password_hash="other"))
