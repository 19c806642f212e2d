"""Compatibility policies that make no sense."""

from __future__ import annotations

import pytest

from amqpgate.errors import ConfigError
from tests.unit.policy.kinds.test_compatibility import document, policies


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("transientQueues: {become: quorum}", "expected one of durable, transient"),
        ("transientQueues: {expireAfter: 0}", "must be between"),
        ("transientQueues: {expireAfter: 50000000s}", "must be between"),
        ("deliveryLimits: [{limit: -2}]", "must be between"),
        ("enforcePercent: 5", "nothing is changed for show"),
        ("mode: shadow", "expected one of enforce, off"),
    ],
)
def test_what_makes_no_sense_is_an_error(spec: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        policies(document("p", spec))
