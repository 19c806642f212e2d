"""The end of a session: both hops hear why, and both sockets close, whatever happened before.

==============================  ===========================================  =============================
what happened                   the client                                   the broker
==============================  ===========================================  =============================
agreed close                    what is unsent, then its socket closes       likewise
client gone or silent           its socket closes                            connection.close 320
broker gone or silent           connection.close 320                         its socket closes
a peer broke the protocol       connection.close with the standard's code    connection.close 320
drain, or an operator           connection.close 320                         connection.close 320
==============================  ===========================================  =============================

What was accepted for a hop is sent first: bytes of a session are in whole frames, so the close
always comes at a frame boundary, also in the middle of a message.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Final

import attrs

from amqpgate.bridge import Interpreter
from amqpgate.datapath.engine import End, RelayEndpoint
from amqpgate.datapath.tables import Side
from amqpgate.errors import Forced, OverLimit, ProtocolViolation, UpstreamLost, cut_reply
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.session_end import CloseState, SessionOutcome
from amqpgate.gateway.transport.conversation import await_close_ok
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.gateway.transport.waiting import move_on_after
from amqpgate.protocol.methods import Role as Peer
from amqpgate.values import define, frozen
from amqpgate.wire.generated import v0_9_1 as amqp

log = logging.getLogger(__name__)


# To look a member of an enum up takes Python 3.11 a detour each time.
_FAILED: Final = End.FAILED
#: Of a peer that is not there any more.
_LEFT: Final = (End.GONE, End.SILENT)


@frozen
class Farewell:
    """What one hop hears after the rest of what was accepted for it."""

    #: Nothing; it is not there any more.
    gone: bool = False
    close: amqp.ConnectionClose | None = None
    #: It has heard a connection.close, and its close-ok is waited for.
    answer_due: bool = False


#: Of an error that ended a session, the metric's label. The first that fits.
_OUTCOMES: Final = (
    (Forced, "forced"),
    (OverLimit, "over_limit"),
    (UpstreamLost, "upstream_gone"),
    (ProtocolViolation, "violation"),
)

#: Where both peers have agreed to close.
_ALL_SAID: Final = Farewell()


def farewells(session: Session) -> tuple[Farewell, Farewell]:
    """What the client and the broker hear, from why the session ended."""
    if session.end.agreed:
        return _ALL_SAID, _ALL_SAID
    outcome = session.outcome
    if session.closing is CloseState.ASKED:
        return _told_already(session, Side.CLIENT), _told_already(session, Side.UPSTREAM)
    if isinstance(outcome.error, ProtocolViolation):
        return _after_violation(outcome, outcome.error)
    if outcome.end in _LEFT and outcome.side is not None:
        what = "closed its connection" if outcome.end is End.GONE else "sent no heartbeats"
        gone = Farewell(gone=True)
        if outcome.side is Side.CLIENT:
            return gone, Farewell(close=_forced(f"client {what}"))
        return Farewell(close=_forced(f"upstream {what}")), gone
    if outcome.end is _FAILED:
        close = amqp.ConnectionClose(
            reply_code=541, reply_text="INTERNAL_ERROR - amqpgate failed; see its log"
        )
        return Farewell(close=close), Farewell(close=_forced("amqpgate failed"))
    text = "amqpgate is shutting down"
    return Farewell(close=_forced(text)), Farewell(close=_forced(text))


def _told_already(session: Session, side: Side) -> Farewell:
    """The side has asked for a close, or was passed one on, and drops whatever else we would say."""
    outcome = session.outcome
    if outcome.side is side and outcome.end in _LEFT:
        return Farewell(gone=True)
    return Farewell(answer_due=True) if side.other in session.end.closers else _ALL_SAID


def _after_violation(outcome: SessionOutcome, error: ProtocolViolation) -> tuple[Farewell, Farewell]:
    if outcome.side is Side.CLIENT:
        close = amqp.ConnectionClose(
            reply_code=error.code,
            reply_text=error.reply_text,
            class_id=error.class_id,
            method_id=error.method_id,
        )
        if isinstance(error, Forced):
            return Farewell(close=close), Farewell(close=_forced(error.text))
        what = "was over a limit" if isinstance(error, OverLimit) else "broke the protocol"
        return Farewell(close=close), Farewell(close=_forced(f"client {what}"))
    text = f"INTERNAL_ERROR - upstream broke the protocol: {error.reply_text}"
    return (
        Farewell(close=amqp.ConnectionClose(reply_code=541, reply_text=cut_reply(text))),
        Farewell(close=_forced(error.reply_text)),
    )


def outcome_of(session: Session) -> str:
    """How a session ended: the metric's label."""
    end = session.end
    outcome = end.outcome
    if outcome.error is not None:
        for kind, name in _OUTCOMES:
            if isinstance(outcome.error, kind):
                return name
    if outcome.end in _LEFT and outcome.side is not None:
        return f"{'client' if outcome.side is Side.CLIENT else 'upstream'}_{outcome.end.value}"
    if outcome.end is _FAILED:
        return "failed"
    return "closed" if end.agreed else "drained"


def _forced(why: str) -> amqp.ConnectionClose:
    return amqp.ConnectionClose(reply_code=320, reply_text=cut_reply(f"CONNECTION_FORCED - {why}"))


@define(eq=False)
class Parting:
    """The farewells on both hops of a session, side by side."""

    session: Session
    #: Called when both hops are closed.
    on_over: Callable[[], None]
    #: Hops that are not closed yet.
    _left: int = attrs.field(default=0, init=False)

    def begin(self, deadline_in: float) -> list[Coroutine[None, None, None]]:
        """One for each hop that cannot be closed at once, which closes it within ``deadline_in`` seconds."""
        session, relay = self.session, self.session.relay
        session.upstream.leave()
        said = farewells(session)
        kept = b""
        if session.bridge is not None and said[0].close is not None:
            kept = session.bridge.rest()
        # There is no socket where others use the connection to the broker.
        sides = [
            endpoint.side
            for endpoint, farewell in zip(relay.endpoints, said, strict=True)
            if not endpoint.is_pooled and not (farewell is _ALL_SAID and endpoint.close_at_once())
        ]
        self._left = len(sides)
        if not sides:
            self.on_over()
        return [
            self._leave(side, said[side], kept if side is Side.CLIENT else b"", deadline_in) for side in sides
        ]

    async def _leave(self, side: Side, farewell: Farewell, rest: bytes, deadline_in: float) -> None:
        session = self.session
        endpoint = session.relay.endpoints[side]
        try:
            with move_on_after(deadline_in):
                await leave(endpoint, session.facts.interpreters[side], farewell, rest)
        except Exception:
            log.exception("session %s did not end well", session.id)
        finally:
            self._left -= 1
            if not self._left:
                self.on_over()


async def leave(
    endpoint: RelayEndpoint, interpreter: Interpreter, farewell: Farewell, kept: bytes = b""
) -> None:
    """Say the rest of what was accepted for a hop, what was ``kept``, and farewell, and close it.

    Deadlines are the caller's.
    """
    try:
        if farewell.gone:
            return
        peer = Peer.CLIENT if endpoint.side is Side.CLIENT else Peer.SERVER
        hop = MethodStream(
            endpoint.sock, frame_max=endpoint.lane.frame_max, peer=peer, interpreter=interpreter
        )
        hop.decoder.feed(endpoint.rest())
        if endpoint.waiting:
            await hop.send(endpoint.unsent())
        await hop.send(kept)
        if farewell.close is not None:
            await hop.send_method(farewell.close)
        if farewell.close is not None or farewell.answer_due:
            await await_close_ok(hop)
        await hop.linger()
    except StreamClosedError:
        pass
    finally:
        endpoint.sock.close()
