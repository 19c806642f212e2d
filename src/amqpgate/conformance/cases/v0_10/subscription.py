"""Subscriptions (AMQP 0-10, message.subscribe and cancel)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.v0_10.talk import SessionTalk, saying, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import ids_of

SUBSCRIPTION: Final = section("subscription", "Subscriptions")

_SUBSCRIBE: Final = "message.subscribe"
_DONE: Final = "completed"


def _subscribe(queue: bytes, destination: bytes = b"d", *, exclusive: bool = False) -> amqp.MessageSubscribe:
    return amqp.MessageSubscribe(
        queue=queue, destination=destination, accept_mode=0, acquire_mode=0, exclusive=exclusive
    )


SUBSCRIPTION.rule(
    "message.subscribe.queue-not-found",
    "nobody subscribes to a queue that is not there",
    section="message.subscribe.queue, queue-not-found",
    obeys="exception 404",
)(saying(lambda talk: _subscribe(talk.bytes_name())))
SUBSCRIPTION.rule(
    "message.cancel.subscription-not-found",
    "a subscription that is not there cannot be cancelled",
    section="message.cancel, subscription-not-found",
    obeys="exception 404",
)(saying(lambda _: amqp.MessageCancel(destination=b"no-such-destination")))


@SUBSCRIPTION.rule(
    "message.subscribe.unique-subscriber-destination",
    "a destination that is in use is refused",
    section="message.subscribe.destination, unique-subscriber-destination",
    obeys="exception 530",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    return await session.tried(_subscribe(queue), _subscribe(queue))


@SUBSCRIPTION.rule(
    "message.subscribe.destination.sessions",
    "two sessions may have the same destination",
    section="message.subscribe.destination",
    obeys=_DONE,
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, exclusive=False)
    await session.do(_subscribe(queue))
    return await (await talk.session(session.peer, 1)).tried(_subscribe(queue))


@SUBSCRIPTION.rule(
    "message.subscribe.destination.again",
    "a destination is free again after cancel",
    section="message.cancel",
    obeys=_DONE,
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, auto_delete=False, exclusive=False)
    await session.do(_subscribe(queue), amqp.MessageCancel(destination=b"d"))
    return await session.tried(_subscribe(queue))


@SUBSCRIPTION.rule(
    "message.subscribe.destination.empty",
    "a destination may be empty",
    section="message.subscribe.destination",
    strength="should",
    obeys="m",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.publish(queue)
    await session.subscribe(queue, b"")
    return (await session.message()).body.decode()


@SUBSCRIPTION.rule(
    "message.subscribe.exclusive.in-use",
    "nobody subscribes beside an exclusive subscription",
    section="message.subscribe.exclusive, in-use",
    obeys="exception 405",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, exclusive=False)
    await session.do(_subscribe(queue, exclusive=True))
    return await (await talk.session()).tried(_subscribe(queue))


@SUBSCRIPTION.rule(
    "message.subscribe.exclusive.late",
    "a queue that has a subscription gets no exclusive one",
    section="message.subscribe.exclusive, in-use",
    obeys="exception 405",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, exclusive=False)
    await session.do(_subscribe(queue))
    return await (await talk.session()).tried(_subscribe(queue, exclusive=True))


@SUBSCRIPTION.rule(
    "message.subscribe.exclusive.free",
    "a queue is free when its exclusive subscription is cancelled",
    section="message.subscribe.exclusive",
    obeys=_DONE,
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, exclusive=False, auto_delete=False)
    await session.do(_subscribe(queue, exclusive=True), amqp.MessageCancel(destination=b"d"))
    return await (await talk.session()).tried(_subscribe(queue))


@SUBSCRIPTION.rule(
    "message.subscribe.queue-deletion",
    "a session whose queue is deleted under its subscription ends",
    section="message.subscribe, queue-deletion",
    obeys="exception 408",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, exclusive=False, auto_delete=False)
    await session.subscribe(queue)
    await (await talk.session()).do(amqp.QueueDelete(queue=queue))
    await session.peer.until(lambda: session.ended is not None)
    return session.ended or ""


@SUBSCRIPTION.rule(
    "message.subscribe.simultaneous-subscriptions",
    "a queue may have sixteen subscriptions",
    section="message.subscribe, simultaneous-subscriptions",
    strength="should",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.do(*(_subscribe(queue, b"d%d" % number) for number in range(16)))
    return await session.outcome()


@SUBSCRIPTION.rule(
    "message.subscribe.shared",
    "each message of a queue goes to one of its subscriptions",
    section=_SUBSCRIBE,
    obeys="10 of 10",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    for destination in (b"a", b"b"):
        await session.subscribe(queue, destination)
    for number in range(10):
        await session.publish(queue, b"%d" % number)
    await session.until(lambda: len(session.heard) >= 10)
    await session.do(amqp.ExecutionSync())
    return f"{len({one.body for one in session.heard})} of {len(session.heard)}"


for _name, _accept in (("explicit", 0), ("none", 1)):

    async def _accept_mode(talk: SessionTalk, accept: int = _accept) -> str:
        session = await talk.session()
        queue = await talk.queue(session)
        await session.publish(queue)
        await session.subscribe(queue, accept=accept)
        command = (await session.message()).command
        assert isinstance(command, amqp.MessageTransfer)
        return f"{command.accept_mode}, {command.acquire_mode}"

    SUBSCRIPTION.rule(
        f"message.subscribe.accept-mode.{_name}",
        f"deliveries of a subscription whose accepts are {_name} say so",
        section="message.transfer.accept-mode",
        obeys=f"{_accept}, 0",
    )(_accept_mode)


@SUBSCRIPTION.rule(
    "message.subscribe.acquire-mode.not-acquired",
    "who subscribes without acquiring sees messages, and they stay",
    section="message.subscribe.acquire-mode",
    obeys="'m', 1 left",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.publish(queue)
    await session.subscribe(queue, acquire=1)
    found = [one.body.decode() for one in await session.drained()]
    count = (await session.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)).message_count
    return f"{', '.join(map(repr, found))}, {count} left"


@SUBSCRIPTION.rule(
    "message.cancel.ends",
    "nothing is delivered after cancel is completed",
    section="message.cancel",
    obeys="0 deliveries",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, auto_delete=False, exclusive=False)
    await session.subscribe(queue)
    await session.do(amqp.MessageCancel(destination=b"d"))
    await session.publish(queue)
    await session.do(amqp.ExecutionSync())
    return f"{len(session.heard)} deliveries"


@SUBSCRIPTION.rule(
    "message.cancel.post-cancel-transfer-resolution",
    "what was delivered before cancel can be accepted after it",
    section="message.cancel, post-cancel-transfer-resolution",
    obeys="0 left",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, auto_delete=False, exclusive=False)
    await session.publish(queue)
    await session.subscribe(queue)
    message = await session.message()
    accept = amqp.MessageAccept(transfers=ids_of([message.id]))
    await session.do(amqp.MessageCancel(destination=b"d"), accept)
    await session.control(amqp.SessionDetach(name=session.name))
    await session.answer(amqp.SessionDetached)
    other = await talk.session()
    found = await other.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)
    return f"{found.message_count} left"


@SUBSCRIPTION.rule(
    "message.cancel.unaccepted",
    "what was delivered and not accepted is not given back by cancel",
    section="message.cancel, post-cancel-transfer-resolution",
    obeys="0 deliveries",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, auto_delete=False, exclusive=False)
    await session.publish(queue)
    await session.subscribe(queue)
    await session.message()
    await session.do(amqp.MessageCancel(destination=b"d"))
    other = await talk.session()
    await other.subscribe(queue)
    return f"{len(await other.drained())} deliveries"


@SUBSCRIPTION.rule(
    "message.subscribe.session-ends",
    "what a session has not accepted is delivered to others when it ends, as redelivered",
    section="message.delivery-properties.redelivered, implementation",
    obeys="redelivered",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, auto_delete=False, exclusive=False)
    await session.publish(queue)
    await session.subscribe(queue)
    await session.message()
    await session.control(amqp.SessionDetach(name=session.name))
    await session.answer(amqp.SessionDetached)
    other = await talk.session()
    await other.subscribe(queue)
    message = await other.message()
    is_again = any(isinstance(one, amqp.DeliveryProperties) and one.redelivered for one in message.structs)
    return "redelivered" if is_again else "new"
