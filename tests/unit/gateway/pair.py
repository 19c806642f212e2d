"""A gateway in front of two brokers, both the test; its clients are bound to one of them late."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import Doorway, InProcess, serving
from tests.support.talker import CAPABILITIES, Talker

HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: RoutePolicy\nmetadata: {name: p}\nspec:\n  routes:\n"
START_OK = amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US")
TUNE = amqp.ConnectionTune(100, 8192, 7)


@attrs.frozen
class Scene:
    """A gateway in front of two brokers of one cluster, both the test; the route asks for the vhost."""

    running: InProcess
    doors: tuple[Doorway, Doorway]
    guests: contextlib.ExitStack

    def broker(self, index: int) -> Talker:
        return self.guests.enter_context(self.doors[index].accept())

    def answering(self, index: int) -> Talker:
        """A broker that has said start, and heard start-ok."""
        broker = self.broker(index)
        broker.greet()
        broker.expect(amqp.ConnectionStartOk)
        return broker

    def greeted(self) -> Talker:
        """A client that has heard start, made of what the first broker offers."""
        client = self.guests.enter_context(self.running.dial())
        client.raw(amqp.PROTOCOL_HEADER)
        with self.doors[0].accept() as asked:
            asked.greet()
            asked.expect_end()
        client.expect(amqp.ConnectionStart)
        return client

    def asking(self, start_ok: amqp.ConnectionStartOk = START_OK) -> Talker:
        """A client that waits for open-ok."""
        client = self.greeted()
        tune = client.ask(start_ok, amqp.ConnectionTune)
        client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
        client.say(amqp.ConnectionOpen("/"))
        return client


@pytest.fixture
def make_pair(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    """A scene with more keys of the upstream."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "routes.yaml").write_text(
        HEAD + "  - {id: r, match: {vhosts: [/]}, upstream: {cluster: pair}}\n"
    )
    with contextlib.ExitStack() as stack:

        def make(upstream: str = "handshakeTimeout: 2s") -> Scene:
            doors = (
                stack.enter_context(contextlib.closing(Doorway())),
                stack.enter_context(contextlib.closing(Doorway())),
            )
            places = ", ".join(f"{{address: '127.0.0.1:{door.port}'}}" for door in doors)
            text = (
                "listeners: [{name: main, bind: '127.0.0.1:0'}]\n"
                f"upstreams: [{{name: pair, {upstream}, endpoints: [{places}]}}]\n"
                "policies: policies\n"
            )
            running = stack.enter_context(serving(text, folder=tmp_path))
            return Scene(running, doors, stack.enter_context(contextlib.ExitStack()))

        yield make


@pytest.fixture
def scene(make_pair: Callable[..., Scene]) -> Scene:
    """A scene with usual settings."""
    return make_pair()
