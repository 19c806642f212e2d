"""The connection of a 0-10 client, as canonical methods of channel 0 and back.

=================  ===========================================================================================
0-10               what is different
=================  ===========================================================================================
start              mechanisms as an array, less those that nobody in between could read
start-ok           capabilities are added: a 0-10 client takes what RabbitMQ's own clients must ask for
tune, tune-ok      channels are sessions, which have up to `CHANNELS` channels each; frames are of the size
                   that clients send anyway; the heartbeat is the client's choice up to what is offered
open               an absent or empty virtual-host is the default
close              the codes of `codes`
=================  ===========================================================================================
"""

from __future__ import annotations

from typing import Final

from amqpgate.bridge.v0_10.steps import text_of
from amqpgate.bridge.v0_10.tables import from_table, to_table
from amqpgate.protocol.v0_10.connection import Tuning
from amqpgate.protocol.v0_10.login import passable, without_link_properties
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.tables import Field, Table
from amqpgate.wire.v0_10.types import EMPTY_ARRAY, EMPTY_MAP, Array

#: Channels of 0-9-1 that a session takes at most.
CHANNELS: Final = 3
#: Sessions that a client may have at a time.
MOST_SESSIONS: Final = 256
_MOST_CHANNELS: Final = 65_535
#: What is agreed where the broker has no limit, in bytes: as RabbitMQ offers it.
_FRAME_MAX: Final = 131_072

#: What the client understands, or what is done for it here.
_CAPABILITIES: Final = Table.of(
    {
        "authentication_failure_close": True,
        "basic.nack": True,
        "consumer_cancel_notify": True,
        "publisher_confirms": True,
    }
)


def start_of(start: amqp.ConnectionStart) -> amqp10.ConnectionStart:
    """connection.start."""
    return amqp10.ConnectionStart(
        server_properties=from_table(start.server_properties),
        mechanisms=Array(TypeCode.STR16, passable(start.mechanisms.split())),
        locales=Array(TypeCode.STR16, tuple(start.locales.split())),
    )


def confirms(start: amqp.ConnectionStart) -> bool:
    """Whether the broker confirms what is published, unless it says that it does not."""
    found = start.server_properties.field("capabilities")
    return found is None or not isinstance(found.value, Table) or bool(found.value.get("publisher_confirms"))


def nacks(start: amqp.ConnectionStart) -> bool:
    """Whether the broker says that it takes basic.nack."""
    found = start.server_properties.field("capabilities")
    return found is not None and isinstance(found.value, Table) and bool(found.value.get("basic.nack"))


def start_ok_of(start_ok: amqp10.ConnectionStartOk) -> amqp.ConnectionStartOk:
    """connection.start-ok. Without a response it is empty: the broker asks for one."""
    said = to_table(without_link_properties(start_ok.client_properties or EMPTY_MAP))
    entries = tuple([entry for entry in said.entries if entry[0] != "capabilities"])
    return amqp.ConnectionStartOk(
        client_properties=Table((*entries, ("capabilities", Field("F", _CAPABILITIES)))),
        mechanism=text_of(start_ok.mechanism, "the mechanism"),
        response=start_ok.response or b"",
        locale=text_of(start_ok.locale, "the locale"),
    )


def tuning_of(tune: amqp.ConnectionTune) -> Tuning:
    """What connection.tune offers to the client."""
    sessions = (tune.channel_max or _MOST_CHANNELS) // CHANNELS
    return Tuning(channel_max=max(1, min(sessions, MOST_SESSIONS)), heartbeat=tune.heartbeat)


def tune_ok_of(tune: amqp.ConnectionTune, heartbeat: int) -> amqp.ConnectionTuneOk:
    """connection.tune-ok: all that was offered, but the heartbeat is the client's."""
    return amqp.ConnectionTuneOk(
        channel_max=tune.channel_max or _MOST_CHANNELS,
        frame_max=tune.frame_max or _FRAME_MAX,
        heartbeat=heartbeat,
    )


def open_of(open_: amqp10.ConnectionOpen, default_vhost: str) -> amqp.ConnectionOpen:
    """connection.open."""
    return amqp.ConnectionOpen(text_of(open_.virtual_host, "the virtual host") or default_vhost)


def open_ok() -> amqp10.ConnectionOpenOk:
    """connection.open-ok. Nobody else is known here."""
    return amqp10.ConnectionOpenOk(known_hosts=EMPTY_ARRAY)
