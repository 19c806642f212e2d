"""Every method of every version to the canonical model and back: the identity, or a loss that is named."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.bridge import UnsupportedInVersion, canonical, interpreter_for
from amqpgate.bridge.undecided import UndecidedInterpreter
from amqpgate.bridge.v0_9 import Interpreter09
from amqpgate.bridge.v0_9_1 import NATIVE
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import Role
from amqpgate.wire import dialects
from amqpgate.wire.codec import ContentHeader, decode_method, methods
from amqpgate.wire.dialects import LEGACY_CLIENT, RABBITMQ_0_9_1, Dialect
from amqpgate.wire.generated import v0_8, v0_9
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.unit.wire import checks
from tests.unit.wire.generated import test_roundtrip_v0_8, test_roundtrip_v0_9, test_roundtrip_v0_9_1

STRATEGIES: dict[dialects.VersionNumbers, ModuleType] = {
    (0, 8, 0): test_roundtrip_v0_8,
    (0, 9, 0): test_roundtrip_v0_9,
    (0, 9, 1): test_roundtrip_v0_9_1,
}

#: Every version with all extensions, and with RabbitMQ's table types, so that tables are no loss.
WHOLE = [
    attrs.evolve(
        dialects.RABBITMQ_0_9_1, name=name, version=version, extensions=frozenset({"rabbitmq", "qpid"})
    )
    for name, version in (("0-8", (0, 8, 0)), ("0-9", (0, 9, 0)), ("0-9-1", (0, 9, 1)))
]

SPOKEN = [(dialect, cls.NAME) for dialect in WHOLE for cls in methods(dialect).values()]


#: Which answer a client of 0-8 waits for depends on what it has asked.
ASKED_BY = {
    "basic.recover-ok": amqp.BasicRecover(),
    "basic.recover-sync-ok": amqp.BasicRecoverAsync(),
}


def _free_tuples(capfd: pytest.CaptureFixture[str]) -> int:
    """Tuples of any length that Python keeps for the next."""
    capfd.readouterr()
    sys._debugmallocstats()
    return sum(map(int, re.findall(r"(\d+) free \d+-sized PyTupleObjects", capfd.readouterr().err)))


def test_what_is_carried_over_leaves_no_tuples(capfd: pytest.CaptureFixture[str]) -> None:
    """Each method and each header of a session between versions would leave one, up to 2,000 of a length."""
    peer = interpreter_for(LEGACY_CLIENT)
    header = ContentHeader(60, 0, amqp.BasicProperties(content_type="text/plain"))
    before = _free_tuples(capfd)
    for _ in range(100):
        peer.header_to_canonical(peer.header_from_canonical(header))
        peer.to_canonical(peer.from_canonical(amqp.BasicQos(0, 1, False)), Role.CLIENT)
    assert _free_tuples(capfd) - before < 50


@pytest.mark.parametrize(("dialect", "name"), SPOKEN, ids=lambda value: getattr(value, "name", value))
@given(data=st.data())
@checks.quick
def test_a_peer_is_told_what_it_has_said(dialect: Dialect, name: str, data: st.DataObject) -> None:
    """To the canonical model and back to a peer of the same kind: the same bytes."""
    peer = interpreter_for(dialect)
    method = data.draw(STRATEGIES[dialect.version].METHODS[name])
    if name.endswith("close") or name == "basic.return":
        # Codes that a version lacks are another test's.
        known = STRATEGIES[dialect.version].wire.REPLY_CODES
        if "reply_code" in {field.name for field in attrs.fields(type(method))}:
            method = attrs.evolve(method, reply_code=data.draw(st.sampled_from(sorted(known))))
    if isinstance(method, v0_8.ConnectionStart):
        method = attrs.evolve(
            method,
            version_major=8,
            version_minor=0,
            server_properties=method.server_properties.without("capabilities"),
        )
    if name in ASKED_BY:
        peer.to_canonical(ASKED_BY[name].encode(), Role.CLIENT)
    raw = method.encode(dialect)
    assert peer.from_canonical(peer.to_canonical(raw, Role.CLIENT)) == raw


def test_a_client_of_0_8_is_told_its_own_version_and_no_capabilities() -> None:
    said = Table.of({"product": "RabbitMQ", "capabilities": {"basic.nack": True}})
    start = amqp.ConnectionStart(0, 9, said, b"PLAIN", b"en_US")
    for client in (interpreter_for(dialects.LEGACY_CLIENT), interpreter_for(dialects.QPID_0_8)):
        told = decode_method(client.from_canonical(start), client.dialect)
        assert told == v0_8.ConnectionStart(8, 0, Table.of({"product": "RabbitMQ"}), b"PLAIN", b"en_US")
    assert interpreter_for(dialects.LEGACY_CLIENT_0_9).from_canonical(start) == start.encode()


#: Canonical methods that a version lacks, its extensions included.
UNSUPPORTED = {
    "0-8": {
        "connection.blocked",
        "connection.unblocked",
        "connection.update-secret",
        "connection.update-secret-ok",
        "exchange.bind",
        "exchange.bind-ok",
        "exchange.unbind",
        "exchange.unbind-ok",
        "basic.nack",
        "basic.credit",
        "basic.credit-ok",
        "basic.credit-drained",
        "confirm.select",
        "confirm.select-ok",
        "channel.resume",
        "channel.ping",
        "channel.pong",
        "channel.ok",
    },
    "0-9-1": {
        "connection.redirect",
        "channel.alert",
        "channel.resume",
        "channel.ping",
        "channel.pong",
        "channel.ok",
    },
}
UNSUPPORTED["0-9"] = (UNSUPPORTED["0-8"] - UNSUPPORTED["0-9-1"]) | {"channel.alert"}

EXTRAS = [
    canonical.ConnectionRedirect("a:1", "b:2"),
    canonical.ChannelAlert(404, "gone", Table.of({"a": 1})),
    canonical.ChannelResume(b"id"),
    canonical.ChannelPing(),
    canonical.ChannelPong(),
    canonical.ChannelOk(),
]


@pytest.mark.parametrize("dialect", WHOLE, ids=lambda dialect: dialect.name)
def test_what_a_version_has_no_word_for(dialect: Dialect) -> None:
    peer = interpreter_for(dialect)
    canonical_methods = [cls() for cls in methods(RABBITMQ_0_9_1).values()] + EXTRAS
    for method in canonical_methods:
        assert peer.speaks(type(method)) is (method.NAME not in UNSUPPORTED[dialect.name])
        if method.NAME not in UNSUPPORTED[dialect.name]:
            peer.from_canonical(method)
            continue
        with pytest.raises(UnsupportedInVersion) as caught:
            peer.from_canonical(method)
        why = caught.value
        assert (why.code, why.class_id, why.method_id) == (540, method.CLASS_ID, method.METHOD_ID)


@pytest.mark.parametrize("dialect", WHOLE, ids=lambda dialect: dialect.name)
@given(data=st.data())
@checks.quick
def test_canonical_methods_survive_every_version(dialect: Dialect, data: st.DataObject) -> None:
    """From the canonical model to a peer and back: the same method."""
    peer = interpreter_for(dialect)
    name = data.draw(st.sampled_from([cls.NAME for cls in methods(RABBITMQ_0_9_1).values()]))
    method = data.draw(test_roundtrip_v0_9_1.METHODS[name])
    if not peer.speaks(type(method)):
        return
    expected = method
    if isinstance(method, amqp.ConnectionClose | amqp.ChannelClose | amqp.BasicReturn):
        code = data.draw(st.sampled_from([320, 403, 404, 541]))
        method = expected = attrs.evolve(method, reply_code=code)
    if dialect.version == (0, 8, 0):
        if isinstance(method, amqp.ConnectionStart):
            said = method.server_properties.without("capabilities")
            expected = attrs.evolve(method, version_major=8, version_minor=0, server_properties=said)
        if isinstance(method, amqp.ChannelOpenOk):
            expected = amqp.ChannelOpenOk()  # the channel's id
        if isinstance(method, amqp.BasicConsume):
            peer.has_consume_table = True  # type: ignore[attr-defined]
        if isinstance(method, amqp.BasicRecover):
            peer.has_consume_table = False  # type: ignore[attr-defined]
    heard = peer.to_canonical(peer.from_canonical(method), Role.CLIENT)
    assert heard == expected


def test_a_close_of_0_8_has_its_own_ids() -> None:
    peer = interpreter_for(LEGACY_CLIENT)
    close = amqp.ConnectionClose(530, "no", amqp.ConnectionClose.CLASS_ID, amqp.ConnectionClose.METHOD_ID)
    told = decode_method(peer.from_canonical(close), LEGACY_CLIENT)
    assert told == v0_8.ConnectionClose(530, "no", 10, 60)
    assert peer.from_canonical(amqp.ConnectionCloseOk()) == bytes.fromhex("000a003d")
    assert peer.to_canonical(bytes.fromhex("000a003d"), Role.CLIENT) == amqp.ConnectionCloseOk()
    assert peer.to_canonical(told.encode(), Role.CLIENT) == close


def test_what_0_9_1_calls_blocked_is_no_close_of_0_8() -> None:
    with pytest.raises(UnsupportedInVersion):
        interpreter_for(LEGACY_CLIENT).from_canonical(amqp.ConnectionBlocked("low on memory"))


class TestRecover:
    """Its four shapes."""

    def test_of_the_specifications(self) -> None:
        """60,100, and nobody answers."""
        for dialect in (LEGACY_CLIENT, dialects.LEGACY_CLIENT_0_9, RABBITMQ_0_9_1):
            heard = interpreter_for(dialect).to_canonical(bytes.fromhex("003c006401"), Role.CLIENT)
            assert heard == amqp.BasicRecoverAsync(requeue=True)

    def test_of_qpid_0_8(self) -> None:
        """60,100, and 60,101 answers: for a client whose consume has a table."""
        peer = interpreter_for(LEGACY_CLIENT)
        peer.to_canonical(v0_8.BasicConsume(queue="q", arguments=Table()).encode(), Role.CLIENT)
        assert peer.to_canonical(bytes.fromhex("003c006401"), Role.CLIENT) == amqp.BasicRecover(requeue=True)
        assert peer.from_canonical(amqp.BasicRecoverOk()) == bytes.fromhex("003c0065")

    def test_of_0_8_each_is_answered_as_it_was_asked(self) -> None:
        """What is remembered is the last one of either kind, not the first."""
        peer = interpreter_for(LEGACY_CLIENT)
        peer.to_canonical(v0_8.BasicConsume(queue="q", arguments=Table()).encode(), Role.CLIENT)
        for asked, answered in (
            ("003c006401", "003c0065"),
            ("003c006e01", "003c006f"),
            ("003c006401", "003c0065"),
            ("003c006e01", "003c006f"),
        ):
            assert peer.to_canonical(bytes.fromhex(asked), Role.CLIENT) == amqp.BasicRecover(requeue=True)
            assert peer.from_canonical(amqp.BasicRecoverOk()) == bytes.fromhex(answered)

    def test_of_0_8_a_close_names_what_was_said(self) -> None:
        for asked in ("003c006401", "003c006e01"):
            peer = interpreter_for(LEGACY_CLIENT)
            peer.to_canonical(v0_8.BasicConsume(queue="q", arguments=Table()).encode(), Role.CLIENT)
            peer.to_canonical(bytes.fromhex(asked), Role.CLIENT)
            close = amqp.ConnectionClose(540, "NOT_IMPLEMENTED", 60, 110)
            said = peer.to_canonical(peer.from_canonical(close), Role.SERVER)
            assert isinstance(said, amqp.ConnectionClose)
            assert said.method_id == int(asked[4:8], 16)

    def test_of_0_8_the_dialect_is_that_of_the_last_consume(self) -> None:
        peer = interpreter_for(LEGACY_CLIENT)
        for arguments, heard in ((None, amqp.BasicRecoverAsync), (Table(), amqp.BasicRecover)) * 2:
            peer.to_canonical(v0_8.BasicConsume(queue="q", arguments=arguments).encode(), Role.CLIENT)
            assert type(peer.to_canonical(bytes.fromhex("003c006401"), Role.CLIENT)) is heard

    def test_of_a_client_without_the_table(self) -> None:
        peer = interpreter_for(LEGACY_CLIENT)
        peer.to_canonical(v0_8.BasicConsume(queue="q").encode(), Role.CLIENT)
        heard = peer.to_canonical(bytes.fromhex("003c006401"), Role.CLIENT)
        assert heard == amqp.BasicRecoverAsync(requeue=True)

    def test_of_qpid_0_9(self) -> None:
        """60,102, and 60,101 answers."""
        peer = interpreter_for(dialects.LEGACY_CLIENT_0_9)
        assert peer.to_canonical(bytes.fromhex("003c006601"), Role.CLIENT) == amqp.BasicRecover(requeue=True)
        assert peer.from_canonical(amqp.BasicRecoverOk()) == bytes.fromhex("003c0065")
        broker = interpreter_for(dialects.QPID_0_9)
        assert broker.from_canonical(amqp.BasicRecover(requeue=True)) == bytes.fromhex("003c006601")
        assert broker.to_canonical(bytes.fromhex("003c0065"), Role.SERVER) == amqp.BasicRecoverOk()

    def test_of_0_9_1(self) -> None:
        """60,110, and 60,111 answers; RabbitMQ has it under 0-8, too."""
        for dialect in (LEGACY_CLIENT, RABBITMQ_0_9_1):
            peer = interpreter_for(dialect)
            assert peer.to_canonical(bytes.fromhex("003c006e01"), Role.CLIENT) == amqp.BasicRecover(
                requeue=True
            )
            assert peer.from_canonical(amqp.BasicRecoverOk()) == bytes.fromhex("003c006f")

    def test_of_a_qpid_broker_0_8(self) -> None:
        broker = interpreter_for(dialects.QPID_0_8)
        assert broker.from_canonical(amqp.BasicRecover(requeue=True)) == bytes.fromhex("003c006401")
        assert broker.to_canonical(bytes.fromhex("003c0065"), Role.SERVER) == amqp.BasicRecoverOk()

    def test_no_answer_can_be_had_of_a_broker_of_the_letter(self) -> None:
        for dialect in (dialects.STANDARD_0_8, dialects.STANDARD_0_9, dialects.LEGACY_BROKER):
            assert not interpreter_for(dialect).speaks(amqp.BasicRecover)
            assert interpreter_for(dialect).speaks(amqp.BasicRecoverAsync)


class TestConsume:
    """With or without a table."""

    def test_is_heard_either_way(self) -> None:
        peer = interpreter_for(LEGACY_CLIENT)
        without = v0_8.BasicConsume(queue="q", consumer_tag="c", no_ack=True)
        expected = amqp.BasicConsume(queue="q", consumer_tag="c", no_ack=True)
        assert peer.to_canonical(without.encode(), Role.CLIENT) == expected
        with_one = attrs.evolve(without, arguments=Table.of({"x-priority": 1}))
        heard = peer.to_canonical(with_one.encode(), Role.CLIENT)
        assert heard == attrs.evolve(expected, arguments=Table.of({"x-priority": 1}))

    def test_is_said_as_the_broker_has_it(self) -> None:
        method = amqp.BasicConsume(queue="q")
        rabbit = interpreter_for(dialects.RABBITMQ_0_8).from_canonical(method)
        assert decode_method(rabbit, dialects.RABBITMQ_0_8) == v0_8.BasicConsume(queue="q")
        qpid = interpreter_for(dialects.QPID_0_8).from_canonical(method)
        assert qpid == rabbit + bytes(4)

    def test_arguments_are_not_left_out(self) -> None:
        method = amqp.BasicConsume(queue="q", arguments=Table.of({"x-priority": 1}))
        with pytest.raises(UnsupportedInVersion, match="with arguments"):
            interpreter_for(dialects.RABBITMQ_0_8).from_canonical(method)

    def test_a_filter_is_carried_as_arguments(self) -> None:
        method = v0_9.BasicConsume(queue="q", arguments=Table.of({"x-priority": 1}))
        heard = interpreter_for(dialects.LEGACY_CLIENT_0_9).to_canonical(method.encode(), Role.CLIENT)
        assert heard == amqp.BasicConsume(queue="q", arguments=Table.of({"x-priority": 1}))


class TestOtherClasses:
    """File, stream, dtx and tunnel are in 0-8 and 0-9; test in 0-8 only, message in 0-9 only."""

    def test_are_carried_between_those_that_have_them(self) -> None:
        old, new = interpreter_for(LEGACY_CLIENT), interpreter_for(dialects.LEGACY_CLIENT_0_9)
        consume = v0_8.FileConsume(queue="q", consumer_tag="c", no_ack=True)
        data = new.from_canonical(old.to_canonical(consume.encode(), Role.CLIENT))
        assert decode_method(data, dialects.LEGACY_CLIENT_0_9) == v0_9.FileConsume(
            queue="q", consumer_tag="c", no_ack=True
        )
        assert old.from_canonical(new.to_canonical(data, Role.CLIENT)) == consume.encode()

    def test_a_filter_is_not_left_out(self) -> None:
        consume = v0_9.StreamConsume(queue="q", filter=Table.of({"a": 1}))
        with pytest.raises(UnsupportedInVersion):
            interpreter_for(LEGACY_CLIENT).from_canonical(consume)

    @pytest.mark.parametrize(
        ("method", "peer"),
        [
            (v0_8.FileOpen("f", 1), RABBITMQ_0_9_1),
            (v0_9.DtxSelect(), RABBITMQ_0_9_1),
            (v0_8.TestInteger(1, 2, 3, 4, 5), dialects.LEGACY_CLIENT_0_9),
            (v0_9.MessageTransfer(), LEGACY_CLIENT),
            (v0_8.ExchangeBound("e"), RABBITMQ_0_9_1),
        ],
        ids=lambda value: getattr(value, "NAME", ""),
    )
    def test_are_refused_with_their_ids(self, method: Method, peer: Dialect) -> None:
        with pytest.raises(UnsupportedInVersion) as caught:
            interpreter_for(peer).from_canonical(method)
        assert (caught.value.code, caught.value.class_id) == (540, method.CLASS_ID)
        assert caught.value.method_id == method.METHOD_ID


@pytest.mark.parametrize(
    ("dialect", "code", "told"),
    [
        (LEGACY_CLIENT, 406, 406),  # RabbitMQ says it to clients of 0-8
        (LEGACY_CLIENT, 505, 505),
        (LEGACY_CLIENT, 310, 310),
        (dialects.LEGACY_CLIENT_0_9, 505, 503),
        (dialects.LEGACY_CLIENT_0_9, 310, 310),
        (RABBITMQ_0_9_1, 310, 312),
        (RABBITMQ_0_9_1, 505, 505),
        (RABBITMQ_0_9_1, 999, 999),
    ],
)
def test_reply_codes(dialect: Dialect, code: int, told: int) -> None:
    peer = interpreter_for(dialect)
    assert peer.reply_code(code) == told
    close = decode_method(peer.from_canonical(amqp.ChannelClose(code, "the text", 60, 40)), dialect)
    assert (close.reply_code, close.reply_text) == (told, "the text")  # type: ignore[attr-defined]
    back = decode_method(peer.from_canonical(amqp.BasicReturn(code, "t", "e", "k")), dialect)
    assert back.reply_code == told  # type: ignore[attr-defined]


class TestUndecided:
    """``AMQP 01 01 00 09``."""

    def test_what_both_have_decides_nothing(self) -> None:
        peer = UndecidedInterpreter(Interpreter09(), NATIVE)
        method = amqp.QueueDeclare(queue="q", arguments=Table.of({"a": 1}))
        assert peer.to_canonical(method.encode(), Role.CLIENT) == method
        peer.to_canonical(amqp.BasicConsume(queue="q").encode(), Role.CLIENT)
        peer.to_canonical(amqp.ConnectionStartOk(Table.of({"product": "x"})).encode(), Role.CLIENT)
        assert peer.decided is None
        assert not peer.is_native

    @pytest.mark.parametrize(
        "method",
        [
            amqp.AccessRequest("/data"),
            v0_9.ChannelPing(),
            v0_9.ChannelResume(b"id"),
            v0_9.BasicRecoverSync(),
            v0_9.FileOpen("f", 1),
            v0_9.MessageGet(),
        ],
        ids=lambda method: method.NAME,
    )
    def test_decides_for_0_9(self, method: Method) -> None:
        peer = UndecidedInterpreter(Interpreter09(), NATIVE)
        peer.to_canonical(method.encode(), Role.CLIENT)
        assert not peer.is_native
        with pytest.raises(ProtocolViolation) as caught:
            peer.to_canonical(amqp.ConfirmSelect().encode(), Role.CLIENT)
        assert (caught.value.code, caught.value.class_id, caught.value.method_id) == (540, 85, 10)
        assert peer.speaks(canonical.ChannelPong)

    @pytest.mark.parametrize(
        "method",
        [
            amqp.ExchangeBind(destination="a", source="b"),
            amqp.ConfirmSelect(),
            amqp.BasicRecover(),
            amqp.ConnectionStartOk(Table.of({"capabilities": {"basic.nack": True}})),
        ],
        ids=lambda method: method.NAME,
    )
    def test_decides_for_0_9_1(self, method: Method) -> None:
        peer = UndecidedInterpreter(Interpreter09(), NATIVE)
        assert peer.to_canonical(method.encode(), Role.CLIENT) == method
        assert peer.is_native
        with pytest.raises(ProtocolViolation) as caught:
            peer.to_canonical(v0_9.ChannelPing().encode(), Role.CLIENT)
        assert (caught.value.code, caught.value.class_id, caught.value.method_id) == (540, 20, 60)

    def test_is_told_what_both_have(self) -> None:
        peer = UndecidedInterpreter(Interpreter09(), NATIVE)
        both = amqp.QueueDeclareOk("q", 1, 2)
        assert peer.from_canonical(both) == both.encode()
        for method in (amqp.ConnectionBlocked("x"), canonical.ConnectionRedirect(), canonical.ChannelPing()):
            with pytest.raises(UnsupportedInVersion):
                peer.from_canonical(method)
        assert peer.reply_code(505) == 503
        assert peer.reply_code(310) == 312

    def test_reads_only_what_old_clients_read(self) -> None:
        peer = UndecidedInterpreter(Interpreter09(), NATIVE)
        header = ContentHeader(60, 0, amqp.BasicProperties(headers=Table.of({"n": 2**40})))
        again = peer.header_to_canonical(peer.header_from_canonical(header)).properties
        assert isinstance(again, amqp.BasicProperties)
        assert again.headers == Table.of({"n": str(2**40)})
