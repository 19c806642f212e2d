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
    Commands that wait: see `link.MOST_QUEUED`.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Final

from attrs import define

from amqpgate.bridge.v0_10.channels import BridgedChannel, ChannelUse, OpenState
from amqpgate.bridge.v0_10.codes import violation_of_channel_close
from amqpgate.bridge.v0_10.commands import Commands
from amqpgate.bridge.v0_10.declaring import Declares
from amqpgate.bridge.v0_10.frames import FromBroker
from amqpgate.bridge.v0_10.link import BrokerLink
from amqpgate.bridge.v0_10.parting import farewell
from amqpgate.bridge.v0_10.publishing import Incoming, Publisher
from amqpgate.bridge.v0_10.queries import Queries
from amqpgate.bridge.v0_10.steps import Answer, Call, Steps, Wait
from amqpgate.bridge.v0_10.subscriptions import Subscriptions
from amqpgate.bridge.v0_10.transactions import Transactions
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.events import (
    CommandsCompleted,
    IncomingBody,
    IncomingCommand,
    IncomingHeader,
    IncomingMessage,
)
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.codec import decode_header, encode_struct32
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command, Struct

_OPEN: Final = OpenState.OPEN


@define(eq=False)
class _Running:
    """The command that is being done; ``incoming`` is None if no client has asked for it."""

    incoming: Incoming | None
    steps: Steps
    call: Call | Wait
    is_asked: bool = False

    def asks_on(self, use: ChannelUse) -> bool:
        """Whether an answer is to come on that channel."""
        return self.is_asked and isinstance(self.call, Call) and self.call.use is use


class ClientSession:
    """See the module. ``session`` is the client's side of it."""

    __slots__ = (
        "_channels",
        "_commands",
        "_deletes",
        "_has_parted",
        "_incoming",
        "_link",
        "_owner",
        "_publisher",
        "_queue",
        "_running",
        "_session",
    )

    def __init__(self, session: AttachedSession, link: BrokerLink) -> None:
        #: None once it is detached.
        self._session: AttachedSession | None = session
        self._link = link
        #: Who it is to what it has: that does not lead back here.
        self._owner = object()
        self._channels = {
            use: BridgedChannel(use, link.numbers, link.writer, self.hear, self.confirmed, self._owner)
            for use in ChannelUse
        }
        subscriptions = Subscriptions(session, self._channels[ChannelUse.MAIN], link)
        self._commands = Commands(
            Declares(link, self._owner, subscriptions),
            Queries(link.topology, link.subscribers),
            Transactions(subscriptions),
            subscriptions,
        )
        self._publisher = Publisher(session, link, self._channels)
        #: The command whose content is coming.
        self._incoming: Incoming | None = None
        self._queue: deque[Incoming] = deque()
        self._running: _Running | None = None
        #: What is deleted with the session, and waits for a channel on which to say so.
        self._deletes: list[amqp.QueueDelete] = []
        #: The session is over, and what is lost with it was looked after.
        self._has_parted = False

    @property
    def is_idle(self) -> bool:
        """Whether all is done that the client asked for."""
        return not self._queue and self._running is None and not self._deletes

    @property
    def _in_transaction(self) -> bool:
        return self._commands.transactions.is_selected

    # What the client says.

    def receive(self, event: IncomingCommand | IncomingHeader | IncomingBody | CommandsCompleted) -> None:
        """Something of the client's."""
        # A match would look for each of their fields.
        if isinstance(event, IncomingCommand):
            self._incoming = Incoming(event.command_id, event.command)
            if not event.has_content:
                self._enqueue()
        elif isinstance(event, CommandsCompleted):
            self._completed(event.commands)
        elif self._incoming is None:
            return
        elif isinstance(event, IncomingHeader):
            self._incoming.structs = event.structs
            if not event.has_body:
                self._enqueue()
        else:
            self._add(self._incoming, event.chunk)
            if event.is_last:
                self._enqueue()

    def transferred(self, message: IncomingMessage) -> bool:
        """A transfer of the client's, all of it. Whether it is published, and nothing else can have come of
        it: `rest` need not follow.
        """
        if (
            self._running is None
            and not self._queue
            and not self._commands.transactions.is_selected
            and self._publisher.publish_at_once(message)
        ):
            return True
        incoming = self._incoming = Incoming(message.command_id, message.command)
        try:
            incoming.structs = decode_header(message.header)
        except ProtocolViolation as violation:
            if self._session is not None:
                self._session.fail(violation, message.command_id)
            self.drop()
            return False
        if message.body:
            self._add(incoming, message.body)
        self._enqueue()
        return False

    def ended(self) -> None:
        """The client's side is detached. What it asked before is still done."""
        self._session = None
        self._drop_incoming()
        self._publisher.detached()
        self._commands.subscriptions.detached()
        self._pump()

    def lost(self) -> None:
        """The client is gone, and nobody hears an answer: what it sent last is published at once.

        Transfers that wait for another command of its are not: what that would have done is not known.
        """
        if self._running is not None and self._running.incoming is not None:
            return
        with contextlib.suppress(ProtocolViolation):
            while self._queue and not self._in_transaction:
                if not isinstance(self._queue[0].command, amqp10.MessageTransfer):
                    break
                self._publisher.publish_last(self._queue.popleft())
        self._publisher.rest()

    def _completed(self, transfers: SequenceSet) -> None:
        try:
            self._commands.subscriptions.completed(transfers)
        except ProtocolViolation as violation:
            self._fail(violation, None)

    def rest(self) -> None:
        """What was read is dealt with: do what nobody has asked for, and what has waited for a channel."""
        if self._running is not None or self._queue or self._deletes:
            self._pump()
        if (
            self._commands.subscriptions.restless
            and self._running is None
            and not self._queue
            and self._session is not None
        ):
            work = self._commands.subscriptions.work()
            if work is not None:
                self._step(None, work, None)
                self._pump()
        if not self._link.numbers.has_confirms:
            self._publisher.rest()

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
            self._pump()
            running = self._running
            if (self._queue and self._queue[-1] is incoming) or (
                running is not None and running.incoming is incoming
            ):
                incoming.weigh()
                self._link.queue(incoming.weight)

    # What is done.

    def _pump(self) -> None:
        """As far as it goes without the broker's answers."""
        while True:
            if self._running is not None:
                if not self._try_to_ask(self._running) and self._running is not None:
                    return
            elif not self._queue:
                break
            elif not self._start():
                return
        if self._session is None:
            self._part()

    def _part(self) -> None:
        """The session is over: look after what is lost with it, then close its channels."""
        if not self._has_parted:
            self._has_parted = True
            commands = self._commands
            has_main = self._channels[ChannelUse.MAIN].is_open
            subscriptions = commands.subscriptions if has_main else None
            self._step(None, farewell(commands.declaring.own_queues, subscriptions, self._link), None)
            self._pump()
            return
        if self._running is None:
            self._close()

    def _start(self) -> bool:
        """Begin the next command; False if it has to wait."""
        head = self._queue[0]
        try:
            if isinstance(head.command, amqp10.MessageTransfer):
                if not self._publisher.may_publish(in_transaction=self._in_transaction):
                    return False
                self._queue.popleft()
                self._link.unqueue(head.take_weight())
                if self._in_transaction:
                    self._commands.transactions.published()
                self._publisher.publish(head, in_transaction=self._in_transaction)
                return True
            self._queue.popleft()
            steps = self._commands.steps(head.command)
            if steps is None:
                self._finish(head, None)
            else:
                self._step(head, steps, None)
        except ProtocolViolation as violation:
            self._fail(violation, head)
        return True

    def _step(self, incoming: Incoming | None, steps: Steps, answer: Answer | None) -> None:
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

    def _try_to_ask(self, running: _Running) -> bool:
        """Ask what the running command wants to know, once nothing is unanswered that came before. Whether it
        goes on without an answer.
        """
        if running.is_asked or not self._publisher.is_quiet:
            return False
        call = running.call
        if isinstance(call, Wait):
            if not call.is_over():
                return False
            self._step(running.incoming, running.steps, None)
            return True
        channel = self._channels[call.use]
        try:
            channel.open()
            if channel.is_open:
                channel.send(call.method)
                running.is_asked = True
        except ProtocolViolation as violation:
            self._fail(violation, running.incoming)
            return False
        if running.is_asked and not call.method.REPLIES:
            self._step(running.incoming, running.steps, Answer(call.method))
            return True
        return False

    def _finish(self, incoming: Incoming | None, result: Struct | None) -> None:
        """A command is done."""
        if incoming is None:
            return
        self._link.unqueue(incoming.take_weight())
        if self._session is None:
            return
        command_id = incoming.command_id
        if result is not None:
            told = amqp10.ExecutionResult(command_id=command_id, value=encode_struct32(result))
            try:
                self._session.send(told)
            except ProtocolViolation as violation:
                # It is larger than the client's frames.
                self._fail(violation, incoming)
                return
        self._session.finish(command_id)

    # What the broker says.

    def confirmed(self, channel: BridgedChannel, tag: int, multiple: bool) -> bool:
        """As `channels.Confirmed` has it: nothing waits for what is confirmed, so `rest` need not follow."""
        if (
            self._queue
            or self._running is not None
            or self._session is None
            or self._deletes
            or channel.state is not _OPEN
        ):
            return False
        self._publisher.confirmed(tag, multiple=multiple)
        return True

    def hear(self, channel: BridgedChannel, told: FromBroker) -> None:
        """Something on one of the session's channels."""
        use = channel.use
        if isinstance(told.method, amqp.BasicAck) and channel.state is _OPEN:
            self._publisher.confirmed(told.method.delivery_tag, multiple=told.method.multiple)
            if self._queue or self._running is not None or self._session is None:
                self._pump()
            return
        method = channel.receive(told.method)
        running = self._running
        match method:
            case None | amqp.ChannelOpenOk() | amqp.ConfirmSelectOk():
                pass
            case amqp.ChannelClose():
                self._channel_closed(use, method)
            case amqp.ChannelFlow(active=active):
                channel.send(amqp.ChannelFlowOk(active))
                self._publisher.flow(use, is_active=active)
            case amqp.TxCommitOk() if use is ChannelUse.PUB:
                self._publisher.hear(method)
            case amqp.BasicAck() | amqp.BasicNack() | amqp.BasicReturn():
                refused = self._publisher.hear(method)
                if refused is not None:
                    self._fail(self._publisher.take_refusal(), refused)
            case _ if running is not None and running.asks_on(use) and _answers(running.call, method):
                answer = Answer(method, told.header, told.body)
                self._step(running.incoming, running.steps, answer)
            case _ if use is ChannelUse.MAIN:
                self._hear_delivery(told)
        self._pump()

    def _hear_delivery(self, told: FromBroker) -> None:
        try:
            self._commands.subscriptions.hear(told)
        except ProtocolViolation as violation:
            self._fail(violation, None)

    def _channel_closed(self, use: ChannelUse, close: amqp.ChannelClose) -> None:
        running = self._running
        is_asked = running is not None and running.asks_on(use)
        if use is ChannelUse.ASK:
            if running is not None and is_asked:
                self._step(running.incoming, running.steps, Answer(close))
            return
        violation = violation_of_channel_close(close)
        if running is not None and is_asked:
            if running.incoming is None and violation.code == amqp10.ErrorCode.NOT_FOUND:
                # A subscription has found its queue, which was deleted before it consumed from it.
                violation = ProtocolViolation(amqp10.ErrorCode.RESOURCE_DELETED, violation.text)
            self._fail(violation, running.incoming)
        elif use is ChannelUse.PUB:
            # Of several it may be any, for those before it may be waiting for their confirms.
            self._fail(violation, self._publisher.only, amqp10.MessageTransfer)
        else:
            self._fail(violation, None)

    # The end.

    def _fail(
        self, violation: ProtocolViolation, culprit: Incoming | None, kind: type[Command] | None = None
    ) -> None:
        """The session ends by a refusal; what waits is not done any more. ``kind`` is what is refused where
        it is not known which."""
        if self._session is not None:
            if culprit is None:
                self._session.fail(violation, None, kind)
            else:
                self._session.fail(violation, culprit.command_id, type(culprit.command))
            self._session = None
        if culprit is not None:
            self._link.unqueue(culprit.take_weight())
        self.drop()

    def drop(self) -> None:
        """The session is over, and what waits is not done any more."""
        self._session = None
        self._drop_incoming()
        for waiting in self._queue:
            self._link.let_go(waiting.size)
            self._link.unqueue(waiting.take_weight())
        self._queue.clear()
        if self._running is not None and self._running.incoming is not None:
            self._link.unqueue(self._running.incoming.take_weight())
        self._running = None
        self._publisher.drop()
        self._commands.subscriptions.detached()
        self._part()

    def _drop_incoming(self) -> None:
        if self._incoming is not None:
            self._link.let_go(self._incoming.size)
            self._incoming = None

    def _close(self) -> None:
        """Undo what ends with the session, and close its channels. May be called more than once."""
        channels = self._channels.values()
        self._publisher.rest()
        own, unused = self._commands.declaring.take_own_queues(), self._commands.subscriptions.end()
        self._deletes += [amqp.QueueDelete(queue=queue, no_wait=True) for queue in own]
        # What is in use is refused, and the channel with it.
        self._deletes += [amqp.QueueDelete(queue=queue, if_unused=True, no_wait=True) for queue in unused]
        if self._deletes:
            channel = next((one for one in channels if one.is_open), None)
            if channel is None:
                channel = self._channels[ChannelUse.ASK]
                channel.open()
                if channel.state is not OpenState.OPENING:
                    return
            for delete in self._deletes:
                channel.send(delete)
            self._deletes.clear()
        self._link.numbers.withdraw(self._owner)
        for channel in channels:
            channel.close()
        if all(channel.state is OpenState.CLOSED for channel in channels):
            self.release()

    def release(self) -> None:
        """Nothing comes for it any more: what it was made of is no cycle. May be called more than once."""
        self._commands.subscriptions.end()
        for channel in self._channels.values():
            channel.release()


def _answers(call: Call | Wait, method: Method) -> bool:
    return isinstance(call, Call) and method.INDEX in call.method.REPLIES
