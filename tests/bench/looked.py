"""What a message costs that somebody looks at: ``python -m tests.bench.looked [--rounds 5]``.

In microseconds of the gateway's own CPU for each publish of 256 bytes with six properties and four headers,
to a broker that only counts (the sink). A gateway for each configuration, all of them at once; they are
measured in turn, so that what else the machine does falls on all alike.

==================  ======================================================================================
none                an access policy that asks for names alone: each publish is a hit
profile             likewise, with a compatibility policy that has every item but an object store
header-allow        it allows those whose header ``tenant`` is a text, and which have one more header
header-deny         it denies those whose headers have some values, which none has
header-regex        as header-allow, by a regular expression
properties          it allows those with a content type, an app id and a delivery mode
transform-prefix    exchanges have another name at the broker
transform-property  each publish gets an app id
body                each publish is written into audit records, with its body
body-some           likewise, of one routing key in ten
headers             each publish is written into audit records, with its headers
traced-1-in-100     one in a hundred has a span, and none carries a trace context
traced-carried      likewise, and each carries a trace context that is not sampled
traced              each has a span; 100 publishes in a tenth of a second, so that none is dropped
tapped-none         a tap that is about another routing key
tapped              a tap that is about all; 80 publishes in a tenth of a second, which it is shown
mirrored            each publish is copied to a second sink
mirrored-changed    likewise, and exchanges have another name at the broker
mirrored-traced     likewise, and one in a hundred has a span, whose context is copied, too
==================  ======================================================================================

``--perf CASE`` prints the process id of that gateway and publishes for ``--seconds``, for a profiler.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table
from tests.support.frames import content_frames
from tests.support.gateway import Gateway
from tests.support.ports import free_port
from tests.support.talker import Talker

from .accounting import cpu_ns
from .build import build
from .fairness import collect, process, wait_for
from .tools import Sink

HEAD = (
    "apiVersion: amqpgate.io/v1alpha1\nkind: {kind}\nmetadata: {{name: looked}}\n"
    "spec:\n  subjects: [{{user: guest}}]\n"
)
ACCESS = HEAD.format(kind="AccessPolicy") + "  rules:\n"
RULE = "  - {{id: {id}, effect: {effect}, operations: [basic.publish], exchange: {{prefix: bench}}{more}}}\n"
OTHERS = "  - {id: others, effect: allow, operations: ['connection.*', 'channel.*', 'queue.*', basic.qos]}\n"


def access(more: str = "", *, deny: str = "") -> str:
    rules = RULE.format(id="publish", effect="allow", more=f", properties: {more}" if more else "")
    if deny:
        rules += RULE.format(id="no", effect="deny", more=f", properties: {deny}")
    return ACCESS + rules + OTHERS


def rules(kind: str, rule: str) -> str:
    return HEAD.format(kind=kind) + f"  rules: [{{id: all, operations: [basic.publish], {rule}}}]\n"


PROFILE = (
    HEAD.format(kind="CompatibilityPolicy")
    + """  as: rabbitmq-3.13
  deliveryLimits: [{limit: -1}]
  quorumQueues: [{queue: {prefix: bench}}]
  delayedExchanges: [{exchange: {prefix: later}}]
"""
)
TRACED = "tracing: {endpoint: 'http://127.0.0.1:COLLECTOR/v1/traces'}\n"
AUDITED = 'audit: {format: parquet, folder: "FOLDER/audit"}\n'
ROUTE = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: routes}
spec:
  routes:
  - id: all
    match: {}
    upstream: {cluster: sink, mirror: {cluster: other, buffer: 64Mi}}
"""


@attrs.frozen
class Looked:
    """One configuration."""

    documents: tuple[str, ...] = (access(),)
    settings: str = ""
    #: What a tap is about.
    tap: str = ""
    #: Publishes in a tenth of a second; 0: as fast as it goes.
    pace: int = 0
    #: How many are published in a round.
    messages: int = 20_000
    #: Whether they carry a trace context, which is not sampled.
    carries: bool = False
    #: How many times the sink gets each beside the first.
    copies: int = 0


CASES: Mapping[str, Looked] = {
    "none": Looked(messages=400_000),
    "profile": Looked((access(), PROFILE), messages=400_000),
    "header-allow": Looked((access("{headers: {values: {tenant: {prefix: ac}}, require: [order]}}"),)),
    "header-deny": Looked(
        (access(deny="{headers: {values: {tenant: {literal: evil}, order: {min: 9000}}}}"),)
    ),
    "header-regex": Looked((access("{headers: {values: {tenant: {regex: '[a-z]+'}}}}"),)),
    "properties": Looked(
        (access("{contentType: application/json, appId: {prefix: sh}, deliveryMode: '2', require: [type]}"),)
    ),
    "transform-prefix": Looked(
        (access(), HEAD.format(kind="TransformPolicy") + "  names: {exchanges: {prefix: a.}}\n")
    ),
    "transform-property": Looked(
        (access(), HEAD.format(kind="TransformPolicy") + "  properties: {set: {userId: guest}}\n")
    ),
    "body": Looked((access(), rules("AuditPolicy", "level: body")), AUDITED),
    "body-some": Looked(
        (access(), rules("AuditPolicy", "level: body, routingKey: bench.key.3")), AUDITED, messages=40_000
    ),
    "headers": Looked((access(), rules("AuditPolicy", "level: headers")), AUDITED),
    "traced-1-in-100": Looked((access(), rules("TracePolicy", "ratio: 0.01")), TRACED, messages=100_000),
    "traced-carried": Looked(
        (access(), rules("TracePolicy", "ratio: 0.01")), TRACED, messages=100_000, carries=True
    ),
    "traced": Looked((access(), rules("TracePolicy", "ratio: 1")), TRACED, pace=100, messages=3_000),
    "tapped-none": Looked(tap="routing_key=other.*", messages=400_000),
    "tapped": Looked(tap="exchange=bench.exchange", pace=80, messages=1_600),
    "mirrored": Looked((access(), ROUTE), copies=1),
    "mirrored-changed": Looked(
        (access(), ROUTE, HEAD.format(kind="TransformPolicy") + "  names: {exchanges: {prefix: a.}}\n"),
        copies=1,
    ),
    "mirrored-traced": Looked((access(), ROUTE, rules("TracePolicy", "ratio: 0.01")), TRACED, copies=1),
}

SETTINGS = """
listeners: [{name: main, bind: "127.0.0.1:{port}", upstream: sink}]
upstreams:
- {name: sink, host: 127.0.0.1, port: SINK}
- {name: other, host: 127.0.0.1, port: SINK, user: guest, password: guest}
policies: "FOLDER/policies"
admin: {bind: "127.0.0.1:{admin_port}"}
log: {level: warning}
"""

PROPERTIES = amqp.BasicProperties(
    content_type="application/json",
    headers=Table.of({"tenant": "acme", "order": 4711, "region": "eu-west-1", "retries": 0}),
    delivery_mode=2,
    message_id="6f2c8a9e-51b3-4b47-b0a6-2a3f1e7d9c10",
    type="order.created",
    app_id="shop",
)
CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"


def turn_of(properties: amqp.BasicProperties) -> bytes:
    """Publishes to ten routing keys in turn."""
    methods = [
        amqp.BasicPublish(exchange="bench.exchange", routing_key=f"bench.key.{key}") for key in range(10)
    ]
    return b"".join(content_frames(1, one, properties, b"x" * 256, 131072) for one in methods)


ROUND = turn_of(PROPERTIES)
CARRYING = turn_of(
    attrs.evolve(PROPERTIES, headers=Table((*PROPERTIES.headers, ("traceparent", Field("S", CONTEXT)))))
)
BATCH = 200


@attrs.define(eq=False)
class Running:
    """A gateway, and a client of it."""

    case: Looked
    gateway: Gateway
    talker: Talker

    def publish(self) -> float:
        """Microseconds for a message, of one round."""
        before = cpu_ns(self.gateway.child.pid)
        turn = CARRYING if self.case.carries else ROUND
        if self.case.pace:
            for _ in range(self.case.messages // self.case.pace):
                self.talker.raw(turn * (self.case.pace // 10))
                time.sleep(0.1)
        else:
            for _ in range(self.case.messages // BATCH):
                self.talker.raw(turn * (BATCH // 10))
        self.talker.ask(amqp.BasicQos(prefetch_count=1), amqp.BasicQosOk, 1)
        if self.case.settings in (AUDITED, TRACED) or self.case.copies:
            time.sleep(1.0)  # Threads of its write what they have, and what waits for a mirror goes out.
        return (cpu_ns(self.gateway.child.pid) - before) / 1000 / self.case.messages


@contextlib.contextmanager
def tapped(gateway: Gateway, match: str) -> Iterator[None]:
    """Somebody reads all that a tap says."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.admin_port, timeout=60)
    connection.request("GET", "/tap?match=" + match.replace("=", "%3D"), headers={"X-Amqpgate": "1"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()

    def read() -> None:
        with contextlib.suppress(OSError, AttributeError, ValueError):
            while answer.read1(65536):
                pass

    threading.Thread(target=read, daemon=True).start()
    try:
        yield
    finally:
        connection.close()


@contextlib.contextmanager
def running(case: Looked, sink: Sink, collector: int) -> Iterator[Running]:
    """While it runs."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="amqpgate-bench-")))
        (folder / "policies").mkdir()
        (folder / "audit").mkdir()
        for number, document in enumerate(case.documents):
            (folder / "policies" / f"{number}.yaml").write_text(document)
        text = (SETTINGS + case.settings).replace("SINK", str(sink.port)).replace("FOLDER", str(folder))
        gateway = Gateway(config=text.replace("COLLECTOR", str(collector)))
        stack.enter_context(gateway.serving())
        if case.tap:
            stack.enter_context(tapped(gateway, case.tap))
        talker = Talker.dial(gateway.port, timeout=120)
        talker.open()
        yield Running(case, gateway, talker)
        talker.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--perf", default="", metavar="CASE")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    tools, collector = build(), free_port()
    over = multiprocessing.get_context("spawn").Event()
    with Sink(tools.sink, free_port()) as sink, process(collect, collector, 0, False, over):
        wait_for(collector)
        if options.perf:
            with running(CASES[options.perf], sink, collector) as one:
                print(one.gateway.child.pid, flush=True)
                ends = time.monotonic() + options.seconds
                while time.monotonic() < ends:
                    one.publish()
            return
        took: dict[str, list[float]] = {name: [] for name in options.cases.split(",")}
        with contextlib.ExitStack() as stack:
            gateways = {name: stack.enter_context(running(CASES[name], sink, collector)) for name in took}
            for one in gateways.values():
                one.publish()
            for _ in range(options.rounds):
                for name, costs in took.items():
                    before = sink.counts().published
                    costs.append(gateways[name].publish())
                    came = sink.counts().published - before
                    wanted = gateways[name].case.messages * (1 + gateways[name].case.copies)
                    if came < wanted:
                        print(f"  {name}: {came} of {wanted} arrived")
    for name, costs in took.items():
        told = f"{name:20} {statistics.median(costs):8.2f} us  ({min(costs):.2f} to {max(costs):.2f})"
        if name != "none" and "none" in took:
            # Of the same round each, so that what else the machine does falls on both.
            ratio = statistics.median(cost / none for cost, none in zip(costs, took["none"], strict=True))
            told += f"  {ratio:.2f} of none"
        print(told)


if __name__ == "__main__":
    main()
