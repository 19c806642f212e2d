"""Violations are answered as RabbitMQ 3.10.8 was seen to answer them, however the bytes are split."""

from __future__ import annotations

import pytest

from tests.unit.broker.amqp.playbook import broker_at
from tests.unit.protocol.measured import CASES, Case, unquoted


def _id(case: Case) -> str:
    return f"{case.stage}: {case.name}"


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_answer(case: Case) -> None:
    expected = case.answer if case.ours is None else case.ours
    assert unquoted(broker_at(case.stage).hear(case.sent).said) == unquoted(expected)


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_answer_is_the_same_byte_by_byte(case: Case) -> None:
    data = [case.sent[at : at + 1] for at in range(len(case.sent))]
    expected = case.answer if case.ours is None else case.ours
    assert unquoted(broker_at(case.stage).hear(*data).said) == unquoted(expected)


def test_every_difference_has_a_reason() -> None:
    for case in CASES:
        assert (case.ours is None) == (not case.why), case.name
        assert case.ours != case.answer, case.name


def test_the_names_are_unique() -> None:
    assert len({_id(case) for case in CASES}) == len(CASES)
