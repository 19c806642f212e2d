"""Messages to the broker, and what becomes of them (AMQP 0-10, message.transfer)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.endings import Untestable
from amqpgate.conformance.v0_10.peer import HeardCommand
from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.conformance.v0_10.talk import SessionTalk, section
from amqpgate.wire.generated import v0_10 as amqp

TRANSFER: Final = section("transfer", "Messages")

_TRANSFER: Final = "message.transfer"


def _delivery(message: HeardCommand) -> amqp.DeliveryProperties:
    found = [one for one in message.structs if isinstance(one, amqp.DeliveryProperties)]
    return found[0] if found else amqp.DeliveryProperties()


async def _there_and_back(
    talk: SessionTalk, body: bytes = b"m", **delivery: object
) -> tuple[TestedSession, HeardCommand]:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.publish(queue, body, **delivery)  # type: ignore[arg-type]
    await session.subscribe(queue)
    return session, await session.message()


@TRANSFER.rule(
    "message.transfer.destination.blank-destination",
    "no destination is the default exchange, whose keys are names of queues",
    section="message.transfer.destination, blank-destination",
    obeys="body",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    structs = [amqp.DeliveryProperties(routing_key=queue)]
    number = await session.say(
        amqp.MessageTransfer(accept_mode=1, acquire_mode=0), structs, b"body", sync=True
    )
    await session.completes(number)
    await session.subscribe(queue)
    return (await session.message()).body.decode()


@TRANSFER.rule(
    "message.transfer.nonexistent-exchange",
    "a transfer to an exchange that is not there is an exception",
    section="message.transfer, nonexistent-exchange",
    obeys="exception 404",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    transfer = amqp.MessageTransfer(destination=talk.bytes_name(), accept_mode=1, acquire_mode=0)
    await session.say(transfer, [amqp.DeliveryProperties(routing_key=b"k")], b"m")
    return await session.outcome()


for _name, _mode, _discard in (
    ("none", 1, False),
    ("explicit", 0, False),
    ("explicit.discard", 0, True),
    ("absent", None, False),
):

    async def _unroutable(talk: SessionTalk, mode: int | None = _mode, discard: bool = _discard) -> str:
        session = await talk.session()
        properties = amqp.DeliveryProperties(routing_key=talk.bytes_name(), discard_unroutable=discard)
        transfer = amqp.MessageTransfer(destination=b"amq.direct", accept_mode=mode, acquire_mode=0)
        await session.completes(await session.say(transfer, [properties], b"m", sync=True))
        said = await session.outcome()
        codes = [one.command.code for one in session.heard if isinstance(one.command, amqp.MessageReject)]
        return f"rejected {codes[0]}, {said}" if codes else said

    TRANSFER.rule(
        f"message.transfer.unroutable.{_name}",
        "a message that no queue takes is dropped"
        if _name != "explicit"
        else "a message that no queue takes is rejected as unroutable, where accepts are explicit",
        section="message.delivery-properties.discard-unroutable",
        strength="must" if _name != "explicit" else "should",
        obeys="rejected 1, goes on" if _name == "explicit" else "goes on",
        # It drops it.
        qpid="goes on",
    )(_unroutable)


@TRANSFER.rule(
    "message.transfer.accept-mode.absent",
    "accept-mode and acquire-mode may be left out",
    section="message.transfer.accept-mode",
    strength="should",
    obeys="completed",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    transfer = amqp.MessageTransfer(destination=b"")
    await session.completes(
        await session.say(transfer, [amqp.DeliveryProperties(routing_key=queue)], b"m", sync=True)
    )
    return "completed"


@TRANSFER.rule(
    "message.transfer.accept-mode.explicit",
    "a transfer whose accept is explicit is completed",
    section="message.transfer.accept-mode",
    obeys="completed",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    transfer = amqp.MessageTransfer(destination=b"", accept_mode=0, acquire_mode=0)
    await session.completes(
        await session.say(transfer, [amqp.DeliveryProperties(routing_key=queue)], b"m", sync=True)
    )
    return "completed"


@TRANSFER.rule(
    "message.transfer.order",
    "messages of one session keep their order",
    section="message: ordering",
    obeys="in order",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    transfer = amqp.MessageTransfer(destination=b"", accept_mode=1, acquire_mode=0)
    bodies = [b"%d" % number for number in range(300)]
    for body in bodies:
        await session.say(transfer, [amqp.DeliveryProperties(routing_key=queue)], body)
    await session.do(amqp.ExecutionSync())
    await session.subscribe(queue, accept=1)
    return "in order" if [one.body for one in await session.drained()] == bodies else "otherwise"


@TRANSFER.rule(
    "message.transfer.destination.delivery",
    "a delivery names its subscription",
    section="message.transfer.destination",
    obeys="d",
)
async def _(talk: SessionTalk) -> str:
    _, message = await _there_and_back(talk)
    assert isinstance(message.command, amqp.MessageTransfer)
    return (message.command.destination or b"").decode()


@TRANSFER.rule(
    "message.delivery-properties.routing-key",
    "a delivery has the key that was said",
    section="message.delivery-properties.routing-key",
    obeys="the same",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.do(amqp.ExchangeBind(queue=queue, exchange=b"amq.direct", binding_key=queue + b"-key"))
    await session.publish(queue + b"-key", exchange=b"amq.direct")
    await session.subscribe(queue)
    said = _delivery(await session.message())
    return "the same" if said.routing_key == queue + b"-key" else f"{said.routing_key!r}"


@TRANSFER.rule(
    "message.delivery-properties.exchange",
    "a delivery names the exchange that the message came to",
    section="message.delivery-properties.exchange",
    obeys="amq.direct",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.do(amqp.ExchangeBind(queue=queue, exchange=b"amq.direct", binding_key=queue))
    await session.publish(queue, exchange=b"amq.direct")
    await session.subscribe(queue)
    return (_delivery(await session.message()).exchange or b"none").decode()


@TRANSFER.rule(
    "message.delivery-properties.redelivered.new",
    "what was never delivered is not redelivered",
    section="message.delivery-properties.redelivered, implementation",
    obeys="new",
)
async def _(talk: SessionTalk) -> str:
    _, message = await _there_and_back(talk)
    return "redelivered" if _delivery(message).redelivered else "new"


@TRANSFER.rule(
    "message.delivery-properties.redelivered.claimed",
    "that a message is redelivered is not its publisher's to say",
    section="message.delivery-properties.redelivered",
    strength="should",
    obeys="new",
    # It carries what the publisher said.
    qpid="redelivered",
)
async def _(talk: SessionTalk) -> str:
    _, message = await _there_and_back(talk, redelivered=True)
    return "redelivered" if _delivery(message).redelivered else "new"


@TRANSFER.rule(
    "message.delivery-properties.ttl.expired",
    "a message whose ttl is over is not delivered",
    section="message.delivery-properties.ttl",
    obeys="nothing",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.publish(queue, ttl=1)
    await talk.pause(0.2)
    await session.subscribe(queue, accept=1)
    return "nothing" if not await session.drained() else "delivered"


@TRANSFER.rule(
    "message.delivery-properties.ttl.long",
    "a message whose ttl is not over is delivered",
    section="message.delivery-properties.ttl",
    obeys="delivered",
)
async def _(talk: SessionTalk) -> str:
    await _there_and_back(talk, ttl=600_000)
    return "delivered"


@TRANSFER.rule(
    "message.delivery-properties.ttl.ttl-decrement",
    "the ttl of a message that is delivered is what is left of it",
    section="message.delivery-properties.ttl, ttl-decrement",
    strength="should",
    obeys="less",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.publish(queue, ttl=600_000)
    await talk.pause(0.1)
    await session.subscribe(queue)
    left = _delivery(await session.message()).ttl
    return "less" if left is not None and left < 600_000 else f"{left}"


for _field, _value in (
    ("priority", 7),
    ("delivery_mode", 1),
    ("delivery_mode", 2),
    ("timestamp", 1_700_000_000),
):
    _id = _field.replace("_", "-")

    async def _kept(talk: SessionTalk, field: str = _field, value: int = _value) -> str:
        _, message = await _there_and_back(talk, b"m", **{field: value})
        said = getattr(_delivery(message), field)
        return "kept" if said == value else f"{said} in the place of {value}"

    TRANSFER.rule(
        f"message.delivery-properties.{_id}.{_value}",
        f"{_id} is delivered as it was said",
        section=f"message.delivery-properties.{_id}",
        obeys="kept",
    )(_kept)


@TRANSFER.rule(
    "message.transfer.body.empty",
    "a message may be empty",
    section="message.transfer, body",
    obeys="empty",
)
async def _(talk: SessionTalk) -> str:
    _, message = await _there_and_back(talk, b"")
    return "empty" if not message.body else f"{len(message.body)} bytes"


@TRANSFER.rule(
    "message.persistent-message",
    "a persistent message goes into a durable queue",
    section="message, persistent-message",
    obeys="1 message",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, durable=True, exclusive=False, auto_delete=False)
    await session.publish(queue, delivery_mode=2)
    found = await session.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)
    return f"{found.message_count} message"


@TRANSFER.rule(
    "message.message-properties.user-id.authentication",
    "a user-id that is not the login is refused, or not delivered",
    section="message.message-properties.user-id, authentication",
    obeys=("exception 403", "exception 406", "nothing"),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    message = amqp.MessageProperties(user_id=b"somebody-else")
    await session.publish(queue, message=message)
    await session.subscribe(queue)
    for struct in (await session.message()).structs:
        if isinstance(struct, amqp.MessageProperties) and struct.user_id is not None:
            return struct.user_id.decode(errors="replace")
    return "nothing"


@TRANSFER.rule(
    "message.message-properties.user-id.own",
    "a user-id that is the login is taken",
    section="message.message-properties.user-id, authentication",
    obeys="completed",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.publish(queue, message=amqp.MessageProperties(user_id=talk.target.user.encode()))
    return "completed"


@TRANSFER.rule(
    "message.delivery-properties.immediate",
    "a message for now that nobody takes now is rejected, or the flag means nothing",
    section="message.delivery-properties.immediate",
    strength="should",
    obeys=("rejected 2, goes on", "goes on", "exception 540"),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    properties = amqp.DeliveryProperties(routing_key=queue, immediate=True)
    transfer = amqp.MessageTransfer(destination=b"", accept_mode=0, acquire_mode=0)
    await session.completes(await session.say(transfer, [properties], b"m", sync=True))
    said = await session.outcome()
    codes = [one.command.code for one in session.heard if isinstance(one.command, amqp.MessageReject)]
    return f"rejected {codes[0]}, {said}" if codes else said


@TRANSFER.rule(
    "message.resume.destination-not-found",
    "to resume what was not begun is an exception",
    section="message.resume, destination-not-found",
    obeys="exception 404",
    qpid="exception 540",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    said = await session.tried(amqp.MessageResume(destination=b"no-such-destination", resume_id=b"1"))
    if said == "exception 540":
        raise Untestable("it resumes no messages")
    return said
