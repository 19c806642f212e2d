"""RabbitMQ's permissions as policies: what is translated, what is refused, what is said.

That they answer as RabbitMQ does is tested with RabbitMQ: tests/interop/test_policy_import.py.
"""

from __future__ import annotations

import json

import pytest

from amqpgate.errors import ConfigError
from amqpgate.policy import Operation, PolicySet, Principal, build
from amqpgate.policy.loader import documents_of
from amqpgate.policy.tools.checks import findings
from amqpgate.policy.tools.definitions import parse
from amqpgate.policy.tools.rabbitmq_import import Imported, import_permissions, translated
from amqpgate.yamldoc import Invalid

BOB = Principal("bob", "/")


def imported(
    configure: str = "", write: str = "", read: str = "", *topics: dict[str, str], exchanges: object = ()
) -> Imported:
    said = {
        "users": [{"name": "bob"}, {"name": "eve"}],
        "vhosts": [{"name": "/"}, {"name": "closed"}],
        "permissions": [{"user": "bob", "vhost": "/", "configure": configure, "write": write, "read": read}],
        "topic_permissions": [
            {"user": "bob", "vhost": "/", "write": "", "read": "", **topic} for topic in topics
        ],
        "exchanges": exchanges,
    }
    return import_permissions(parse(json.dumps(said).encode(), "d.json"), "d.json")


def policies(*permissions: str) -> PolicySet:
    return build(imported(*permissions).files)


def allowed(policy_set: PolicySet, name: str, **attributes: str) -> bool:
    return policy_set.decide(Operation(BOB, name, **attributes)).allowed


@pytest.mark.parametrize(
    ("regex", "written"),
    [
        ("", "^$"),
        ("^a.*", "^a.*"),
        ("a{2}", "a{2}"),
        ("{user}", r"\x7buser}"),
        (r"\{user}", r"\x7buser}"),
        (r"\\{user}", r"\\\x7buser}"),
        (r"[{a]\p{Greek}", r"[\x7ba]\p{Greek}"),
    ],
)
def test_braces_do_not_become_variables(regex: str, written: str) -> None:
    assert translated(regex) == written


@pytest.mark.parametrize("regex", ["(?!a)", r"(a)\1", "a++", "(?>a)", r"\Q{a}\E", r"a\Z"])
def test_what_re2_does_not_have_is_denied_and_told(regex: str) -> None:
    with pytest.raises(Invalid):
        translated(regex)
    made = imported(regex, ".*", ".*")
    (gap,) = made.gaps
    assert gap.startswith(f"a permission of user 'bob' in vhost '/': configure '{regex}': ")
    policy_set = build(made.files, "allow")
    assert not allowed(policy_set, "basic.publish", exchange="x", routing_key="k")
    assert not allowed(policy_set, "queue.declare", queue="q", passive="")
    assert not findings(documents_of(made.files))


def test_all_that_cannot_be_said_is_told_and_the_others_are_written() -> None:
    def one(user: str, vhost: str, *regex: str) -> dict[str, str]:
        return dict(zip(("user", "vhost", "configure", "write", "read"), (user, vhost, *regex), strict=True))

    said = {
        "users": [{"name": user} for user in ("bob", "eve", "al*", "zoe\n")],
        "vhosts": [{"name": "/"}, {"name": "*"}],
        "permissions": [
            one("bob", "/", ".*", ".*", ".*"),
            one("bob", "*", ".*", ".*", ".*"),
            one("al*", "/", "", "", ""),
            one("eve", "/", "(?!a)", "", "(?=b)"),
            one("zoe\n", "/", "", "", ""),
        ],
        "topic_permissions": [
            {"user": "zoe\n", "vhost": "/", "exchange": exchange, "write": r"\1(", "read": ""}
            for exchange in ("amq.topic", "amq.direct")
        ],
    }
    made = import_permissions(parse(json.dumps(said).encode(), "d.json"), "d.json")
    assert [
        gap.partition(": ")[0] + ": " + gap.partition(": ")[2].partition(":")[0] for gap in made.gaps
    ] == [
        "user 'al*': subjects cannot mean a name with an asterisk or {NAME} in it, so no policy selects it; "
        "`defaultAccess",
        "vhost '*': subjects cannot mean a name with an asterisk or {NAME} in it, so no policy selects it; "
        "`defaultAccess",
        "a permission of user 'eve' in vhost '/': configure '(?!a)'",
        "a permission of user 'eve' in vhost '/': read '(?=b)'",
        "a permission of user 'zoe\n' in vhost '/': write on exchange 'amq.topic' '\\1('",
    ]
    policy_set = build(made.files, "allow")
    assert allowed(policy_set, "queue.delete", queue="q")
    for user in ("eve", "zoe\n"):
        verdict = policy_set.decide(Operation(Principal(user, "/"), "queue.delete", queue="q"))
        assert (verdict.allowed, verdict.rule) == (False, "not-imported")
    (eve,) = (file.data.decode() for file in made.files if file.name == "eve.yaml")
    assert eve.startswith(
        "# RabbitMQ's permission cannot be said here, so all is denied:\n# configure '(?!a)': "
    )
    assert not findings(documents_of(made.files))


def test_where_nothing_can_be_said_nothing_is_written() -> None:
    said = {"permissions": [{"user": "*", "vhost": "*", "configure": "", "write": "", "read": ""}]}
    with pytest.raises(ConfigError, match=r"user '\*': subjects cannot") as caught:
        import_permissions(parse(json.dumps(said).encode(), "d.json"), "d.json")
    assert len(caught.value.all) == 2


def test_a_permission_is_found_anywhere_in_the_name() -> None:
    policy_set = policies("b", "", "")
    assert allowed(policy_set, "queue.delete", queue="abc")
    assert not allowed(policy_set, "queue.delete", queue="ac")


@pytest.mark.parametrize(
    ("write", "default", "named"),
    [
        ("", False, False),
        (".*", True, True),
        ("^$", False, False),
        ("amq.default", True, False),
        ("^x", False, True),
    ],
)
def test_the_default_exchange_is_called_amq_default(write: str, default: bool, named: bool) -> None:
    policy_set = policies("", write, "")
    assert allowed(policy_set, "basic.publish", exchange="", routing_key="q") is default
    assert allowed(policy_set, "basic.publish", exchange="x", routing_key="q") is named


@pytest.mark.parametrize(
    ("configure", "server_named"),
    [
        (".*", True),
        ("", False),
        ("^amq[.]gen-$", False),
        ("^amq[.]gen-.{22}$", True),
        ("^amq[.]gen-A", False),
    ],
)
def test_a_server_named_queue_is_judged_by_the_name_that_it_will_get(
    configure: str, server_named: bool
) -> None:
    assert allowed(policies(configure, "", ""), "queue.declare", queue="") is server_named


def test_chance_is_not_imported() -> None:
    (note,) = imported("^amq[.]gen-A").notes
    assert note.startswith("permission of user 'bob' in vhost '/': whether RabbitMQ lets it declare")


def test_users_without_permission_may_not_open_the_vhost() -> None:
    policy_set = policies(".*", ".*", ".*")
    for user, vhost, may in (("bob", "/", True), ("bob", "closed", False), ("eve", "/", False)):
        verdict = policy_set.decide(Operation(Principal(user, vhost), "connection.open"))
        assert verdict.allowed is may


def test_topic_permissions_hold_for_topic_exchanges_only() -> None:
    exchanges = [{"vhost": "/", "name": "t", "type": "topic"}, {"vhost": "/", "name": "d", "type": "direct"}]
    made = imported(
        "", ".*", "",
        {"exchange": "t", "write": "^{username}[.]"}, {"exchange": "d"}, {"exchange": "unknown"},
        {"exchange": ""},
        exchanges=exchanges,
    )  # fmt: skip
    policy_set = build(made.files)
    for exchange, key, may in (
        ("t", "bob.1", True),
        ("t", "eve.1", False),
        ("d", "eve.1", True),
        ("unknown", "eve.1", False),
        ("", "eve.1", True),
    ):
        assert allowed(policy_set, "basic.publish", exchange=exchange, routing_key=key) is may
    assert [note.partition("exchange ")[2][:20] for note in made.notes] == [
        "'d' in vhost '/': le",
        "'unknown' in vhost '",
        "'' in vhost '/': lef",
    ]


def test_a_binding_key_counts_as_it_is_written() -> None:
    policy_set = build(imported("", ".*", ".*", {"exchange": "amq.topic", "read": "^a"}).files)
    bind = {"queue": "q", "exchange": "amq.topic"}
    assert allowed(policy_set, "queue.bind", routing_key="a.#", **bind)
    assert not allowed(policy_set, "queue.bind", routing_key="#", **bind)


@pytest.mark.parametrize("regex", ["^a.*z$", "(?i)^A.*Z$", "^b$|^a.*z$"])
def test_a_dot_is_no_line_feed_as_for_rabbitmq(regex: str) -> None:
    policy_set = build(
        imported("", ".*", ".*", {"exchange": "amq.topic", "write": regex, "read": regex}).files
    )
    for key, may in (("a.z", True), ("a\nz", False), ("a\rz", True), ("az\n", False)):
        assert allowed(policy_set, "basic.publish", exchange="amq.topic", routing_key=key) is may
        assert allowed(policy_set, "queue.bind", exchange="amq.topic", queue="q", routing_key=key) is may


def test_names_of_any_letters_come_out_as_they_were() -> None:
    name = 'é "\\ \x85 \U0001f600: #'
    said = {"permissions": [{"user": name, "vhost": "no", "configure": ".*", "write": "", "read": ""}]}
    made = import_permissions(parse(json.dumps(said).encode(), "d.json"), "d.json")
    verdict = build(made.files).decide(Operation(Principal(name, "no"), "queue.delete", queue="q"))
    assert (verdict.allowed, verdict.policy) == (True, f"{name}@no")


PERMISSIONS = ["", ".*", "^$", "^shop[.]", "amq.default", "^(orders|shop[.].*)$", "^amq[.]gen.*", "^amq[.]"]


@pytest.mark.parametrize("configure", PERMISSIONS)
@pytest.mark.parametrize("write", PERMISSIONS)
def test_the_linter_has_nothing_to_say(configure: str, write: str) -> None:
    for read in PERMISSIONS:
        topic = {"exchange": "orders", "write": "^order[.]", "read": ".*"}
        exchanges = [{"name": "orders", "vhost": "/", "type": "topic"}]
        files = imported(configure, write, read, topic, exchanges=exchanges).files
        assert not findings(documents_of(files))


def test_each_user_has_a_file() -> None:
    users = ["shop", "Shop", "a b/c", ".hidden", "..", "é"]
    said = {
        "users": [{"name": user} for user in users],
        "vhosts": [{"name": "/"}],
        "permissions": [
            {"user": user, "vhost": "/", "configure": "", "write": "", "read": ""} for user in users
        ],
    }
    files = import_permissions(parse(json.dumps(said).encode(), "d.json"), "d.json").files
    assert [file.name for file in files] == [
        "shop.yaml",
        "Shop-002.yaml",
        "a-b-c.yaml",
        "hidden.yaml",
        "user.yaml",
        "user-002.yaml",
    ]
    assert len(build(files).documents) == len(users)


def test_of_very_many_users_files_have_many_policies() -> None:
    users = [f"u{number}" for number in range(501)]
    said = {
        "users": [{"name": user} for user in users],
        "vhosts": [{"name": "/"}],
        "permissions": [],
    }
    files = import_permissions(parse(json.dumps(said).encode(), "d.json"), "d.json").files
    assert [file.name for file in files] == [
        "rabbitmq.yaml",
        *(f"rabbitmq-{number:03}.yaml" for number in range(2, 7)),
    ]
