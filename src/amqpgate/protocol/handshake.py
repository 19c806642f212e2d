"""The connection's life as a table: from protocol header to open, and from open to closed.

Sections 2.2.4 "The Connection Class" and 4.2.2 of AMQP 0-9-1. One table serves both roles, because it
says who sends what when; whether that is a send or a receive depends on who looks at it.

::

                       C: protocol header
              HEADER ──────────────────────▶ GREETED
                                                │ S: start
                                                ▼
                                            STARTING
                                                │ C: start-ok
                          C: secure-ok          ▼           S: secure
          CHALLENGED ──────────────────────▶ SECURING ─────────────────▶ CHALLENGED
                                                │ S: tune
                                                ▼
                                             TUNING
                                                │ C: tune-ok
                                                ▼
                                             OPENING
                                                │ C: open
                       S: redirect              ▼
          REDIRECTED ◀──────────────────────  ASKED
                                                │ S: open-ok
                                                ▼
                                               OPEN ⟲ C: update-secret
                                                      S: update-secret-ok, blocked, unblocked

          GREETED to OPEN ── C: close ──▶ CLIENT_CLOSING ── S: close-ok ──▶ CLOSED
                 │                             │  ▲
                 │                    S: close ▼  │ C: close-ok
                 │                         BOTH_CLOSING
                 │                    C: close ▲  │ S: close-ok
                 │                             │  ▼
                 └─────── S: close ──▶ SERVER_CLOSING ── C: close-ok ──▶ CLOSED

A method that is not in the table is answered as RabbitMQ 3.10 does it: 504 CHANNEL_ERROR, "unexpected
method in connection state ..."; once somebody has asked to close, it is dropped.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FRAME_MIN_SIZE
from amqpgate.protocol.methods import CONNECTION_CLASS, Role
from amqpgate.values import frozen
from amqpgate.wire.method import Method

#: Channel numbers are 16 bits; 0 is the connection's own (AMQP 0-9-1, section 4.2.3).
MAX_CHANNELS: Final = 65535


class ConnectionState(Enum):
    """Where the conversation stands; the value is what RabbitMQ calls it in its reply texts."""

    #: The client has not sent its protocol header yet.
    HEADER = "pre_init"
    #: The server owes connection.start.
    GREETED = "greeted"
    #: The client owes connection.start-ok.
    STARTING = "starting"
    #: The server owes secure, tune, or its refusal.
    SECURING = "authenticating"
    #: The client owes connection.secure-ok.
    CHALLENGED = "securing"
    #: The client owes connection.tune-ok.
    TUNING = "tuning"
    #: The client owes connection.open.
    OPENING = "opening"
    #: The server owes connection.open-ok.
    ASKED = "opening, asked"
    #: Channels may be used.
    OPEN = "running"
    #: The server (0-8, 0-9) has named another server; the client closes.
    REDIRECTED = "redirected"
    #: The client has sent connection.close, the server owes close-ok.
    CLIENT_CLOSING = "closing"
    #: The server has sent connection.close, the client owes close-ok.
    SERVER_CLOSING = "closing by server"
    #: Both have sent connection.close, both owe close-ok.
    BOTH_CLOSING = "closing by both"
    #: Nothing is sent any more, and what arrives is dropped.
    CLOSED = "closed"

    # There is one of each: an enum's own hashes its name, in Python.
    __hash__ = object.__hash__


#: What stands for the protocol header in the table.
PROTOCOL_HEADER_SENT: Final = "protocol header"

_S = ConnectionState
_C = Role.CLIENT
_B = Role.SERVER

#: Either side may ask to close.
CLOSE: Final = {
    (_C, "connection.close"): _S.CLIENT_CLOSING,
    (_B, "connection.close"): _S.SERVER_CLOSING,
}

#: From the request to close on, every version is alike.
CLOSING: Final[dict[ConnectionState, dict[tuple[Role, str], ConnectionState]]] = {
    _S.CLIENT_CLOSING: {
        (_B, "connection.close-ok"): _S.CLOSED,
        (_B, "connection.close"): _S.BOTH_CLOSING,
    },
    _S.SERVER_CLOSING: {
        (_C, "connection.close-ok"): _S.CLOSED,
        (_C, "connection.close"): _S.BOTH_CLOSING,
    },
    _S.BOTH_CLOSING: {
        (_B, "connection.close-ok"): _S.SERVER_CLOSING,
        (_C, "connection.close-ok"): _S.CLIENT_CLOSING,
    },
    _S.CLOSED: {},
}

#: Who may send what in which state, and which state follows. What is not here is illegal, or dropped
#: where the state is in ``CLOSING_STATES``.
TRANSITIONS: Final[dict[ConnectionState, dict[tuple[Role, str], ConnectionState]]] = {
    _S.HEADER: {(_C, PROTOCOL_HEADER_SENT): _S.GREETED},
    _S.GREETED: {(_B, "connection.start"): _S.STARTING, **CLOSE},
    _S.STARTING: {(_C, "connection.start-ok"): _S.SECURING, **CLOSE},
    _S.SECURING: {(_B, "connection.secure"): _S.CHALLENGED, (_B, "connection.tune"): _S.TUNING, **CLOSE},
    _S.CHALLENGED: {(_C, "connection.secure-ok"): _S.SECURING, **CLOSE},
    _S.TUNING: {(_C, "connection.tune-ok"): _S.OPENING, **CLOSE},
    _S.OPENING: {(_C, "connection.open"): _S.ASKED, **CLOSE},
    _S.ASKED: {(_B, "connection.open-ok"): _S.OPEN, (_B, "connection.redirect"): _S.REDIRECTED, **CLOSE},
    _S.OPEN: {
        (_C, "connection.update-secret"): _S.OPEN,
        (_B, "connection.update-secret-ok"): _S.OPEN,
        (_B, "connection.blocked"): _S.OPEN,
        (_B, "connection.unblocked"): _S.OPEN,
        **CLOSE,
    },
    _S.REDIRECTED: {**CLOSE},
    **CLOSING,
}

#: Somebody has asked to close: all methods but close and close-ok are dropped, and so are all channels.
CLOSING_STATES: Final = frozenset({_S.CLIENT_CLOSING, _S.SERVER_CLOSING, _S.BOTH_CLOSING, _S.CLOSED})

#: The server's turn: a client that goes on talking is not read before it is answered (RabbitMQ works
#: through its socket one frame at a time, so a client may send its half of the handshake in one go).
SERVER_TURN: Final = frozenset({_S.GREETED, _S.SECURING, _S.ASKED})

#: A violation in these states is not answered by RabbitMQ: it waits three seconds and hangs up. (A
#: refused login is told with connection.close 403 to clients with ``authentication_failure_close``.)
SILENT_STATES: Final = frozenset({_S.HEADER, _S.GREETED, _S.STARTING, _S.SECURING, _S.CHALLENGED, _S.TUNING})


def step(state: ConnectionState, sender: Role, method: type[Method]) -> ConnectionState | None:
    """The state after ``sender`` has sent ``method`` on channel 0; None if it is dropped.

    Raises :class:`ProtocolViolation` 504 if it is not legal, whatever its class.
    """
    following = TRANSITIONS[state].get((sender, method.NAME))
    if following is None and state not in CLOSING_STATES:
        raise ProtocolViolation(
            504,
            f"unexpected method in connection state {state.value}",
            class_id=method.CLASS_ID,
            method_id=method.METHOD_ID,
        )
    return following


def negotiate(*limits: int) -> int:
    """The agreed value of one tune parameter: the smallest one, where 0 means "no limit of mine".

    The same rule serves frame-max, channel-max and heartbeat; 0 comes out only if all say 0.
    """
    return min(filter(None, limits), default=0)


#: A broker that takes no more than this in a frame cannot be talked to: a short string alone has 256 bytes.
#: The standard has 4096 for the least that a peer takes; for less, what is sent is cut.
LEAST_FRAME_MAX: Final = 256


def too_small(frame_max: int) -> str | None:
    """What is wrong with the frame-max that a broker proposes; None where it can be kept to."""
    if not 0 < frame_max < LEAST_FRAME_MAX:
        return None
    return f"it takes frames of {frame_max} bytes at most, {LEAST_FRAME_MAX} are needed"


@frozen
class Tune:
    """What connection.tune offers and tune-ok settles: bytes, channels, seconds; 0 is "no limit"."""

    frame_max: int = 0
    channel_max: int = 0
    heartbeat: int = 0

    def settle(self, answer: Tune, caps: Tune) -> Tune:
        """What holds after the client's tune-ok ``answer`` to this offer; ``caps`` stand in for 0.

        Raises :class:`ProtocolViolation` 530 where the answer is above the offer or its frame-max below
        4096. RabbitMQ refuses 0 for channel-max where it offered a limit; by the standard 0 asks for
        none, so here the offer is taken (and ``caps`` where that is 0, too).
        """
        for name, value, limit in (
            ("frame_max", answer.frame_max, self.frame_max),
            ("channel_max", answer.channel_max, self.channel_max),
        ):
            if value > limit > 0:
                raise _untunable(
                    f"negotiated {name} = {value} is higher than the maximum allowed value ({limit})"
                )
        if 0 < answer.frame_max < FRAME_MIN_SIZE:
            raise _untunable(
                f"negotiated frame_max = {answer.frame_max} is lower than"
                f" the minimum allowed value ({FRAME_MIN_SIZE})"
            )
        return Tune(
            frame_max=answer.frame_max or self.frame_max or caps.frame_max,
            channel_max=answer.channel_max or self.channel_max or caps.channel_max,
            heartbeat=answer.heartbeat,
        )


def _untunable(text: str) -> ProtocolViolation:
    return ProtocolViolation(530, text, class_id=CONNECTION_CLASS, method_id=31)
