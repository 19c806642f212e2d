"""Who logs in by a mechanism that is not offered is hung up on without a word, on every way."""

from __future__ import annotations

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.interop.pooling.ways import Place
from tests.support.talker import CAPABILITIES


@pytest.mark.parametrize("mechanism", ["NONSENSE", "SCRAM-SHA-256"])
@pytest.mark.parametrize("properties", [CAPABILITIES, Table()], ids=["told of failures", "not told"])
def test_a_mechanism_that_is_not_offered(place: Place, mechanism: str, properties: Table) -> None:
    client = place.dial()
    client.raw(amqp.PROTOCOL_HEADER)
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(properties, mechanism, b"response", "en_US"))
    assert list(client.all()) == []
