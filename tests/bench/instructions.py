"""Instructions of a gateway for each message, with a compatibility policy and without.

    python -m tests.bench.instructions [--messages 200000] [--keep DIR]

Runs ``python -m amqpgate run`` under callgrind between a client and a broker, and counts what it does while
so many messages pass (`callgrind_control --dump`). What else the machine does counts for nothing. Messages
come as fast as they are taken: beyond what a chunk of bytes costs, which is small, the answer is that of one
message. ``--keep`` leaves callgrind's files there, for `callgrind_annotate`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import multiprocessing
import re
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs

from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames
from tests.support.gateway import Gateway
from tests.support.talker import Gone, Talker

from .looked import ACCESS, PROFILE, SETTINGS

#: Allows all, by names.
ALL = ACCESS + "  - {id: all, effect: allow, operations: ['*']}\n"
#: Policies of each gateway.
POLICIES: Mapping[str, tuple[str, ...]] = {
    "no policies": (),
    "access": (ALL,),
    "access and profile": (ALL, PROFILE),
    "profile": (PROFILE,),
}
_BODY = b"x" * 16
_BATCH = 1000


#: As most clients write them, and with headers, which are looked through.
PLAIN = amqp.BasicProperties(content_type="text/plain", delivery_mode=2)
HEADED = attrs.evolve(PLAIN, headers=Table.of({"tenant": "acme", "order": 4711, "region": "eu-west-1"}))


def publish(client: Talker, count: int, properties: amqp.BasicProperties) -> None:
    """Publishes, and waits until the broker has them."""
    one = amqp.BasicPublish(exchange="bench.exchange", routing_key="bench.key")
    batch = content_frames(1, one, properties, _BODY, 131072) * _BATCH
    for _ in range(count // _BATCH):
        client.raw(batch)
    client.ask(amqp.BasicQos(prefetch_count=1), amqp.BasicQosOk, 1)


def deliver(client: Talker, count: int, properties: amqp.BasicProperties) -> None:
    """Consumes what `serve` sends."""
    name = "headed" if properties.headers else "plain"
    client.ask(amqp.BasicConsume(queue=f"{name}.{count}", consumer_tag="t"), amqp.BasicConsumeOk, 1)
    client.exactly(count * len(_delivery(1, properties)))
    client.ask(amqp.BasicCancel("t"), amqp.BasicCancelOk, 1)


def _delivery(tag: int, properties: amqp.BasicProperties) -> bytes:
    one = amqp.BasicDeliver("t", tag, exchange="bench.exchange", routing_key="bench.key")
    return content_frames(1, one, properties, _BODY, 131072)


def serve(listener: socket.socket) -> None:
    """A broker for one client after another: takes publishes, and delivers as many as a queue's name says."""
    while True:
        with contextlib.suppress(Gone, OSError), Talker(listener.accept()[0], timeout=600) as client:
            client.accept()
            tags = itertools.count(1)
            for frame in client.all():
                if frame.type == amqp.FRAME_METHOD:
                    _answer(client, decode_method(frame.payload), frame.channel, tags)


def _answer(client: Talker, method: Method, channel: int, tags: Iterator[int]) -> None:
    match method:
        case amqp.ChannelOpen():
            client.say(amqp.ChannelOpenOk(), channel)
        case amqp.BasicQos():
            client.say(amqp.BasicQosOk(), channel)
        case amqp.BasicCancel():
            client.say(amqp.BasicCancelOk("t"), channel)
        case amqp.BasicConsume():
            client.say(amqp.BasicConsumeOk("t"), channel)
            name, _, count = method.queue.partition(".")
            properties = HEADED if name == "headed" else PLAIN
            client.raw(b"".join(_delivery(tag, properties) for tag in itertools.islice(tags, int(count))))


PATHS: Mapping[str, Callable[[Talker, int], None]] = {
    "publish": partial(publish, properties=PLAIN),
    "publish, with headers": partial(publish, properties=HEADED),
    "deliver": partial(deliver, properties=PLAIN),
    "deliver, with headers": partial(deliver, properties=HEADED),
}


@attrs.define(eq=False)
class Counted:
    """A gateway under callgrind."""

    gateway: Gateway
    folder: Path
    dumps: int = 0

    def control(self, command: str) -> None:
        said = ["callgrind_control", command, str(self.gateway.pid)]
        subprocess.run(said, check=True, capture_output=True)

    def count(self) -> int:
        """Instructions since it was asked last."""
        self.dumps += 1
        self.control("--dump")
        (file,) = self.folder.glob(f"callgrind.out.{self.gateway.pid}.{self.dumps}")
        return int(re.findall(r"^totals: (\d+)", file.read_text(), re.MULTILINE)[-1])


def counted(policies: Sequence[str], broker: int, folder: Path, messages: int) -> dict[str, float]:
    """Instructions for a message, by path."""
    (folder / "policies").mkdir(parents=True)
    for number, document in enumerate(policies):
        (folder / "policies" / f"{number}.yaml").write_text(document)
    settings = SETTINGS.replace("SINK", str(broker)).replace("FOLDER", str(folder))
    if not policies:
        settings = re.sub("^policies: .*\n", "", settings, flags=re.MULTILINE)
    written = f"--callgrind-out-file={folder}/callgrind.out.%p"
    callgrind = ("valgrind", "--tool=callgrind", "--instr-atstart=no", written)
    gateway = Gateway(config=settings, under=callgrind)
    took = {}
    try:
        # Before it counts it is some ten times slower than by itself, and then some fifty.
        gateway.start(timeout=600)
        with contextlib.closing(Talker.dial(gateway.port, timeout=600)) as client:
            client.open()
            under = Counted(gateway, folder)
            under.control("--instr=on")
            for name, path in PATHS.items():
                path(client, 5 * _BATCH)
                under.count()
                path(client, messages)
                took[name] = under.count() / messages
    finally:
        gateway.kill()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--keep", type=Path, metavar="DIR")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.keep or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="amqpgate-bench-"))
        )
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        process = multiprocessing.get_context("fork").Process(target=serve, args=(listener,), daemon=True)
        process.start()
        stack.callback(process.kill)
        broker = listener.getsockname()[1]
        took = {
            name: counted(policies, broker, folder / name.replace(" ", "-"), options.messages)
            for name, policies in POLICIES.items()
        }
    for path in PATHS:
        none = took["no policies"][path]
        told = "".join(f"  {name} {one[path]:8.0f} ({one[path] / none:.3f})" for name, one in took.items())
        print(f"{path:24}{told}")


if __name__ == "__main__":
    main()
