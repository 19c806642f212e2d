"""Taps of real traffic: what passes is what passes without them, and what they say of it is exact."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import attrs
import pika
import pika.exceptions
import pytest

from tests.interop.brokers import running, value
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.missing import missing
from tests.support.processes import Child
from tests.support.rabbitmq import RabbitMQ

CONFIG = """
workers: {workers}
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}"{more}}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
policies: {policies}
limits: {{drainTimeout: 2s}}
"""
POLICIES = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: access}
spec:
  subjects: [{user: guest}]
  onDeny: {publish: nack}
  rules:
  - {id: all, effect: allow, operations: ["*"], exchange: {prefix: ""}}
  - {id: queues, effect: allow, operations: ["*"], queue: {prefix: ""}}
  - {id: secret, effect: deny, operations: [basic.publish], routingKey: secret}
---
apiVersion: amqpgate.io/v1alpha1
kind: AuditPolicy
metadata: {name: audit}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: shown, operations: [basic.publish], routingKey: shown, level: body, maxBodyBytes: 1Mi}
"""
#: As large as one frame's payload at most, and one more; and many frames.
SIZES = (0, 1, 16, 131064, 131065, 3 << 20)


@attrs.define
class Tapped:
    """The answer to GET /tap."""

    answer: http.client.HTTPResponse
    lines: list[dict[str, object]] = attrs.field(factory=list)

    def next(self) -> dict[str, object]:
        line: dict[str, object] = json.loads(self.answer.readline())
        self.lines.append(line)
        return line

    def rest(self) -> list[dict[str, object]]:
        """Until it ends."""
        while self.next()["event"] != "end":
            pass
        assert self.answer.read() == b""
        return self.lines

    def until(self, matched: int) -> int:
        """Until so many have matched, and all that was shown of them is here: how many that were."""
        counts: dict[object, dict[str, object]] = {}
        while True:
            line = self.next()
            if line["event"] == "counts":
                counts[line["worker"]] = line
                if sum(int(str(one["matched"])) for one in counts.values()) >= matched:
                    break
        assert sum(int(str(one["matched"])) for one in counts.values()) == matched
        assert sum(int(str(one["shown"])) for one in counts.values()) == len(self.operations)
        return len(self.operations)

    @property
    def operations(self) -> list[dict[str, object]]:
        return [line for line in self.lines if line["event"] == "operation"]


@contextlib.contextmanager
def tapping(gateway: Gateway, workers: int = 1, **query: object) -> Iterator[Tapped]:
    """A tap that every worker has begun."""
    connection = http.client.HTTPConnection(gateway.host, gateway.admin_port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", f"/tap?{urlencode(query)}", headers={"X-Amqpgate": "1"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        tapped = Tapped(answer)
        begun = 0
        while begun < workers:
            begun += tapped.next()["event"] == "begun"
        yield tapped


@pytest.fixture(
    params=["", pytest.param(", connections: pooled", marks=pytest.mark.slow)], ids=["own", "pooled"]
)
def gateway(rabbitmq: RabbitMQ, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Gateway]:
    with started(rabbitmq, tmp_path, more=request.param) as gateway:
        yield gateway


@contextlib.contextmanager
def started(rabbitmq: RabbitMQ, folder: Path, *, workers: int = 1, more: str = "") -> Iterator[Gateway]:
    rabbitmq.fresh_vhost("tapped")
    (folder / "policies").mkdir()
    (folder / "policies" / "all.yaml").write_text(POLICIES)
    config = CONFIG.format(address=rabbitmq.address, workers=workers, policies=folder / "policies", more=more)
    with running(config) as gateway:
        yield gateway


def connect(gateway: Gateway) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(gateway.url + "tapped"))


def upcalls(gateway: Gateway) -> float:
    return value(gateway, "amqpgate_upcalls_total")


def body_of(number: int, size: int) -> bytes:
    return (b"%d;" % number * (size // 2 + 1))[:size]


def test_messages_pass_untouched_and_each_is_counted(gateway: Gateway) -> None:
    with contextlib.closing(connect(gateway)) as connection, contextlib.closing(connect(gateway)) as other:
        channel = connection.channel()
        channel.exchange_declare("orders", "topic")
        channel.queue_declare("q")
        channel.queue_bind("q", "orders", "#")
        channel.confirm_delivery()
        consumer = other.channel()
        with tapping(gateway, match="exchange=orders and vhost=tapped") as tapped:
            sent: dict[str, list[bytes]] = {"shown": [], "other": []}
            denied = 0
            for number in range(300):
                key = ("shown", "other", "secret")[number % 3]
                body = body_of(number, SIZES[number % len(SIZES)] if number < 36 else 16)
                properties = pika.BasicProperties(headers={"n": number}, message_id=str(number))
                try:
                    channel.basic_publish("orders", key, body, properties)
                    sent[key].append(body)
                except pika.exceptions.NackError:
                    denied += 1
            got: dict[str, list[bytes]] = {"shown": [], "other": []}
            for method, properties, body in consumer.consume("q", inactivity_timeout=20):
                assert method is not None, "a message is missing"
                number = int(properties.message_id)
                assert properties.headers == {"n": number}
                got[method.routing_key].append(body)
                if sum(map(len, got.values())) == 200:
                    break
            consumer.cancel()
            shown = tapped.until(300 + 200)
        assert got == sent
        assert denied == 100
        operations = Counter((line["operation"], line["verdict"]) for line in tapped.operations)
        assert shown > 0
        if shown == 500:  # On a slow machine fewer pass in a second than may be shown.
            assert operations == {
                ("basic.publish", "allow"): 200,
                ("basic.publish", "deny"): 100,
                ("basic.deliver", "allow"): 200,
            }
        for line in tapped.operations:
            assert ("headers" in line) == (
                line["operation"] == "basic.publish" and line["routing_key"] == "shown"
            )
        # Nothing stays behind: flows are as they were, and only a policy asks, once for each kind of message.
        eventually(lambda: tap(gateway, "--seconds", "0.01", "--match", "user=nobody")[0] == 0)
        plain = connection.channel()
        plain.basic_publish("orders", "other", b"x")
        eventually(
            lambda: value(gateway, "amqpgate_messages_total", direction="publish", verdict="allow") == 201
        )
        before = upcalls(gateway)
        for _ in range(100):
            plain.basic_publish("orders", "other", b"x")
        eventually(
            lambda: value(gateway, "amqpgate_messages_total", direction="publish", verdict="allow") == 301
        )
        # Not one for each. A broker's answer to what was before may have come since.
        assert upcalls(gateway) - before <= 2


def test_what_is_got_or_comes_back_is_untouched_and_each_is_counted(gateway: Gateway) -> None:
    with contextlib.closing(connect(gateway)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for queue in ("q", "r"):
            channel.queue_declare(queue)
        bodies = {
            (queue, number): body_of(number, SIZES[number % 4]) for queue in "qr" for number in range(20)
        }
        for (queue, _), body in bodies.items():
            channel.basic_publish("", queue, body, pika.BasicProperties(message_id="m"))
        with tapping(gateway, match="operation=basic.get-ok or operation=basic.return") as tapped:
            other = connection.channel()
            other.confirm_delivery()
            for number in range(21):
                for queue in ("q", "r"):
                    method, properties, body = other.basic_get(queue, auto_ack=True)
                    if number == 20:
                        assert method is None
                        continue
                    assert (method.routing_key, body) == (queue, bodies[queue, number])
                    assert properties.message_id == "m"
                with pytest.raises(pika.exceptions.UnroutableError) as caught:
                    other.basic_publish("", "nowhere", b"back %d" % number, mandatory=True)
                [back] = caught.value.messages
                assert (back.method.routing_key, back.body) == ("nowhere", b"back %d" % number)
            shown = tapped.until(20 * 2 + 21)
        told = Counter(
            (line["operation"], line["routing_key"], line.get("queue")) for line in tapped.operations
        )
        assert shown > 0
        if shown == 61:  # On a slow machine fewer pass in a second than may be shown.
            assert told == {
                ("basic.get-ok", "q", "q"): 20,
                ("basic.get-ok", "r", "r"): 20,
                ("basic.return", "nowhere", None): 21,
            }


@pytest.mark.slow
def test_beyond_the_ceiling_all_is_counted(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    with started(rabbitmq, tmp_path) as gateway, contextlib.closing(connect(gateway)) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        with tapping(gateway, match="operation=basic.publish") as tapped:
            before = upcalls(gateway)
            for _ in range(20000):
                channel.basic_publish("", "q", b"x" * 16)
            connection.process_data_events(0)
            eventually(lambda: value(gateway, "amqpgate_messages_total", direction="publish") == 20000)
            asked = upcalls(gateway) - before
            shown = tapped.until(20000)
        # Two for each that is shown, and for one each tenth of a second that may not be; not for all.
        assert 0 < asked <= 2 * shown + 2000
        assert channel.queue_declare("q", passive=True).method.message_count == 20000


@pytest.mark.slow
def test_workers_count_together(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    with started(rabbitmq, tmp_path, workers=2) as gateway:
        eventually(lambda: value(gateway, "amqpgate_ready") == 2)
        with tapping(gateway, workers=2, match="operation=basic.publish", seconds=4, every=3) as tapped:
            for number in range(8):
                with contextlib.closing(connect(gateway)) as connection:
                    channel = connection.channel()
                    channel.confirm_delivery()
                    for _ in range(10 + number):
                        channel.basic_publish("", "nowhere", b"x")
            end = tapped.rest()[-1]
        assert end["matched"] == sum(10 + number for number in range(8))
        assert end["shown"] == len(tapped.operations)
        assert {line["worker"] for line in tapped.lines if "worker" in line} == {0, 1}


@pytest.mark.slow
def test_whoever_leaves_makes_room(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    with started(rabbitmq, tmp_path) as gateway:
        with contextlib.ExitStack() as stack:
            for _ in range(4):
                stack.enter_context(tapping(gateway))
            with pytest.raises(AssertionError, match="there are 4 taps already"), tapping(gateway):
                pass
        eventually(lambda: tap(gateway, "--seconds", "0.1")[0] == 0)


def test_only_whoever_says_so_may(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    with started(rabbitmq, tmp_path) as gateway:
        assert gateway.get("/tap") == (
            403,
            "a change needs the header 'X-Amqpgate: 1', so that no web page can ask for it\n",
        )
        for options, text in (
            (("--match", "exchange=orders and"), "expected an attribute, 'not' or (, not the end"),
            (("--every", "0"), "0 is not in the range"),
        ):
            code, _, said = tap(gateway, *options)
            assert code == 2
            assert text in said


def command(gateway: Gateway, *options: str) -> list[str]:
    admin = f"{gateway.host}:{gateway.admin_port}"
    return [sys.executable, "-m", "amqpgate", "tap", "--admin", admin, *options]


def tap(gateway: Gateway, *options: str) -> tuple[int, str, str]:
    done = subprocess.run(command(gateway, *options), capture_output=True, timeout=60, text=True)
    return done.returncode, done.stdout, done.stderr


def test_the_command_shows_lines_and_writes_what_wireshark_reads(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        missing("Wireshark's tshark is not installed (Debian: apt-get install tshark)")
    capture = tmp_path / "tap.pcap"
    with started(rabbitmq, tmp_path) as gateway, contextlib.closing(connect(gateway)) as connection:
        channel = connection.channel()
        options = ["--match", "not operation=basic.qos", "--pcap", str(capture), "--count", "14"]
        child = Child(command(gateway, *options), log=tmp_path / "tap.log")
        eventually(lambda: "Ctrl-C ends it" in child.output())
        channel.exchange_declare("orders", "topic")
        channel.queue_declare("q\x1b[2J", arguments={"x-max-length": 10})
        channel.queue_bind("q\x1b[2J", "orders", "#")
        channel.basic_publish("orders", "shown", b"hello \x1b", pika.BasicProperties("text/plain"))
        channel.basic_publish("orders", "other", b"a body that is nobody's business")
        channel.basic_publish("orders", "shown", b"b" * 200_000)
        channel.basic_publish("orders", "secret", b"no")
        while channel.is_open:
            connection.process_data_events(1)
        again = connection.channel()
        method, _, body = again.basic_get("q\x1b[2J")
        assert (method.routing_key, body) == ("shown", b"hello \x1b")
        again.basic_publish("orders", "shown", b"back", pika.BasicProperties("text/plain"), mandatory=True)
        again.queue_unbind("q\x1b[2J", "orders", "#")
        again.basic_publish("orders", "other", b"no way out", mandatory=True)
        assert child.wait() == 0
        said = child.output().splitlines()
    assert said[-1].startswith("14 shown of ")
    lines = [line.split(" ", 1)[1] for line in said[1:-1]]
    assert lines[0].startswith("allow exchange.declare guest@tapped 127.0.0.1 exchange=orders by access/all")
    assert 'queue="q\\u001b[2J" {"x-max-length":10}' in lines[1]
    assert lines[3].endswith('{"content_type":"text/plain"} body hello \\x1b')
    assert lines[4].endswith("routing_key=other 32 B by access/all")
    assert lines[6].startswith("deny  basic.publish")
    assert lines[9].startswith(
        "allow basic.get-ok   guest@tapped 127.0.0.1 exchange=orders routing_key=shown"
    )
    assert lines[9].endswith('queue="q\\u001b[2J" 7 B')
    assert lines[13].endswith("exchange=orders routing_key=other 10 B")
    assert [line.split()[1] for line in lines[8:]] == [
        "basic.get",
        "basic.get-ok",
        "basic.publish",
        "queue.unbind",
        "basic.publish",
        "basic.return",
    ]
    assert capture.stat().st_mode & 0o777 == 0o600
    fields = ["-T", "fields", "-e", "_ws.col.Info"]
    read = ["tshark", "-n", "-r", str(capture), "-Y"]
    infos = subprocess.run([*read, "amqp", *fields], capture_output=True, check=True, text=True).stdout
    for part in (
        "Exchange.Declare x=orders",
        "Queue.Bind",
        "Basic.Publish x=orders rk=shown Content-Header type=text/plain",
        "Content-Body",
        "Basic.Publish x=orders rk=other",
        "Basic.Get",
        "Basic.Get-Ok x=orders rk=shown",
        "Basic.Return Content-Header",
    ):
        assert part in infos
    # Those that the broker has sent, with their names.
    both = "amqp.method.class == 60 && amqp.method.method in {50, 71}"
    names = ["tcp.srcport", "amqp.method.arguments.exchange", "amqp.method.arguments.routing_key"]
    columns = [option for name in names for option in ("-e", name)]
    sent = subprocess.run([*read, both, "-T", "fields", *columns], capture_output=True, check=True)
    assert sent.stdout.split() == [b"5672", b"orders", b"shown", b"5672", b"orders", b"other"]
    wrong = subprocess.run([*read, "_ws.malformed || tcp.analysis.flags"], capture_output=True, check=True)
    assert wrong.stdout == b""
    assert b"nobody's business" not in capture.read_bytes()
    assert b"no way out" not in capture.read_bytes()


@pytest.mark.slow
def test_ctrl_c_ends_it_well(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    with started(rabbitmq, tmp_path) as gateway:
        child = Child(command(gateway, "--format", "json"), log=tmp_path / "tap.log")
        eventually(lambda: "tapping everything" in child.output())
        with contextlib.closing(connect(gateway)):
            eventually(lambda: '"connection.open"' in child.output())
        child.signal(signal.SIGINT)
        assert child.wait() == 0
        assert "as of its last word" in child.output().splitlines()[-1]
        # And so does the gateway's end, but that nobody asked for it.
        child = Child(command(gateway), log=tmp_path / "other.log")
        eventually(lambda: "tapping everything" in child.output())
    assert child.wait() == 1
    assert "has ended early" in child.output()
