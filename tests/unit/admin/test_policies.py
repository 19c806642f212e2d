"""What several workers say of their policies, as one."""

from __future__ import annotations

from amqpgate.admin.policies import combine
from amqpgate.telemetry.answers import JSON, Answers


def worker(since: float, hits: dict[str, tuple[int, float]], default: int, shadow: int = 0) -> JSON:
    rules: JSON = [{"id": name, "effect": "allow", "operations": ["*"]} for name in ("a", "b", "c")]
    differs: JSON = {
        "policy": "q",
        "rule": "r",
        "effect": "deny",
        "hits": shadow,
        "messages": 0,
        "last_hit": 1.0,
    }
    return {
        "since": since,
        "policies": [{"kind": "AccessPolicy", "name": "p", "mode": "enforce", "rules": rules}],
        "hits": [
            {
                "kind": "AccessPolicy",
                "policy": "p",
                "rule": name,
                "hits": count,
                "messages": 10 * count,
                "last_hit": last,
            }
            for name, (count, last) in hits.items()
        ],
        "default": {"hits": default, "messages": 0, "last_hit": 7.0 if default else None},
        "shadow": [differs] if shadow else [],
        "selected": {
            "default_access": "deny",
            "unselected_sessions": default,
            "sessions": [{"kind": "AccessPolicy", "policy": "p", "sessions": shadow}],
        },
    }


def test_hits_are_summed_and_the_last_is_the_last() -> None:
    one = worker(5.0, {"a": (2, 10.0), "b": (1, 30.0)}, 0)
    other = worker(3.0, {"a": (3, 20.0)}, 4, shadow=2)
    told = combine(Answers({0: one, 1: other}))
    assert told["since"] == 3.0
    (document,) = told["policies"]  # type: ignore[union-attr, misc]
    assert {rule["id"]: (rule["hits"], rule["messages"], rule["last_hit"]) for rule in document["rules"]} == {
        "a": (5, 50, 20.0),
        "b": (1, 10, 30.0),
        "c": (0, 0, None),
    }
    assert told["default"] == {"hits": 4, "messages": 0, "last_hit": 7.0}
    assert document["sessions"] == 2  # type: ignore[index, call-overload]
    assert told["default_access"] == "deny"
    assert told["unselected"] == {"sessions": 4, "hits": 0, "messages": 0, "last_hit": None}
    assert told["shadow"] == [
        {"policy": "q", "rule": "r", "effect": "deny", "hits": 2, "messages": 0, "last_hit": 1.0}
    ]


def test_kinds_do_not_count_for_each_other_and_those_without_rules_have_what_they_did() -> None:
    def hit(kind: str, rule: str) -> JSON:
        return {"kind": kind, "policy": "p", "rule": rule, "hits": 2, "messages": 3, "last_hit": 1.0}

    one = worker(5.0, {"a": (1, 1.0)}, 0)
    assert isinstance(one, dict)
    one["policies"] += [  # type: ignore[operator]
        {"kind": "RatePolicy", "name": "p", "mode": "enforce", "rules": [{"id": "a", "effect": "delay"}]},
        {"kind": "CompatibilityPolicy", "name": "p", "mode": "enforce", "rules": []},
    ]
    one["hits"] += [hit("RatePolicy", "a"), hit("CompatibilityPolicy", "transient-queue")]  # type: ignore[operator]
    access, rate, compatibility = combine(Answers({0: one}))["policies"]  # type: ignore[misc, union-attr]
    assert access["rules"][0]["hits"] == 1
    assert rate["rules"] == [{"id": "a", "effect": "delay", "hits": 2, "messages": 3, "last_hit": 1.0}]
    (change,) = compatibility["rules"]
    assert (change["id"], change["effect"], change["hits"], change["line"]) == (
        "transient-queue",
        "change",
        2,
        None,
    )
