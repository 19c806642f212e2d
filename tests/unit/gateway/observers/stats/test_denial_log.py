"""Which denials have a line of their own."""

from __future__ import annotations

import math

import pytest

from amqpgate.gateway.observers.stats.denial_log import INTERVAL, MOST, SAMPLE, DenialLog


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_the_first_ones_have_a_line_and_the_others_a_number(caplog: pytest.LogCaptureFixture) -> None:
    lines = DenialLog()
    with caplog.at_level("INFO", "amqpgate"):
        assert [lines.has_line(0.1 * n, "p/r", "bob") for n in range(SAMPLE + 5)] == [True] * SAMPLE + [
            False
        ] * 5
        # Somebody else's, and another rule's, are not kept out.
        assert lines.has_line(3, "p/r", "eve")
        assert lines.has_line(3, "p/other", "bob")
        lines.tick(INTERVAL - 1)
        assert told(caplog) == []
        lines.tick(INTERVAL)
        assert told(caplog) == ["5 more denied by p/r within 10 s: user 'bob'"]
        # Then it begins anew, whether anybody has looked or not.
        assert all(lines.has_line(INTERVAL + 1, "p/r", "bob") for _ in range(SAMPLE))
        assert not lines.has_line(INTERVAL + 2, "p/r", "bob")
        assert lines.has_line(3 * INTERVAL, "p/r", "bob")
        lines.tick(math.inf)
    assert told(caplog)[1:] == ["1 more denied by p/r within 10 s: user 'bob'"]


def test_ever_new_users_cost_bounded_memory_and_lines(caplog: pytest.LogCaptureFixture) -> None:
    lines = DenialLog()
    with caplog.at_level("INFO", "amqpgate"):
        count = sum(lines.has_line(0, "p/r", f"user-{n}") for n in range(3 * MOST))
        assert count == MOST + SAMPLE
        lines.tick(INTERVAL)
    assert told(caplog) == [f"{2 * MOST - SAMPLE} more denied by others within 10 s: user None"]
