"""How many may come in: what waits, what is refused at which stage, and with which words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from amqpgate.errors import OverLimit
from amqpgate.gateway.handshake import admission as door_module
from amqpgate.gateway.handshake.admission import AdmissionControl, AdmissionStage, ConnectionPolicies
from amqpgate.gateway.limits.token_buckets import TokenBuckets
from amqpgate.gateway.observers.stats.bindings import Bindings
from amqpgate.gateway.observers.stats.decisions import Decisions
from amqpgate.gateway.observers.stats.reports import Reports
from amqpgate.gateway.observers.stats.selected import Selected
from amqpgate.gateway.session.operation_limits import Happened
from amqpgate.gateway.session.policies_in_force import PoliciesInForce
from amqpgate.gateway.session.policy_compiling import PolicyCompiler
from amqpgate.policy import PolicySet, Principal, SelectedPolicies, SharedLimit, Source, build
from amqpgate.telemetry.events import Events
from amqpgate.telemetry.metrics import Metrics
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.unit.gateway.conftest import Stage as Theatre
from tests.unit.gateway.rated import counted

MakeStage = Callable[..., Theatre]
BOB = Principal("bob", "prod", source="10.0.0.7", listener="main")
STRANGER = Principal(None, "", source="10.0.0.7", listener="main")

RATES = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: door}
spec:
  %s
  subjects: [%s]
  limits: [{id: few, %s}]
"""


def rates(limit: str, subject: str = "{}", mode: str = "mode: enforce") -> str:
    return RATES % (mode, subject, limit)


class Doorway:
    """A door, and what it reports."""

    def __init__(self, limit: str, patience: float = 10, **options: str) -> None:
        policies: PolicySet = build([Source("p.yaml", rates(limit, **options).encode())])
        self.reports: list[tuple[str, Happened, bool]] = []
        self.buckets = TokenBuckets()
        self.policies = policies
        self.admission = AdmissionControl(self.buckets, self.report, patience)

    async def enter(self, stage: AdmissionStage, who: Principal, connection: str) -> OverLimit | None:
        return await self.admission.enter(stage, SelectedPolicies(self.policies, who, connection))

    def report(self, limit: SharedLimit, happened: Happened) -> None:
        self.reports.append((limit.name, happened, limit.enforced))


@pytest.fixture
def _trios_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module.time, "monotonic", trio.current_time)


# -- policies ------------------------------------------------------------------------------------------------


async def test_policies_that_come_meanwhile_hold_for_who_was_let_in_before() -> None:
    first, second = PolicySet.empty(), PolicySet.empty("deny")
    in_force, metrics = PoliciesInForce(first), Metrics(lambda: None)
    policies = ConnectionPolicies(
        in_force,
        PolicyCompiler(),
        Reports(metrics, Decisions(Events()), Bindings()),
        Selected(first, metrics.policies),
        None,
    )
    selected = await policies.prepared(BOB, "c")
    assert policies.why_not_open(selected) is None
    assert await policies.still(selected) is selected
    in_force.replace(second)
    others = await policies.still(selected)
    assert (others.policies, others.principal, others.connection) == (second, BOB, "c")
    assert policies.why_not_open(others) == "access to vhost 'prod' refused for user 'bob'"
    # Neither limits those who have not said who they are.
    assert policies.of_stranger(STRANGER, "d") is None
    in_force.replace(Doorway("logins: 2/s").policies)
    limiting = policies.of_stranger(STRANGER, "d")
    assert limiting is not None
    assert limiting.policies is in_force.now


# -- waiting -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_trios_clock")
async def test_logins_wait_for_their_turn(autojump_clock: trio.testing.MockClock) -> None:
    way = Doorway("logins: 2/s")
    came: list[float] = []

    async def knock(number: int) -> None:
        assert await way.enter(AdmissionStage.LOGIN, BOB, f"c{number}") is None
        came.append(trio.current_time() - since)

    since = trio.current_time()
    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(knock, number)
    assert came == pytest.approx([0, 0, 0.5, 1, 1.5, 2, 2.5, 3])
    assert way.reports == [("door/few", Happened.DELAYED, True)] * 6


@pytest.mark.usefixtures("_trios_clock")
async def test_who_would_wait_too_long_is_turned_away_at_once(autojump_clock: trio.testing.MockClock) -> None:
    way = Doorway("logins: 1/s", patience=2)
    answers = []

    async def knock(number: int) -> None:
        answers.append(await way.enter(AdmissionStage.LOGIN, BOB, f"c{number}"))

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(knock, number)
    refused = [answer for answer in answers if answer is not None]
    assert len(refused) == 6
    assert {answer.code for answer in refused} == {530}
    assert trio.current_time() < 10


@pytest.mark.usefixtures("_trios_clock")
async def test_who_gives_up_gives_back_its_turn(autojump_clock: trio.testing.MockClock) -> None:
    way = Doorway("logins: 1/s")
    assert await way.enter(AdmissionStage.LOGIN, BOB, "c") is None
    with trio.move_on_after(0.5):
        await way.enter(AdmissionStage.LOGIN, BOB, "c")
    before = trio.current_time()
    assert await way.enter(AdmissionStage.LOGIN, BOB, "c") is None
    assert trio.current_time() - before == pytest.approx(0.5)


async def test_at_which_stage_a_limit_counts() -> None:
    early, late = (
        Doorway("connections: 1/h, action: reject"),
        Doorway("connections: 1/h, action: reject, per: [user]"),
    )
    logins = Doorway("logins: 1/h, action: reject")
    for way, counts in (
        (early, AdmissionStage.ARRIVAL),
        (late, AdmissionStage.OPEN),
        (logins, AdmissionStage.LOGIN),
    ):
        for stage in AdmissionStage:
            who = STRANGER if stage is AdmissionStage.ARRIVAL else BOB
            answers = [await way.enter(stage, who, "c") is None for _ in range(2)]
            assert answers == [True, stage is not counts]
            way.admission.leave("c")


async def test_connections_at_once() -> None:
    way = Doorway("concurrent: 2, per: [user], action: reject")
    alice = Principal("alice", "prod")
    assert [await way.enter(AdmissionStage.OPEN, BOB, name) is None for name in "abc"] == [
        True,
        True,
        False,
    ]
    assert await way.enter(AdmissionStage.OPEN, alice, "d") is None
    way.admission.leave("a")
    way.admission.leave("a")
    assert [await way.enter(AdmissionStage.OPEN, BOB, name) is None for name in "ef"] == [
        True,
        False,
    ]
    assert way.reports == [("door/few", Happened.REFUSED, True)] * 2
    for name in "bde":
        way.admission.leave(name)
    assert len(way.buckets) == 0, "nothing is kept of who has left"


@pytest.mark.parametrize(
    ("limit", "asked"),
    [
        ("messages: 5/s", 0),
        ("messages: 5/s, concurrent: 2, action: reject", 1),
        ("connections: 5/s, per: [user]", 1),
        # It was asked when the client came.
        ("connections: 5/s", 0),
        # Its grant is there before the first message.
        ("messages: 5/s, shared: true", 1),
    ],
)
async def test_what_is_asked_when_a_connection_opens(
    autojump_clock: trio.testing.MockClock, limit: str, asked: int
) -> None:
    door = Doorway(limit)
    assert await door.enter(AdmissionStage.OPEN, BOB, "a") is None
    assert len(door.buckets) == asked


async def test_in_shadow_everybody_comes_in() -> None:
    way = Doorway(
        "concurrent: 1, connections: 1/h, logins: 1/h, per: [user], action: reject", mode="mode: shadow"
    )
    for name in "ab":
        for stage in (AdmissionStage.LOGIN, AdmissionStage.OPEN):
            assert await way.enter(stage, BOB, name) is None
    assert way.reports == [("door/few", Happened.REFUSED, False)] * 3


# -- what a client sees --------------------------------------------------------------------------------------


def test_a_stranger_too_many_is_left_standing(make_stage: MakeStage) -> None:
    stage = make_stage(policies=rates("connections: 1/h, per: [sourceIP], action: reject"))
    stage.opened()
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    client.expect_end()
    eventually(lambda: stage.running.outcomes() == {"over_limit": 1})
    assert counted(stage) == {("door", "few", "refused", "yes"): 1}


def test_a_login_too_many_is_refused_and_the_broker_does_not_hear_of_it(make_stage: MakeStage) -> None:
    stage = make_stage(policies=rates("logins: 1/h, per: [user], action: reject"))
    stage.opened()
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US"))
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.class_id, close.method_id) == (530, 10, 11)
    client.say(amqp.ConnectionCloseOk())
    client.close()
    broker.expect_end()
    # Another user's is another limit.
    stage.opened(user=b"alice")


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ("concurrent: 1, action: reject", 530),
        ("concurrent: 1, action: close", 506),
        ("connections: 1/h, per: [user], action: reject", 530),
    ],
)
def test_a_connection_too_many_is_refused_at_open(make_stage: MakeStage, limit: str, code: int) -> None:
    stage = make_stage(policies=rates(limit))
    stage.opened()
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US"))
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    broker.expect(amqp.ConnectionTuneOk)
    client.say(amqp.ConnectionOpen("/"))
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.class_id, close.method_id) == (code, 10, 40)
    client.say(amqp.ConnectionCloseOk())
    assert broker.expect(amqp.ConnectionClose).reply_code == 200


def test_there_is_room_again_when_a_connection_has_gone(make_stage: MakeStage) -> None:
    stage = make_stage(policies=rates("concurrent: 1, action: reject"))
    for _ in range(3):
        client, broker = stage.opened()
        client.close()
        broker.expect(amqp.ConnectionClose)
        broker.say(amqp.ConnectionCloseOk())
        broker.close()
        stage.running.wait_idle()
    assert stage.running.outcomes() == {"client_gone": 3}
