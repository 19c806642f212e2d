"""The connection's life as a table, and what tune settles (AMQP 0-10, class "connection").

One table serves both roles, as in `protocol.handshake`, whose states these are: it says who sends what when.
All of it is controls on channel 0.

::

                       C: protocol header
              HEADER ──────────────────────▶ GREETED ⟲ S: protocol header, the same
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
                                             OPENING ⟲ C, S: heartbeat
                                                │ C: open
                       S: redirect              ▼
          REDIRECTED ◀──────────────────────  ASKED ⟲ C, S: heartbeat
                                                │ S: open-ok
                                                ▼
                                               OPEN ⟲ C, S: heartbeat

          GREETED to OPEN ── C: close ──▶ CLIENT_CLOSING ── S: close-ok ──▶ CLOSED
                 │                             │  ▲
                 │                    S: close ▼  │ C: close-ok
                 │                         BOTH_CLOSING
                 │                    C: close ▲  │ S: close-ok
                 │                             │  ▼
                 └─────── S: close ──▶ SERVER_CLOSING ── C: close-ok ──▶ CLOSED

A control that is not in the table is a violation 501; once somebody has asked to close it is dropped.
Sessions, on any channel, are for OPEN only: before it whatever else comes is 501, too.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.handshake import CLOSE, CLOSING, CLOSING_STATES, PROTOCOL_HEADER_SENT, ConnectionState
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.frames import MIN_MAX_FRAME_SIZE, MOST_FRAME_SIZE
from amqpgate.wire.generated import v0_10 as amqp

_S = ConnectionState
_C = Role.CLIENT
_B = Role.SERVER


def _stay(state: ConnectionState) -> dict[tuple[Role, str], ConnectionState]:
    return {(role, "connection.heartbeat"): state for role in Role}


#: Who may send what in which state, and which state follows. What is not here is illegal, or dropped
#: where the state is in ``CLOSING_STATES``.
TRANSITIONS: Final[dict[ConnectionState, dict[tuple[Role, str], ConnectionState]]] = {
    _S.HEADER: {(_C, PROTOCOL_HEADER_SENT): _S.GREETED},
    _S.GREETED: {
        (_B, PROTOCOL_HEADER_SENT): _S.GREETED,
        (_B, "connection.start"): _S.STARTING,
        **CLOSE,
    },
    _S.STARTING: {(_C, "connection.start-ok"): _S.SECURING, **CLOSE},
    _S.SECURING: {(_B, "connection.secure"): _S.CHALLENGED, (_B, "connection.tune"): _S.TUNING, **CLOSE},
    _S.CHALLENGED: {(_C, "connection.secure-ok"): _S.SECURING, **CLOSE},
    _S.TUNING: {(_C, "connection.tune-ok"): _S.OPENING, **CLOSE},
    _S.OPENING: {(_C, "connection.open"): _S.ASKED, **_stay(_S.OPENING), **CLOSE},
    _S.ASKED: {
        (_B, "connection.open-ok"): _S.OPEN,
        (_B, "connection.redirect"): _S.REDIRECTED,
        **_stay(_S.ASKED),
        **CLOSE,
    },
    _S.OPEN: {**_stay(_S.OPEN), **CLOSE},
    _S.REDIRECTED: {**CLOSE},
    **CLOSING,
}


def step(state: ConnectionState, sender: Role, name: str) -> ConnectionState | None:
    """The state after ``sender`` has sent the control ``name``; None if it is dropped.

    Violation 501 if it is not legal.
    """
    following = TRANSITIONS[state].get((sender, name))
    if following is None and state not in CLOSING_STATES:
        raise ProtocolViolation(501, f"unexpected {name} in connection state {state.value}")
    return following


@frozen
class Tuning:
    """What connection.tune offers, and what tune-ok settles.

    ``channel_max`` is a number of channels: their numbers are below it. ``max_frame_size`` is what is *sent*,
    in bytes: frames of `MOST_FRAME_SIZE` are taken whatever was settled, for qpid-python sends them.
    Heartbeats are in seconds, 0 is none; ``heartbeat_min`` is of an offer only.
    """

    channel_max: int = 256
    max_frame_size: int = MOST_FRAME_SIZE
    heartbeat: int = 120
    heartbeat_min: int = 0

    def offer(self) -> amqp.ConnectionTune:
        """connection.tune. All its fields are there: qpid-python fails without channel-max."""
        return amqp.ConnectionTune(
            channel_max=self.channel_max,
            max_frame_size=self.max_frame_size,
            heartbeat_min=self.heartbeat_min,
            heartbeat_max=self.heartbeat,
        )

    def answer(self, offered: amqp.ConnectionTune) -> amqp.ConnectionTuneOk:
        """connection.tune-ok to an offer, by what is wanted here.

        The smaller channel-max and frame size; the heartbeat nearest to the one that is wanted in what is
        allowed. What the offer does not say has no limit; without a heartbeat-max there is no heartbeat.
        """
        heartbeat = min(self.heartbeat, offered.heartbeat_max or 0)
        return amqp.ConnectionTuneOk(
            channel_max=min(self.channel_max, _or(offered.channel_max, _MOST_CHANNELS)),
            max_frame_size=min(self.max_frame_size, _or(offered.max_frame_size, MOST_FRAME_SIZE)),
            heartbeat=max(heartbeat, offered.heartbeat_min or 0),
        )

    def settle(self, answer: amqp.ConnectionTuneOk) -> Tuning:
        """What holds after ``answer`` to this offer. What it does not say is as it was offered, but without
        a heartbeat there is none: qpid-python's answer is empty.

        Violation 530 for an answer outside of the offer (rules "upper-limit", "minimum", "permitted-range"
        and "no-heartbeat-min").
        """
        settled = Tuning(
            channel_max=_or(answer.channel_max, self.channel_max),
            max_frame_size=_or(answer.max_frame_size, self.max_frame_size),
            heartbeat=answer.heartbeat or 0,
        )
        if settled.channel_max > self.channel_max:
            raise _untunable("channel-max", settled.channel_max, 0, self.channel_max)
        if not MIN_MAX_FRAME_SIZE <= settled.max_frame_size <= self.max_frame_size:
            raise _untunable(
                "max-frame-size", settled.max_frame_size, MIN_MAX_FRAME_SIZE, self.max_frame_size
            )
        if not self.heartbeat_min <= settled.heartbeat <= self.heartbeat:
            raise _untunable("heartbeat", settled.heartbeat, self.heartbeat_min, self.heartbeat)
        return settled


#: What a tune without channel-max allows.
_MOST_CHANNELS: Final = 65535


def offered(tune: amqp.ConnectionTune) -> Tuning:
    """A peer's connection.tune, with its limits where it does not say any."""
    return Tuning(
        channel_max=_or(tune.channel_max, _MOST_CHANNELS),
        max_frame_size=_or(tune.max_frame_size, MOST_FRAME_SIZE),
        heartbeat=tune.heartbeat_max or 0,
        heartbeat_min=tune.heartbeat_min or 0,
    )


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _untunable(what: str, value: int, least: int, most: int) -> ProtocolViolation:
    return ProtocolViolation(
        530, f"negotiated {what} = {value} is outside of what was offered, {least} to {most}"
    )
