"""What transform policies come to for one session: whose names, which changes, and when there are none."""

from __future__ import annotations

import pytest

from amqpgate.policy import Operation, PolicySet, Principal, SessionDeniedError
from tests.unit.policy.transforms import BOB, NAMES, transform, transforms

NOBODY = Principal(None, "prod")


def test_who_is_not_selected_is_not_changed() -> None:
    assert transforms("subjects: [{user: bob}]\n" + NAMES % "a.").transform_for(Principal("eve", "/")) is None
    assert PolicySet.empty().transform_for(BOB) is None


def test_a_policy_that_is_off_changes_nothing() -> None:
    assert transforms("mode: off\n" + NAMES % "a.").transform_for(BOB) is None


def test_a_prefix_of_the_user() -> None:
    naming = transform(NAMES % "{user}@{vhost}.").naming
    assert naming is not None
    assert naming.queue_up("q") == naming.exchange_up("q") == "bob@prod.q"


def test_exchanges_alone() -> None:
    naming = transform("names: {exchanges: {map: {orders: corp}}}").naming
    assert naming is not None
    assert (naming.exchange_up("orders"), naming.queue_up("orders")) == ("corp", "orders")


@pytest.mark.parametrize(
    ("principal", "specs", "why"),
    [
        (NOBODY, [NAMES % "{user}."], "holds a variable whose value is not known here"),
        (NOBODY, ["subjects: [{user: bob}]\n" + NAMES % "a."], "may concern this user"),
        (Principal("a.b", "prod"), [NAMES % "{user}."], "separates names by '.', which the user has in it"),
        (Principal("amq", "prod"), [NAMES % "{user}."], "a prefix that names cannot have"),
        (Principal("o'neil", "prod"), [NAMES % "{user}."], "a prefix that names cannot have"),
        (Principal("x" * 200, "prod"), [NAMES % "{user}."], "a prefix that names cannot have"),
        (BOB, [NAMES % "a.", NAMES % "b."], "'p0' and 'p1' both change the names of this session"),
        (NOBODY, ["headers: {set: {x-user: '{user}'}}"], "holds a variable whose value is not known here"),
        (
            Principal("x" * 200, "prod"),
            ["properties: {set: {appId: '{user}{user}'}}"],
            "sets a property to more than 255 bytes",
        ),
    ],
)
def test_a_session_whose_changes_are_not_sure_is_refused(
    principal: Principal, specs: list[str], why: str
) -> None:
    with pytest.raises(SessionDeniedError, match=why):
        transforms(*specs).transform_for(principal)


def test_arguments_by_queue() -> None:
    rules = transform(
        "arguments:\n"
        "- {id: one, operations: [queue.declare], queue: {prefix: work.}, force: {x-queue-type: quorum}}\n"
        "- {id: two, operations: [queue.declare, basic.consume], add: {x-n: {number: 5}}}\n"
        "- {id: gen, operations: [queue.declare], queue: {prefix: amq.gen-}, ceilings: {x-expires: 1000}}\n"
        "- {id: own, operations: [queue.declare], queue: {prefix: '{user}.'}, add: {x-by: 'user {user}'}}\n"
    )

    def found(name: str, queue: str) -> list[str]:
        return [one.rule.id for one in rules.arguments_for(Operation(BOB, name, queue=queue))]

    assert found("queue.declare", "work.1") == ["one", "two"]
    assert found("queue.declare", "other") == ["two"]
    assert found("queue.declare", "") == ["two", "gen"]
    assert found("basic.consume", "work.1") == ["two"]
    assert found("queue.declare", "bob.1") == ["two", "own"]
    assert rules.arguments[1].add == {"x-n": 5}
    assert rules.arguments[3].add == {"x-by": "user bob"}


def test_the_lowest_ceiling_of_several_policies_holds() -> None:
    content = transform(
        "ceilings: {maxBodyBytes: 1Mi}",
        "ceilings: {maxBodyBytes: 1Ki, maxTtl: 1m}",
        "ceilings: {maxTtl: 500ms}",
    ).content
    assert (content.max_body, content.max_ttl) == (1024, 500)


def test_only_messages_that_may_change_are_looked_at() -> None:
    def peek(spec: str) -> tuple[bool, int, set[str], int | None]:
        found = transform(spec).peek_published
        return found.always, found.flags, set(found.headers), found.max_body

    assert peek("ceilings: {maxBodyBytes: 1Ki}") == (False, 0, set(), 1024)
    assert peek("ceilings: {maxTtl: 1m}") == (True, 0, set(), None)
    assert peek("properties: {userId: validate}") == (False, 1 << 4, set(), None)
    assert peek("properties: {strip: [appId]}") == (False, 1 << 3, set(), None)
    assert peek("headers: {strip: [x-trace]}") == (False, 0, {"x-trace"}, None)
    assert peek("headers: {strip: ['x-*']}") == (False, 1 << 13, set(), None)
    assert peek("headers: {set: {x: y}}") == (True, 0, set(), None)
    assert peek("properties: {set: {deliveryMode: 2}}") == (True, 0, set(), None)
    names = peek(NAMES % "a.")
    assert names[:2] == (False, 1 << 9)
    assert {"CC", "BCC", "x-death"} < names[2]
    assert (
        transform("ceilings: {maxTtl: 1m}").peek_delivered == type(transform(NAMES % "a.").peek_delivered)()
    )
