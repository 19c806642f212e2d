"""The kept corpus and every crash that there was, replayed; and that the targets can fail at all.

A crash that is new fails here until its cause is mended; the file stays.
"""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from amqpgate.admin import plain
from amqpgate.bridge.v0_10.frames import CanonicalWriter
from amqpgate.bridge.v0_10.link import BrokerLink
from amqpgate.bridge.v0_10.native import channels
from amqpgate.bridge.v0_10.native.build import OriginalQueue
from amqpgate.bridge.v0_10.publishing import Incoming, Publisher
from amqpgate.gateway.session import claim_delivery
from amqpgate.policy.engine import verdicts
from amqpgate.protocol import proxy_header
from amqpgate.protocol.frames import FRAME_OVERHEAD
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.generated.v0_9_1 import BasicProperties
from amqpgate.wire.generated.v0_10 import MessageTransfer
from amqpgate.wire.method import Method
from tests.fuzz import store
from tests.fuzz.mutation import mutated, smaller

NAMES = store.names()
ROOT = Path(__file__).parents[2]


def kept(name: str) -> list[tuple[str, bytes]]:
    """Of one target, with the names of their files."""
    folders = [store.CORPUS / name, store.CRASHES / name]
    paths = [path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]
    return [(str(path.relative_to(store.HERE)), path.read_bytes()) for path in paths]


def replay(name: str, every: int = 1) -> None:
    """What a target begins with, and what is kept, or a part of it; the first that fails is named."""
    target = store.load(name)
    seeds = [(f"seed {number}", data[: target.MOST]) for number, data in enumerate(target.seeds())]
    assert seeds
    for path, data in (seeds + kept(name))[::every]:
        try:
            target.check(data)
        except (Exception, BaseExceptionGroup) as error:
            raise AssertionError(f"{path} fails") from error


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_passes(name: str) -> None:
    if name == "rows" and importlib.util.find_spec("pyarrow") is None:
        pytest.skip("pyarrow is missing, with which audit records are written as Parquet")
    replay(name)


def test_some_of_it_passes_with_the_plain_engine() -> None:
    """In a process of its own, which never had the compiled one."""
    command = [sys.executable, "-m", "tests.fuzz.test_regressions"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_the_corpus_is_small() -> None:
    sizes = {name: sum(len(data) for _, data in kept(name)) for name in NAMES}
    assert sum(sizes.values()) < 400 * 1024, sizes


# A target that finds nothing must not be one that cannot.


def test_a_wrong_proxy_header_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_header, "V1_MAX", 40)
    with pytest.raises(AssertionError, match="fails"):
        replay("proxy")


def test_a_request_that_is_read_in_another_way_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "_length", lambda _: 0)
    with pytest.raises(AssertionError, match="fails"):
        replay("requests")


def test_a_field_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = MessageTransfer.encode

    def forgets(self: MessageTransfer, sync: bool = False) -> bytes:
        return encode(attrs.evolve(self, accept_mode=None), sync)

    monkeypatch.setattr(MessageTransfer, "encode", forgets)
    with pytest.raises(AssertionError, match="fails"):
        replay("segments")


def test_what_is_said_after_a_close_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AttachedSession, "tell", lambda *_: None)
    monkeypatch.setattr(AttachedSession, "lose", lambda *_: None)
    with pytest.raises(AssertionError, match="fails"):
        replay("attached")


def test_what_is_denied_and_leaves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Releasing(OriginalQueue):
        def drop(self) -> None:
            while self.waiting:
                self.release()

    monkeypatch.setattr(channels, "OriginalQueue", Releasing)
    with pytest.raises(AssertionError, match="fails"):
        replay("relayed")


def test_a_transfer_that_is_complete_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    publish = Publisher.publish

    def hasty(self: Publisher, transfer: Incoming, *, in_transaction: bool) -> None:
        publish(self, transfer, in_transaction=in_transaction)
        self._complete([transfer])

    monkeypatch.setattr(Publisher, "publish", hasty)
    with pytest.raises(AssertionError, match="fails"):
        replay("translated")


def test_what_a_session_leaves_behind_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BrokerLink, "unqueue", lambda *_: None)
    with pytest.raises(AssertionError, match="fails"):
        replay("translated")


def test_a_message_that_is_cut_short_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    message = CanonicalWriter.message

    def cuts(
        self: CanonicalWriter, channel: int, method: Method, properties: BasicProperties, body: bytes
    ) -> None:
        message(self, channel, method, properties, body)
        if body:
            # The last frame of the body, which small messages have with what is before it.
            last = self._frames.pop()
            self._frames.append(last[: -len(body) - FRAME_OVERHEAD])

    monkeypatch.setattr(CanonicalWriter, "message", cuts)
    with pytest.raises(AssertionError, match="fails"):
        replay("brokers_0_10")


def test_a_wrong_verdict_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = verdicts.SessionPolicy.decide

    def wrong(self: verdicts.SessionPolicy, operation: verdicts.Operation) -> verdicts.Verdict:
        return verdicts.UNRESTRICTED if operation.name == "queue.bind" else decide(self, operation)

    monkeypatch.setattr(verdicts.SessionPolicy, "decide", wrong)
    with pytest.raises(AssertionError, match="fails"):
        replay("policies")


def test_what_a_policy_denies_is_found_at_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts.SessionPolicy, "unrestricted", property(lambda _self: True))
    monkeypatch.setattr(verdicts.SessionPolicy, "decide", lambda *_: verdicts.UNRESTRICTED)
    monkeypatch.setattr(verdicts.SessionPolicy, "admit", lambda *_: verdicts.Admission(verdicts.UNRESTRICTED))
    with pytest.raises(AssertionError, match="fails"):
        replay("sessions")


def test_what_is_rejected_on_a_closed_channel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_delivery, "closes", lambda *_: False)
    with pytest.raises(AssertionError, match="fails"):
        replay("compatible")


def test_an_input_is_made_smaller() -> None:
    assert smaller(b"abcXdefYgh", lambda data: b"X" in data and b"Y" in data) == b"XY"


def test_mutations_keep_to_the_size() -> None:
    chance = random.Random(1)
    made = {mutated(chance, [b"abc" * 40, b"\0"], [b"token"], 100) for _ in range(200)}
    assert len(made) > 100
    assert max(map(len, made)) <= 100


if __name__ == "__main__":
    store.use_plain_engine()
    for each in store.BOTH_ENGINES:
        replay(each, every=3)
