"""A 0-10 client, its translator, and the embedded broker behind it, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from amqpgate.bridge.v0_10.client import ClientTranslator
from amqpgate.bridge.v0_10.link import ClientOptions
from amqpgate.broker.greeting import Greeting
from amqpgate.broker.outbox import Outbox
from amqpgate.broker.session import BrokerSession
from amqpgate.broker.state import BrokerState
from amqpgate.protocol.frames import FRAME_METHOD, FrameDecoder, encode_frame
from amqpgate.protocol.methods import Role
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.codec import decode_struct32
from amqpgate.wire.v0_10.structs import Command, Control, Struct
from tests.support.frames import content_frames
from tests.support.said_0_10 import Read, Sent, Splitter
from tests.support.talk_0_10 import command, control

START_OK = amqp10.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0guest\0guest", locale=b"en_US")
NAME = b"session"


def broker_state() -> BrokerState:
    return BrokerState.of({"guest": "guest"}, ("/",), 64 * 1024 * 1024)


class Lab:
    """What the client says goes to the translator, and from there to a broker of 0-9-1, until all is still.

    ``cut`` is how many bytes the translator is given at once, from either side; None: all. The login is made
    to be guest's, whatever it is, where ``admits`` says so.
    """

    def __init__(
        self,
        state: BrokerState | None = None,
        options: ClientOptions | None = None,
        *,
        cut: int | None = None,
        admits: bool = False,
        greeting: Greeting | None = None,
    ) -> None:
        self.state = state or broker_state()
        self.broker = BrokerSession(self.state, greeting or Greeting(), Outbox(lambda: None))
        self.translator = ClientTranslator(options)
        #: What the client was told, and what the broker was: methods by their channels.
        self.heard: list[Sent] = []
        self.asked: list[tuple[int, Method]] = []
        #: Whether the broker hears and says anything.
        self.is_live = True
        self._cut = cut
        self._admits = admits
        self._splitter = Splitter()
        self._frames = FrameDecoder(0)
        self._from_broker = FrameDecoder(0)
        list(self.broker.receive(b"AMQP\0\0\x09\x01"))
        self.settle()

    # The client.

    def open(self, *, sessions: int = 64) -> Lab:
        self.say(START_OK)
        self.say(amqp10.ConnectionTuneOk(channel_max=sessions), amqp10.ConnectionOpen(virtual_host=b""))
        self.heard.clear()
        self.asked.clear()
        return self

    def attach(self, channel: int = 0, name: bytes = NAME) -> Lab:
        self.say(
            amqp10.SessionAttach(name=name),
            amqp10.SessionCommandPoint(command_id=0, command_offset=0),
            channel=channel,
        )
        self.heard.clear()
        return self

    def say(self, *said: bytes | Control | Command, channel: int = 0, sync: bool = False) -> list[Sent]:
        """What the client says at once; what it hears then."""
        data = b""
        for one in said:
            if isinstance(one, Control):
                data += control(one, 0 if one.CLASS_CODE == 1 else channel)
            else:
                data += command(one, sync=sync, channel=channel) if isinstance(one, Command) else one
        return self.give(data)

    def give(self, data: bytes) -> list[Sent]:
        """The same in bytes."""
        before = len(self.heard)
        for piece in self._pieces(data):
            self.translator.from_peer(piece)
            self.settle()
        self.settle()
        return self.heard[before:]

    def transfer(
        self,
        body: bytes = b"",
        key: bytes = b"",
        *,
        exchange: bytes | None = None,
        structs: Sequence[Struct] | None = None,
        accept_mode: int | None = None,
        channel: int = 0,
        sync: bool = True,
    ) -> list[Sent]:
        """Publish something."""
        if structs is None:
            structs = [amqp10.DeliveryProperties(routing_key=key)]
        transfer = amqp10.MessageTransfer(destination=exchange, accept_mode=accept_mode)
        return self.give(command(transfer, structs, body, channel=channel, sync=sync))

    def do(self, one: Command, channel: int = 0) -> list[Sent]:
        """A command with its sync bit."""
        return self.say(one, channel=channel, sync=True)

    def query(self, one: Command, channel: int = 0) -> Struct:
        """The result of a command, which is complete."""
        heard = self.do(one, channel)
        results = [sent.command for sent in heard if isinstance(sent.command, amqp10.ExecutionResult)]
        assert [type(sent.control) for sent in heard if sent.control] == [amqp10.SessionCompleted]
        assert len(results) == 1
        return decode_struct32(results[0].value)

    def completed(self, channel: int = 0) -> set[int]:
        """The ids in the last session.completed."""
        for sent in reversed(self.heard):
            if sent.channel == channel and isinstance(sent.control, amqp10.SessionCompleted):
                return {
                    one for lower, upper in sent.control.commands.ranges for one in range(lower, upper + 1)
                }
        return set()

    def commands(self) -> list[Command]:
        return [sent.command for sent in self.heard if sent.command is not None]

    def names(self) -> list[str]:
        """What the broker was asked, by name."""
        return [method.NAME for _, method in self.asked]

    # Between the two.

    def settle(self) -> None:
        """Until nobody says anything any more."""
        while self._step():
            pass

    def _step(self) -> bool:
        frames = b""
        while self.translator.has_frames:
            piece = self.translator.frames_for_gateway(self._cut or 1 << 16)
            assert piece
            frames += piece
        output = self.translator.bytes_for_peer()
        self.heard += self._splitter.feed(output)
        if frames:
            self._to_broker(frames)
        moved = bool(frames or output)
        if self.is_live:
            said = self.broker.outbox.take()
            self.broker.outbox.sent(len(said))
            self.broker.resume()
            if said:
                self._from_broker.feed(said)
                while (frame := self._from_broker.next()) is not None:
                    self.translator.from_gateway(encode_frame(*frame))
            moved |= bool(said)
        return moved

    def tell(self, method: Method, channel: int = 0) -> None:
        """Something that the broker says, whatever it thinks."""
        self.translator.from_gateway(encode_frame(FRAME_METHOD, channel, method.encode()))
        self.settle()

    def content(self, method: Method, channel: int, body: bytes = b"m") -> None:
        """The same, a method with content."""
        self.translator.from_gateway(content_frames(channel, method, amqp.BasicProperties(), body))
        self.settle()

    def give_broker(self, *methods: Method, channel: int = 9) -> None:
        """Something that the broker hears, and no translator has said."""
        for method in methods:
            list(self.broker.receive(encode_frame(FRAME_METHOD, channel, method.encode())))
        self.broker.outbox.sent(len(self.broker.outbox.take()))

    def _to_broker(self, frames: bytes) -> None:
        self._frames.feed(frames)
        while (frame := self._frames.next()) is not None:
            if frame.type == FRAME_METHOD:
                method = decode_method(frame.payload)
                if self._admits and isinstance(method, amqp.ConnectionStartOk):
                    method = amqp.ConnectionStartOk(
                        method.client_properties, "PLAIN", b"\0guest\0guest", "en_US"
                    )
                self.asked.append((frame.channel, method))
                frame = frame._replace(payload=method.encode())
            for _ in self.broker.receive(encode_frame(*frame)):
                pass

    def _pieces(self, data: bytes) -> list[bytes]:
        step = self._cut or len(data) or 1
        return [data[at : at + step] for at in range(0, len(data), step)]


def replay(conversation: Sequence[Read], state: BrokerState | None = None) -> Lab:
    """What a recorded client said, said to a translator; but the login is guest's, and its sessions are as
    many as are offered.
    """
    lab = Lab(state, admits=True)
    splitter = Splitter()
    for read in conversation:
        if read.sender is Role.CLIENT:
            for sent in splitter.feed(read.data):
                _say_again(lab, sent)
    return lab


def _say_again(lab: Lab, sent: Sent) -> None:
    match sent.control:
        case None:
            assert sent.command is not None
            again = command(sent.command, sent.structs, sent.body, sync=sent.sync, channel=sent.channel)
            lab.give(again)
        case amqp10.ConnectionSecureOk():
            pass
        case amqp10.ConnectionTuneOk():
            lab.say(amqp10.ConnectionTuneOk(channel_max=64))
        case _:
            lab.say(sent.control, channel=sent.channel)
