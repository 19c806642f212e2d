"""The rules of AMQP 0-10. Their sections are paths of its XML, and the names that rules have there."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import BrokerSection
from amqpgate.conformance.cases.v0_10.alternate import ALTERNATE
from amqpgate.conformance.cases.v0_10.binding import BINDING
from amqpgate.conformance.cases.v0_10.bound import BOUND
from amqpgate.conformance.cases.v0_10.completion import COMPLETION
from amqpgate.conformance.cases.v0_10.content import CONTENT
from amqpgate.conformance.cases.v0_10.dtx import DTX
from amqpgate.conformance.cases.v0_10.exchange import EXCHANGE
from amqpgate.conformance.cases.v0_10.exclusive import EXCLUSIVE
from amqpgate.conformance.cases.v0_10.execution import EXECUTION
from amqpgate.conformance.cases.v0_10.flow import FLOW
from amqpgate.conformance.cases.v0_10.framing import FRAMING
from amqpgate.conformance.cases.v0_10.negotiation import NEGOTIATION
from amqpgate.conformance.cases.v0_10.queue import QUEUE
from amqpgate.conformance.cases.v0_10.segments import SEGMENTS
from amqpgate.conformance.cases.v0_10.session import SESSION
from amqpgate.conformance.cases.v0_10.settlement import SETTLEMENT
from amqpgate.conformance.cases.v0_10.subscription import SUBSCRIPTION
from amqpgate.conformance.cases.v0_10.transfer import TRANSFER
from amqpgate.conformance.cases.v0_10.tuning import TUNING
from amqpgate.conformance.cases.v0_10.tx import TX

SECTIONS: Final[tuple[BrokerSection, ...]] = (
    FRAMING,
    SEGMENTS,
    NEGOTIATION,
    TUNING,
    SESSION,
    COMPLETION,
    EXECUTION,
    EXCHANGE,
    ALTERNATE,
    BINDING,
    BOUND,
    QUEUE,
    EXCLUSIVE,
    TRANSFER,
    SUBSCRIPTION,
    FLOW,
    SETTLEMENT,
    CONTENT,
    TX,
    DTX,
)
