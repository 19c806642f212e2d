"""What is read of a start-ok's frame, and written, is what its method says."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.bridge import NATIVE
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.handshake.start_ok import start_ok_of, usual_start_ok
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.upstream.broker_side import BROKER_FRAME_BEFORE_TUNE, start_ok_for
from amqpgate.protocol.frames import FrameDecoder, method_frame
from amqpgate.protocol.methods import Role
from amqpgate.protocol.sasl import amqplain_response, user_of
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.streams import stream_and_peer
from tests.support.talker import CAPABILITIES
from tests.unit.wire.strategies import TABLE

CALLER = Caller("0123456789abcdef", "10.0.0.7:51234")
USUAL = amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0secret", "en_US")


@attrs.define
class Said:
    """A client, as `broker_side` sees one."""

    start_ok: amqp.ConnectionStartOk
    caller: Caller = CALLER


def as_broker_side_has_it(method: amqp.ConnectionStartOk) -> bytes:
    with stream_and_peer(peer=Role.SERVER) as (hop, _):
        start = amqp.ConnectionStart(0, 9, Table(), b"PLAIN AMQPLAIN", b"en_US")
        return start_ok_for(hop, start, Said(method), None, "1.2.3")  # type: ignore[arg-type]


def test_usual_ones() -> None:
    amqplain = attrs.evolve(USUAL, mechanism="AMQPLAIN", response=amqplain_response("guest", "secret"))
    for method in (USUAL, amqplain):
        said = usual_start_ok(method_frame(0, method))
        assert said is not None
        assert said.method == method
        assert said.user == "guest"
        assert said.introduction.said.capabilities >= {"consumer_cancel_notify"}
        assert "secret" not in repr(said)


def test_the_same_properties_are_read_once() -> None:
    one, two = (usual_start_ok(method_frame(0, attrs.evolve(USUAL, response=b"\0%d\0x" % n))) for n in (1, 2))
    assert one is not None
    assert two is not None
    assert one.introduction is two.introduction


def test_unusual_ones() -> None:
    qpid = Table.of({"product": "qpid python client"})
    for changed in (
        {"mechanism": "EXTERNAL"},
        {"mechanism": "SCRAM-SHA-256"},
        {"response": b""},
        {"response": b"no\0ts"},
        {"locale": "de_DE"},
        {"client_properties": qpid},
        {"client_properties": Table.of({"amqpgate": "it claims"})},
        {"client_properties": Table.of({"long": "x" * 2000})},
    ):
        method = attrs.evolve(USUAL, **changed)
        assert usual_start_ok(method_frame(0, method)) is None
    frame = method_frame(0, USUAL)
    for cut in range(len(frame)):
        assert usual_start_ok(frame[:cut]) is None
    assert usual_start_ok(frame + b"\x08") is None
    assert usual_start_ok(method_frame(1, USUAL)) is None
    assert usual_start_ok(method_frame(0, amqp.ConnectionOpen("/"))) is None


@given(TABLE, st.binary(max_size=40).filter(lambda part: b"\0" not in part))
def test_the_broker_hears_what_it_would_hear(properties: Table, password: bytes) -> None:
    method = attrs.evolve(USUAL, client_properties=properties, response=b"\0guest\0" + password)
    said = usual_start_ok(method_frame(0, method))
    if said is not None:
        assert start_ok_of(said, CALLER, "1.2.3") == as_broker_side_has_it(method)


def test_the_entry_is_left_out_of_one_that_would_become_too_large() -> None:
    sizes = set()
    for padding in range(3700, 4200, 7):
        method = attrs.evolve(USUAL, response=b"\0guest\0" + b"p" * padding)
        said = usual_start_ok(method_frame(0, method))
        assert said is not None
        frame = start_ok_of(said, CALLER, "1.2.3")
        assert frame == as_broker_side_has_it(method)
        sizes.add(len(frame) <= BROKER_FRAME_BEFORE_TUNE)
    assert sizes == {True, False}


@given(st.data())
def test_hostile_bytes_are_read_as_the_codec_reads_them_or_not_at_all(data: st.DataObject) -> None:
    frame = bytearray(method_frame(0, USUAL))
    for _ in range(data.draw(st.integers(0, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    said = usual_start_ok(bytes(frame))
    if said is None:
        return
    decoder = FrameDecoder(131072)
    decoder.feed(bytes(frame))
    heard = decoder.next()
    assert heard is not None
    method = decode_method(heard.payload, NATIVE.dialect)
    assert said.method == method
    assert isinstance(method, amqp.ConnectionStartOk)
    try:
        assert said.user == user_of(method.mechanism, method.response)
    except ProtocolViolation as violation:  # pragma: no cover - a defect
        raise AssertionError from violation
