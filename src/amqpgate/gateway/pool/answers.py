"""What the broker owes a session on a channel of a shared connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpgate.datapath.tables import OPEN, Side

if TYPE_CHECKING:
    from amqpgate.gateway.pool.channel_mapping import ChannelMapping
    from amqpgate.gateway.session.session import Session


def is_idle(session: Session, channel: int, mapping: ChannelMapping | None) -> bool:
    """Whether the broker has answered all that was said on the channel: its end tells nothing more."""
    state = session.channels.states.get(channel)
    if mapping is None or mapping.is_used or not mapping.is_open:
        return False
    if state is None or state.confirm_numbers is not None:
        return False
    if state.close is not None:
        return False
    channels = session.relay.channels
    if channels.messages(Side.UPSTREAM, channel) or channels.state(channel) != OPEN:
        return False
    if not channels.messages(Side.CLIENT, channel):
        return True
    return state.confirms_from == 0 and not is_unconfirmed(session, channel)


def is_unconfirmed(session: Session, channel: int) -> bool:
    """Whether the broker owes a confirm there."""
    state = session.channels.states.get(channel)
    confirms = state is not None and state.confirms_from is not None
    return confirms and session.relay.channels.unconfirmed(channel) > 0
