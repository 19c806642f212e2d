"""Rules from what was done: as an engineer would write them, and what was done is allowed by them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.pipeline.jobs.recommendation import Recommendation, recommend_for
from amqpgate.pipeline.jobs.templates import words_of
from amqpgate.pipeline.jobs.uses import Evidence, Use
from amqpgate.policy import OPERATIONS, Operation, PolicySet, Principal, Source, build
from amqpgate.policy.loader import documents_of
from amqpgate.policy.tools.checks import findings

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
UUIDS = ["3fa85f64-5717-4562-b3fc-2c963f66afa6", "00000000-0000-4000-8000-000000000001"]


def evidence(requests: int = 1, days: int = 0) -> Evidence:
    """So many messages in so many days."""
    return Evidence(requests, requests, BEGIN, BEGIN + timedelta(days=days))


def use(operation: str, *, user: str = "bob", vhost: str = "prod", **names: object) -> Use:
    """One use; names are given as text."""
    key, queue, any_key = names.pop("key", None), names.pop("queue", None), bool(names.pop("any_key", False))
    given: dict[str, object] = {"evidence": evidence()} | names
    if queue is not None:
        given["queue"] = (queue,)
    if operation == "basic.publish" and names.get("exchange") == "" and not any_key:
        given["key_name"] = (key,)
    elif key is not None:
        given["routing_key"] = words_of(str(key), wild=any_key or OPERATIONS[operation].binds)
    return Use(user=user, vhost=vhost, operation=operation, any_key=any_key, **given)  # type: ignore[arg-type]


def rules_of(*uses: Use) -> list[str]:
    """The lines of the rules, without evidence."""
    lines = _text(recommend_for(uses)).splitlines()
    return [line.strip() for line in lines if line.startswith("  - ")]


def _text(found: Recommendation) -> str:
    return "".join(file.data.decode() for file in found.files)


def test_one_rule_per_queue_with_its_bindings() -> None:
    assert rules_of(
        use("queue.declare", queue="orders.in"),
        use("queue.bind", queue="orders.in", exchange="orders", key="order.*.created"),
        use("queue.bind", queue="orders.in", exchange="orders", key="order.eu.paid"),
        use("basic.consume", queue="orders.in"),
    ) == [
        "- {id: queue-orders.in, effect: allow, operations: [queue.declare, queue.bind, basic.consume], "
        'queue: orders.in, bindTo: [{exchange: orders, routingKey: "order.*.created"}, '
        "{exchange: orders, routingKey: order.eu.paid}]}"
    ]


def test_what_is_only_asked_for_may_only_be_asked_for() -> None:
    assert rules_of(use("queue.declare", queue="a", passive=True), use("basic.get", queue="a")) == [
        "- {id: queue-a-ask, effect: allow, operations: [queue.declare], queue: a, passive: true}",
        "- {id: queue-a, effect: allow, operations: [basic.get], queue: a}",
    ]


def test_other_unbinds_than_binds_are_a_rule_of_their_own() -> None:
    done = [
        use("queue.bind", queue="q", exchange="x", key="a", evidence=evidence(2)),
        use("queue.unbind", queue="q", exchange="x", key="b", evidence=evidence(3)),
    ]
    assert rules_of(*done) == [
        "- {id: queue-q, effect: allow, operations: [queue.bind], queue: q, "
        "bindTo: [{exchange: x, routingKey: a}]}",
        "- {id: queue-q-unbind, effect: allow, operations: [queue.unbind], queue: q, "
        "bindTo: [{exchange: x, routingKey: b}]}",
    ]
    assert [grant.evidence.requests for _, grant in recommend_for(done).rules] == [2, 3]


def test_publishes_by_exchange_and_key() -> None:
    assert rules_of(
        *(use("basic.publish", exchange="orders", key=f"order.{number}.created") for number in range(3)),
        use("basic.publish", exchange="orders", key="order.1.paid"),
        use("basic.publish", exchange="", key="replies"),
        *(use("basic.publish", exchange="", key=f"amq.gen-{number}") for number in range(3)),
        use("basic.publish", exchange="logs", key=""),
    ) == [
        '- {id: publish-to-queue, effect: allow, operations: [basic.publish], exchange: "", '
        'routingKey: {prefix: "amq.gen-"}}',
        '- {id: "publish-to-queue-2", effect: allow, operations: [basic.publish], exchange: "", '
        "routingKey: replies}",
        '- {id: publish-logs, effect: allow, operations: [basic.publish], exchange: logs, routingKey: ""}',
        "- {id: publish-orders, effect: allow, operations: [basic.publish], exchange: orders, "
        'routingKey: "order.1.paid"}',
        '- {id: "publish-orders-2", effect: allow, operations: [basic.publish], exchange: orders, '
        r'routingKey: {regex: "order\\.[0-9]+\\.created"}}',
    ]


def test_a_template_of_the_gateway_takes_in_the_keys_that_it_means() -> None:
    (rule,) = rules_of(
        use("basic.publish", exchange="x", key="order.*.created", any_key=True),
        use("basic.publish", exchange="x", key="order.eu.created"),
    )
    assert 'routingKey: {topic: "order.*.created"}' in rule


def test_the_broker_s_names_are_one_s_own_or_named() -> None:
    assert sorted(
        rules_of(
            use("queue.declare", queue="amq.gen-"),
            use("basic.consume", queue="amq.gen-JzTY20BRgKO-HjmUJj0wLg"),
            use("basic.get", queue="amq.gen-theirs", foreign=True),
        )
    ) == [
        "- {id: queue-amq.gen-theirs, effect: allow, operations: [basic.get], queue: amq.gen-theirs}",
        "- {id: queue-own, effect: allow, operations: [queue.declare, basic.consume], "
        r'queue: {regex: "amq\\.gen\\-(?:[0-9A-Za-z_-]{22})?"}}',
    ]


def test_vhosts_with_the_same_rules_share_a_policy() -> None:
    found = recommend_for(
        [
            use("basic.get", vhost="a", queue="q"),
            use("basic.get", vhost="b", queue="q"),
            use("basic.get", vhost="c", queue="other"),
        ]
    )
    assert [(name, grant.evidence.requests) for name, grant in found.rules] == [("bob", 2), ("bob@c", 1)]
    assert b"subjects: [{user: bob, vhosts: [a, b]}]" in found.files[0].data


def test_the_evidence_stands_beside_the_rule() -> None:
    found = recommend_for(
        [
            use("basic.publish", exchange="x", key=f"order.{number}", evidence=evidence(70, days=8))
            for number in range(2)
        ]
    )
    assert (
        "  # 140 messages, 2 different requests, 2026-11-01 to 2026-11-09; confidence high (ids are folded)\n"
    ) in found.files[0].data.decode()


@pytest.mark.parametrize(
    ("done", "is_lone"),
    [
        ([use("queue.declare", queue=f"celeryev.{UUIDS[0]}")], True),
        ([use("queue.declare", queue=f"celeryev.{uuid}") for uuid in UUIDS], False),
        ([use("queue.declare", queue="orders.in")], False),
        # The number is no id of a queue's name, and one of a word of a key.
        ([use("basic.publish", exchange="", key="orders.1")], False),
        ([use("basic.publish", exchange="", key="orders.4711")], True),
        ([use("basic.publish", exchange="x", key="orders.1")], True),
        ([use("basic.publish", exchange="x", key=f"orders.{number}") for number in (1, 2)], False),
        ([use("queue.bind", queue="q", exchange="x", key="orders.1")], True),
        ([use("queue.bind", queue="q", exchange="x", key="orders.#")], False),
        ([use("exchange.bind", destination=f"copy-{UUIDS[0]}", exchange="x", key="k")], True),
    ],
)
def test_an_id_of_which_no_other_was_seen_is_named(done: list[Use], *, is_lone: bool) -> None:
    (line,) = [line for line in _text(recommend_for(done)).splitlines() if line.startswith("  # ")]
    assert line.endswith("(an id of which no other was seen)") == is_lone


@pytest.mark.parametrize(
    ("given", "why", "expected"),
    [
        (evidence(100, days=7), "seen", "high"),
        (evidence(99, days=7), "seen", "medium"),
        (evidence(100, days=6), "seen", "medium"),
        (evidence(100, days=7), "values", "medium"),
        (evidence(9, days=7), "seen", "low"),
        (evidence(100, days=7), "keys", "low"),
    ],
)
def test_confidence(given: Evidence, why: str, expected: str) -> None:
    assert given.confidence(why) == expected  # type: ignore[arg-type]


def test_what_no_policy_can_say_is_noted() -> None:
    found = recommend_for([use("basic.get", user="a*", queue="q"), use("basic.get", queue="a\nb")])
    assert found.files == ()
    assert found.notes == (
        "user 'a*' is left out: no subject can mean it",
        "user 'bob' used a name with CR or LF in it, which the gateway refuses whatever rules say",
    )


def test_a_name_that_amqp_does_not_have_hurts_nobody_else() -> None:
    """Whoever writes into the folder can choose it, and no policy could be loaded."""
    found = recommend_for(
        [
            use("basic.get", queue="q"),
            use("basic.get", user="n" * 256, queue="q"),
            use("basic.get", vhost="\u00e9" * 128, queue="q"),
            use("basic.get", queue="n" * 256),
        ]
    )
    assert [grant.operations for _, grant in found.rules] == [("basic.get",)]
    assert len(build(found.files).access) == 1
    assert found.notes == (
        f"user '{'n' * 40}...' is left out: a name has 255 bytes at most",
        f"vhost '{chr(233) * 40}...' is left out: a name has 255 bytes at most",
        "user 'bob' used a name of more than 255 bytes, which AMQP does not have",
    )


def test_many_users_are_several_files() -> None:
    found = recommend_for([use("basic.get", user=f"u{number}", queue="q") for number in range(101)])
    assert [file.name for file in found.files] == ["recommended-001.yaml", "recommended-002.yaml"]
    assert len(build(found.files).access) == 101


def test_exchanges_are_folded_as_queues_are() -> None:
    """Whether for their ids or for their number: one pattern is one rule."""
    ids = [f"feed-{number}" for number in (4711, 4712)]
    many = [f"feed-{letter}" for letter in "abcdefghijkl"]
    assert rules_of(*(use("exchange.declare", exchange=name) for name in (*ids, *many))) == [
        '- {id: exchange-feed, effect: allow, operations: [exchange.declare], exchange: {prefix: "feed-"}}'
    ]


def test_many_rules_are_several_policies() -> None:
    found = recommend_for(
        [use("basic.get", queue=f"{'q' * (1 + n % 50)}{'x' * (n // 50)}") for n in range(1001)]
    )
    assert sorted({name for name, _ in found.rules}) == ["bob@prod", "bob@prod-2"]
    policies = checked(found)
    assert policies.decide(operation_of(use("basic.get", queue="q" + "x" * 20))).allowed


# -- whatever was done is allowed ------------------------------------------------------------

NAME = st.one_of(
    st.sampled_from(
        ["orders", "orders.in", "amq.gen-x1", "amq.topic", "", "a{user}b", "ümläut", '"quoted"', "# x"]
    ),
    st.sampled_from(UUIDS).map(lambda uuid: f"reply-{uuid}"),
    st.integers(0, 40).map(lambda number: f"worker{number}.in"),
    st.integers(1000, 1040).map(str),
)
WORD = st.sampled_from(["order", "eu", "created", "a*", "{user}", ""]) | st.integers(0, 3000).map(str)
KEY = st.lists(WORD, max_size=3).map(".".join)
BINDING = st.lists(WORD | st.sampled_from(["*", "#"]), max_size=3).map(".".join)


@st.composite
def uses(draw: st.DrawFn) -> Use:
    """Anything that a gateway may have allowed."""
    kind = OPERATIONS[draw(st.sampled_from([name for name, one in OPERATIONS.items() if not one.free]))]
    names: dict[str, object] = {
        attribute: draw(NAME) for attribute in kind.attributes if attribute != "routing_key"
    }
    if "routing_key" in kind.attributes:
        is_template = not kind.binds and draw(st.booleans())
        names |= {"key": draw(BINDING if kind.binds or is_template else KEY), "any_key": is_template}
        if names.get("exchange") == "" and not kind.binds and not is_template:
            names["key"] = draw(NAME)
    if kind.name == "queue.declare":
        names["queue"] = names["queue"] or "amq.gen-"
    if kind.declares:
        names["passive"] = draw(st.booleans())
    if str(names.get("queue")).startswith("amq.gen-"):
        names["foreign"] = draw(st.booleans())
    return use(
        kind.name,
        user=draw(st.sampled_from(["bob", "eve"])),
        vhost=draw(st.sampled_from(["a", "b"])),
        **names,
    )


def operation_of(one: Use) -> Operation:
    """As the gateway has judged it."""
    key = one.key_name if one.key_name is not None else one.routing_key
    text = (
        ".".join(part if isinstance(part, str) else part.value for part in key) if key is not None else None
    )
    return Operation(
        Principal(one.user, one.vhost),
        one.operation,
        exchange=one.exchange,
        routing_key=text,
        queue=one.queue[0] if one.queue is not None else None,  # type: ignore[arg-type]
        destination=one.destination,
        passive=one.passive,
        foreign=one.foreign,
        any_key=one.any_key,
    )


def checked(found: Recommendation) -> PolicySet:
    """The set; without problems."""
    sources = [Source(file.name, file.data) for file in found.files]
    assert [str(one) for one in findings(documents_of(sources)) if one.level == "problem"] == []
    return build(sources)


@given(st.lists(uses(), min_size=1, max_size=60))
def test_whatever_was_done_is_allowed(done: list[Use]) -> None:
    found = recommend_for(done)
    assert found.notes == ()
    policies = checked(found)
    for one in done:
        assert policies.decide(operation_of(one)).allowed, one


def test_nothing_else_is_allowed() -> None:
    policies = checked(
        recommend_for(
            [
                use("basic.publish", exchange="x", key="order.1.created"),
                use("basic.publish", exchange="x", key="order.2.created"),
                use("queue.bind", queue="q", exchange="x", key="order.*.created"),
            ]
        )
    )
    bob = Principal("bob", "prod")

    def allowed(name: str, **given: str) -> bool:
        return policies.decide(Operation(bob, name, **given)).allowed  # type: ignore[arg-type]

    assert allowed("basic.publish", exchange="x", routing_key="order.3.created")
    assert not allowed("basic.publish", exchange="x", routing_key="order.abc.created")
    assert not allowed("basic.publish", exchange="x", routing_key="order.3.paid")
    assert not allowed("basic.publish", exchange="y", routing_key="order.1.created")
    assert allowed("queue.bind", queue="q", exchange="x", routing_key="order.*.created")
    assert not allowed("queue.bind", queue="q", exchange="x", routing_key="order.7.created")
    assert not allowed("queue.unbind", queue="q", exchange="x", routing_key="order.*.created")
    assert not allowed("queue.delete", queue="q")


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
@pytest.mark.parametrize("names", [*product((None, "", "orders"), (None, "a.b"), (None, "q"), (None, "d"))])
def test_of_what_a_record_does_not_name_nothing_is_allowed(
    operation: str, names: tuple[str | None, str | None, str | None, str | None]
) -> None:
    exchange, key, queue, destination = names
    some = Use(
        user="bob",
        vhost="prod",
        operation=operation,
        evidence=evidence(),
        exchange=exchange,
        destination=destination,
        queue=None if queue is None else (queue,),
        routing_key=None if key is None else words_of(key, wild=OPERATIONS[operation].binds),
    )
    rules = rules_of(some)
    if exchange is None or (operation == "basic.publish" and key is None):
        assert not any(
            f"operations: [{name}" in rule for rule in rules for name in ("basic.pub", "exchange.")
        )
