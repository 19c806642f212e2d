"""Refused logins are in the records and the log, by whom they claim to be; and thousands are few records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from amqpgate.gateway.observers.audit.logins import EACH, KINDS, RefusedLogin, RefusedLogins
from amqpgate.records import Origin
from amqpgate.telemetry.audit.log import AuditLog
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.talker import CAPABILITIES
from tests.unit.gateway.audited import MakeStage, audited, told

__all__ = ["audited"]

NOT_RIGHT = amqp.ConnectionClose(
    403, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN"
)
NO_VHOST = amqp.ConnectionClose(530, "NOT_ALLOWED - access to vhost 'secrets' refused for user 'eve'", 10, 40)
BOB = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: bob}
spec: {subjects: [{user: eve}], rules: [{id: all, effect: deny, operations: [connection.open]}]}
"""


@pytest.fixture(name="fields")
def _fields(caplog: pytest.LogCaptureFixture) -> Iterator[Any]:
    with caplog.at_level("INFO", "amqpgate"):
        yield lambda: [record.__dict__["about"] for record in caplog.records if "about" in record.__dict__]


def start_ok(properties: Table = CAPABILITIES) -> amqp.ConnectionStartOk:
    return amqp.ConnectionStartOk(properties, "PLAIN", b"\0eve\0hunter2", "en_US")


@pytest.mark.parametrize("where", ["login", "vhost", "hangs up"])
def test_a_login_that_the_broker_refuses_is_an_event(
    audited: MakeStage, tmp_path: Path, where: str, fields: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stage = audited()
    client, broker = stage.greeted()
    client.say(start_ok(Table() if where == "hangs up" else CAPABILITIES))
    broker.expect(amqp.ConnectionStartOk)
    if where == "vhost":
        broker.say(amqp.ConnectionTune(2047, 131072, 0))
        client.expect(amqp.ConnectionTune)
        client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
        client.say(amqp.ConnectionOpen("secrets"))
        broker.expect(amqp.ConnectionTuneOk)
        broker.expect(amqp.ConnectionOpen)
    refusal = NO_VHOST if where == "vhost" else NOT_RIGHT
    if where == "hangs up":
        broker.close()
    else:
        broker.say(refusal)
        assert client.expect(amqp.ConnectionClose) == refusal
        client.say(amqp.ConnectionCloseOk())
    client.expect_end()
    client.close()
    stage.running.wait_idle()
    (event,) = told(stage, tmp_path, "events", kind="session.refused")
    code = None if where == "hangs up" else refusal.reply_code
    vhost = "secrets" if where == "vhost" else None
    assert (event["user"], event["vhost"], event["source"], event["listener"]) == (
        "eve",
        vhost or "",
        "127.0.0.1",
        "main",
    )
    assert (event["reply_code"], event["outcome"]) == (code, "refused")
    assert json.loads(str(event["detail"])) == {"times": 1, "upstream": "broker"}
    assert where == "hangs up" or refusal.reply_text in str(event["reason"])
    (line,) = [one for one in fields() if one.get("session") == event["session"]]
    wanted = {"user": "eve", "vhost": vhost, "listener": "main", "upstream": "broker", "reply_code": code}
    assert {name: line.get(name) for name in wanted} == wanted
    assert "hunter2" not in f"{event}{caplog.text}{fields()}"


def test_what_a_policy_denies_is_the_event_that_it_was(
    audited: MakeStage, tmp_path: Path, fields: Any
) -> None:
    stage = audited(policies=BOB)
    client, broker = stage.greeted()
    client.say(start_ok())
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    client.say(amqp.ConnectionOpen("/"))
    assert client.expect(amqp.ConnectionClose).reply_code == 530
    client.say(amqp.ConnectionCloseOk())
    client.close()
    broker.close()
    stage.running.wait_idle()
    kinds = [one["kind"] for one in told(stage, tmp_path, "events")]
    assert (kinds.count("denied"), kinds.count("session.refused")) == (1, 0)
    assert {one["reply_code"] for one in fields() if one.get("user") == "eve"} == {530}


def test_who_never_said_who_it_is_is_no_login(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited()
    client = stage.client()
    client.raw(b"GET / HT")
    client.close()
    stage.running.wait_idle()
    assert told(stage, tmp_path, "events", kind="session.refused") == []


class Kept:
    """A log that keeps events as they are told."""

    def __init__(self) -> None:
        self.events: list[tuple[Origin | None, dict[str, Any]]] = []

    def event(self, origin: Origin | None, kind: str, time: float, /, **columns: Any) -> None:
        assert kind == "session.refused"
        self.events.append((origin, columns | {"detail": json.loads(columns["detail"])}))


def origin(number: int, user: str) -> Origin:
    return Origin(
        session=f"s{number}", user=user, vhost="", source="10.0.0.7", listener="main", client='{"a": "b"}'
    )


def test_thousands_are_few_records_in_a_window() -> None:
    kept, logins = Kept(), RefusedLogins()
    log = cast("AuditLog", kept)
    how = RefusedLogin("broker", 403, "no" * 1000)
    for number in range(EACH + 1000):
        logins.note(log, "d", origin(number, "bob"), how)
    assert len(kept.events) == EACH
    logins.tell(log, "d")
    assert len(kept.events) == EACH + 1
    whose, columns = kept.events[-1]
    assert whose is not None
    assert (whose.user, whose.session, whose.client) == ("bob", f"s{EACH}", None)
    assert (columns["detail"]["times"], len(columns["reason"])) == (1000, 512)
    # The next window begins anew.
    logins.note(log, "d", origin(1, "bob"), how)
    logins.tell(log, "d")
    assert len(kept.events) == EACH + 2


def test_so_are_those_of_as_many_names() -> None:
    kept, logins = Kept(), RefusedLogins()
    log = cast("AuditLog", kept)
    for number in range(EACH + KINDS + 5000):
        logins.note(log, "d", origin(number, f"user {number}"), RefusedLogin(None, None, "no"))
    logins.tell(log, "d")
    assert len(kept.events) == EACH + KINDS + 1
    assert kept.events[-1][0] is None
    assert kept.events[-1][1]["detail"]["times"] == 5000
    assert sum(columns["detail"]["times"] for _, columns in kept.events) == EACH + KINDS + 5000
