"""What passes in a login of 0-10."""

from __future__ import annotations

from amqpgate.protocol.v0_10.login import passable, without_link_properties
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.types import Map, Value


def test_mechanisms_with_security_layers_are_not_offered() -> None:
    offered = (
        b"GSSAPI PLAIN DIGEST-MD5 CRAM-MD5 KERBEROS_V4 SCRAM-SHA-1 ANONYMOUS AMQPLAIN EXTERNAL digest-md5"
    )
    assert passable(offered.split()) == (b"PLAIN", b"CRAM-MD5", b"SCRAM-SHA-1", b"ANONYMOUS", b"EXTERNAL")


def test_properties_of_links_of_a_federation_are_stripped() -> None:
    text = Value(TypeCode.STR16, b"x")
    product, version = (b"product", text), (b"qpid.client_process", text)
    properties = Map(
        (
            product,
            (b"qpid.fed_link", Value(TypeCode.INT32, 1)),
            version,
            (b"qpid.federation_tag", text),
            product,
        )
    )
    assert without_link_properties(properties) == Map((product, version, product))
    assert without_link_properties(Map()) == Map()
