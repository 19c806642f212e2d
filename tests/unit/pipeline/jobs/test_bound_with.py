"""The arguments of bindings, as rules ask for them."""

from __future__ import annotations

import json

import pytest

from amqpgate.pipeline.jobs.bound_with import ProposedArguments, arguments_of, fold
from amqpgate.pipeline.jobs.recommendation import recommend_for
from amqpgate.pipeline.jobs.templates import TemplateBounds
from amqpgate.pipeline.jobs.uses import Evidence, Use
from amqpgate.policy.loader import build
from tests.support.audit_records import START


def test_names_and_values_are_those_of_the_record() -> None:
    found = arguments_of('{"x-match":"all","size":4,"is_new":true,"share":0.5}')
    assert found.names == ("is_new", "share", "size", "x-match")
    assert dict(found.values) == {"is_new": "true", "share": "0.5", "size": "4", "x-match": "all"}


@pytest.mark.parametrize("value", ["2026-11-28 10:00:00+00:00", "1.50", "\\xff", "{user}", ["a"], {}, None])
def test_what_was_perhaps_another_type_may_have_any_value(value: object) -> None:
    assert arguments_of(json.dumps({"a": value})) == ProposedArguments(("a",))


@pytest.mark.parametrize("text", ["[]", "{cut", "[" * 100_000])
def test_what_is_no_table_has_no_arguments(text: str) -> None:
    assert arguments_of(text) == ProposedArguments(())


def test_many_values_are_folded() -> None:
    found = [ProposedArguments(("id", "x-match"), (("id", str(n)), ("x-match", "all"))) for n in range(3)]
    assert fold(found, TemplateBounds(values=3)) == {one: one for one in found}
    folded = ProposedArguments(("id", "x-match"), (("x-match", "all"),), "values")
    assert fold(found, TemplateBounds(values=2)) == dict.fromkeys(found, folded)


def test_they_are_in_the_rules_of_queues_and_exchanges() -> None:
    names = ["a: b", "c*d", "e"]
    arguments = [ProposedArguments((name,), ((name, "1"),)) for name in names]
    uses = [
        Use(
            user="u",
            vhost="/",
            operation=operation,
            evidence=Evidence(1, 0, START, START),
            exchange="headers",
            routing_key=("",),
            bound_with=one,
            **end,  # type: ignore[arg-type]
        )
        for operation, end in (("queue.bind", {"queue": ("q",)}), ("exchange.bind", {"destination": "x"}))
        for one in arguments
    ]
    (policy,) = build(recommend_for(uses).files).access
    said = [rule.arguments for rule in policy.spec.rules]
    assert [one.require for one in said if one is not None] == [("a: b",), ("c*d",), ("e",)] * 2
    assert [one.allow is None for one in said if one is not None] == [False, True, False] * 2
