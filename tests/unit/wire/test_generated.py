"""Facts about the three versions that the specification files alone get wrong or that people mix up."""

from __future__ import annotations

from types import ModuleType

import attrs
import pytest

from amqpgate.errors import CHANNEL_SCOPED, REPLY_NAMES
from amqpgate.wire.generated import v0_8, v0_9, v0_9_1
from amqpgate.wire.method import Method

MODULES = pytest.mark.parametrize("module", [v0_8, v0_9, v0_9_1], ids=["0-8", "0-9", "0-9-1"])


def ids(method: type[Method]) -> tuple[int, int]:
    return method.CLASS_ID, method.METHOD_ID


def test_close_and_what_took_its_place() -> None:
    assert ids(v0_8.ConnectionClose) == (10, 60)
    assert ids(v0_8.ConnectionCloseOk) == (10, 61)
    for module in (v0_9, v0_9_1):
        assert ids(module.ConnectionClose) == (10, 50)
        assert ids(module.ConnectionCloseOk) == (10, 51)
    assert ids(v0_9_1.ConnectionBlocked) == (10, 60)
    assert ids(v0_9_1.ConnectionUnblocked) == (10, 61)
    assert ids(v0_9_1.ConnectionUpdateSecret) == (10, 70)
    assert ids(v0_9_1.ConnectionUpdateSecretOk) == (10, 71)
    assert ids(v0_8.ConnectionRedirect) == (10, 50)
    assert ids(v0_9.ConnectionRedirect) == (10, 42)


def test_methods_of_rabbitmq() -> None:
    assert ids(v0_9_1.ExchangeUnbindOk) == (40, 51)
    assert ids(v0_9_1.BasicNack) == (60, 120)
    assert ids(v0_9_1.ConfirmSelect) == (85, 10)
    assert ids(v0_9_1.AccessRequest) == (30, 10)
    assert ids(v0_8.QueueUnbind) == (50, 50)
    assert v0_8.QueueUnbind.EXTENSION == "rabbitmq"


@pytest.mark.parametrize("module", [v0_8, v0_9_1])
def test_recover_is_called_alike(module: ModuleType) -> None:
    assert ids(module.BasicRecoverAsync) == (60, 100)
    assert ids(module.BasicRecover) == (60, 110)
    assert ids(module.BasicRecoverOk) == (60, 111)
    assert module.BasicRecover.REPLIES == (module.BasicRecoverOk.INDEX,)


def test_recover_of_qpid() -> None:
    assert ids(v0_9.BasicRecoverSync) == (60, 102)
    assert ids(v0_9.BasicRecoverSyncOk) == (60, 101)
    assert v0_8.BasicRecoverAsync.REPLIES == (v0_8.BasicRecoverSyncOk.INDEX,)


def test_the_old_classes_are_there() -> None:
    assert {method.CLASS_ID for method in v0_8.METHODS.values()} == {
        10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120,
    }  # fmt: skip
    assert v0_8.METHODS[120 << 16 | 10].NAME == "test.integer"
    assert v0_9.METHODS[120 << 16 | 10].NAME == "message.transfer"
    assert ids(v0_9.ChannelResume) == (20, 50)
    assert ids(v0_8.ChannelAlert) == (20, 30)


def test_channel_open_ok_grew() -> None:
    assert v0_8.ChannelOpenOk().encode() == b"\x00\x14\x00\x0b"
    assert v0_9.ChannelOpenOk().encode() == b"\x00\x14\x00\x0b\x00\x00\x00\x00"
    assert v0_9_1.ChannelOpenOk().encode() == b"\x00\x14\x00\x0b\x00\x00\x00\x00"


@MODULES
def test_reply_codes(module: ModuleType) -> None:
    for code, reply in module.REPLY_CODES.items():
        assert reply.code == code
        assert reply.name.upper().replace("-", "_") == REPLY_NAMES[code]
        assert (reply.scope == "channel") == (code in CHANNEL_SCOPED)


def test_reply_codes_per_version() -> None:
    everywhere = {311, 320, 402, 403, 404, 405, 501, 502, 503, 504, 506, 530, 540, 541}
    assert set(v0_8.REPLY_CODES) == everywhere | {310, 312, 313, 406, 505}
    assert set(v0_9.REPLY_CODES) == everywhere | {310, 312, 313, 406}
    assert set(v0_9_1.REPLY_CODES) == everywhere | {312, 313, 406, 505}


@MODULES
def test_constants(module: ModuleType) -> None:
    assert (module.FRAME_METHOD, module.FRAME_HEADER, module.FRAME_BODY) == (1, 2, 3)
    assert (module.FRAME_HEARTBEAT, module.FRAME_END, module.FRAME_MIN_SIZE) == (8, 206, 4096)
    assert module.NOT_FOUND == 404
    assert hasattr(module, "FRAME_TRACE") == (module is not v0_9_1)


@MODULES
def test_questions_know_their_answers(module: ModuleType) -> None:
    by_name = {method.NAME: method for method in module.METHODS.values()}
    for method in module.METHODS.values():
        for reply in method.REPLIES:
            assert reply in module.METHODS
            assert reply >> 16 == method.CLASS_ID
        if method.NAME.endswith("-ok") and method.SYNC and method.NAME != "file.open-ok":
            asked = method.NAME.removesuffix("-ok")
            asked = (
                {"basic.recover-sync": "basic.recover-async"}.get(asked, asked) if module is v0_8 else asked
            )
            assert method.INDEX in by_name[asked].REPLIES, method.NAME


def test_who_carries_content() -> None:
    carriers = {method.NAME for method in v0_9_1.METHODS.values() if method.CONTENT}
    assert carriers == {"basic.publish", "basic.return", "basic.deliver", "basic.get-ok"}


#: What the older version calls it, and 0-9-1.
RENAMED = {
    "ticket": "reserved_1",
    "capabilities": "reserved_1",
    "insist": "reserved_2",
    "known_hosts": "reserved_1",
    "out_of_band": "reserved_1",
    "channel_id": "reserved_1",
    "cluster_id": "reserved_1",
}
#: Methods whose arguments did change.
CHANGED = {(v0_8, "channel.open-ok"), (v0_8, "access.request-ok"), (v0_9, "access.request-ok")}


@pytest.mark.parametrize("module", [v0_8, v0_9], ids=["0-8", "0-9"])
def test_the_same_field_has_the_same_name_in_every_version(module: ModuleType) -> None:
    newest = {method.NAME: method for method in v0_9_1.METHODS.values()}
    compared = 0
    for method in module.METHODS.values():
        if method.NAME not in newest or (module, method.NAME) in CHANGED:
            continue
        old = [RENAMED.get(field.name, field.name) for field in attrs.fields(method)]
        assert old == [field.name for field in attrs.fields(newest[method.NAME])], method.NAME
        compared += 1
    assert compared > 40


def test_properties_have_the_same_names() -> None:
    names = [field.name for field in attrs.fields(v0_9_1.BasicProperties)]
    assert names[-1] == "reserved"
    for module in (v0_8, v0_9):
        assert [field.name for field in attrs.fields(module.BasicProperties)] == [*names[:-1], "cluster_id"]


@MODULES
def test_methods_have_slots_and_take_either_form(module: ModuleType) -> None:
    publish = module.BasicPublish(0, "x", routing_key="k")
    assert publish == module.BasicPublish(exchange="x", routing_key="k")
    assert hash(publish) == hash(module.BasicPublish(exchange="x", routing_key="k"))
    assert not hasattr(publish, "__dict__")


def test_the_base_class_is_no_method() -> None:
    with pytest.raises(TypeError, match="no generated method"):
        Method().encode()
    with pytest.raises(TypeError, match="no generated method"):
        Method.decode(b"", 0, 0)


def test_methods_are_equal_by_their_fields_and_shown_with_them() -> None:
    """As attrs has it, which makes none of it for them."""
    one, same = v0_9_1.BasicGet(queue="q", no_ack=True), v0_9_1.BasicGet(queue="q", no_ack=True)
    assert one == same
    assert hash(one) == hash(same)
    for field in attrs.fields(v0_9_1.BasicGet):
        changed = {"str": "other", "int": 7, "bool": False}[str(field.type)]
        assert one != attrs.evolve(one, **{field.name: changed}), field.name
    # Of the same fields, and another version.
    assert one != v0_8.BasicGet(queue="q", no_ack=True)
    assert v0_9_1.ChannelCloseOk() != v0_9_1.ConnectionCloseOk()
    assert repr(one) == "BasicGet(reserved_1=0, queue='q', no_ack=True)"
    assert repr(v0_9_1.ChannelCloseOk()) == "ChannelCloseOk()"
    assert v0_9_1.BasicProperties(priority=1) == v0_9_1.BasicProperties(priority=1)
    assert v0_9_1.BasicProperties(priority=1) != v0_9_1.BasicProperties()
    secret = v0_9_1.ConnectionSecureOk(response=b"secret")
    assert repr(secret) == "ConnectionSecureOk()"
    assert secret != v0_9_1.ConnectionSecureOk(response=b"other")
    assert "__eq__" not in vars(v0_9_1.BasicGet)
