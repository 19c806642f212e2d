"""Which operations policies judge for which command, as the documents say."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve

from amqpgate.policy.engine.operations import OPERATIONS
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import COMMANDS
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.sequences import ids_of
from amqpgate.wire.v0_10.structs import Command
from tests.unit.bridge.v0_10.lab import Lab, broker_state
from tests.unit.broker.client import Client

PAGE = Path(__file__).parents[4] / "docs/amqp-0-10.md"

FIRST = ids_of([0])
SUBSCRIBE = amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0)
BYTES = amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF)
ONE = amqp10.MessageFlow(destination=b"d", unit=0, value=1)

#: What is said for each row, the last of it is what the row is about.
SAID: Final[dict[str, tuple[Command, ...]]] = {
    "`message.subscribe`": (SUBSCRIBE,),
    "`message.subscribe`, exclusive": (amqp10.MessageSubscribe(b"q", b"d", 0, 0, exclusive=True),),
    "`message.flow`, the first credit of a subscription": (SUBSCRIBE, BYTES, ONE),
    "`queue.declare`": (amqp10.QueueDeclare(queue=b"new"),),
    "`queue.query`": (amqp10.QueueQuery(queue=b"q"),),
    "`queue.delete`": (amqp10.QueueDelete(queue=b"q"),),
    "`queue.delete`, if-unused or if-empty": (amqp10.QueueDelete(queue=b"q", if_empty=True),),
    "`queue.purge`": (amqp10.QueuePurge(queue=b"q"),),
    "`exchange.declare`": (amqp10.ExchangeDeclare(exchange=b"new", type=b"direct"),),
    "`exchange.query`": (amqp10.ExchangeQuery(name=b"e"),),
    "`exchange.query`, of one that was not declared through this connection": (
        amqp10.ExchangeQuery(name=b"theirs"),
    ),
    "`exchange.delete`": (amqp10.ExchangeDelete(exchange=b"e"),),
    "`exchange.bind`": (amqp10.ExchangeBind(exchange=b"e", queue=b"q", binding_key=b"k"),),
    "`exchange.unbind`": (amqp10.ExchangeUnbind(exchange=b"e", queue=b"q", binding_key=b"k"),),
    "`exchange.unbind`, of what was not declared through this connection": (
        amqp10.ExchangeUnbind(exchange=b"theirs", queue=b"their-queue", binding_key=b"k"),
    ),
    "`queue.declare`, with an alternate exchange that was not declared through this connection": (
        amqp10.QueueDeclare(queue=b"new", alternate_exchange=b"theirs"),
    ),
    "`exchange.declare`, with such an alternate exchange": (
        amqp10.ExchangeDeclare(exchange=b"new", type=b"direct", alternate_exchange=b"theirs"),
    ),
    "`exchange.bound`": (amqp10.ExchangeBound(exchange=b"e", queue=b"q"),),
}
#: Rows whose order is not the table's.
FLUSHES: Final = (
    "`message.flush` with credit",
    "`message.flush`, of a queue that was not declared through this connection",
)
#: What touches nothing.
FREE: Final = (
    amqp10.MessageCancel(destination=b"d"),
    amqp10.MessageAccept(transfers=FIRST),
    amqp10.MessageRelease(transfers=FIRST),
    amqp10.MessageReject(transfers=FIRST),
    amqp10.MessageAcquire(transfers=FIRST),
    amqp10.MessageStop(destination=b"d"),
    amqp10.MessageSetFlowMode(destination=b"d", flow_mode=0),
    amqp10.TxSelect(),
    amqp10.TxCommit(),
    amqp10.TxRollback(),
    amqp10.ExecutionSync(),
    amqp10.ExecutionResult(command_id=0),
    amqp10.ExecutionException(error_code=404),
)


def rows() -> dict[str, str]:
    """The table: what is said, and what is judged."""
    section = PAGE.read_text().partition("### What policies judge")[2].partition("\n###")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {cells[0]: cells[1] for cells in lines}


def named(text: str) -> set[str]:
    return set(re.findall(r"`([a-z]+\.[a-z-]+)`", text))


@pytest.fixture
def lab() -> Lab:
    state = broker_state()
    other = Client(state)
    other.tell(amqp.ExchangeDeclare(exchange="theirs", type="topic"))
    other.tell(amqp.QueueDeclare(queue="their-queue"))
    lab = Lab(state).open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.do(amqp10.ExchangeDeclare(exchange=b"e", type=b"direct"))
    return lab


def judged(lab: Lab, do: Callable[[], object]) -> list[str]:
    """What is asked of the broker meanwhile, as far as policies have something to say, as the page has it;
    what is asked again at once stands there once."""
    lab.asked.clear()
    do()
    shown = [_shown(method) for _, method in lab.asked if _touches(method)]
    return [one for one, _ in itertools.groupby(shown)]


def _touches(method: Method) -> bool:
    kind = OPERATIONS.get(method.NAME)
    return kind is not None and not kind.free


def _shown(method: Method) -> str:
    is_passive = isinstance(method, amqp.QueueDeclare | amqp.ExchangeDeclare) and method.passive
    return f"`{method.NAME}`" + (" (passive)" if is_passive else "")


@pytest.mark.parametrize("row", SAID)
def test_what_a_command_is_judged_as(lab: Lab, row: str) -> None:
    *before, last = SAID[row]
    for command in before:
        lab.do(command)
    assert ", ".join(judged(lab, lambda: lab.do(last))) == rows()[row].partition(":")[0]


def test_a_transfer_is_a_publish(lab: Lab) -> None:
    assert judged(lab, lambda: lab.transfer(b"m", b"k", exchange=b"e")) == [rows()["`message.transfer`"]]


def test_a_flush_gets_what_there_is(lab: Lab) -> None:
    for _ in range(2):
        lab.transfer(b"m", b"q")
    for command in (SUBSCRIBE, BYTES):
        lab.do(command)
    credit = amqp10.MessageFlow(destination=b"d", unit=0, value=10)
    flush = amqp10.MessageFlush(destination=b"d")
    asked = judged(lab, lambda: (lab.do(credit), lab.do(flush)))
    assert asked[0] == "`basic.consume`"
    said = rows()[FLUSHES[0]]
    assert {*asked[1:]} == set(said.partition(", both")[0].split(", "))


def test_a_flush_asks_what_another_connections_queue_is(lab: Lab) -> None:
    for command in (evolve(SUBSCRIBE, queue=b"their-queue"), BYTES, ONE):
        lab.do(command)
    asked = judged(lab, lambda: lab.do(amqp10.MessageFlush(destination=b"d")))
    first, _, rest = rows()[FLUSHES[1]].partition(", once, and then the same")
    assert (first in asked, bool(rest)) == (True, True)


@pytest.mark.parametrize("command", FREE, ids=lambda command: command.NAME)
def test_what_touches_no_resource(lab: Lab, command: Command) -> None:
    lab.do(SUBSCRIBE)
    if not isinstance(command, amqp10.MessageSetFlowMode):
        lab.do(BYTES)
        lab.do(ONE)
    lab.transfer(b"m", b"q")
    if isinstance(command, amqp10.TxCommit | amqp10.TxRollback):
        lab.do(amqp10.TxSelect())
    assert judged(lab, lambda: lab.do(command)) == []
    assert not [one for one in lab.commands() if isinstance(one, amqp10.ExecutionException)]


def test_every_command_has_a_row(lab: Lab) -> None:
    free = next(said for said, judged in rows().items() if judged == "none that touches a resource")
    refused = next(said for said, judged in rows().items() if "540" in judged)
    assert named(free) == {command.NAME for command in FREE}
    assert set(rows()) == {*SAID, "`message.transfer`", *FLUSHES, free, refused}
    known = {command.NAME for command in COMMANDS.values()}
    classes = {name.partition(".")[0] for name in known - named(" ".join(rows()))}
    assert named(" ".join(rows())) <= known
    assert classes == {"file", "stream"}
    for name in named(refused):
        (command,) = [one for one in COMMANDS.values() if name == one.NAME]
        assert judged(lab.attach(1, name.encode()), lambda command=command: lab.do(command(), 1)) == []
        [exception] = [one for one in lab.commands() if isinstance(one, amqp10.ExecutionException)]
        assert exception.error_code == 540
        lab.say(amqp10.SessionDetached(name=name.encode()), channel=1)
        lab.heard.clear()
