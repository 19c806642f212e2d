"""Each scenario brings the same frames from the embedded broker as from RabbitMQ (3.10 was compared).

Known to differ, and therefore in no scenario:

==========================================  ==================================  =========================
what                                        RabbitMQ                            embedded
==========================================  ==================================  =========================
method that nobody knows                    drops TCP without a word            connection.close 540
answer to a reply-to that is garbled        541 INTERNAL_ERROR                  nothing
headers larger than the receiver's frames   sends them                          closes the receiver, 501
body longer than its header says            waits for ever                      connection.close 505
tune-ok with frame_max or channel_max 0     hangs up after 3 s                  takes it as "what you offer"
connection.close before the open            hangs up after 3 s                  close-ok
refusals without a word                     after 3 s                           at once
second connection.close                     close-ok                            has hung up
basic.credit                                private to its AMQP 1.0             540
quorum queues, streams                      has them                            406
no memory left                              connection.blocked, stops reading   basic.nack, or 406
what UNHEEDED arguments ask for             does it                             does nothing
==========================================  ==================================  =========================
"""

from __future__ import annotations

from difflib import unified_diff

import pytest

from amqpgate.broker.greeting import CAPABILITIES
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.protocol.measured import unquoted

from .conftest import VHOST
from .line import Line
from .player import Player
from .scenarios import SCENARIOS
from .steps import Scenario


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_same_frames(scenario: Scenario, real: tuple[str, int], embedded: tuple[str, int]) -> None:
    expected = Player(real, VHOST).play(scenario)
    assert not [line for line in expected if line.startswith(("step ", "closing "))], expected
    found = Player(embedded, VHOST).play(scenario)
    # What it does not want is not quoted here: there may be a login in it.
    expected, found = ([line.replace('"', "'") for line in unquoted(told)] for told in (expected, found))
    difference = list(unified_diff(expected, found, "RabbitMQ", "embedded", lineterm="", n=2))
    assert not difference, "\n".join(difference)


def test_capabilities(real: tuple[str, int], embedded: tuple[str, int]) -> None:
    """All but one of RabbitMQ's, under RabbitMQ's names."""
    assert _capabilities(real) - _capabilities(embedded) == {"connection.blocked"}
    assert _capabilities(embedded) == set(CAPABILITIES) < _capabilities(real)


def _capabilities(address: tuple[str, int]) -> set[str]:
    line = Line(address)
    line.send(amqp.PROTOCOL_HEADER)
    line.wait_for_answers(0, 1)
    line.hang_up()
    start = decode_method(line.received[0].payload)
    assert isinstance(start, amqp.ConnectionStart)
    capabilities = start.server_properties.get("capabilities")
    assert isinstance(capabilities, dict)
    return {name for name, value in capabilities.items() if value is True}
