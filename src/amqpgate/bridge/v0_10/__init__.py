"""AMQP 0-10 to and from canonical methods and messages: clients speak it, and brokers.

What is where
    ``client``      the translator of a client: its connection, and which session gets what
        ``login``           start to close, and what is tuned
        ``client_session``  one session: its order, its channels, its end
        ``channels``        the channels of 0-9-1 that a session has; ``frames``: the gateway's side in frames
        ``link``            what the sessions of one client share
        ``commands``        which command is done by what; ``steps``: what a command is made of
        ``declaring``       declares, binds and deletes; ``queries``; ``topology``: what is known
        ``orphans``         messages of a queue that is deleted
        ``publishing``      transfers; ``transactions``; ``no_local``: who published what
        ``subscriptions``   what a session's client gets; ``subscription``: one of them; ``credit``
        ``subscribers``     subscriptions of all sessions; ``parting``: what goes with the last one
        ``consumers``       what the broker knows of them
        ``deliveries``      messages that are not settled
    ``broker``      the translator of a broker: its connection, and which channel gets what
        ``broker_login``       start to open
        ``broker_channel``     one channel, a session: its order and its end; ``broker_modes``
        ``broker_task``        a method that is answered; ``broker_link``: what the parts have in common
        ``broker_publishing``  messages to transfers, completion to confirms; ``broker_mandatory``: returns
        ``broker_consuming``   deliveries, acknowledgements; ``broker_consumer``: a subscription
        ``broker_incoming``    whole messages of the broker's
        ``broker_declaring``   queues, exchanges, bindings
    ``properties``  the header of a transfer and the properties of a message; ``quick_header``: of nearly all
    ``forms``       what messages become, kept by their headers
    ``tables``      maps of 0-10 and field tables; ``reply_to``: the two parts of a reply-to and one text
    ``arguments``   what queues, exchanges, bindings and subscriptions are made with
    ``codes``       an exception and channel.close
    ``capture``     operations in frames of 0-10, for taps
"""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar, Final

from amqpgate.bridge.canonical import ConnectionRedirect
from amqpgate.bridge.translator import Relayed, Translator
from amqpgate.bridge.v0_9_1 import Interpreter091
from amqpgate.bridge.versions import VERSIONS, TranslatedVersion
from amqpgate.protocol.header import HEADER_0_10
from amqpgate.protocol.methods import Role
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.method import Method
from amqpgate.wire.primitives import Buffer

_REDIRECT: Final = ConnectionRedirect.INDEX.to_bytes(4, "big")


class Interpreter010(Interpreter091):
    """A peer of AMQP 0-10, of which its translator has made a native one. A broker may redirect."""

    version: ClassVar[str] = "AMQP 0-10"
    redirects: ClassVar[bool] = True
    has_sessions: ClassVar[bool] = True

    def captured(self, channel: int, method: Method, header: ContentHeader | None) -> bytes:
        frames: bytes = import_module(f"{__name__}.capture").frames_of(channel, method, header)
        return frames

    def heartbeat(self, wanted: int, proposed: int) -> int:
        """What it proposes is the most (AMQP 0-10, connection.tune-ok, rule "permitted-range")."""
        return min(wanted, proposed)

    def to_canonical(self, payload: Buffer, sender: Role) -> Method:
        if bytes(payload[:4]) == _REDIRECT and sender is Role.SERVER:
            return ConnectionRedirect.decode(payload, 4, len(payload))
        return super().to_canonical(payload, sender)


def _client() -> Translator:
    translator: Translator = import_module(f"{__name__}.client").ClientTranslator()
    return translator


def _broker(name: str) -> Translator:
    translator: Translator = import_module(f"{__name__}.broker").BrokerTranslator(name)
    return translator


def _relayed(client: Translator, broker: Translator) -> Relayed | None:
    found: Relayed | None = import_module(f"{__name__}.native.pairing").relayed(client, broker)
    return found


VERSION: Final = VERSIONS.register(
    TranslatedVersion(
        name="0-10",
        header=HEADER_0_10,
        interpreter=Interpreter010(),
        client=_client,
        broker=_broker,
        relayed=_relayed,
    )
)
