"""What nobody takes (AMQP 0-10, alternate-exchange of exchanges and queues)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.v0_10.talk import SessionTalk, section
from amqpgate.wire.generated import v0_10 as amqp

ALTERNATE: Final = section("alternate", "Alternate exchanges")


@ALTERNATE.rule(
    "exchange.declare.alternate-exchange.unroutable",
    "what an exchange cannot route goes to its alternate exchange",
    section="exchange.declare.alternate-exchange",
    obeys="1 message",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    alternate = await talk.exchange(session, b"fanout")
    name = await talk.exchange(session, alternate_exchange=alternate)
    queue = await talk.queue(session)
    await session.do(amqp.ExchangeBind(queue=queue, exchange=alternate, binding_key=b""))
    await session.publish(b"no-such-key", exchange=name)
    found = await session.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)
    return f"{found.message_count} message"


@ALTERNATE.rule(
    "exchange.declare.alternate-exchange.routable",
    "what an exchange can route does not go to its alternate exchange",
    section="exchange.declare.alternate-exchange",
    obeys="0 messages",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    alternate = await talk.exchange(session, b"fanout")
    name = await talk.exchange(session, alternate_exchange=alternate)
    queue, other = await talk.queue(session), await talk.queue(session)
    await session.do(
        amqp.ExchangeBind(queue=queue, exchange=alternate, binding_key=b""),
        amqp.ExchangeBind(queue=other, exchange=name, binding_key=b"k"),
    )
    await session.publish(b"k", exchange=name)
    found = await session.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)
    return f"{found.message_count} messages"


@ALTERNATE.rule(
    "exchange.declare.alternate-exchange.double-failure",
    "what the alternate exchange cannot route either is dropped, and does not go around",
    section="exchange.declare.alternate-exchange, double-failure",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    last = await talk.exchange(session)
    name = await talk.exchange(session, alternate_exchange=last)
    await session.publish(b"no-such-key", exchange=name)
    return await session.outcome()


@ALTERNATE.rule(
    "exchange.delete.used-as-alternate",
    "an exchange that is another one's alternate is not deleted",
    section="exchange.delete, used-as-alternate",
    obeys="exception 530",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    alternate = await talk.exchange(session)
    await talk.exchange(session, alternate_exchange=alternate)
    return await session.tried(amqp.ExchangeDelete(exchange=alternate))
