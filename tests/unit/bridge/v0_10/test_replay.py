"""What real clients said to qpidd, said to the embedded broker through a translator: they hear the same."""

from __future__ import annotations

from collections import Counter

from amqpgate.protocol.methods import Role
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.codec import decode_struct32
from tests.support.said_0_10 import Sent, conversations, sent_by
from tests.unit.bridge.v0_10.lab import broker_state, replay

#: What is said when it suits, or because of how qpidd logs in and asks.
APART = (
    amqp10.ConnectionSecure,
    amqp10.SessionCompleted,
    amqp10.SessionFlush,
    amqp10.SessionTimeout,
)


def kinds(sent: list[Sent]) -> Counter[str]:
    """How often what was said."""
    return Counter((one.command or one.control).NAME for one in sent if not isinstance(one.control, APART))


def bodies(sent: list[Sent]) -> list[bytes]:
    return [one.body for one in sent if isinstance(one.command, amqp10.MessageTransfer)]


def test_cpp_clients_send_and_receive() -> None:
    state = broker_state()
    for conversation in conversations("cpp"):
        heard, theirs = replay(conversation, state).heard, sent_by(Role.SERVER, conversation)
        assert kinds(heard) == kinds(theirs)
        assert bodies(heard) == bodies(theirs)


def test_jms_client_comes_as_far_as_its_browser() -> None:
    [conversation] = conversations("jms")
    heard, theirs = replay(conversation).heard, sent_by(Role.SERVER, conversation)
    more = kinds(heard)
    more.subtract(kinds(theirs))
    assert +more == Counter({"execution.exception": 1, "session.detach": 1})
    [refused] = [one.command for one in heard if isinstance(one.command, amqp10.ExecutionException)]
    assert (refused.error_code, refused.description) == (540, b"browsing")
    assert bodies(heard) == bodies(theirs)


def test_low_level_client_hears_results_and_its_exception() -> None:
    [conversation] = conversations("python-low-level")
    heard, theirs = replay(conversation).heard, sent_by(Role.SERVER, conversation)
    assert kinds(heard) == kinds(theirs)
    assert bodies(heard) == bodies(theirs)
    exceptions, results = (
        [[one.command for one in sent if isinstance(one.command, kind)] for sent in (heard, theirs)]
        for kind in (amqp10.ExecutionException, amqp10.ExecutionResult)
    )
    for mine, real in zip(*exceptions, strict=True):
        assert (mine.error_code, mine.command_id) == (real.error_code, real.command_id)
    for mine, real in zip(*results, strict=True):
        assert mine.command_id == real.command_id
        assert type(decode_struct32(mine.value)) is type(decode_struct32(real.value))


#: Of the tests of the messaging API, those that need what 0-9-1 or the embedded broker lack: browsing,
#: dead letters, and what another connection did at the same moment.
BY_NATURE = frozenset({46, 125})


def test_messaging_api() -> None:
    state = broker_state()
    otherwise = set()
    for number, conversation in enumerate(conversations("messaging")):
        heard, theirs = replay(conversation, state).heard, sent_by(Role.SERVER, conversation)
        refused = [one.command for one in heard if isinstance(one.command, amqp10.ExecutionException)]
        if [one.description for one in refused] == [b"browsing"]:
            continue
        if kinds(heard) != kinds(theirs):
            otherwise.add(number)
    assert otherwise == BY_NATURE
