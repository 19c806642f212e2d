"""What sessions have passed by the labels that the settings ask for: bounded, and never less than before."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest
from prometheus_client.parser import text_string_to_metric_families

from amqpgate.config import MetricLabels
from amqpgate.gateway.observers.stats.labelled import LONGEST, LabelledTotals, text_of
from amqpgate.policy import Principal
from amqpgate.telemetry.readings import LabelledUse, Traffic
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import Talker
from tests.unit.gateway.audited import ACCESS, MakeStage, confirming
from tests.unit.gateway.conftest import SETTINGS, Stage
from tests.unit.gateway.tapped import RATE

from .test_sampler import Looks

GUEST = Principal("guest", "/", listener="main")
LABELLED = SETTINGS + "metrics: {{by: [listener, vhost, user], users: [guest, boss]}}\n"


def labelled(stage: Stage) -> Mapping[tuple[str, ...], LabelledUse]:
    return stage.running.ask(stage.running.gateway.totals).labelled


def counters(stage: Stage) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = stage.running.ask(stage.running.gateway.metrics_text).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("amqpgate_labelled_") and sample.name.endswith("_total")
    }


def leave(client: Talker, broker: Talker) -> None:
    """At once: nobody waits for an answer."""
    client.close()
    broker.expect(amqp.ConnectionClose)
    broker.close()


# -- which labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "label"), [("billing", "billing"), ("Billing", "other"), ("eve", "other"), (None, "other")]
)
def test_users_have_labels_that_are_named(user: str | None, label: str) -> None:
    totals = LabelledTotals(MetricLabels(by=("user", "listener"), users=("billing",)))
    assert totals.labels_of(attrs.evolve(GUEST, user=user)) == (label, "main")


def test_combinations_are_bounded_and_those_that_came_first_stay() -> None:
    totals = LabelledTotals(MetricLabels(by=("vhost", "listener"), most=2))
    for _ in range(2):
        for vhost in ("a", "b", "c", "a", "d"):
            totals.denied(attrs.evolve(GUEST, vhost=vhost))
    assert {labels: use.denials for labels, use in totals.look().told().items()} == {
        ("a", "main"): 4,
        ("b", "main"): 2,
        ("other", "other"): 4,
    }


def test_names_that_are_shown_alike_are_counted_together() -> None:
    totals = LabelledTotals(MetricLabels(by=("vhost",)))
    for end in "xy":
        totals.waited(attrs.evolve(GUEST, vhost="v" * 300 + end))
    assert {labels: use.waited for labels, use in totals.look().told().items()} == {
        ("v" * LONGEST,): 2,
        ("other",): 0,
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prod", "prod"),
        ("größe 1", "größe 1"),
        ("a\nb\x1b[31m", r"a\nb\x1b[31m"),
        ("\udcff\u2028", r"\udcff\u2028"),
        ("\0" * 65535, (r"\x00" * 32)),
        ("", ""),
    ],
)
def test_a_name_becomes_text_that_can_be_shown(name: str, text: str) -> None:
    assert text_of(name) == text
    text_of(name).encode()


# -- what is counted ---------------------------------------------------------------------------------------


def test_what_a_session_counted_stays_when_it_ends(make_stage: MakeStage) -> None:
    stage = make_stage(policies=ACCESS % "nack", text=LABELLED)
    client, broker = stage.opened()
    confirming(client, broker)
    client.publish(b"123", "big", exchange="x")
    broker.expect_content(amqp.BasicPublish)
    client.publish(b"12345", "big", exchange="y")
    client.expect(amqp.BasicNack, 1)
    broker.content(amqp.BasicDeliver("c", 1, False, "x", "k"), b"1234567")
    client.expect_content(amqp.BasicDeliver)
    guest, other = ("main", "/", "guest"), ("other", "other", "other")
    before = labelled(stage)
    assert before.keys() == {guest, other}
    use = before[guest]
    assert (use.sessions, use.denials, use.waited) == (1, 1, 0)
    assert (use.published, use.refused, use.sent) == (Traffic(1, 3), Traffic(1, 5), Traffic(1, 7))
    # It ends in the midst of a scrape: that one counts it once, too.
    totals = stage.running.gateway.scraper.labelled
    assert totals is not None
    (session,) = stage.running.gateway.sessions.values()
    look = stage.running.call(totals.look)
    leave(client, broker)
    stage.running.wait_idle()
    stage.running.call(lambda: look.add(session))
    assert look.told()[guest] == use
    assert labelled(stage) == before | {guest: attrs.evolve(use, sessions=0)}
    # Who comes again goes on where the other has ended.
    client, broker = stage.opened(user=b"guest")
    client.publish(b"1", "big", exchange="x")
    broker.expect_content(amqp.BasicPublish)
    again = labelled(stage)[guest]
    assert (again.sessions, again.published) == (1, Traffic(2, 4))


def test_no_counter_falls_whoever_comes_and_goes(make_stage: MakeStage) -> None:
    stage = make_stage(text=SETTINGS + "metrics: {{by: [user], users: [a, b, c], most: 2}}\n")
    before: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    guests = []
    for user in (b"a", b"a", b"x", b"b", b"c", b"y"):
        client, broker = stage.opened(user=user)
        client.publish(b"12", "k")
        broker.expect_content(amqp.BasicPublish)
        guests.append((client, broker))
        if len(guests) > 2:
            leave(*guests.pop(0))
        now = counters(stage)
        assert all(now[key] >= value for key, value in before.items())
        before = now
    for guest in guests:
        leave(*guest)
    stage.running.wait_idle()
    now = counters(stage)
    assert all(now[key] >= value for key, value in before.items())
    found = {
        dict(labels)["user"]: value
        for (name, labels), value in now.items()
        if name == "amqpgate_labelled_messages_total" and value
    }
    # x and y have no name here; c came when there were as many as there may be.
    assert found == {"a": 2, "b": 1, "other": 3}


def test_who_waits_for_a_limit_counts(make_stage: MakeStage) -> None:
    slow = RATE % ("enforce", "messages: 1/h, burst: 1s, action: delay")
    stage = make_stage(text=LABELLED, policies=slow)
    client, _ = stage.opened()
    for _ in range(3):
        client.publish(b"x", "k")
    looks = Looks(stage)
    looks.wait(1)
    before = labelled(stage)["main", "/", "guest"].waited
    looks.look(2)
    assert labelled(stage)["main", "/", "guest"].waited >= before + 2


def test_a_login_that_is_refused_takes_no_labels(make_stage: MakeStage) -> None:
    stage = make_stage(policies=ACCESS % "nack", text=LABELLED + "defaultAccess: deny\n")
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0boss\0x", locale="en_US"))
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    client.say(amqp.ConnectionOpen("/"))
    client.expect(amqp.ConnectionClose)
    assert labelled(stage).keys() == {("other", "other", "other")}
    assert sum(use.denials for use in labelled(stage).values()) == 0


# -- who asks for none -------------------------------------------------------------------------------------


def test_without_the_setting_there_is_nothing_of_it(stage: Stage) -> None:
    stage.opened()
    gateway = stage.running.gateway
    assert gateway.observers.reports.labelled is None
    assert gateway.scraper.labelled is None
    assert labelled(stage) == {}
    assert b"labelled" not in stage.running.ask(gateway.metrics_text)
