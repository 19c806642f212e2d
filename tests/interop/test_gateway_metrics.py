"""A Prometheus scrapes a gateway under real traffic: every panel of the dashboard shows something of it."""

from __future__ import annotations

import contextlib
import math
import os
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pika
import pytest
import trustme
from pika.exceptions import AMQPError, ChannelClosedByBroker, NackError, ProbableAuthenticationError

from amqpgate.gateway.observers.stats.session import StatsObserver
from amqpgate.gateway.session.observer import find
from tests.interop.pair import parameters
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually, serving
from tests.support.metrics import sample_value
from tests.support.ports import free_port
from tests.support.prometheus import Prometheus, program, promtool
from tests.support.rabbitmq import RabbitMQ
from tests.support.tokens import jwk, key_for, key_set
from tests.unit.telemetry.shipped import ALERTS, alerts, queries

pytestmark = pytest.mark.interop

CONFIG = """
listeners:
- {{name: main, bind: "127.0.0.1:{{port}}"}}
- {{name: shared, bind: "127.0.0.1:{shared}"}}
- {{name: tls, bind: "127.0.0.1:{tls}", tls: {{cert: {folder}/gate.pem, key: {folder}/gate.key}}}}
- name: tokens
  bind: "127.0.0.1:{tokens}"
  oauth: {{issuer: "https://issuer.example.org", audience: [rabbitmq], jwksFile: {folder}/keys.json}}
upstreams: [{{name: rabbit, url: "amqp://{address}", health: {{interval: 1s}}}}]
policies: {folder}/policies
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s}}
audit: {{format: parquet, folder: {folder}, window: 1s}}
metrics: {{by: [vhost, listener, user], users: [guest]}}
"""

POLICIES = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: secrets}
spec:
  subjects: [{user: guest}]
  onDeny: {publish: nack}
  rules:
  - {id: all, effect: allow, operations: ["*"]}
  - id: secret
    effect: deny
    operations: [basic.publish]
    exchange: {literal: ""}
    routingKey: {literal: secret}
---
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: later}
spec:
  mode: shadow
  subjects: [{user: guest}]
  rules:
  - {id: get, effect: deny, operations: [basic.get], queue: {prefix: ""}}
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: slow}
spec:
  subjects: [{listeners: [tls]}]
  limits: [{id: few, per: [user], messages: 20/s, burst: 1s}]
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: maybe}
spec:
  mode: shadow
  subjects: [{user: guest}]
  limits: [{id: opens, per: [user], channels: 1/m, burst: 60s}]
---
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: bounds}
spec:
  subjects: [{listeners: [main]}]
  ceilings: {maxBodyBytes: 1Ki}
---
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: ways}
spec:
  routes:
  - {id: shared, match: {listeners: [shared]}, upstream: {cluster: rabbit, connections: pooled}}
  - id: copied
    match: {listeners: [main]}
    upstream:
      cluster: rabbit
      mirror: {cluster: rabbit, vhost: copy, percent: 100, user: guest, passwordEnv: COPY_PASSWORD}
"""

#: What this traffic need not move from 0.
QUIET = {
    "Bytes that wait to be sent",
    "Reloads by outcome",
    "Ejections, and attempts beyond the budget",
    "Defects",
    "Audit records that wait",
    "Bytes of audit records that wait",
    # Nothing is traced here.
    "Spans, and what goes by OTLP",
    "Spans under way",
}


@attrs.define(eq=False)
class Traffic:
    """Clients that do, again and again, what the panels are about."""

    ports: dict[str, int]
    context: ssl.SSLContext
    _stop: threading.Event = attrs.field(factory=threading.Event)
    _threads: list[threading.Thread] = attrs.field(factory=list)
    failures: list[BaseException] = attrs.field(factory=list)

    def start(self) -> None:
        for client in (self.publish_and_get, self.share, self.wait, self.show_no_token):
            thread = threading.Thread(target=self._repeat, args=(client,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()

    def _repeat(self, client: Callable[[], None]) -> None:
        while not self._stop.is_set():
            try:
                client()
            except Exception as error:
                self.failures.append(error)
                return
            self._stop.wait(0.2)

    def _connection(self, listener: str) -> pika.BlockingConnection:
        asked = parameters(self.ports[listener])
        if listener == "tls":
            asked.ssl_options = pika.SSLOptions(self.context, "localhost")
        return pika.BlockingConnection(asked)

    def publish_and_get(self) -> None:
        """On `main`: confirmed, refused, too large; and got back."""
        with self._connection("main") as connection:
            channel = connection.channel()
            channel.queue_declare("q")
            channel.confirm_delivery()
            for _ in range(5):
                channel.basic_publish("", "q", b"x" * 100)
            with pytest.raises(NackError):
                channel.basic_publish("", "secret", b"x")
            while channel.basic_get("q", auto_ack=True)[0] is not None:
                pass
            with pytest.raises(ChannelClosedByBroker):
                channel.basic_publish("", "q", b"x" * 2000)

    def share(self) -> None:
        """On a link, and long enough that a scrape sees it."""
        with self._connection("shared") as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_publish("", "q", b"x")
            self._stop.wait(1)

    def wait(self) -> None:
        """Over the limit; and a delivery."""
        with self._connection("tls") as connection:
            channel = connection.channel()
            queue = channel.queue_declare("", exclusive=True).method.queue
            for _ in range(60):
                channel.basic_publish("", queue, b"x")
            for count, (method, _, _) in enumerate(channel.consume(queue, auto_ack=True), 1):
                assert method is not None
                if count == 60:
                    break
            with contextlib.suppress(AMQPError):
                channel.cancel()

    def show_no_token(self) -> None:
        """Where a token is asked for."""
        with pytest.raises(ProbableAuthenticationError), self._connection("tokens"):
            pass


@attrs.frozen
class Scene:
    gateway: Gateway
    prometheus: Prometheus
    traffic: Traffic


@pytest.fixture(scope="module")
def scene(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    program("prometheus")
    folder = tmp_path_factory.mktemp("metrics")
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    (folder / "gate.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    (folder / "gate.key").write_bytes(issued.private_key_pem.bytes())
    context = ssl.create_default_context()
    authority.configure_trust(context)
    (folder / "keys.json").write_bytes(key_set(jwk(key_for("ES256"))))
    (folder / "policies").mkdir()
    (folder / "policies/all.yaml").write_text(POLICIES)
    rabbitmq.fresh_vhost("copy")
    with contextlib.ExitStack() as stack:
        ports = {name: free_port() for name in ("shared", "tls", "tokens")}
        gateway = start(rabbitmq, folder, ports)
        stack.callback(gateway.stop)
        prometheus = Prometheus(f"127.0.0.1:{gateway.admin_port}", ALERTS)
        stack.callback(prometheus.destroy)
        prometheus.start()
        traffic = Traffic({**ports, "main": gateway.port}, context)
        traffic.start()
        stack.callback(traffic.stop)
        yield Scene(gateway, prometheus, traffic)
    with contextlib.closing(pika.BlockingConnection(parameters(rabbitmq.port))) as connection:
        connection.channel().queue_delete("q")
    assert not traffic.failures


def start(rabbitmq: RabbitMQ, folder: Path, ports: dict[str, int]) -> Gateway:
    text = CONFIG.format(address=rabbitmq.address, folder=folder, **ports)
    gateway = Gateway(config=text, env={**os.environ, "COPY_PASSWORD": "guest"})
    gateway.start()
    return gateway


def test_every_panel_shows_what_happens(scene: Scene) -> None:
    missing: dict[str, bool] = {}

    def shows(promql: str, *, quiet: bool) -> bool:
        for variable, value in (("$job", ".*"), ("$instance", ".*"), ("$__rate_interval", "10s")):
            promql = promql.replace(variable, value)
        assert "$" not in promql
        found = [sample.value for sample in scene.prometheus.query(promql)]
        return bool(found) if quiet else any(value > 0 and math.isfinite(value) for value in found)

    def done() -> bool:
        assert not scene.traffic.failures
        shown: dict[str, bool] = {}
        for query in queries():
            if "amqpgate_operator_" in query.promql:
                # There is none here.
                continue
            quiet = query.panel in QUIET
            shown[query.panel] = shows(query.promql, quiet=quiet) or shown.get(query.panel, False)
        missing.clear()
        missing.update({panel: False for panel, is_shown in shown.items() if not is_shown})
        if not Path("/proc/self/fd").stat().st_size:
            # Linux before 6.2.
            missing.pop("Open files", None)
        return not missing

    with contextlib.suppress(AssertionError):
        eventually(done, timeout=60, every=1)
    assert not missing
    assert not scene.traffic.failures


def test_every_alert_can_be_evaluated(scene: Scene) -> None:
    eventually(
        lambda: all(rule["health"] == "ok" for rule in scene.prometheus.alerts()), timeout=60, every=0.5
    )
    found = scene.prometheus.alerts()
    assert [rule["name"] for rule in found] == [rule["alert"] for rule in alerts()]
    firing = {rule["name"] for rule in found if rule["state"] == "firing"}
    # These clients misbehave on purpose, but the gateway is well.
    assert not firing & {"AmqpgateNoneReady", "AmqpgateUpstreamDown", "AmqpgateDatapathFailure"}


def test_prometheus_finds_nothing_to_say_about_names(scene: Scene) -> None:
    done = promtool("check", "metrics", stdin=scene.gateway.get("/metrics")[1])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_labels_that_were_asked_for_tell_who_did_what(scene: Scene) -> None:
    def listeners(metric: str) -> set[str]:
        found = scene.prometheus.query(f'{metric}{{user="guest", vhost="/"}} > 0')
        return {sample.labels["listener"] for sample in found}

    eventually(lambda: listeners("amqpgate_labelled_messages_total") == {"main", "shared", "tls"}, every=0.5)
    eventually(lambda: listeners("amqpgate_labelled_denials_total") == {"main"}, every=0.5)
    eventually(lambda: listeners("amqpgate_labelled_throttle_seconds_total") == {"tls"}, every=0.5)
    # All of them together are what the others say: in each scrape, whoever comes and goes.
    for family in ("messages_total", "message_bytes_total", "sessions"):
        (apart,) = scene.prometheus.query(f"sum(amqpgate_labelled_{family}) - sum(amqpgate_{family})")
        assert apart.value == 0, family


def test_a_confirm_takes_a_while(scene: Scene) -> None:
    """A histogram whose sum is within reason: seconds, and not milliseconds."""

    def value(promql: str) -> float:
        found = scene.prometheus.query(promql)
        return found[0].value if found else 0.0

    eventually(lambda: value("sum(amqpgate_confirm_latency_seconds_count)") > 3, timeout=60, every=0.5)
    mean = value("sum(amqpgate_confirm_latency_seconds_sum) / sum(amqpgate_confirm_latency_seconds_count)")
    assert 0 < mean < 20


POOLED = """
listeners: [{{name: main, bind: "127.0.0.1:0"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}", connections: pooled}}]
"""


def test_confirms_on_a_link_are_timed_until_the_session_leaves_it(rabbitmq: RabbitMQ) -> None:
    with serving(POOLED.format(address=rabbitmq.address)) as running:
        registry = running.gateway.metrics.registry
        with contextlib.closing(pika.BlockingConnection(parameters(running.port()))) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_publish("", "nowhere", b"x")
            (session,) = running.gateway.sessions.values()
            assert session.upstream.is_pooled
            eventually(lambda: sample_value(registry, "amqpgate_confirm_latency_seconds_count") == 1)
            channel.queue_declare("", exclusive=True)
            assert not session.upstream.is_pooled, "it has a connection of its own now"
            # The broker numbers confirms anew there: what is armed would be answered too late.
            stats = find(session.session_policies.observers, StatsObserver)
            assert stats is not None
            assert stats.confirms is None
            channel.basic_publish("", "nowhere", b"x")
