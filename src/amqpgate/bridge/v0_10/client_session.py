"""One session of a 0-10 client on up to three channels of 0-9-1 (see `channels`).

A session is strictly ordered, channels are not. So commands are done one after the other: each is asked on
its channel, and the next one waits for the answer. Transfers do not wait for each other, but whatever is
asked after them waits until they are confirmed. What only tells, such as message.accept, waits for nobody.

::

    client ── commands ──▶ queue ──▶ running ── calls ──▶ main, ask ──┐
                             │          ▲                             ├── broker
                             │          └──────── answers ────────────┤
                             └── transfers ──▶ unconfirmed ──▶ pub ───┘

What ends a session
    The client detaches: what it has asked before is still done, then the channels are closed.
    A command is refused, or the broker closes ``main`` or ``pub``: execution.exception and session.detach.
    Both ways queues go that are exclusive and auto-delete.

Memory
    `MOST_COMMANDS` commands or `MOST_QUEUED` bytes wait, then the client is not read (``is_full``).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from attrs import define

from amqpgate.bridge.v0_10.channels import BrokerChannel, Use
from amqpgate.bridge.v0_10.codes import violation_of_channel_close
from amqpgate.bridge.v0_10.commands import Commands
from amqpgate.bridge.v0_10.declaring import Declaring
from amqpgate.bridge.v0_10.frames import FromBroker
from amqpgate.bridge.v0_10.link import BrokerLink
from amqpgate.bridge.v0_10.publishing import MOST_UNCONFIRMED, Incoming, Unconfirmed, publish_of
from amqpgate.bridge.v0_10.queries import Queries
from amqpgate.bridge.v0_10.steps import Answer, Call, Steps
from amqpgate.bridge.v0_10.subscriptions import Subscriptions
from amqpgate.bridge.v0_10.transactions import Transactions
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.events import CommandsCompleted, IncomingBody, IncomingCommand, IncomingHeader
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.codec import encode_struct32
from amqpgate.wire.v0_10.sequences import ids_of
from amqpgate.wire.v0_10.structs import Struct

MOST_COMMANDS: Final = 4096
MOST_QUEUED: Final = 1024 * 1024


@define(eq=False)
class _Running:
    """The command that is being done."""

    incoming: Incoming
    steps: Steps
    call: Call
    is_asked: bool = False


class ClientSession:
    """See the module. ``session`` is the client's side of it."""

    __slots__ = (
        "_channels",
        "_commands",
        "_incoming",
        "_is_stopped",
        "_link",
        "_queue",
        "_queued",
        "_running",
        "_session",
        "_unconfirmed",
    )

    def __init__(self, session: AttachedSession, link: BrokerLink) -> None:
        #: None once it is detached.
        self._session: AttachedSession | None = session
        self._link = link
        self._channels = {use: BrokerChannel(use, link.numbers, link.writer, self.hear) for use in Use}
        subscriptions = Subscriptions(session, self._channels[Use.MAIN])
        self._commands = Commands(
            Declaring(link.topology, self, link.options),
            Queries(link.topology),
            Transactions(subscriptions),
            subscriptions,
        )
        #: The command whose content is coming.
        self._incoming: Incoming | None = None
        self._queue: deque[Incoming] = deque()
        #: Bytes of bodies in the queue.
        self._queued = 0
        self._running: _Running | None = None
        self._unconfirmed = Unconfirmed()
        #: The broker takes no publishes.
        self._is_stopped = False

    @property
    def is_full(self) -> bool:
        """Whether no more of the client's commands are taken."""
        return len(self._queue) >= MOST_COMMANDS or self._queued >= MOST_QUEUED

    @property
    def is_idle(self) -> bool:
        """Whether all is done that the client asked for."""
        return not self._queue and self._running is None

    # What the client says.

    def receive(self, event: IncomingCommand | IncomingHeader | IncomingBody | CommandsCompleted) -> None:
        """Something of the client's."""
        match event:
            case CommandsCompleted(commands=commands):
                self._commands.subscriptions.completed(commands)
            case IncomingCommand(command_id=command_id, command=command, has_content=has_content):
                self._incoming = Incoming(command_id, command)
                if not has_content:
                    self._enqueue()
            case IncomingHeader(structs=structs, has_body=has_body) if self._incoming is not None:
                self._incoming.structs = structs
                if not has_body:
                    self._enqueue()
            case IncomingBody(chunk=chunk, is_last=is_last) if self._incoming is not None:
                self._add(self._incoming, chunk)
                if is_last:
                    self._enqueue()

    def ended(self) -> None:
        """The client's side is detached. What it asked before is still done."""
        self._session = None
        self._drop_incoming()
        self._commands.subscriptions.detached()
        self._pump()

    def _add(self, incoming: Incoming, chunk: bytes) -> None:
        try:
            self._link.keep(len(chunk))
        except ProtocolViolation as violation:
            self._fail(violation, incoming)
        else:
            incoming.add(chunk)

    def _enqueue(self) -> None:
        incoming, self._incoming = self._incoming, None
        if incoming is not None:
            self._queue.append(incoming)
            self._queued += incoming.size
            self._pump()

    # What is done.

    def _pump(self) -> None:
        """As far as it goes without the broker's answers."""
        while True:
            if self._running is not None:
                self._try_to_ask(self._running)
                if self._running is not None:
                    return
            elif not self._queue:
                break
            elif not self._start():
                return
        if self._session is None:
            self._close()

    def _start(self) -> bool:
        """Begin the next command; False if it has to wait."""
        head = self._queue[0]
        try:
            if isinstance(head.command, amqp10.MessageTransfer):
                if not self._may_publish():
                    return False
                self._take()
                self._publish(head)
                return True
            self._take()
            steps = self._commands.steps(head.command)
            if steps is None:
                self._finish(head, None)
            else:
                self._step(head, steps, None)
        except ProtocolViolation as violation:
            self._fail(violation, head)
        return True

    def _take(self) -> None:
        self._queued -= self._queue.popleft().size

    def _step(self, incoming: Incoming, steps: Steps, answer: Answer | None) -> None:
        """Go on with a command until it asks something, or is done."""
        self._running = None
        try:
            call = next(steps) if answer is None else steps.send(answer)
        except StopIteration as stop:
            self._finish(incoming, stop.value)
        except ProtocolViolation as violation:
            self._fail(violation, incoming)
        else:
            self._running = _Running(incoming, steps, call)

    def _try_to_ask(self, running: _Running) -> None:
        """Ask what the running command wants to know, once nothing is unanswered that came before."""
        if running.is_asked or self._unconfirmed:
            return
        channel = self._channels[running.call.use]
        try:
            channel.open()
            if channel.is_open:
                channel.send(running.call.method)
                running.is_asked = True
        except ProtocolViolation as violation:
            self._fail(violation, running.incoming)

    def _finish(self, incoming: Incoming, result: Struct | None) -> None:
        """A command is done."""
        if self._session is None:
            return
        command_id = incoming.command_id
        if result is not None:
            self._session.send(amqp10.ExecutionResult(command_id=command_id, value=encode_struct32(result)))
        self._session.finish(command_id)

    # Publishing.

    @property
    def _publisher(self) -> BrokerChannel:
        return self._channels[Use.MAIN if self._commands.transactions.is_selected else Use.PUB]

    def _may_publish(self) -> bool:
        """Whether the channel for it is open, which it is opened for, and not at its limits."""
        channel = self._publisher
        channel.open()
        # What comes back must be known for the one that was published last.
        most = 1 if self._link.options.reject_unroutable else MOST_UNCONFIRMED
        return channel.is_open and not self._is_stopped and len(self._unconfirmed) < most

    def _publish(self, transfer: Incoming) -> None:
        link = self._link
        publish = publish_of(transfer, login=link.login, reject_unroutable=link.options.reject_unroutable)
        channel = self._publisher
        channel.publish(publish.method, publish.properties, publish.body)
        self._link.let_go(transfer.size)
        if channel.use is Use.MAIN:
            self._confirmed([transfer])
        else:
            self._unconfirmed.add(transfer)

    def _confirmed(self, transfers: list[Incoming]) -> None:
        """The broker has them, in their order: who wants to hears that they are accepted; all are done."""
        if self._session is None:
            return
        accepted = [one.command_id for one in transfers if one.is_explicit and not one.is_rejected]
        if accepted:
            self._session.send(amqp10.MessageAccept(transfers=ids_of(accepted)))
        for one in transfers:
            self._session.finish(one.command_id)

    def _refused(self, tag: int, *, multiple: bool) -> None:
        """basic.nack: a queue did not take it, or not all could be stored."""
        refused = self._unconfirmed.confirm(tag, multiple=multiple)
        if refused:
            self._fail(ProtocolViolation(506, "the broker could not take the message"), refused[0])

    def _returned(self) -> None:
        """basic.return of what was published last: its confirm follows."""
        oldest = self._unconfirmed.oldest
        if oldest is not None and self._session is not None:
            self._session.send(
                amqp10.MessageReject(
                    transfers=ids_of([oldest.command_id]),
                    code=amqp10.RejectCode.UNROUTABLE,
                    text=b"unroutable",
                )
            )
            oldest.reject()

    # What the broker says.

    def hear(self, use: Use, told: FromBroker) -> None:
        """Something on one of the session's channels."""
        channel = self._channels[use]
        method = channel.receive(told.method)
        running = self._running
        match method:
            case None | amqp.ChannelOpenOk() | amqp.ConfirmSelectOk():
                pass
            case amqp.ChannelClose():
                self._channel_closed(use, method)
            case amqp.ChannelFlow(active=active):
                channel.send(amqp.ChannelFlowOk(active))
                if use is self._publisher.use:
                    self._is_stopped = not active
            case amqp.BasicAck(delivery_tag=tag, multiple=multiple):
                self._confirmed(self._unconfirmed.confirm(tag, multiple=multiple))
            case amqp.BasicNack(delivery_tag=tag, multiple=multiple):
                self._refused(tag, multiple=multiple)
            case amqp.BasicReturn():
                self._returned()
            case _ if running is not None and running.is_asked and _answers(running.call, use, method):
                answer = Answer(method, told.properties, told.body)
                self._step(running.incoming, running.steps, answer)
            case _ if use is Use.MAIN:
                self._hear_delivery(told)
        self._pump()

    def _hear_delivery(self, told: FromBroker) -> None:
        try:
            self._commands.subscriptions.hear(told)
        except ProtocolViolation as violation:
            self._fail(violation, None)

    def _channel_closed(self, use: Use, close: amqp.ChannelClose) -> None:
        running = self._running
        is_asked = running is not None and running.is_asked and running.call.use is use
        if use is Use.ASK:
            if running is not None and is_asked:
                self._step(running.incoming, running.steps, Answer(close))
            return
        culprit = self._unconfirmed.oldest if use is Use.PUB else None
        if running is not None and is_asked:
            culprit = running.incoming
        self._fail(violation_of_channel_close(close), culprit)

    # The end.

    def _fail(self, violation: ProtocolViolation, culprit: Incoming | None) -> None:
        """The session ends by a refusal; what waits is not done any more."""
        if self._session is not None:
            if culprit is None:
                self._session.fail(violation)
            else:
                self._session.fail(violation, culprit.command_id, type(culprit.command))
            self._session = None
        self.drop()

    def drop(self) -> None:
        """The session is over, and what waits is not done any more."""
        self._session = None
        self._drop_incoming()
        for waiting in self._queue:
            self._link.let_go(waiting.size)
        self._queue.clear()
        self._queued = 0
        self._running = None
        self._unconfirmed = Unconfirmed()
        self._commands.subscriptions.detached()
        self._close()

    def _drop_incoming(self) -> None:
        if self._incoming is not None:
            self._link.let_go(self._incoming.size)
            self._incoming = None

    def _close(self) -> None:
        """Undo what ends with the session, and close its channels. May be called more than once."""
        channels = self._channels.values()
        own_queues = self._commands.declaring.take_own_queues()
        if own_queues:
            channel = next((one for one in channels if one.is_open), None)
            if channel is None:
                channel = self._channels[Use.ASK]
                channel.open()
            for queue in own_queues:
                channel.send(amqp.QueueDelete(queue=queue, no_wait=True))
        for channel in channels:
            channel.close()


def _answers(call: Call, use: Use, method: Method) -> bool:
    return call.use is use and method.INDEX in call.method.REPLIES
