"""Cases of AMQP 0-10 on the embedded broker, and on one that breaks rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
import trio

from amqpgate.conformance.case import CaseResult
from amqpgate.conformance.cases import SECTIONS
from amqpgate.conformance.dialling import PeerLogin
from amqpgate.conformance.run import Plan, play, product, selected
from amqpgate.wire.generated import v0_10 as amqp
from tests.support.embedded import embedded_broker
from tests.support.meddler import Meddler

#: Those whose answer is silence take all of the patience, and those about heartbeats take seconds.
SLOW = {
    "session.attachment.command",
    "message.reject.alternate-exchange",
    "connection.tune-ok.heartbeat.kept",
    "connection.tune-ok.heartbeat.missed",
    "connection.heartbeat.sent",
}

#: Where the embedded broker does otherwise than the standard and qpidd: what it lacks (expiry, dead letters,
#: other connections' subscriptions and sessions), and what 0-9-1 lacks.
LACKS = {
    "session.attach.one-transport-per-session",
    "queue.declare.alternate-exchange.deleted",
    "message.delivery-properties.ttl.expired",
    "message.subscribe.exclusive.in-use",
    "message.subscribe.exclusive.late",
    "message.subscribe.acquire-mode.not-acquired",
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with embedded_broker() as (_, port):
        yield port


def login(port: int) -> PeerLogin:
    return PeerLogin("127.0.0.1", port, "guest", "guest", "/")


def played(port: int, *wanted: str) -> list[CaseResult]:
    cases = [one for one in selected(SECTIONS, ["0-10"], wanted) if wanted or one[0].id not in SLOW]
    results, _ = trio.run(play, Plan(target=login(port), cases=cases, patience=15), lambda _: None)
    return results


def deviating(results: Sequence[CaseResult], *strengths: str) -> dict[str, str]:
    return {
        one.case.id: one.said
        for one in results
        if one.verdict == "deviates" and one.case.strength in strengths
    }


@pytest.mark.timeout(180)
def test_the_embedded_broker(port: int) -> None:
    results = played(port)
    assert len(results) >= 480
    assert deviating(results, "must").keys() == LACKS
    assert {one.said for one in results if one.verdict == "untestable"} <= {
        "all deliveries are acquired",
        "it grants no timeout",
        "it has no distributed transactions",
        "it resumes no messages",
        "max-frame-size has no limit",
        "heartbeat-max has no limit",
    }


def test_who_answers(port: int) -> None:
    assert "embedded" in trio.run(product, login(port), 15)


def _exceptions(code: int, other: int) -> Callable[[bytes], bytes]:
    """execution.exception with another code."""
    # Class, code, and the size of the session header.
    mark = bytes((amqp.ExecutionException.CLASS_CODE, amqp.ExecutionException.CODE, 1))
    before, after = code.to_bytes(2, "big"), other.to_bytes(2, "big")

    def change(data: bytes) -> bytes:
        head, found, rest = data.partition(mark)
        return head + found + rest.replace(before, after, 1)

    return change


PLANTED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "404 becomes 403": (_exceptions(404, 403), "queue.delete.queue-exists"),
    "bodies are in capitals": (lambda data: data.replace(b"body", b"BODY"), "segments.body.frames"),
    "another session is attached": (
        lambda data: data.replace(b"amqpgate-conformance", b"amqpgate-Conformance"),
        "session.attach.answered",
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_fault_is_found(port: int, what: str) -> None:
    change, path = PLANTED[what]
    assert not deviating(played(port, path), "must")
    meddler = Meddler(port, change)
    try:
        assert deviating(played(meddler.port, path), "must").keys() == {path}
    finally:
        meddler.close()
