"""Requests as people write them."""

from __future__ import annotations

import pytest

from amqpgate.policy.engine.requests import Request, Who, words_for
from amqpgate.yamldoc import Invalid

BOB = Who(user="bob")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"op": "basic.publsh"}, "no operation is named 'basic.publsh'"),
        ({"op": "basic.get", "exchange": "x"}, "basic.get has no exchange; it has queue"),
        ({"op": "basic.publish", "exchange": "x"}, "basic.publish needs routingKey"),
        ({"op": "basic.get", "queue": "q", "passive": True}, "basic.get is never passive"),
        ({"op": "basic.get", "queue": "q", "arguments": {"x": 1}}, "basic.get has no arguments"),
        ({"op": "basic.get", "queue": "q", "headers": {"x": 1}}, "basic.get carries no message"),
        (
            {"op": "basic.publish", "exchange": "", "routing_key": "k", "properties": {"priority": "1"}},
            "priority is a number",
        ),
    ],
)
def test_a_request_that_there_cannot_be(given: dict[str, object], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        Request(who=BOB, **given)  # type: ignore[arg-type]


def test_a_publish_has_content_and_others_have_none() -> None:
    publish = Request(
        who=BOB, op="basic.publish", exchange="x", routing_key="k", properties={"deliveryMode": 2}
    ).operation()
    assert publish.content is not None
    assert publish.content.properties == {"delivery_mode": 2}
    assert Request(who=BOB, op="basic.get", queue="q").operation().content is None


def test_arguments_of_a_passive_declare_do_not_count() -> None:
    asked = {"op": "queue.declare", "queue": "q", "arguments": {"x-a": 1}}
    assert Request(who=BOB, **asked).operation().arguments == {"x-a": 1}  # type: ignore[arg-type]
    assert Request(who=BOB, passive=True, **asked).operation().arguments == {}  # type: ignore[arg-type]


def test_a_request_in_one_line() -> None:
    declare = Request(who=BOB, op="queue.declare", queue="q", passive=True).operation()
    assert words_for(declare) == "queue.declare (passive) queue 'q'"
