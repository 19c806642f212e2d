"""One channel's life as a table (AMQP 0-9-1, section 2.2.5 "The Channel Class").

As in ``handshake``, one table serves both roles.

::

    ┌──▶ CLOSED ── C: open ──▶ OPENING ── S: open-ok ──▶ OPEN ⟲ all other methods, by direction
    │                            │  ⟲ all methods that C may send   │
    │                            └───────────────┬──────────────────┘
    │                   C: close                 │        S: close
    │            ┌───────────────────────────────┴─────────────────────────────┐
    │            ▼               S: close                   C: close           ▼
    │      CLIENT_CLOSING ──────────────────▶ BOTH_CLOSING ◀──────────── SERVER_CLOSING
    │            │        ◀──────────────────              ────────────▶       │
    │            │               C: close-ok               S: close-ok         │
    │            │ S: close-ok                                     C: close-ok │
    └────────────┴─────────────────────────────────────────────────────────────┘

A client need not wait for open-ok before it goes on. Both may ask to close at once; then each answers the
other, and the number is free when both answers are there. While a close is under way all other methods
are dropped (but an open is an error), and the sequence of content frames still has to be right.

What RabbitMQ 3.10 answers, always with the offending method's class and method id:

======================================  ====  =======================================
method                                  code  text
======================================  ====  =======================================
any but open, channel closed            504   expected 'channel.open'
open, channel not closed                504   second 'channel.open' seen
not the sender's to send, open          503   unimplemented method
class connection                        503   unimplemented method
open, channel-max reached               530   number of channels opened (N) has ...
======================================  ====  =======================================
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import CONNECTION_CLASS, SENT_BY, Role
from amqpgate.wire.method import Method


class ChannelState(Enum):
    """Where one channel stands."""

    #: Not in use; the number is free.
    CLOSED = "closed"
    #: The client has sent channel.open, the server owes open-ok.
    OPENING = "opening"
    #: In use.
    OPEN = "open"
    #: The client has sent channel.close, the server owes close-ok.
    CLIENT_CLOSING = "closing"
    #: The server has sent channel.close, the client owes close-ok.
    SERVER_CLOSING = "closing by server"
    #: Both have sent channel.close, both owe close-ok.
    BOTH_CLOSING = "closing by both"


_S = ChannelState
_C = Role.CLIENT
_B = Role.SERVER

_CLOSE: Final = {(_C, "channel.close"): _S.CLIENT_CLOSING, (_B, "channel.close"): _S.SERVER_CLOSING}

#: The methods that change a channel's state, by who sends them when.
TRANSITIONS: Final[dict[ChannelState, dict[tuple[Role, str], ChannelState]]] = {
    _S.CLOSED: {(_C, "channel.open"): _S.OPENING},
    _S.OPENING: {(_B, "channel.open-ok"): _S.OPEN, **_CLOSE},
    _S.OPEN: {**_CLOSE},
    _S.CLIENT_CLOSING: {(_B, "channel.close-ok"): _S.CLOSED, (_B, "channel.close"): _S.BOTH_CLOSING},
    _S.SERVER_CLOSING: {(_C, "channel.close-ok"): _S.CLOSED, (_C, "channel.close"): _S.BOTH_CLOSING},
    _S.BOTH_CLOSING: {
        (_B, "channel.close-ok"): _S.SERVER_CLOSING,
        (_C, "channel.close-ok"): _S.CLIENT_CLOSING,
    },
}

#: Somebody has asked to close, and not all answers are there.
CLOSING_STATES: Final = frozenset({_S.CLIENT_CLOSING, _S.SERVER_CLOSING, _S.BOTH_CLOSING})

#: Who may send ordinary methods when: a client from its open on, a server from its open-ok on.
SPEAKERS: Final[dict[ChannelState, frozenset[Role]]] = {
    _S.OPENING: frozenset({_C}),
    _S.OPEN: frozenset({_C, _B}),
}

#: Legal by the table above only.
STATE_CHANGING: Final = frozenset({"channel.open", "channel.open-ok", "channel.close", "channel.close-ok"})


def step(state: ChannelState, sender: Role, method: type[Method], channel: int) -> ChannelState | None:
    """The state after ``sender`` has sent ``method``; None if it is dropped.

    Raises :class:`ProtocolViolation` 503 or 504 as in the table above.
    """
    name = method.NAME
    following = TRANSITIONS[state].get((sender, name))
    if following is not None:
        return following
    if name == "channel.open" and sender is Role.CLIENT:
        raise _violation(504, "second 'channel.open' seen", method, channel)
    if state in CLOSING_STATES:
        return None
    if state is ChannelState.CLOSED:
        raise _violation(504, "expected 'channel.open'", method, channel)
    if (
        name in STATE_CHANGING
        or method.CLASS_ID == CONNECTION_CLASS
        or name not in SENT_BY[sender]
        or sender not in SPEAKERS[state]
    ):
        raise _violation(503, "unimplemented method", method, channel)
    return state


def too_many_channels(opened: int, channel_max: int) -> ProtocolViolation:
    """530: RabbitMQ counts channels and does not look at their numbers; it names no method."""
    return ProtocolViolation(
        530, f"number of channels opened ({opened}) has reached the negotiated channel_max ({channel_max})"
    )


def _violation(code: int, text: str, method: type[Method], channel: int) -> ProtocolViolation:
    return ProtocolViolation(
        code, text, class_id=method.CLASS_ID, method_id=method.METHOD_ID, channel=channel
    )
