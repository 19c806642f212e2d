"""Queues of the delay ladder that the gateway declares on a client's channel, which hears nothing of it."""

from __future__ import annotations

from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.delay_ladder import ANSWERED
from amqpgate.gateway.session.delays import Delays


def ask_broker(channels: SessionChannels, channel: int, answers: int) -> None:
    """Something of the ladder is about to be declared, and the broker answers so many of it. Raises
    ``ProtocolViolation`` where that may not be asked."""
    for _ in range(answers):
        channels.upstream.request(channel, ANSWERED, None)
    state = channels.states[channel]
    state.move()
    state.declaring().climb(answers)


def is_for_gateway(channels: SessionChannels, delays: Delays | None, channel: int) -> bool:
    """The broker answers a declare: whether that is the gateway's own."""
    state = channels.states.remembered(channel)
    there = None if state is None or state.declares is None else state.declares.climbed()
    if there is not None and delays is not None:
        delays.answered(there)
    return there is not None
