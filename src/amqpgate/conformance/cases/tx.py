"""Transactions (AMQP 0-9-1, section 1.9)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.peer import TestedPeer
from amqpgate.conformance.talk import Talk, saying

TX: Final = CaseSection("tx", "Transactions", Talk)


async def _selected(talk: Talk) -> tuple[TestedPeer, str]:
    """A channel in a transaction, and a queue. Channel 2 has none."""
    peer = await talk.channel()
    await talk.channel(peer, 2)
    name = await talk.queue(peer)
    await peer.say(1, talk.amqp.TxSelect())
    await peer.expect(talk.amqp.TxSelectOk, 1)
    return peer, name


TX.rule("tx.select.ok", "select is answered", section="1.9.2.1", obeys="tx.select-ok")(
    saying(lambda talk: talk.amqp.TxSelect())
)
TX.rule("tx.select.twice", "select again is answered", section="1.9.2.1", obeys="tx.select-ok")(
    saying(lambda talk: talk.amqp.TxSelect(), lambda talk: talk.amqp.TxSelect())
)
TX.rule(
    "tx.commit.transacted",
    "commit without select closes the channel with 406",
    section="1.9.2.3",
    obeys=("channel.close 406", "connection.close 503"),
)(saying(lambda talk: talk.amqp.TxCommit()))
TX.rule(
    "tx.rollback.transacted",
    "rollback without select closes the channel with 406",
    section="1.9.2.5",
    obeys=("channel.close 406", "connection.close 503"),
)(saying(lambda talk: talk.amqp.TxRollback()))
TX.rule("tx.commit.empty", "an empty transaction commits", section="1.9.2.3", obeys="tx.commit-ok")(
    saying(lambda talk: talk.amqp.TxSelect(), lambda talk: talk.amqp.TxCommit())
)


@TX.rule(
    "tx.publish.before-commit", "nothing is in the queue before commit", section="1.9.1", obeys="0, then 2"
)
async def _(talk: Talk) -> str:
    peer, name = await _selected(talk)
    for _ in range(2):
        await talk.publish(peer, name)
    await talk.pause(0.05)
    before = await talk.count(peer, name, 2)
    await peer.say(1, talk.amqp.TxCommit())
    await peer.expect(talk.amqp.TxCommitOk, 1)
    return f"{before}, then {await talk.count(peer, name, 2)}"


@TX.rule("tx.publish.rollback", "rollback drops what was published", section="1.9.2.5", obeys="0")
async def _(talk: Talk) -> str:
    peer, name = await _selected(talk)
    await talk.publish(peer, name)
    await peer.say(1, talk.amqp.TxRollback())
    await peer.expect(talk.amqp.TxRollbackOk, 1)
    return str(await talk.count(peer, name, 2))


@TX.rule(
    "tx.publish.channel-close", "closing the channel drops what was not committed", section="1.9.1", obeys="0"
)
async def _(talk: Talk) -> str:
    peer, name = await _selected(talk)
    await talk.publish(peer, name)
    await peer.say(1, talk.amqp.ChannelClose(reply_code=200, reply_text="bye"))
    await peer.expect(talk.amqp.ChannelCloseOk, 1)
    return str(await talk.count(peer, name, 2))


@TX.rule(
    "tx.ack.rollback",
    "rollback undoes acknowledgements",
    section="1.9.2.5",
    obeys="comes again",
)
async def _(talk: Talk) -> str:
    peer, name = await _selected(talk)
    await talk.publish(peer, name, channel=2)
    await peer.goes_on(2)
    await talk.get(peer, name, no_ack=False)
    await peer.say(1, talk.amqp.BasicAck(delivery_tag=1), talk.amqp.TxRollback())
    await peer.expect(talk.amqp.TxRollbackOk, 1)
    await peer.say(1, talk.amqp.ChannelClose(reply_code=200, reply_text="bye"))
    await peer.expect(talk.amqp.ChannelCloseOk, 1)
    return "comes again" if await talk.arrives(peer, name, channel=2) is not None else "gone"


@TX.rule("tx.ack.commit", "commit makes acknowledgements hold", section="1.9.2.3", obeys="gone")
async def _(talk: Talk) -> str:
    peer, name = await _selected(talk)
    await talk.publish(peer, name, channel=2)
    await peer.goes_on(2)
    await talk.get(peer, name, no_ack=False)
    await peer.say(1, talk.amqp.BasicAck(delivery_tag=1), talk.amqp.TxCommit())
    await peer.expect(talk.amqp.TxCommitOk, 1)
    await peer.say(1, talk.amqp.ChannelClose(reply_code=200, reply_text="bye"))
    await peer.expect(talk.amqp.ChannelCloseOk, 1)
    await talk.pause(0.05)
    return "gone" if await talk.get(peer, name, channel=2) is None else "comes again"


@TX.rule(
    "tx.publish.mandatory",
    "a mandatory message that goes nowhere comes back with the commit",
    section="1.9.1",
    obeys="returned, committed",
)
async def _(talk: Talk) -> str:
    peer, _ = await _selected(talk)
    await talk.publish(peer, talk.name(), mandatory=True)
    await peer.say(1, talk.amqp.TxCommit())
    await peer.message(1, talk.amqp.BasicReturn)
    await peer.expect(talk.amqp.TxCommitOk, 1)
    return "returned, committed"


@TX.rule("tx.next", "after commit the next transaction begins by itself", section="1.9.1", obeys="1, then 0")
async def _(talk: Talk) -> str:
    peer, name = await _selected(talk)
    await talk.publish(peer, name)
    await peer.say(1, talk.amqp.TxCommit())
    await peer.expect(talk.amqp.TxCommitOk, 1)
    first = await talk.count(peer, name, 2)
    await talk.publish(peer, name)
    await peer.say(1, talk.amqp.TxRollback())
    await peer.expect(talk.amqp.TxRollbackOk, 1)
    return f"{first}, then {await talk.count(peer, name, 2)}"
