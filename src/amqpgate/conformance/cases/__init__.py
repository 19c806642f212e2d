"""The rules, by the part of the specification that has them."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import BrokerSection
from amqpgate.conformance.cases import v0_10
from amqpgate.conformance.cases.basic import BASIC
from amqpgate.conformance.cases.binding import BINDING
from amqpgate.conformance.cases.channel import CHANNEL
from amqpgate.conformance.cases.confirm import CONFIRM
from amqpgate.conformance.cases.connection import CONNECTION
from amqpgate.conformance.cases.content import CONTENT
from amqpgate.conformance.cases.exchange import EXCHANGE
from amqpgate.conformance.cases.extensions import EXTENSIONS
from amqpgate.conformance.cases.fields import FIELDS
from amqpgate.conformance.cases.framing import FRAMING
from amqpgate.conformance.cases.multiplexing import MULTIPLEXING
from amqpgate.conformance.cases.negotiation import NEGOTIATION
from amqpgate.conformance.cases.queue import QUEUE
from amqpgate.conformance.cases.settlement import SETTLEMENT
from amqpgate.conformance.cases.tx import TX

SECTIONS: Final[tuple[BrokerSection, ...]] = (
    FRAMING,
    MULTIPLEXING,
    NEGOTIATION,
    CONNECTION,
    CHANNEL,
    EXCHANGE,
    QUEUE,
    BINDING,
    BASIC,
    SETTLEMENT,
    CONTENT,
    FIELDS,
    TX,
    CONFIRM,
    EXTENSIONS,
    *v0_10.SECTIONS,
)
