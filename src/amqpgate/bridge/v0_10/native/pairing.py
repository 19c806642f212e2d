"""From two translators, whose peers both speak AMQP 0-10, to both ends of a relayed connection."""

from __future__ import annotations

from typing import Final

from amqpgate.bridge.translator import Relayed, Translator
from amqpgate.bridge.v0_10.broker import BrokerTranslator
from amqpgate.bridge.v0_10.client import ClientTranslator
from amqpgate.bridge.v0_10.native.broker_end import BrokerEnd
from amqpgate.bridge.v0_10.native.client_end import ClientEnd
from amqpgate.bridge.v0_10.native.relay import NativeRelay

#: Largest frame of copies, in bytes: a header segment of 0-10 has room in one.
FRAME_MAX: Final = 131_072


def relayed(client: Translator, broker: Translator) -> Relayed | None:
    """What takes the place of both once the broker has said open-ok, and the client has not heard it.

    None where what the client may use is more than the broker has.
    """
    if not isinstance(client, ClientTranslator) or not isinstance(broker, BrokerTranslator):
        return None
    ours, theirs = client.tune, broker.tune
    if ours is None or theirs is None or ours.channel_max > theirs.channel_max:
        return None
    relay = NativeRelay(
        FRAME_MAX,
        ours.channel_max,
        most_to_client=ours.max_frame_size,
        most_to_broker=theirs.max_frame_size,
    )
    return Relayed((ClientEnd(relay), client.take_rest()), (BrokerEnd(relay), broker.take_rest()), FRAME_MAX)
