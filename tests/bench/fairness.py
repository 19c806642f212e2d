"""What others wait for beside a flood: ``python -m tests.bench.fairness [--flooders 1,20] [--features both]``

Flooders publish 5 bytes at a time as fast as the gateway takes it, while one connection asks: a passive
declare, and, with a connection of its own to the broker, a small publish whose confirm is waited for. Told
are how long an answer takes, without a flood and beside it, how long `/readyz` takes, and how much of the
flood passes in a second. The broker is the counting sink. Several commands (``--also``) are measured in turn.

=========  =========================================================================
feature    what is looked at
=========  =========================================================================
none       nothing: each publish is a hit
traces     each message has spans, which a collector takes
bodies     each message is written into audit records, with its body
both       both
tap        each message is chosen for a tap
transform  each message gets a property
=========  =========================================================================
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import multiprocessing
import selectors
import shlex
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.synchronize import Event
from pathlib import Path

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.support.ports import free_port
from tests.support.processes import Child
from tests.support.talker import Gone, Talker

from .build import build
from .targets import HERE, LOOPBACK
from .tools import Sink

HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n"
TRACES = HEAD.format(kind="TracePolicy", name="traces") + (
    "  subjects: [{user: guest}]\n  rules: [{id: all, operations: [basic.publish], ratio: 1}]\n"
)
BODIES = HEAD.format(kind="AuditPolicy", name="bodies") + (
    "  subjects: [{user: guest}]\n  rules: [{id: all, operations: [basic.publish], level: body}]\n"
)
TRANSFORM = HEAD.format(kind="TransformPolicy", name="changes") + (
    "  subjects: [{user: guest}]\n  properties: {set: {appId: gate}}\n"
)
#: Of each feature, the documents besides the access policy.
FEATURES = {
    "none": (),
    "traces": (TRACES,),
    "bodies": (BODIES,),
    "both": (TRACES, BODIES),
    "tap": (),
    "transform": (TRANSFORM,),
}
CONFIG = """
listeners:
- {{name: own, bind: "{host}:{own}", upstream: own}}
- {{name: pooled, bind: "{host}:{pooled}", upstream: pooled}}
upstreams:
- {{name: own, host: {host}, port: {sink}}}
- {{name: pooled, host: {host}, port: {sink}, connections: pooled}}
policies: "{policies}"
admin: {{bind: "{host}:{admin}"}}
log: {{level: warning}}
"""
AUDIT = 'audit: {{format: parquet, folder: "{folder}"}}\n'
TRACING = "tracing: {{endpoint: 'http://{host}:{collector}/v1/traces'}}\n"

#: Seconds between two questions.
PAUSE = 0.004
MESSAGE = content_frames(
    1,
    amqp.BasicPublish(exchange="bench.exchange", routing_key="bench.key.flood"),
    amqp.BasicProperties(),
    b"12345",
    131072,
)


def flood(port: int, count: int, ready: Event, over: Event) -> None:
    """In a process of its own: so many connections that send all that is taken."""
    said = MESSAGE * (524288 // len(MESSAGE))
    selector = selectors.DefaultSelector()
    rests = {}
    for _ in range(count):
        talker = Talker.dial(port, timeout=60)
        talker.open()
        talker.sock.setblocking(False)
        selector.register(talker.sock, selectors.EVENT_WRITE)
        rests[talker.sock.fileno()] = memoryview(said)
    ready.set()
    while not over.is_set():
        for key, _ in selector.select(0.1):
            with contextlib.suppress(BlockingIOError):
                rest = rests[key.fd]
                rests[key.fd] = rest[key.fileobj.send(rest) :] or memoryview(said)  # type: ignore[union-attr]


class Collector(BaseHTTPRequestHandler):
    """Takes whatever is sent."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def collect(port: int, admin: int, taps: bool, over: Event) -> None:
    """In a process of its own: who takes spans, and who taps."""
    if taps:
        connection = http.client.HTTPConnection(LOOPBACK, admin, timeout=60)
        connection.request("GET", "/tap?match=exchange%3Dbench.exchange", headers={"X-Amqpgate": "1"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        while not over.is_set():
            answer.read1(65536)
    else:
        server = ThreadingHTTPServer((LOOPBACK, port), Collector)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        over.wait()


def asked(talker: Talker, confirms: bool, seconds: float) -> list[float]:
    """How long each answer took, in seconds."""
    took = []
    ends = time.monotonic() + seconds
    publish = MESSAGE.replace(b"flood", b"other")
    turn = 0
    while time.monotonic() < ends:
        time.sleep(PAUSE)
        turn += 1
        began = time.perf_counter()
        if confirms and turn % 2:
            talker.raw(publish)
            talker.expect(amqp.BasicAck, 1)
        else:
            talker.ask(amqp.QueueDeclare(queue="bench.q", passive=True), amqp.QueueDeclareOk, 1)
        took.append(time.perf_counter() - began)
    return took


@contextlib.contextmanager
def probed(admin: int) -> Iterator[list[float]]:
    """How long `/readyz` takes; infinity where it says anything but 200."""
    took: list[float] = []
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.1):
            began = time.perf_counter()
            connection = http.client.HTTPConnection(LOOPBACK, admin, timeout=30)
            status = 0
            with contextlib.suppress(OSError):
                connection.request("GET", "/readyz")
                status = connection.getresponse().status
            took.append(time.perf_counter() - began if status == 200 else float("inf"))
            connection.close()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def process(target: object, *args: object) -> Iterator[None]:
    """One that runs meanwhile; its last argument is the event that ends it."""
    made = multiprocessing.get_context("spawn").Process(target=target, args=args, daemon=True)  # type: ignore[arg-type]
    made.start()
    try:
        yield
    finally:
        args[-1].set()  # type: ignore[attr-defined]
        made.join(10)
        made.kill()


@contextlib.contextmanager
def gateway(command: list[str], feature: str, sink: Sink, ports: dict[str, int]) -> Iterator[None]:
    """While it runs."""
    with tempfile.TemporaryDirectory(prefix="amqpgate-bench-") as scratch:
        folder = Path(scratch)
        policies = folder / "policies"
        policies.mkdir()
        (folder / "audit").mkdir()
        (policies / "access.yaml").write_text((HERE / "policies" / "access.yaml").read_text())
        for number, document in enumerate(FEATURES[feature]):
            (policies / f"{number}.yaml").write_text(document)
        text = CONFIG + (AUDIT if BODIES in FEATURES[feature] else "")
        text += TRACING if TRACES in FEATURES[feature] else ""
        file = folder / "amqpgate.yaml"
        told = {"host": LOOPBACK, "sink": sink.port, "policies": policies, "folder": folder / "audit"}
        file.write_text(text.format(**told, **ports))
        child = Child([*command, "run", "--config", file], log=folder / "log")

        def ready() -> bool:
            try:
                connection = http.client.HTTPConnection(LOOPBACK, ports["admin"], timeout=5)
                connection.request("GET", "/readyz")
                return connection.getresponse().status == 200
            except OSError:
                return False

        try:
            child.wait_until(ready, timeout=30, what="amqpgate")
            yield
        finally:
            child.stop(10)
            if log := child.output().strip():
                print("  " + log[-600:].replace("\n", "\n  "), file=sys.stderr)


def open_asker(port: int, confirms: bool) -> Talker:
    talker = Talker.dial(port, timeout=60)
    talker.open()
    if confirms:
        talker.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    return talker


def wait_for(port: int) -> None:
    """Until somebody listens."""
    while True:
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=5):
            return
        time.sleep(0.05)


def quantiles(took: list[float]) -> str:
    if len(took) < 2:
        return "     -      - "
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    return f"{cuts[49] * 1e3:6.1f} {cuts[98] * 1e3:6.1f}"


def measure(command: list[str], feature: str, way: str, flooders: int, seconds: float, sink: Sink) -> str:
    """One row."""
    spawn = multiprocessing.get_context("spawn")
    ports = {name: free_port() for name in ("own", "pooled", "admin", "collector")}
    confirms = way == "own"
    beside: list[float] = []
    with contextlib.ExitStack() as stack:
        if TRACES in FEATURES[feature]:
            stack.enter_context(process(collect, ports["collector"], ports["admin"], False, spawn.Event()))
            wait_for(ports["collector"])
        stack.enter_context(gateway(command, feature, sink, ports))
        if feature == "tap":
            stack.enter_context(process(collect, ports["collector"], ports["admin"], True, spawn.Event()))
        alone = asked(open_asker(ports[way], confirms), confirms, seconds / 2)
        ready, over = spawn.Event(), spawn.Event()
        stack.enter_context(process(flood, ports[way], flooders, ready, over))
        assert ready.wait(60), "the flood does not begin"
        before, began = sink.counts().published, time.monotonic()
        with probed(ports["admin"]) as probes:
            try:
                beside = asked(open_asker(ports[way], confirms), confirms, seconds)
            except (Gone, TimeoutError) as error:
                print(f"  {type(error).__name__}: {error}", file=sys.stderr)
        rate = (sink.counts().published - before) / (time.monotonic() - began)
        probes.sort()
    longest = f"{probes[-1] * 1e3:8.0f}" if probes else "       -"
    return (
        f"{feature:9} {way:6} {flooders:3}   {quantiles(alone)}   {quantiles(beside)} "
        f"{max(beside, default=0) * 1e3:8.1f} {longest}  {rate:10,.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--features", default=",".join(FEATURES))
    parser.add_argument("--ways", default="own,pooled")
    parser.add_argument("--flooders", default="1,20")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--also", action="append", default=[], metavar="NAME=CMD")
    told = parser.parse_args()
    commands = {"amqpgate": [sys.executable, "-m", "amqpgate"]}
    commands |= {name: shlex.split(cmd) for name, _, cmd in (one.partition("=") for one in told.also)}
    tools = build()
    print("                             alone           beside the flood        /readyz   the flood's")
    print("feature   way    flooders  p50    p99      p50    p99  longest  longest    messages/s  (ms)")
    with Sink(tools.sink, free_port()) as sink:
        for feature in told.features.split(","):
            for way in told.ways.split(","):
                for flooders in map(int, told.flooders.split(",")):
                    for name, command in commands.items():
                        row = measure(command, feature, way, flooders, told.seconds, sink)
                        print(f"{row}  {name}" if len(commands) > 1 else row, flush=True)


if __name__ == "__main__":
    main()
