"""The benchmark itself: do its tools count right, and do its figures say what was measured?"""

from __future__ import annotations

import socket
import struct
from pathlib import Path

import attrs
import pytest

from amqpgate.policy import Operation, Principal, load_folder
from tests.support.ports import free_port

from .build import Tools
from .cases import BY_NAME, CASES, FULL
from .figures import Samples, Spread, cpu
from .report import Report
from .samples import Latency, Memory, Sample, Storm
from .tools import Sink, ToolError, load, load_once

HERE = Path(__file__).resolve().parent


# -- the tools ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 16, 4096, 300_000])
@pytest.mark.parametrize("connections", [1, 3])
def test_what_is_published_arrives(tools: Tools, sink: Sink, size: int, connections: int) -> None:
    options = (
        "--size",
        str(size),
        "--connections",
        str(connections),
        "--messages",
        "300",
        "--warmup",
        "0.01",
    )
    with load(tools.load, "publish", sink.address, *options, "--keys", "7", "--seconds", "30") as tool:
        assert tool.hear() == "ready"
        before = sink.counts()
        tool.say("go")
        result = tool.hear_json()
        counts = sink.counts().since(before)
        tool.finish()
    assert result["messages"] == 300
    assert (counts.published, counts.byte_count, counts.errors) == (300, 300 * size, 0)


@pytest.mark.parametrize("size", [16, 300_000])
def test_what_is_delivered_is_counted(tools: Tools, sink: Sink, size: int) -> None:
    with load(tools.load, "deliver", sink.address, "--size", str(size), "--seconds", "0.05") as tool:
        assert tool.hear() == "ready"
        before = sink.counts()
        tool.say("go")
        result = tool.hear_json()
        counts = sink.counts().since(before)
        tool.finish()
    assert result["messages"] == counts.delivered > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("confirm", "--window", "1", "--messages", "50"),
        ("confirm", "--window", "100", "--messages", "5000"),
        ("openloop", "--connections", "5", "--rate", "1000", "--messages", "100"),
        ("churn", "--messages", "5"),
    ],
)
def test_every_message_has_a_latency(tools: Tools, sink: Sink, arguments: tuple[str, ...]) -> None:
    mode, *options = arguments
    result = load_once(tools.load, mode, sink.address, *options, "--seconds", "30", "--warmup", "0.01")
    latency = result["latency"]
    assert isinstance(latency, dict)
    assert latency["count"] == result["messages"] == int(options[options.index("--messages") + 1])
    assert 0 < latency["p50"] <= latency["p99"] <= latency["p999"] <= latency["max"] * 1.01


def test_idle_connections_are_held(tools: Tools, sink: Sink) -> None:
    with load(tools.load, "idle", sink.address, "--connections", "20") as tool:
        assert tool.hear() == "ready"
        for count in (5, 20):
            tool.say(f"open {count}")
            tool.hear()
            assert sink.counts().connections == count
        tool.say("publish")
        tool.hear()
        assert sink.counts().published == 20
        tool.finish()


def test_those_who_stay_stop_when_they_are_told(tools: Tools, sink: Sink) -> None:
    options = ("--rate", "1000", "--warmup", "0", "--seconds", "60", "--until-line")
    with load(tools.load, "openloop", sink.address, *options) as tool:
        assert tool.hear() == "ready"
        tool.say("go")
        while not sink.counts().published:
            pass
        tool.say("enough")
        result = tool.hear_json(timeout=30)
        tool.finish()
    assert result["messages"] == sink.counts().published > 0


def test_a_peer_that_is_not_there_is_named(tools: Tools) -> None:
    port = free_port()
    with pytest.raises(ToolError, match=f"cannot connect to 127.0.0.1:{port}"):
        load_once(tools.load, "publish", f"127.0.0.1:{port}")


def _frame(kind: int, payload: bytes, end: int = 0xCE) -> bytes:
    return struct.pack(">BHI", kind, 1, len(payload)) + payload + bytes([end])


def _message(*, method_end: int = 0xCE, header_end: int = 0xCE, body_end: int = 0xCE, body: int = 4) -> bytes:
    publish = struct.pack(">HHH", 60, 40, 0) + b"\x01x\x01k\x00"
    header = struct.pack(">HHQH", 60, 0, body, 0)
    return _frame(1, publish, method_end) + _frame(2, header, header_end) + _frame(3, b"body", body_end)


@pytest.mark.parametrize(
    "broken",
    [
        _message(method_end=0),
        _message(header_end=0),
        _message(body_end=0),
        _message(body=3),
        _message(body=5),
        _message().replace(b"\x03\x00\x01", b"\x03\x00\x02"),
        _message().replace(b"\x02\x00\x01", b"\x02\x00\x02"),
        _message()[:-12],
        _message().replace(b"\x00\x3c\x00\x28", b"\x00\x3c\x00\x29"),
        b"\x09" + _message()[1:],
    ],
    ids=[
        "method end",
        "header end",
        "body end",
        "long",
        "short",
        "body elsewhere",
        "header elsewhere",
        "no body",
        "method",
        "type",
    ],
)
def test_the_sink_notices_broken_frames(sink: Sink, broken: bytes) -> None:
    """Also among many messages of the same shape, over which it walks with giant strides."""
    with socket.create_connection(("127.0.0.1", sink.port)) as client:
        client.sendall(b"AMQP\x00\x00\x09\x01" + 5 * _message() + broken + 2 * _message())
        client.settimeout(10)
        while client.recv(4096):
            pass
    assert sink.counts().errors == 1
    # "body short" only shows when the next message begins; none of them is a message.
    assert sink.counts().published == 5


# -- the figures -------------------------------------------------------------------------------------------


def test_quartiles_lie_within_the_values() -> None:
    assert Spread.of([3.0, 1.0, 2.0, 5.0, 4.0]) == Spread(3.0, 2.0, 4.0, 5)
    assert Spread.of([2.0]) == Spread(2.0, 2.0, 2.0, 1)
    assert Spread.of([]) is None


def _sample(case: str, target: str, number: int, ns: float, **more: object) -> Sample:
    sample = Sample(case, target, number, messages=100, seconds=1.0, cpu_ns=int(ns * 100))
    return attrs.evolve(sample, **more)


def test_targets_are_compared_within_a_round() -> None:
    """The machine was three times as slow in the second round, for both."""
    samples = Samples(
        [
            _sample("publish-16", "haproxy", 0, 100),
            _sample("publish-16", "amqpgate", 0, 120),
            _sample("publish-16", "haproxy", 1, 300),
            _sample("publish-16", "amqpgate", 1, 360),
            # A round that HAProxy missed compares with nothing.
            _sample("publish-16", "amqpgate", 2, 9999),
        ]
    )
    ratio = samples.compare("publish-16", "amqpgate", cpu, "haproxy")
    assert ratio == Spread(1.2, 1.2, 1.2, 2)
    (verdict,) = samples.verdicts()
    assert verdict.passed
    assert verdict.by == pytest.approx(1 - 1.2 / 1.3)


def _waited(p50: float, p99: float) -> Latency:
    return Latency(count=100, p50=p50, p90=p50, p99=p99, p999=p99, max=p99)


def _storm(*, one_by_one: int, quiet: float, beside: float) -> Storm:
    return Storm(one_by_one, _waited(1, quiet), _waited(1, 1), _waited(1, beside), again=3, pss=(1, 2, 3))


def test_every_kind_of_mark_is_judged() -> None:
    samples = Samples(
        [
            _sample("publish-16", "amqpgate", 0, 100),
            _sample("keys-2000", "amqpgate", 0, 250),
            _sample("pingpong", "direct", 0, 0, latency=_waited(10, 20)),
            _sample("pingpong", "haproxy", 0, 1000, latency=_waited(20, 30)),
            _sample("pingpong", "amqpgate", 0, 900, latency=_waited(36, 29)),
            _sample("idle", "amqpgate", 0, 0, memory=Memory({0: 0, 1000: 2 << 20, 5000: 20 << 20}, 0, 0.0)),
            _sample("churn", "haproxy", 0, 200_000),
            _sample("churn", "amqpgate", 0, 620_000),
            _sample("storm", "amqpgate", 0, 1300, storm=_storm(one_by_one=100_000, quiet=40, beside=61)),
            _sample("start", "amqpgate", 0, 0, seconds=0.6),
            _sample("rabbitmq-e2e", "direct", 0, 0, seconds=1.0),
            _sample("rabbitmq-e2e", "amqpgate", 0, 0, seconds=1.1),
        ]
    )
    judged = {(one.case.name, one.mark.measure, one.mark.against): one.passed for one in samples.verdicts()}
    assert judged == {
        ("publish-16", "cpu", "haproxy"): None,
        ("keys-2000", "cpu-of-case", "publish-16"): False,
        ("pingpong", "cpu", "haproxy"): True,
        ("pingpong", "p50", "direct"): False,
        ("pingpong", "p99", "haproxy"): True,
        ("churn", "cpu", "haproxy"): False,
        ("churn", "per-core", ""): True,
        ("storm", "cpu-one-by-one", ""): True,
        ("storm", "p99-quiet", ""): False,
        ("start", "seconds", ""): False,
        ("idle", "memory", "1000"): True,
        ("idle", "memory", "5000"): False,
        ("rabbitmq-e2e", "throughput", "direct"): False,
    }
    text = Report({}, {"amqpgate": ""}, samples, ["a | b\nc"], quick=True).markdown()
    assert "| publish, 16 B, 2,000 routing keys | CPU ≤ 2 x publish, 16 B |" in text
    assert "**miss by 25%**" in text
    assert "**not measured**" in text
    assert "| ≥ 1,600 a second of CPU | 1,613 (1,613 to 1,613) | pass, 0.8% to spare |" in text
    assert "| ≤ 0.5 s | 0.600 s (0.600 s to 0.600 s) | **miss by 20%** |" in text
    assert "A quick run" in text
    assert "- a | b c" in text


def test_the_marks_are_those_that_were_set() -> None:
    limits = {name: case.marks[0].limit for name, case in BY_NAME.items() if case.marks}
    assert limits == {
        "publish-16": 1.3,
        "publish-256": 0.95,
        "publish-4k": 0.7,
        "publish-64k": 0.7,
        "deliver-16": 1.3,
        "deliver-256": 0.95,
        "deliver-4k": 0.7,
        "deliver-64k": 0.7,
        "keys-2000": 2.0,
        "publish-16-0-8": 1.1,
        "publish-256-pooled": 1.5,
        "publish-16-audited": 1.03,
        "deliver-16-audited": 1.03,
        "publish-16-profile": 1.2,
        "deliver-16-profile": 1.2,
        "publish-16-headers-profile": 1.5,
        "deliver-16-headers-profile": 1.5,
        "pingpong": 1.0,
        "openloop": 1.0,
        "pingpong-50": 1.0,
        "churn": 3.0,
        "churn-tls": 1.5,
        "churn-tls-resumed": 1.5,
        "storm": 1.3,
        "start": 0.5,
        "tls-publish-4k": 1.3,
        "tls-deliver-4k": 1.3,
        "idle": 3.0,
        "rabbitmq-e2e": 0.95,
        "rabbitmq-confirm": 0.95,
    }
    assert FULL.rounds >= 7
    assert len(BY_NAME) == len(CASES)


def test_the_policies_allow_what_is_measured_and_no_more() -> None:
    policies = load_folder(HERE / "policies")
    guest = Principal("guest", "/")

    def allowed(name: str, **attributes: str) -> bool:
        return policies.decide(Operation(guest, name, **attributes)).allowed

    assert allowed("basic.publish", exchange="bench.exchange", routing_key="bench.key.00000")
    assert allowed("basic.consume", queue="bench.deliver.16")
    assert allowed(
        "queue.bind", queue="bench.queue", exchange="bench.exchange", routing_key="bench.key.00000"
    )
    assert not allowed("basic.publish", exchange="bench.other", routing_key="bench.key.00000")
    assert not allowed("queue.declare", queue="bench.forbidden")
