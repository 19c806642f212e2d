"""What records say of operations and sessions: whatever a peer sends, it is a column or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from amqpgate.gateway.observers.audit.columns import (
    MOST_KEY_BYTES,
    MOST_KEYS,
    json_of,
    keys_of,
    kind_of,
    origin_of,
)
from amqpgate.policy import Operation, Principal, TlsIdentity, Verdict
from amqpgate.policy.engine.operations import MessageContent

WHO = Principal("bob", "prod", source="10.0.0.7", listener="main")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1, 1),
        (True, True),
        (None, None),
        (0.5, 0.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (Decimal("1.10"), "1.10"),
        (datetime(2020, 1, 2, tzinfo=UTC), "2020-01-02 00:00:00+00:00"),
        (b"a\xff", "a\\xff"),
        ("\udcff", "\udcff"),
        ((1, [b"x", {"k": float("inf")}]), [1, ["x", {"k": "inf"}]]),
        ({2: {3: b"x"}}, {"2": {"3": "x"}}),
        (2**80, 2**80),
    ],
)
def test_what_json_does_not_have_is_text(value: object, told: object) -> None:
    text = json_of({"b": value, "a": 1})
    # So it can be written, whatever it is.
    text.encode("ascii")
    assert text.startswith('{"a":1,"b":')
    assert json.loads(text, parse_constant=pytest.fail) == {"a": 1, "b": told}


def test_an_operation_is_what_a_policy_judges_and_what_it_says() -> None:
    operation = Operation(
        WHO, "queue.bind", exchange="x", queue="q", routing_key="k", arguments={"z": 1, "a": b"2"}
    )
    kind = kind_of(operation, Verdict("allow", "p", "r"))
    assert (kind.operation, kind.exchange, kind.queue, kind.routing_key) == ("queue.bind", "x", "q", "k")
    assert (kind.verdict, kind.policy, kind.rule) == ("allow", "p", "r")
    assert kind.arguments == '{"a":"2","z":1}'
    undecided = kind_of(Operation(WHO, "basic.get", queue="q"), None)
    assert (undecided.verdict, undecided.policy, undecided.rule, undecided.arguments) == (None,) * 4
    # It is a key of rows.
    assert {kind_of(operation, None), kind_of(operation, None)} == {kind_of(operation, None)}


@pytest.mark.parametrize(
    ("operation", "is_message"),
    [("basic.publish", True), ("basic.deliver", True), ("basic.get-ok", True), ("basic.get", False)],
)
def test_messages_are_told_apart_from_requests(operation: str, is_message: bool) -> None:
    assert kind_of(Operation(WHO, operation), None).is_message is is_message


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ((), None),
        (("b", "a", "b"), ["a", "b"]),
        (("",), [""]),
        (("a\udcff", "a\u00ff"), ["a\\xff", "a\u00ff"]),
        (
            [f"k{number:02}" for number in range(MOST_KEYS + 1)],
            [*(f"k{n:02}" for n in range(MOST_KEYS)), None],
        ),
        (("x" * MOST_KEY_BYTES,), ["x" * MOST_KEY_BYTES]),
        (("x" * (MOST_KEY_BYTES + 1),), [None]),
        (("a", "\u00e9" * (MOST_KEY_BYTES // 2)), ["a", None]),
    ],
)
def test_further_keys_are_bounded(keys: Sequence[str], told: list[str | None] | None) -> None:
    assert (None if (said := keys_of(keys)) is None else json.loads(said)) == told


def test_further_keys_are_those_of_the_message() -> None:
    content = MessageContent(headers={"CC": ["b", 5, b"a"], "BCC": ["c"], "x": ["d"]})
    assert kind_of(Operation(WHO, "basic.publish", content=content), None).more_keys == '["a","b","c"]'
    assert kind_of(Operation(WHO, "basic.publish", content=MessageContent()), None).more_keys is None


def test_whose_the_records_are() -> None:
    plain = origin_of("s1", WHO)
    assert (plain.session, plain.user, plain.vhost, plain.source) == ("s1", "bob", "prod", "10.0.0.7")
    assert (plain.listener, plain.tls, plain.client) == ("main", None, None)
    certificate = TlsIdentity(subject="CN=bob", common_name="bob", names=("bob.example",))
    known = Principal("bob", "prod", tls=certificate, client={"product": "p"}, upstream_user="gate")
    told = origin_of("s2", known)
    assert json.loads(str(told.tls)) == {"subject": "CN=bob", "common_name": "bob", "names": ["bob.example"]}
    assert (told.client, told.upstream_user) == ('{"product":"p"}', "gate")
