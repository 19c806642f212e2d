"""Each scenario on a client that takes all, and on one that hangs up; in one process, over memory."""

from __future__ import annotations

import functools

import pytest
import trio
import trio.testing

from amqpgate.conformance import peer as peers
from amqpgate.conformance.client.rules import PASSIVE
from amqpgate.conformance.client.scenarios import CLIENT_SECTIONS, SCENARIOS
from amqpgate.conformance.client.serve import ScriptedBroker
from amqpgate.conformance.client.verdicts import ClientVerdicts
from amqpgate.conformance.endings import Unexpected
from amqpgate.conformance.talk import Talk
from amqpgate.conformance.versions import VERSIONS
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Played without a word of what these are about, or for seconds.
LEFT_OUT = {"framing.interleaved", "connection.heartbeat.sent", "connection.heartbeat.heard"}
PATIENCE = 5.0


class Program:
    """A client that answers whatever it is told, and does what an ordinary program does."""

    def __init__(self, stream: trio.abc.Stream, *, leaves_at: str = "") -> None:
        self.peer = peers.TestedPeer(VERSIONS["0-9-1"], stream, PATIENCE)
        target = peers.PeerLogin("", 0, "guest", "guest", "/")
        self.talk = Talk(target, PATIENCE, "p-", VERSIONS["0-9-1"])
        self.leaves_at = leaves_at

    async def answer(self, wanted: type[Method]) -> Method:
        """The next of this kind; what comes before is taken and answered."""
        while True:
            frame = await self.peer.frame()
            if frame is None or frame.type != 1:
                if frame is None:
                    raise Unexpected("hangs up")
                continue
            said = self.peer.decoded(frame)
            if self.leaves_at == said.NAME:
                raise Unexpected("hangs up")
            if isinstance(said, amqp.ChannelFlow):
                await self.peer.say(frame.channel, amqp.ChannelFlowOk(said.active))
            elif isinstance(said, amqp.BasicDeliver):
                await self.peer.say(frame.channel, amqp.BasicAck(said.delivery_tag))
            if isinstance(said, wanted):
                return said
            if said.NAME.endswith(".close"):
                raise Unexpected(await self.peer.told(frame.channel, said))

    async def run(self) -> None:
        peer = self.peer
        await peer.send(peer.version.header)
        start = await self.answer(amqp.ConnectionStart)
        assert isinstance(start, amqp.ConnectionStart)
        if b"PLAIN" not in start.mechanisms.split():
            return
        await peer.say(0, self.talk.start_ok())
        tune = await self.answer(amqp.ConnectionTune)
        assert isinstance(tune, amqp.ConnectionTune)
        await self.talk.open(peer, tune, heartbeat=tune.heartbeat)
        await self.answer(amqp.ConnectionOpenOk)
        await peer.say(1, amqp.ChannelOpen(), amqp.ConfirmSelect(), amqp.QueueDeclare())
        declared = await self.answer(amqp.QueueDeclareOk)
        assert isinstance(declared, amqp.QueueDeclareOk)
        for key, body in ((declared.queue, b""), (declared.queue, b"body"), ("nowhere", b"lost")):
            publish = amqp.BasicPublish(routing_key=key, mandatory=True)
            await peer.send(*peer.content(1, publish, body))
        await self.answer(amqp.BasicAck)
        await peer.say(1, amqp.BasicConsume(queue=declared.queue))
        await self.answer(amqp.BasicDeliver)
        await self.answer(amqp.BasicDeliver)
        await peer.say(1, amqp.ChannelClose(200))
        closed = await self.answer(amqp.ChannelClose) if self.leaves_at == "crossing" else None
        if closed is not None:
            await peer.say(1, amqp.ChannelCloseOk())
        await self.answer(amqp.ChannelCloseOk)
        await peer.say(0, amqp.ConnectionClose(200))
        await self.answer(amqp.ConnectionCloseOk)


async def verdict(path: str, *, leaves_at: str = "") -> tuple[str, str]:
    judged = {rule.id for section in PASSIVE for rule in section.cases}
    verdicts = ClientVerdicts([SCENARIOS[path]], judged)
    broker = ScriptedBroker(verdicts, lambda _: None)
    client, served = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(functools.partial(broker.serve, served))
        program = Program(client, leaves_at=leaves_at)
        try:
            await program.run()
        except Unexpected:
            pass
        finally:
            await client.aclose()
    found = {one.case.id: one for one in verdicts.results()}
    deviating = [one.case.id for one in found.values() if one.verdict == "deviates" and one.case.id != path]
    assert deviating == []
    return found[path].verdict, found[path].said


@pytest.mark.parametrize("path", [path for path in SCENARIOS if path not in LEFT_OUT])
async def test_who_takes_all_obeys(path: str) -> None:
    leaves_at = "crossing" if path == "channel.close.crosses" else ""
    assert (await verdict(path, leaves_at=leaves_at))[0] == "obeys"


@pytest.mark.parametrize(
    ("path", "leaves_at"),
    [
        ("connection.ordinary", "connection.open-ok"),
        ("connection.open.refused", "connection.close"),
        ("connection.start-ok.refused", "connection.close"),
        ("connection.close.answered", "connection.close"),
        ("channel.close.answered", "channel.close"),
        ("basic.deliver.body.one-byte", "basic.deliver"),
        ("basic.deliver.header-types", "basic.deliver"),
        ("channel.flow.answered", "channel.flow"),
        ("basic.ack.multiple", "basic.ack"),
    ],
)
async def test_who_hangs_up_deviates(path: str, leaves_at: str) -> None:
    assert await verdict(path, leaves_at=leaves_at) == ("deviates", "hangs up")


async def test_the_worst_counts_and_what_nobody_tried_is_untestable() -> None:
    scenario = SCENARIOS["connection.ordinary"]
    verdicts = ClientVerdicts([scenario], [])
    assert [one.verdict for one in verdicts.results()] == ["untestable"]
    for said in (None, "goes on", "hangs up", "goes on"):
        verdicts.add_played("0-9-1", scenario, said, 0, 0)
    assert [(one.verdict, one.said) for one in verdicts.results()] == [("deviates", "hangs up")]


async def test_a_program_that_fails_deviates() -> None:
    scenario = SCENARIOS["connection.ordinary"]
    verdicts = ClientVerdicts([scenario], [])
    verdicts.add_played("0-9-1", scenario, "goes on", 0, 3)
    assert [one.said for one in verdicts.results()] == ["goes on; the program ended with 3"]


def test_ids_are_told_apart() -> None:
    paths = [rule.id for section in CLIENT_SECTIONS for rule in section.cases]
    assert len(paths) == len(set(paths))
