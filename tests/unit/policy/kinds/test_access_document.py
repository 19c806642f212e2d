"""What an access document may say beside its rules, and what holds where it says nothing."""

from __future__ import annotations

import pytest

from amqpgate.errors import ConfigError
from amqpgate.policy.kinds.access_document import OnDeny
from tests.unit.policy.build_set import document, policies


def with_spec(keys: str) -> str:
    return document("effect: allow, operations: ['*']").replace("spec:\n", f"spec:\n  {keys}\n")


def test_what_holds_unless_it_is_said() -> None:
    (one,) = policies(document()).access
    spec = one.spec
    assert (spec.mode, float(spec.enforce_percent), spec.rules) == ("enforce", 0.0, ())
    assert spec.on_deny == OnDeny(publish="channel-close", disclose="nothing")


@pytest.mark.parametrize("publish", ["channel-close", "nack", "return", "drop"])
@pytest.mark.parametrize("disclose", ["nothing", "rule-id"])
def test_how_denials_are_answered(publish: str, disclose: str) -> None:
    (one,) = policies(with_spec(f"onDeny: {{publish: {publish}, disclose: {disclose}}}")).access
    assert (one.spec.on_deny.publish, one.spec.on_deny.disclose) == (publish, disclose)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("onDeny: {publish: ignore}", "expected one of channel-close, nack, return, drop; not 'ignore'"),
        ("onDeny: {consume: nack}", "unknown key 'consume'"),
        ("onDeny: {disclose: all}", "expected one of nothing, rule-id; not 'all'"),
        ("mode: shade", "expected one of enforce, shadow, off; not 'shade'"),
        ("mode: shadow\n  enforcePercent: 101", "between 0 and 100"),
        ("mode: 'off'\n  enforcePercent: 1", "belongs to mode shadow"),
        ("priority: 1", "unknown key 'priority'"),
    ],
)
def test_what_would_not_be_enforced_is_refused_with_its_place(keys: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        policies(with_spec(keys))
    assert (refused.value.file, refused.value.line) == ("p.yaml", 5 + keys.count("\n"))
