"""Who calls, as far as the transport tells."""

from __future__ import annotations

import pytest

from amqpgate.gateway.transport.caller import Caller
from amqpgate.policy import TlsIdentity


@pytest.mark.parametrize(
    ("address", "source"),
    [("10.0.0.7:51234", "10.0.0.7"), ("[2001:db8::7]:51234", "[2001:db8::7]"), ("", "")],
)
def test_the_source_is_the_address_without_its_port(address: str, source: str) -> None:
    assert Caller("s", address).source == source


def test_the_certificates_name() -> None:
    assert Caller("s", "10.0.0.7:1").tls_name == ""
    assert Caller("s", "10.0.0.7:1", TlsIdentity("CN=bob", "bob")).tls_name == "bob"
