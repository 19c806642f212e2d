"""Rules on quorum queues that make no sense."""

from __future__ import annotations

import pytest

from amqpgate.errors import ConfigError
from tests.unit.policy.kinds.test_compatibility import document, policies


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ("become: stream", "expected one of quorum, classic"),
        ("autoDeleteAfter: 0", "must be between"),
        ("maxPriority: 0", "must be between"),
        ("maxPriority: 256", "must be between"),
        ("limit: 3", "unknown key"),
    ],
)
def test_what_makes_no_sense_is_an_error(rule: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        policies(document("p", f"quorumQueues: [{{{rule}}}]"))
