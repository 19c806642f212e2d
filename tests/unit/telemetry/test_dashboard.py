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


def test_exemplars_are_asked_for_once_where_there_are_any() -> None:
    """Whatever the quantile, all exemplars of the buckets come: several targets would draw the same dots."""
    asked = {
        panel["title"]: [target.get("exemplar", False) for target in targets]
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        if (targets := [one for one in panel.get("targets", ()) if f"{FAMILY}_bucket" in one["expr"]])
    }
    assert asked
    for panel, wanted in asked.items():
        assert wanted.count(True) == 1, panel


def test_numbers_have_colours_of_their_own() -> None:
    """Where nothing is said Grafana calls all above 80 red: 81 messages a second, and any certificate."""
    panels = [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] == "stat"]
    steps = {panel["title"]: panel["fieldConfig"]["defaults"]["thresholds"]["steps"] for panel in panels}
    red = {title for title, found in steps.items() if any(step["color"] == "red" for step in found)}
    assert red == {"Gateways ready", "Certificates expire in"}
    # The first is that of no number, too. As the alerts have it: a warning from two weeks on, critical from
    # two days on, however long ago it has expired.
    colours = [(step["color"], step["value"]) for step in steps["Certificates expire in"]]
    assert colours == [("blue", None), ("red", -(10**10)), ("orange", 2 * 86400), ("green", 14 * 86400)]


def test_no_plot_has_two_units_on_one_axis() -> None:
    size = {name for name in families() if "_bytes" in name}
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        of_bytes = {bool(named(target["expr"]) & size) for target in panel.get("targets", ())}
        assert len(of_bytes) < 2 or panel["fieldConfig"]["overrides"], panel["title"]


def test_marks_of_reloads_miss_none() -> None:
    """A window as long as the step leaves out what happened between its first sample and the one before."""
    (marks,) = json.loads(DASHBOARD.read_text())["annotations"]["list"]
    assert "[$__rate_interval]" in marks["expr"]
