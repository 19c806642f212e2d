"""RabbitMQ 3 and 4 with their management interfaces, a gateway in front of both, and `amqpgate move`."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs
import pika

from tests.interop.brokers import running
from tests.interop.rolling import QUEUE, Client, Quiet, Tally
from tests.support.gateway import Gateway
from tests.support.ports import free_port
from tests.support.rabbitmq import RabbitMQ
from tests.support.rabbitmq_root import root_of_4

CONFIG = """
listeners: [{{name: main, upstream: blue, bind: "127.0.0.1:{{port}}"}}]
upstreams:
- {{name: blue, url: "amqp://{blue}", connections: {connections}}}
- {{name: green, url: "amqp://{green}", connections: {connections}}}
policies: {folder}/policies
admin: {{bind: "127.0.0.1:{{admin_port}}", tokenFile: {folder}/token}}
limits: {{drainTimeout: 5s}}
"""
POLICIES = """\
# Who goes where.
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: moving}
spec:
  routes:
  - id: prod  # all of them
    match: {vhosts: [/]}
    upstream: {cluster: blue}
    pause: {most: 500, timeout: 60s}
---
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: three}
spec:
  subjects: [{vhosts: [/]}]
  as: rabbitmq-3.13
  upstreams: [green]
"""


@attrs.frozen
class ManagedBroker:
    """A node with its management interface."""

    node: RabbitMQ
    management: str

    @classmethod
    def make(cls, root: Path | None = None) -> ManagedBroker:
        port = free_port()
        lines = [f"management.tcp.port = {port}", "management.tcp.ip = 127.0.0.1"]
        return cls(
            RabbitMQ(root=root, plugins=["rabbitmq_management"], config=lines), f"http://127.0.0.1:{port}"
        )

    @contextlib.contextmanager
    def channel(self) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
        """Past the gateway."""
        with contextlib.closing(
            pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.node.port, heartbeat=0))
        ) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            yield channel

    def ready(self, queue: str = QUEUE) -> int:
        with self.channel() as channel:
            count: int = channel.queue_declare(queue, passive=True).method.message_count
            return count

    def empty(self) -> None:
        """Without queues, and without exchanges of its users."""
        self.node.fresh_vhost("/")


@contextlib.contextmanager
def brokers() -> Iterator[tuple[ManagedBroker, ManagedBroker]]:
    """Blue is the machine's RabbitMQ, green one of version 4."""
    root = root_of_4()
    blue, green = ManagedBroker.make(), ManagedBroker.make(root)
    try:
        blue.node.start()
        green.node.start()
        yield blue, green
    finally:
        blue.node.destroy()
        green.node.destroy()


@attrs.define(eq=False)
class Both(Client):
    """Publishes and consumes on one connection: nobody can close the one without the other."""

    _number: int = attrs.field(default=0, init=False)

    def live(self) -> None:
        with contextlib.closing(Quiet(self.connect())) as guard:
            channel = guard.connection.channel()
            channel.confirm_delivery()
            channel.basic_qos(prefetch_count=10)
            for method, _, body in channel.consume(QUEUE, inactivity_timeout=0.05):
                if method is not None:
                    self.tally.got(body.decode(), redelivered=method.redelivered)
                    channel.basic_ack(method.delivery_tag)
                if self.stop.is_set():
                    return
                mine = f"{self.name}-{self._number}"
                channel.basic_publish("", QUEUE, mine.encode(), mandatory=True)
                self.tally.confirmed.add(mine)
                self._number += 1
                self.succeeded()


@contextlib.contextmanager
def both_at_work(port: int, count: int) -> Iterator[Tally]:
    """So many of them. In the end they stop; what is left in the queue is for who looks."""
    tally, stop = Tally(), threading.Event()
    threads = [threading.Thread(target=Both(f"b{n}", port, tally, stop).run) for n in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield tally
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


@attrs.frozen
class Stage:
    """All that takes part in a move."""

    blue: ManagedBroker
    green: ManagedBroker
    gateway: Gateway
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "move.yaml"

    def describe(self, **more: str) -> None:
        """Write the file of the move, with these lines besides."""
        (self.folder / "password").write_text("guest\n")
        lines = ["routes: [prod]", 'vhosts: ["/"]', f"policies: {self.folder}/policies"]
        for key, one in (("from", self.blue), ("to", self.green)):
            upstream = "blue" if key == "from" else "green"
            lines.append(
                f"{key}: {{upstream: {upstream}, management: '{one.management}',"
                f" amqp: 'amqp://{one.node.address}', user: guest, passwordFile: password}}"
            )
        admin = f"{self.gateway.host}:{self.gateway.admin_port}"
        lines.append(f"gateways: [{{admin: '{admin}', tokenFile: token}}]")
        lines += [f"{key}: {value}" for key, value in more.items()]
        self.file.write_text("\n".join(lines) + "\n")

    def start(self, verb: str, *words: str) -> subprocess.Popen[str]:
        """`amqpgate move`, in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-u", "-m", "amqpgate", "move", verb, str(self.file), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def move(self, verb: str, *words: str, timeout: float = 90) -> tuple[int, str]:
        """Its exit code, and what it said."""
        process = self.start(verb, *words)
        try:
            said, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            raise AssertionError(f"not in time:\n{said}") from None
        return process.returncode, said

    def killed_at(self, verb: str, step: str, *words: str) -> str:
        """SIGKILL as soon as it says that it is there; what it said. It may be done before."""
        process = self.start(verb, *words)
        said = ""
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                said += line
                if step in line:
                    process.kill()
                    break
            said += process.stdout.read()
        process.wait()
        return said


@contextlib.contextmanager
def staged(
    blue: ManagedBroker, green: ManagedBroker, folder: Path, *, connections: str = "own"
) -> Iterator[Stage]:
    """Both brokers are empty, blue has the queue of `rolling`, and the gateway leads there."""
    (folder / "policies").mkdir()
    (folder / "policies" / "routes.yaml").write_text(POLICIES)
    (folder / "token").write_text("open sesame\n")
    blue.empty()
    green.empty()
    with blue.channel() as channel:
        channel.queue_declare(QUEUE, durable=True)
    config = CONFIG.format(
        blue=blue.node.address, green=green.node.address, folder=folder, connections=connections
    )
    with running(config) as gateway:
        stage = Stage(blue, green, gateway, folder)
        stage.describe()
        yield stage
