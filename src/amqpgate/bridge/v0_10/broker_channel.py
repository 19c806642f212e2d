"""One channel of 0-9-1, as a session of a 0-10 broker.

::

             channel.open            attached                       channel.close
    (none) ───────────────▶ OPENING ──────────▶ OPEN ──────────────────────────▶ CLOSING
                               │                  │ exception, detach; violation     │
                               └──── refused ─────┤                                  │
        close-ok                                  ▼                                  │
     OVER ◀────── CLOSED ◀───── detached ───── ENDING                               │
       ▲                    channel.close                                            │
       └───────────────────────────────── detached, close-ok ────────────────────────┘

A method that is answered is carried out before the next frame is looked at: what comes meanwhile waits.
While the channel is ENDING or CLOSED its frames are dropped, but for close and close-ok.

Errors
    execution.exception is about the method that is being carried out, or else about the one that such a
    command stands for; the session ends, and channel.close names that method. What the client may not do here
    ends the session as well.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final

from amqpgate.bridge.v0_10.broker_consuming import ChannelConsuming
from amqpgate.bridge.v0_10.broker_declaring import ChannelDeclaring
from amqpgate.bridge.v0_10.broker_link import ChannelLink, Steps, Transferred
from amqpgate.bridge.v0_10.broker_modes import Modes
from amqpgate.bridge.v0_10.broker_publishing import Publishing
from amqpgate.bridge.v0_10.broker_task import Task
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FRAME_BODY, FRAME_HEADER, FRAME_METHOD
from amqpgate.protocol.v0_10.codes import violation_of_exception
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command


class ChannelStage(Enum):
    """Where a channel stands."""

    #: The broker owes attached.
    OPENING = "opening"
    OPEN = "open"
    #: The client has closed it; the broker owes detached.
    CLOSING = "closing"
    #: It will be closed to the client once the broker has detached the session.
    ENDING = "ending"
    #: It is closed to the client, which owes close-ok.
    CLOSED = "closed"
    #: Its number is free.
    OVER = "over"


#: Methods that the commands stand for which no method waits for, by class and code.
_STANDS_FOR: Final[dict[tuple[int, int], type[Method]]] = {
    (amqp10.MessageAccept.CLASS_CODE, amqp10.MessageAccept.CODE): amqp.BasicAck,
    (amqp10.MessageRelease.CLASS_CODE, amqp10.MessageRelease.CODE): amqp.BasicNack,
    (amqp10.MessageReject.CLASS_CODE, amqp10.MessageReject.CODE): amqp.BasicReject,
    (amqp10.MessageTransfer.CLASS_CODE, amqp10.MessageTransfer.CODE): amqp.BasicPublish,
    # qpidd fills in no codes for transfers.
    (0, 0): amqp.BasicPublish,
}


class AttachedChannel:
    """See the module."""

    __slots__ = (
        "_backlog",
        "_consuming",
        "_declaring",
        "_has_left",
        "_link",
        "_modes",
        "_publishing",
        "_task",
        "_why",
        "stage",
    )

    def __init__(self, link: ChannelLink) -> None:
        self.stage = ChannelStage.OPENING
        self._link = link
        self._publishing = Publishing(link)
        self._consuming = ChannelConsuming(link)
        self._modes = Modes(link, self._publishing, self._consuming)
        self._declaring = ChannelDeclaring(link, self._consuming)
        self._task: Task | None = None
        #: Frames that wait.
        self._backlog: deque[tuple[int, bytes]] = deque()
        #: Why the channel ends.
        self._why: ProtocolViolation | None = None
        #: It was closed by the gateway, too, which is answered once that is said.
        self._has_left = False

    # The gateway's side.

    def take(self, kind: int, payload: bytes) -> None:
        """A frame of the gateway's, whole."""
        if self.stage in (ChannelStage.OPENING, ChannelStage.OPEN):
            if self._backlog or self._waits(kind, payload):
                self._backlog.append((kind, payload))
                self._link.held.add(len(payload))
            else:
                self._do(kind, payload)
        elif kind == FRAME_METHOD:
            self._take_last(decode_method(payload))
        elif kind == FRAME_BODY and self._link.is_mid_body:
            # The session ends behind it.
            self._publishing.body(payload)

    def _take_last(self, method: Method) -> None:
        """A method, while the channel comes to its end."""
        if isinstance(method, amqp.ChannelCloseOk) and self.stage is ChannelStage.CLOSED:
            self.stage = ChannelStage.OVER
        elif isinstance(method, amqp.ChannelClose) and self.stage is ChannelStage.CLOSED:
            self._link.say(amqp.ChannelCloseOk())
        elif isinstance(method, amqp.ChannelClose):
            self._has_left = True

    def _waits(self, kind: int, payload: bytes) -> bool:
        if self._task is not None or self.stage is ChannelStage.OPENING:
            return True
        return (
            kind == FRAME_METHOD
            and self._publishing.waits
            and isinstance(decode_method(payload), amqp.BasicPublish)
        )

    def _go_on(self) -> None:
        """Do what has waited, as far as it need not wait any more."""
        while self._backlog and self.stage is ChannelStage.OPEN and not self._waits(*self._backlog[0]):
            kind, payload = self._backlog.popleft()
            self._link.held.add(-len(payload))
            self._do(kind, payload)

    def _do(self, kind: int, payload: bytes) -> None:
        method: type[Method] | None = amqp.BasicPublish
        try:
            if kind == FRAME_METHOD:
                said = decode_method(payload)
                method = type(said)
                self._carry_out(said)
            elif kind == FRAME_HEADER:
                self._publishing.header(payload)
            elif kind == FRAME_BODY:
                self._publishing.body(payload)
        except ProtocolViolation as violation:
            self.end(violation, method)

    def _carry_out(self, method: Method) -> None:
        """A method: at once, or as a task."""
        if isinstance(method, amqp.BasicPublish):
            # Most of what comes.
            self._publishing.begin(method)
            return
        if isinstance(method, amqp.BasicAck):
            self._consuming.ack(method)
            return
        steps = self._declaring.steps(method) or self._steps(method)
        if steps is not None:
            self.flush()
            self._task = Task(self._link, method, steps)
            self._step()
            return
        consuming = self._consuming
        match method:
            case amqp.BasicNack(delivery_tag=tag, multiple=multiple, requeue=requeue):
                consuming.refuse(tag, multiple=multiple, requeue=requeue)
            case amqp.BasicReject(delivery_tag=tag, requeue=requeue):
                consuming.refuse(tag, multiple=False, requeue=requeue)
            case amqp.BasicRecoverAsync(requeue=requeue):
                consuming.recover(requeue=requeue)
            case amqp.BasicRecover(requeue=requeue):
                consuming.recover(requeue=requeue)
                self._link.say(amqp.BasicRecoverOk())
            case amqp.BasicQos():
                self._link.say(consuming.qos(method))
            case amqp.ConfirmSelect():
                self._modes.confirm(method)
            case amqp.ChannelClose():
                self.stage = ChannelStage.CLOSING
                self.flush()
                self._link.session.detach()
            case amqp.AccessRequest():
                self._link.say(amqp.AccessRequestOk(1))
            case amqp.ChannelFlowOk():
                pass
            case _:
                raise ProtocolViolation(540, f"{method.NAME}: AMQP 0-10 has nothing like it")

    def _steps(self, method: Method) -> Steps | None:
        consuming = self._consuming
        match method:
            case amqp.BasicConsume(queue=queue):
                return consuming.consume(method, self._declaring.queue_of(queue))
            case amqp.BasicGet(queue=queue):
                return consuming.get(method, self._declaring.queue_of(queue))
            case amqp.BasicCancel():
                return consuming.cancel(method)
            case amqp.ChannelFlow():
                return consuming.flow(method)
            case amqp.TxSelect():
                return self._modes.select()
            case amqp.TxCommit():
                return self._modes.commit()
            case amqp.TxRollback():
                return self._modes.roll_back()
        return None

    def _step(self) -> None:
        """Go on with the task."""
        task = self._task
        assert task is not None
        try:
            if task.go_on():
                self._task = None
        except ProtocolViolation as violation:
            self.end(violation, type(task.method))

    def flush(self) -> bool:
        """Before bytes leave, and before a method is carried out: say what is due. False if it cannot be said
        now.
        """
        self._link.tell_finished()
        if self._link.is_mid_body:
            return False
        if self._link.session.is_attached:
            self._consuming.flush()
            self._publishing.flush()
        return True

    # The broker's side.

    def begun(self) -> None:
        """The session is attached."""
        if self.stage is ChannelStage.OPENING:
            self.stage = ChannelStage.OPEN
            self._link.say(amqp.ChannelOpenOk())
            self._go_on()

    def completed(self, commands: SequenceSet) -> None:
        """Commands are complete."""
        self._publishing.completed(commands)
        if self._task is not None and self._task.completed(commands):
            self._step()
        self._go_on()

    def commanded(self, command_id: int, command: Command) -> None:
        """A command without content, which is finished thereby."""
        try:
            self._hear(command)
        except ProtocolViolation as violation:
            self.fail(violation, command_id, type(command))
        else:
            self._link.finish(command_id)
            self._go_on()

    def transferred(self, message: Transferred) -> None:
        """A message, which is finished thereby."""
        self._link.finish(message.command_id)
        if self.stage is not ChannelStage.OPEN:
            return
        try:
            self._consuming.transferred(message)
        except ProtocolViolation as violation:
            self.fail(violation, message.command_id, amqp10.MessageTransfer)

    def _hear(self, command: Command) -> None:
        task = self._task
        match command:
            case amqp10.ExecutionResult():
                self._publishing.result(command)
                if task is not None:
                    task.result(command)
            case amqp10.ExecutionException():
                self._fail(command)
            case amqp10.MessageReject():
                self._publishing.rejected(command)
            case amqp10.MessageStop(destination=destination) if not destination:
                self._publishing.stop(is_stopped=True)
            case amqp10.MessageFlow(destination=destination, value=value) if not destination:
                self._publishing.stop(is_stopped=value == 0)
            case (
                amqp10.MessageAccept()
                | amqp10.MessageRelease()
                | amqp10.MessageStop()
                | amqp10.MessageFlow()
                | amqp10.MessageSetFlowMode()
                | amqp10.ExecutionSync()
            ):
                pass
            case _:
                raise ProtocolViolation(503, f"{command.NAME} is a client's to send")

    def _fail(self, exception: amqp10.ExecutionException) -> None:
        violation = violation_of_exception(exception, self._link.number)
        task = self._task
        if task is not None and task.is_about(exception.command_id):
            self._why_not(violation, type(task.method))
        else:
            key = (exception.class_code or 0, exception.command_code or 0)
            self._why_not(violation, _STANDS_FOR.get(key))

    def ended(self) -> None:
        """The session is detached."""
        if self.stage is ChannelStage.CLOSING:
            self._link.say(amqp.ChannelCloseOk())
            self.stage = ChannelStage.OVER
            return
        why = self._why or ProtocolViolation(541, "the broker has detached the session")
        self._link.say(amqp.ChannelClose(why.code, why.reply_text, why.class_id, why.method_id))
        self.stage = ChannelStage.CLOSED
        if self._has_left:
            self._link.say(amqp.ChannelCloseOk())
        self._drop()

    # Both.

    def fail(self, violation: ProtocolViolation, command_id: int, command: type[Command]) -> None:
        """The broker did wrong with a command: it is told, and the client, too."""
        self._link.session.fail(violation, command_id, command)
        self.end(ProtocolViolation(541, f"the broker broke the protocol: {violation.text}"))

    def end(self, violation: ProtocolViolation, method: type[Method] | None = None) -> None:
        """Detach the session; then the client is told why."""
        self._why_not(violation, method)
        self._link.session.detach()

    def _why_not(self, violation: ProtocolViolation, method: type[Method] | None) -> None:
        """The channel is over; the broker ends the session."""
        if self.stage in (ChannelStage.OPENING, ChannelStage.OPEN):
            class_id, method_id = (0, 0) if method is None else (method.CLASS_ID, method.METHOD_ID)
            self._why = ProtocolViolation(
                violation.code,
                violation.text,
                class_id=violation.class_id or class_id,
                method_id=violation.method_id or method_id,
                channel=self._link.number,
            )
            self.stage = ChannelStage.ENDING
            self._has_left = any(
                kind == FRAME_METHOD and isinstance(decode_method(payload), amqp.ChannelClose)
                for kind, payload in self._backlog
            )
            self._drop()

    def _drop(self) -> None:
        self._task = None
        self._link.held.add(-sum(len(payload) for _, payload in self._backlog))
        self._backlog.clear()
