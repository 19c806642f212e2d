"""Which policies have selected somebody, across reloads."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from amqpgate.gateway.observers.stats.selected import Selected
from amqpgate.policy import Principal
from amqpgate.telemetry.policies import PolicyMetrics
from tests.unit.policy.build_set import BOB, document, policies

ALLOW = "effect: allow, operations: [basic.publish]"
EVE = Principal("eve", "prod")
SET = policies(document(ALLOW, name="bobs"), document(ALLOW, name="typo", subjects="{user: eva}"))


def counted(registry: CollectorRegistry) -> dict[str, float]:
    return {
        sample.labels.get("policy", "-"): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name in ("amqpgate_policy_sessions_total", "amqpgate_unselected_sessions_total")
    }


async def test_who_comes_is_counted_for_each_policy_and_what_is_written_wrong_shows() -> None:
    registry = CollectorRegistry()
    selected = Selected(SET, PolicyMetrics(registry))
    assert selected.unseen() == ["bobs", "typo"]
    for who in (BOB, BOB, EVE):
        selected.note(who, SET.access_of(who))
    assert selected.unseen() == ["typo"]
    assert counted(registry) == {"bobs": 2, "typo": 0, "-": 1}
    assert "2 in force, 1 of which select nobody seen so far (typo)" in selected.told()
    assert "may do everything" in selected.told()

    mended = policies(document(ALLOW, name="bobs"), document(ALLOW, name="typo", subjects="{user: eve}"))
    changed = selected.use(mended)
    assert changed == {("AccessPolicy", "typo")}
    await selected.take_stock(changed, [(BOB, None), (EVE, None)])
    # Who is connected counts for what is new, and is not counted again for what is not.
    assert selected.sessions == {("AccessPolicy", "bobs"): 2, ("AccessPolicy", "typo"): 1}
    assert selected.unseen() == []
    selected.use(policies(document(ALLOW, name="bobs")))
    assert counted(registry) == {"bobs": 2, "-": 1}


def test_what_selects_nobody_by_its_nature_is_not_among_them() -> None:
    head = "apiVersion: amqpgate.io/v1alpha1\nkind: %s\nmetadata: {name: beside}\nspec: %s\n"
    cases = "{cases: [{as: {user: bob}, op: basic.get, queue: q, expect: deny}]}"
    beside = (head % ("UserGroups", "{groups: {g: [bob]}}"), head % ("PolicyTest", cases))
    registry = CollectorRegistry()
    selected = Selected(policies(document(ALLOW, name="bobs"), *beside), PolicyMetrics(registry))
    assert selected.unseen() == ["bobs"]
    assert counted(registry) == {"bobs": 0, "-": 0}
    selected.use(policies(document(ALLOW, name="bobs"), document(ALLOW, name="more"), *beside))
    assert selected.told().startswith("policies: 2 in force, 2 of which")
