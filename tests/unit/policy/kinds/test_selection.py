"""Which policies select a session: modes, shares, and the index by user."""

from __future__ import annotations

import pytest

from amqpgate.policy import Operation, Principal
from tests.unit.policy.build_set import BOB, document, policies

PUBLISH = Operation(BOB, "basic.publish", exchange="x", routing_key="k")


def with_mode(mode: str, *rules_: str, name: str = "p") -> str:
    return document(*rules_, name=name).replace("spec:", f"spec:\n  mode: {mode}")


class TestModes:
    def test_off_is_as_if_it_were_not_there(self) -> None:
        access = policies(with_mode("off")).access_of(BOB)
        assert access.enforced.unrestricted
        assert access.shadow is None

    def test_shadow_decides_nothing_and_says_what_it_would(self) -> None:
        access = policies(with_mode("shadow", "effect: deny, operations: ['*']")).access_of(BOB)
        assert access.enforced.decide(PUBLISH).allowed
        assert access.shadow is not None
        assert access.shadow.decide(PUBLISH).name == "p/r0"

    def test_the_shadow_is_all_policies_together(self) -> None:
        access = policies(
            document("effect: allow, operations: [basic.publish], exchange: {literal: x}", name="real"),
            with_mode("shadow", "effect: allow, operations: [basic.publish]", name="wider"),
        ).access_of(BOB)
        other = Operation(BOB, "basic.publish", exchange="y", routing_key="k")
        assert not access.enforced.decide(other).allowed
        assert access.shadow is not None
        assert access.shadow.decide(other).allowed

    @pytest.mark.parametrize("percent", [0, 1, 30, 100])
    def test_a_share_of_sessions_is_enforced_and_always_the_same(self, percent: float) -> None:
        text = with_mode(f"shadow\n  enforcePercent: {percent}")
        first, again = policies(text), policies(text)
        names = [f"session-{number}" for number in range(4000)]
        enforced = [not first.access_of(BOB, name).enforced.unrestricted for name in names]
        assert enforced == [not again.access_of(BOB, name).enforced.unrestricted for name in names]
        assert abs(sum(enforced) / 40 - percent) < 3
        assert percent not in (0, 100) or len(set(enforced)) == 1


def test_sessions_with_other_values_have_other_rules() -> None:
    policy_set = policies(
        document("effect: allow, operations: [basic.publish], exchange: {literal: '{user}'}", subjects="{}")
    )
    for user in ("bob", "al"):
        principal = Principal(user, "prod")
        for exchange in ("bob", "al", "{user}"):
            operation = Operation(principal, "basic.publish", exchange=exchange, routing_key="k")
            assert policy_set.decide(operation).allowed is (exchange == user)
