"""The interpreters: methods and content headers of every version to and from the canonical model.

What the room is for
    Inside, every method is one of AMQP 0-9-1 with RabbitMQ's extensions; so one policy judges all versions,
    and there is one interpreter per version, not one per pair. Its peer's dialect (field table types, whose
    extensions) is the interpreter's, too.

What comes in
    Payloads of method and header frames of one peer, as they came.

What goes out
    Canonical methods (``wire.generated.v0_9_1``, and what it lacks in ``canonical``), and the other way round
    payloads for the peer. `UnsupportedInVersion` for what the peer's version has no method for.

What is where
    ``versions``     the registry of versions, and which interpreter a peer needs; an unknown version raises
                     `UnsupportedVersionError`
    ``v0_8``, ``v0_9``, ``v0_9_1``  one version each: its interpreter, and what it registers
    ``interpreter``  what all interpreters have in common
    ``undecided``    a client whose header two versions send
    ``crossing``     what one peer has and the other lacks; ``prefetch``: basic.qos of old clients
    ``canonical``    methods of older versions that 0-9-1 lacks
    ``translator``   what stands before a protocol whose frames differ, too
    ``v0_10``        AMQP 0-10, which is such a protocol

Publish, deliver, get-ok, return, ack, reject and bodies have the same bytes in 0-8, 0-9 and 0-9-1: those
pass without an interpreter.

Neighbours
    Called by the gateway. Calls ``protocol`` and ``wire``. No I/O.
"""

from amqpgate.bridge.canonical import (
    ChannelAlert,
    ChannelOk,
    ChannelPing,
    ChannelPong,
    ChannelResume,
    ConnectionRedirect,
)
from amqpgate.bridge.crossing import Crossing
from amqpgate.bridge.interpreter import Interpreter, UnsupportedInVersion
from amqpgate.bridge.translator import Relayed, RelayedTranslator, Translator
from amqpgate.bridge.v0_9_1 import NATIVE, pair_of
from amqpgate.bridge.versions import (
    VERSIONS,
    AnyVersion,
    TranslatedVersion,
    Version,
    for_broker,
    for_product,
    interpreter_for,
    relayed,
)

__all__ = [
    "NATIVE",
    "VERSIONS",
    "AnyVersion",
    "ChannelAlert",
    "ChannelOk",
    "ChannelPing",
    "ChannelPong",
    "ChannelResume",
    "ConnectionRedirect",
    "Crossing",
    "Interpreter",
    "Relayed",
    "RelayedTranslator",
    "TranslatedVersion",
    "Translator",
    "UnsupportedInVersion",
    "Version",
    "for_broker",
    "for_product",
    "interpreter_for",
    "pair_of",
    "relayed",
]
