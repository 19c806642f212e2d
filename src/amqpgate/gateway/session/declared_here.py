"""Queues of the delay ladder that the gateway declares on a client's channel, which hears nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.delay_ladder import ANSWERED

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session


def ask_broker(channels: SessionChannels, channel: int, answers: int) -> None:
    """Something of the ladder is about to be declared, and the broker answers so many of it. Raises
    ``ProtocolViolation`` where that may not be asked."""
    for _ in range(answers):
        channels.upstream.request(channel, ANSWERED, None)
    channels.states[channel].declare_here(answers)


def is_for_gateway(session: Session, channel: int) -> bool:
    """The broker answers a declare: whether that is the gateway's own."""
    state = session.channels.states.remembered(channel)
    ladder = None if state is None else state.declared_here()
    if state is None or ladder is None:
        return False
    there = ladder.answered()
    if session.session_policies.delays is not None:
        session.session_policies.delays.answered(there)
    if ladder.is_answered:
        state.end_ladder()
    return True
