"""The loop: what was seen passes under what is recommended, and what was never seen does not."""

from __future__ import annotations

import attrs

from amqpgate.pipeline.frames import engine
from amqpgate.pipeline.jobs.judge import judge_of
from amqpgate.pipeline.jobs.recommend import recommend
from tests.support.audit_plans import Plans
from tests.support.loop import NEVER_SEEN, NOT_DENIED, Step, seen


def test_what_was_seen_passes_and_what_was_not_is_denied(plans: Plans) -> None:
    with engine(plans.name):
        found = recommend(plans.frame("usage", [step.record for step in seen(1)]))
    assert found.notes == ()
    judge = judge_of(found.files)

    def passes(step: Step) -> bool:
        outcome = judge.answer(attrs.asdict(step.record)).outcome
        assert outcome in ("allow", "deny")
        return outcome == "allow"

    # The same again, and with ids that are new.
    for seed in range(1, 6):
        assert [str(step) for step in seen(seed) if not passes(step)] == []
    assert len({str(step) for step in NEVER_SEEN}) == 100
    assert tuple(str(step) for step in NEVER_SEEN if passes(step)) == NOT_DENIED
