"""Sessions of distributed transactions, where the peer has them."""

from __future__ import annotations

from amqpgate.conformance.endings import Unexpected, Untestable
from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.conformance.v0_10.talk import SessionTalk
from amqpgate.wire.generated import v0_10 as amqp


async def dtx_session(talk: SessionTalk) -> TestedSession:
    """A session that has said dtx.select."""
    session = await talk.session()
    said = await session.tried(amqp.DtxSelect())
    if said == "exception 540":
        raise Untestable("it has no distributed transactions")
    if said != "completed":
        raise Unexpected(said)
    return session


def xid(talk: SessionTalk) -> amqp.Xid:
    """The name of a branch that nobody else has."""
    return amqp.Xid(format=0, global_id=talk.bytes_name(), branch_id=b"b")
