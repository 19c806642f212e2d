"""What chaos is played on: brokers, a gateway with workers, and what is switched on in it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import pika
import trustme

from tests.interop.test_gateway_drain import Place
from tests.interop.test_gateway_tls import papers
from tests.support.gateway import Gateway
from tests.support.otlp import Collector
from tests.support.rabbitmq import RabbitMQ
from tests.support.rabbitmq_cluster import RabbitCluster
from tests.support.rabbitmq_root import root_of_4
from tests.support.redis import RedisServer

from .line import HEARTBEAT
from .plan import Plan
from .wires import Wire, Wires

DENIED_KEY = "denied"

#: The disk for audit records, which can be full; some collector takes them away when half of it is.
AUDIT_MEGABYTES = 512

#: RabbitMQ's, so that clients of RabbitMQ itself find a silent peer as soon as those of a gateway.
_BROKER = (f"heartbeat = {HEARTBEAT}",)


@attrs.frozen
class Setup:
    """By what it differs."""

    name: str
    #: `3.10`, `4.3`, `cluster`.
    broker: str
    #: The types of its queues.
    queues: tuple[str, ...] = ("classic", "classic")
    version: str = "0-9-1"
    connections: str = "own"
    has_all: bool = False
    is_direct: bool = False

    def on(self, broker: str) -> Setup:
        return attrs.evolve(self, broker=broker, queues=QUEUES[broker])


QUEUES: Mapping[str, tuple[str, ...]] = {
    "3.10": ("classic", "classic"),
    "4.3": ("classic", "quorum"),
    "cluster": ("quorum", "quorum"),
}

SETUPS = {
    setup.name: setup
    for setup in (
        Setup("own", "3.10"),
        Setup("pooled", "4.3", QUEUES["4.3"], connections="pooled"),
        Setup("cluster", "cluster", QUEUES["cluster"]),
        Setup("everything", "4.3", QUEUES["4.3"], has_all=True),
        Setup("bridged-0-8", "3.10", version="0-8"),
        Setup("bridged-0-10", "4.3", QUEUES["4.3"], version="0-10"),
        Setup("direct", "3.10", is_direct=True),
    )
}

DEFAULT = ("own", "pooled", "cluster", "everything", "bridged-0-8", "bridged-0-10")


def named(text: str) -> Setup:
    """`own`, or `own@4.3`."""
    name, _, broker = text.partition("@")
    setup = SETUPS[name]
    return setup.on(broker) if broker else setup


_CONFIG = """
workers: 2
listeners: [{{name: main, upstream: rabbit, bind: "127.0.0.1:{{port}}", heartbeat: {beat}s{tls}}}]
upstreams:
- {{name: rabbit, endpoints: [{endpoints}], heartbeat: {beat}s, connections: {connections}}}
{more}
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 6s, closeTimeout: 2s}}
"""

_MORE = """
- {{name: green, url: "amqp://guest:guest@{green}"}}
policies: {folder}/policies
audit: {{format: parquet, folder: {folder}/audit, window: 2s, rollInterval: 5s, maxQueue: 4Mi}}
tracing: {{endpoint: "{collector}"}}
sharedLimits: {{redis: "redis://127.0.0.1:{redis}", password: {password}, replicas: 2}}
"""

_POLICIES = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: all}
spec:
  subjects: [{user: "*"}]
  onDeny: {publish: nack}
  rules:
  - {id: all, effect: allow, operations: ["*"]}
  - {id: none, effect: deny, operations: [basic.publish], exchange: "", routingKey: denied}
---
apiVersion: amqpgate.io/v1alpha1
kind: AuditPolicy
metadata: {name: all}
spec:
  subjects: [{user: "*"}]
  rules: [{id: some, operations: [basic.publish], level: headers}]
---
apiVersion: amqpgate.io/v1alpha1
kind: TracePolicy
metadata: {name: all}
spec:
  subjects: [{user: "*"}]
  rules: [{id: some, operations: [basic.publish, basic.consume], ratio: 0.01}]
---
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: all}
spec:
  subjects: [{user: "*"}]
  headers: {set: {x-by: gate}}
---
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: all}
spec:
  routes:
  - {id: all, match: {user: "*"}, upstream: {cluster: rabbit, mirror: {cluster: green, percent: 10}}}
---
"""

_RATE = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: all}
spec:
  subjects: [{user: "*"}]
  limits: [{id: all, per: [user], messages: %d/s, burst: 2s, shared: true}]
"""


_LEFT = """
Count = fun(Queue) -> case amqqueue:get_type(Queue) of
    rabbit_quorum_queue ->
        Query = {rabbit_fifo, query_messages_total, []},
        {ok, Total, _} = ra:consistent_query(amqqueue:get_pid(Queue), Query),
        Total;
    _ ->
        [{messages, Total}] = rabbit_amqqueue:info(Queue, [messages]), Total
end end,
Named = fun(Queue) -> {resource, _, queue, Name} = amqqueue:get_name(Queue), Name end,
lists:sum([Count(Queue) || Queue <- rabbit_amqqueue:list(), binary:part(Named(Queue), 0, 1) =:= <<"c">>]).
"""


@attrs.define(eq=False)
class World:
    """All that runs for a set-up."""

    setup: Setup
    folder: Path
    nodes: list[RabbitMQ]
    wires: Wires
    fronts: list[Wire]
    backs: list[Wire]
    place: Place | None = None
    redis: RedisServer | None = None
    ca: trustme.CA | None = None
    collector: Collector | None = None
    #: Times at which a broker that was killed served again.
    revived: list[float] = attrs.field(factory=list)
    #: What gateways have logged that ended.
    logs: list[str] = attrs.field(factory=list)

    @property
    def gateway(self) -> Gateway:
        assert self.place is not None, "direct"
        return self.place.now

    def collect_records(self) -> None:
        """As a collector does: closed files of audit records go where there is little room."""
        if self.has_audit_disk:
            disk = shutil.disk_usage(self.folder / "audit")
            if disk.free < disk.total / 2 and not (self.folder / "audit/filler").exists():
                self.drop_records()

    def drop_records(self) -> None:
        """Those that are closed: what begins with `_` is still the gateway's."""
        for path in (self.folder / "audit").rglob("[!_]*.parquet"):
            path.unlink(missing_ok=True)

    @property
    def has_audit_disk(self) -> bool:
        return (self.folder / "audit").is_mount()

    def write_rates(self, messages: int) -> None:
        new = self.folder / "policies/rates.new"
        new.write_text(_RATE % messages)
        new.replace(self.folder / "policies/rates.yaml")

    def write_papers(self) -> None:
        assert self.ca is not None
        papers(self.ca, self.folder, "listener", "localhost")

    def plan(self, seed: int, rate: float) -> Plan:
        setup, names = self.setup, tuple(f"chaos-{number}" for number in range(len(self.setup.queues)))
        classic = tuple(name for name, kind in zip(names, setup.queues, strict=True) if kind == "classic")
        plain = setup.version == "0-9-1"
        # 0-8 has no confirms: all that it publishes is in transactions, which are not for quorum queues.
        needs_none = setup.version == "0-8" and len(classic) == len(names)
        return Plan(
            ports=tuple(wire.port for wire in self.fronts),
            folder=str(self.folder / "clients"),
            version=setup.version,
            queues=names,
            tx_queues=() if setup.version == "0-10" else classic,
            publishers=0 if needs_none else 2,
            transactions=1 if plain else 2,
            denied=DENIED_KEY if setup.has_all else "",
            added={"x-by": "gate"} if setup.has_all else {},
            ca=str(self.folder / "ca.pem") if setup.has_all else "",
            seed=seed,
            rate=rate,
        )

    def left(self) -> int:
        """Messages that the queues still have, as these say themselves: of quorum queues the node's table of
        numbers is up to 5 s old.
        """
        return int(self.nodes[0].eval(_LEFT))


@contextlib.contextmanager
def playing(setup: Setup, folder: Path) -> Iterator[World]:
    """Everything of a set-up, started."""
    with contextlib.ExitStack() as stack:
        nodes = _brokers(setup, stack)
        _declare(nodes[0], setup)
        wires = Wires()
        stack.callback(wires.close)
        (folder / "clients").mkdir(parents=True)
        if setup.is_direct:
            fronts = [wires.lead("broker", node.port) for node in nodes]
            yield World(setup, folder, nodes, wires, fronts, fronts)
            return
        backs = [wires.lead("broker", node.port) for node in nodes]
        world = World(setup, folder, nodes, wires, [], backs)
        more, tls = _all(world, stack) if setup.has_all else ("", "")
        endpoints = ", ".join(f'{{address: "127.0.0.1:{wire.port}"}}' for wire in backs)
        world.place = Place(
            _CONFIG.format(
                beat=HEARTBEAT, tls=tls, endpoints=endpoints, connections=setup.connections, more=more
            )
        )
        world.fronts.append(wires.lead("client", world.gateway.port))
        world.gateway.start()
        try:
            yield world
        finally:
            with contextlib.suppress(AssertionError):
                world.logs.append(world.gateway.kill().log)


def _brokers(setup: Setup, stack: contextlib.ExitStack) -> list[RabbitMQ]:
    if setup.broker == "cluster":
        cluster = RabbitCluster(3, root=root_of_4(), config=_BROKER)
        stack.callback(cluster.destroy)
        return cluster.nodes
    node = RabbitMQ(root=None if setup.broker == "3.10" else root_of_4(), config=_BROKER)
    stack.callback(node.destroy)
    node.start()
    return [node]


def _declare(node: RabbitMQ, setup: Setup) -> None:
    with contextlib.closing(pika.BlockingConnection(pika.URLParameters(node.url))) as connection:
        channel = connection.channel()
        for number, kind in enumerate(setup.queues):
            arguments: dict[str, object] = {"x-queue-type": kind}
            if kind == "quorum":
                # What comes back is no failure of a consumer's, and dropped by nobody.
                arguments["x-delivery-limit"] = -1
            channel.queue_declare(f"chaos-{number}", durable=True, arguments=arguments)
    if setup.broker == "3.10":
        # A node that is killed forgets the queues that Mnesia has not written yet.
        node.eval("mnesia:sync_log().")


def _all(world: World, stack: contextlib.ExitStack) -> tuple[str, str]:
    """What belongs to everything; more settings, and the listener's."""
    folder = world.folder
    (folder / "policies").mkdir()
    (folder / "policies/all.yaml").write_text(_POLICIES)
    world.write_rates(50_000)
    (folder / "audit").mkdir()
    if shutil.which("mount"):
        # A disk that can be full. It ends with the mount namespace, or here.
        disk = ["mount", "-t", "tmpfs", "-o", f"size={AUDIT_MEGABYTES}m", "tmpfs", str(folder / "audit")]
        if subprocess.run(disk, capture_output=True).returncode == 0:
            stack.callback(subprocess.run, ["umount", "--lazy", str(folder / "audit")], capture_output=True)
    over = threading.Event()
    collector = threading.Thread(target=_collect, args=(world, over), daemon=True)
    collector.start()
    stack.callback(collector.join)
    stack.callback(over.set)
    green = RabbitMQ()
    stack.callback(green.destroy)
    green.start()
    world.redis = RedisServer()
    stack.callback(world.redis.destroy)
    world.redis.start()
    world.collector = stack.enter_context(Collector())
    world.ca = trustme.CA()
    world.ca.cert_pem.write_to_path(folder / "ca.pem")
    world.write_papers()
    more = _MORE.format(
        green=green.address,
        folder=folder,
        collector=world.collector.endpoint,
        redis=world.redis.port,
        password=world.redis.password,
    )
    return more, f", tls: {{cert: {folder}/listener.pem, key: {folder}/listener.key}}"


def _collect(world: World, over: threading.Event) -> None:
    while not over.wait(1):
        world.collect_records()


def restarted(node: RabbitMQ, world: World) -> None:
    """Start a node that was killed, and note when it serves again."""
    node.start(timeout=180)
    world.revived.append(time.time())
