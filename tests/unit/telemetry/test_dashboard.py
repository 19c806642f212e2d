"""The dashboard that is shipped: whether its panels show anything is tested on a running gateway."""

from __future__ import annotations

import json

from amqpgate.telemetry.exemplars import FAMILY

from .shipped import DASHBOARD, families, named, queries


def test_what_the_panels_ask_for_exists() -> None:
    known = families()
    assert len(queries()) > 40
    for query in queries():
        assert named(query.promql), query
        assert named(query.promql) <= set(known), query


def test_every_metric_is_on_a_panel() -> None:
    shown = {name for query in queries() for name in named(query.promql)}
    rest = {name for name in families() if name.startswith("amqpgate_")} - shown
    assert rest == {
        # For alerts, for the marks of reloads, and what a person looks up.
        "amqpgate_policy_last_reload_success_timestamp_seconds",
        "amqpgate_route_pauses_total",
        "amqpgate_sessions_by_version",
        "amqpgate_shared_limits_away",
        "amqpgate_policy_sessions_total",
        "amqpgate_unselected_sessions_total",
        "amqpgate_mirror_sampled_messages_total",
        "amqpgate_mirror_bytes_total",
        "amqpgate_mirror_queue_bytes",
        "amqpgate_memory_reserve_used_bytes",
        "amqpgate_memory_reserve_used_max_bytes",
        "amqpgate_memory_reserve_pieces_total",
        "amqpgate_memory_reserve_exhausted_total",
    }


def test_panels_can_be_told_apart_and_do_not_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    for key in ("id", "title"):
        values = [panel[key] for panel in panels]
        assert len(set(values)) == len(values), key
    taken = [
        (x, y)
        for panel in panels
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def test_exemplars_are_asked_for_where_there_are_any() -> None:
    targets = [
        target
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        for target in panel.get("targets", ())
        if f"{FAMILY}_bucket" in target["expr"]
    ]
    assert targets
    assert [target for target in targets if target.get("exemplar") is not True] == []
