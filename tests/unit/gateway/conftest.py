"""A gateway between a client and a broker that are both the test itself."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest
import trustme

from amqpgate.bridge import Interpreter, interpreter_for
from amqpgate.gateway.session.session import Session
from amqpgate.protocol.frames import encode_frame
from amqpgate.wire.dialects import Dialect
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.inprocess import Doorway, InProcess, serving
from tests.support.talker import CAPABILITIES, Talker, relayed
from tests.unit.gateway.papers import Papers


@attrs.define(eq=False)
class Stage:
    """The gateway, the broker's door, and all who have entered."""

    running: InProcess
    door: Doorway
    guests: contextlib.ExitStack

    def client(self, listener: str = "main", **options: object) -> Talker:
        """A client that is connected and silent."""
        return self.guests.enter_context(self.running.dial(listener, **options))

    def broker(self) -> Talker:
        """The broker's end of the gateway's next connection."""
        return self.guests.enter_context(self.door.accept())

    def forget(self) -> None:
        """The gateway does not know what its brokers say in their start."""
        self.running.forget()

    def greeted(self, **options: object) -> tuple[Talker, Talker]:
        """A client that has heard start, and its broker, which was dialled for it."""
        self.forget()
        client = self.client(**options)
        client.raw(amqp.PROTOCOL_HEADER)
        broker = self.broker()
        broker.greet()
        client.expect(amqp.ConnectionStart)
        return client, broker

    def opened(
        self,
        channels: int = 1,
        *,
        tune: amqp.ConnectionTune | None = None,
        tune_ok: amqp.ConnectionTuneOk | None = None,
        properties: Table = CAPABILITIES,
        user: bytes = b"guest",
        **options: object,
    ) -> tuple[Talker, Talker]:
        """A client and its broker, with open channels 1 to `channels`."""
        client, broker = self.greeted(**options)
        client.say(
            amqp.ConnectionStartOk(properties, "PLAIN", b"\0" + user + b"\0guest", "en_US"),
        )
        broker.expect(amqp.ConnectionStartOk)
        broker.say(tune or amqp.ConnectionTune(2047, 131072, 0))
        offered = client.expect(amqp.ConnectionTune)
        answer = tune_ok or amqp.ConnectionTuneOk(offered.channel_max, offered.frame_max, 0)
        client.say(answer)
        client.frame_max = answer.frame_max
        broker.frame_max = broker.expect(amqp.ConnectionTuneOk).frame_max
        client.say(amqp.ConnectionOpen("/"))
        broker.expect(amqp.ConnectionOpen)
        broker.say(amqp.ConnectionOpenOk())
        client.expect(amqp.ConnectionOpenOk)
        for channel in range(1, channels + 1):
            relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), channel)
        return client, broker


SETTINGS = """
listeners: [{{name: main, bind: 127.0.0.1:0{listener}}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}{upstream}}}]
limits: {{{limits}}}
"""


@pytest.fixture
def make_stage(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """A stage with settings of one's own: YAML to be added to the listener, the upstream and the limits, or
    a whole text with `{port}` in it; and policy documents."""
    with contextlib.ExitStack() as everything:

        def make(
            *,
            listener: str = "",
            upstream: str = "",
            limits: str = "",
            text: str = SETTINGS,
            policies: str | None = None,
        ) -> Stage:
            door = everything.enter_context(contextlib.closing(Doorway()))
            if "closeTimeout" not in limits:
                # A broker of a test that does not answer a close never will: five seconds for each add up.
                limits = f"closeTimeout: 1s, {limits}"
            comma = ", {}".format
            text = text.format(
                port=door.port,
                listener=comma(listener) if listener else "",
                upstream=comma(upstream) if upstream else "",
                limits=limits,
            )
            if policies is not None:
                folder = tmp_path / "policies"
                folder.mkdir()
                (folder / "policy.yaml").write_text(policies)
                text += "policies: policies\n"
            running = everything.enter_context(serving(text, folder=tmp_path))
            guests = everything.enter_context(contextlib.ExitStack())
            return Stage(running, door, guests)

        yield make


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    """A stage with default settings."""
    return make_stage()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def papers(authority: trustme.CA, tmp_path: Path) -> Papers:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return Papers(authority, tmp_path)


# -- peers of other versions ---------------------------------------------------------------------------------

Opens = Callable[..., tuple[Talker, Talker]]


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Opens:
    """A client and a broker of these dialects on a stage, with one open channel."""
    enter = Session.enter

    def opened(
        stage: Stage, client: Dialect, broker: Dialect, met: Interpreter | None = None
    ) -> tuple[Talker, Talker]:
        """``met`` is the client's interpreter where that is not its dialect's."""

        def as_these(session: Session, *rest: object) -> None:
            spoken = met or interpreter_for(client), interpreter_for(broker)
            session.facts = attrs.evolve(session.facts, interpreters=spoken)
            enter(session, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(Session, "enter", as_these)
        talkers = stage.opened(channels=0)
        for talker, dialect in zip(talkers, (client, broker), strict=True):
            talker.dialect = dialect
        open_channel(*talkers, 1)
        return talkers

    return opened


def open_channel(client: Talker, broker: Talker, number: int) -> None:
    client.raw(encode_frame(1, number, bytes.fromhex("0014000a00")))
    assert broker.frame() == (1, number, bytes.fromhex("0014000a00"))
    broker.raw(encode_frame(1, number, OPEN_OK[broker.dialect.version]))
    assert client.frame() == (1, number, OPEN_OK[client.dialect.version])


OPEN_OK = {
    (0, 8, 0): bytes.fromhex("0014000b"),
    (0, 9, 0): bytes.fromhex("0014000b00000000"),
    (0, 9, 1): bytes.fromhex("0014000b00000000"),
}
