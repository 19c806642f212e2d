"""Clients of AMQP 0-10, their translator, and a broker of 0-9-1 behind it, all of them in memory.

A client says what is right, mostly; the broker answers, confirms, refuses and delivers when it likes. What
must hold:

- nothing but a violation of the client's comes out of it, and the broker hears nothing that it would refuse;
- a transfer is complete once it is confirmed, and not before; transfers come once, and in their order;
- what a session is told to be complete is one range; what was asked for is told in the end;
- a message is delivered as often as the broker has sent it; what is acknowledged was sent to the client, and
  accepted by it where it has to;
- something can always happen, and nothing is left of sessions that are over.

Behind something malformed only the first holds.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

import attrs

from amqpgate.bridge.v0_10.client import ClientTranslator
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import HEARTBEAT, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command, Control
from amqpgate.wire.v0_10.types import Map, Value
from tests.fuzz.choices import Choices
from tests.fuzz.stage.model_broker import CHANNEL_MAX, FRAME_MAX, MISSING, ModelBroker, Queue
from tests.support.said_0_10 import Sent, Splitter
from tests.support.talk_0_10 import ALONE, B, E, b, command, control, e, frame

MOST = 600
TOKENS = (b"\0\1", b"\1\1", b"\2\2", b"\x0a\x0a", b"\x0c\0", b"\xff\xff", b"\x0f")

INFINITE = 0xFFFF_FFFF
QUEUES = ("p", "q")
_CAPABILITIES = ("basic.nack", "publisher_confirms")
_START_OK = amqp10.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0guest\0guest", locale=b"en_US")
_TUNE_OK = amqp10.ConnectionTuneOk(channel_max=CHANNEL_MAX // 3, max_frame_size=FRAME_MAX)
_BYTES_AT_ONCE = 4096


@attrs.define(eq=False)
class Life:
    """A session from its attach to its end, as its client sees it."""

    channel: int
    name: bytes
    #: What each command was: the message that it published, or None.
    sent: list[int | None] = attrs.field(factory=list)
    #: Ids whose completion was asked for, and those of explicit transfers.
    explicit: set[int] = attrs.field(factory=set)
    completed: int = 0
    accepted: set[int] = attrs.field(factory=set)
    #: Messages by the ids of their transfers, and those that the client did not settle.
    got: dict[int, int] = attrs.field(factory=dict)
    mine: list[int] = attrs.field(factory=list)
    #: What it has said of transfers, some of which it gets later.
    claims: list[tuple[type[Command], SequenceSet]] = attrs.field(factory=list)
    #: Destinations.
    subscribed: set[bytes] = attrs.field(factory=set)
    #: The client has said detach; the session has failed; all is over.
    is_leaving: bool = False
    is_failed: bool = False
    is_over: bool = False
    #: It has said tx.select.
    is_transactional: bool = False


class Play:
    """See the module."""

    def __init__(self) -> None:
        self.translator = ClientTranslator()
        self.broker = ModelBroker()
        self.broker.queues.update({name: Queue() for name in QUEUES})
        self.inbox: deque[bytes] = deque()
        self.lives: dict[int, Life] = {}
        self.all_lives: list[Life] = []
        self.splitter = Splitter()
        self.next_uid = 1
        self.confirmed: set[int] = set()
        #: Published in a transaction: complete at once, and worth nothing before the commit.
        self.in_tx: set[int] = set()
        self.delivered: Counter[int] = Counter()
        self.heard: Counter[int] = Counter()
        #: Which delivery of a message it was that the client heard of last.
        self.heard_of: Counter[int] = Counter()
        #: What clients have said of messages.
        self.claimed: dict[type[Command], set[int]] = {
            kind: set() for kind in (amqp10.MessageAccept, amqp10.MessageRelease, amqp10.MessageReject)
        }
        #: Delivered to a subscription that accepts nothing.
        self.unaccepted: set[int] = set()
        #: Something malformed was said.
        self.is_wild = False
        self.is_closing = False
        self.violation: ProtocolViolation | None = None
        self._open()

    def _open(self) -> None:
        properties = Table.of({"product": "m", "capabilities": dict.fromkeys(_CAPABILITIES, True)})
        self.broker.say(0, amqp.ConnectionStart(0, 9, properties, b"PLAIN", b"en_US"))
        self.settle()
        for said in (control(_START_OK), control(_TUNE_OK) + control(amqp10.ConnectionOpen())):
            self.inbox.append(said)
            self.settle()
        assert self.broker.is_open

    # -- between the two ---------------------------------------------------------------------------

    def move(self, *, hands: int, cut: int = 0) -> bool:
        """The client is heard as far as it is read, and so many answers of the broker's arrive."""
        moved = self._from_client(cut)
        for _ in range(hands):
            if not self.broker.out:
                break
            frames, known = self.broker.out.popleft()
            self._hand(frames, known)
            moved = True
        return moved

    def _from_client(self, cut: int) -> bool:
        moved = self._take()
        while self.inbox and self.violation is None and self.translator.wants_bytes:
            data = self.inbox.popleft()
            step = cut or _BYTES_AT_ONCE
            if len(data) > step:
                self.inbox.appendleft(data[step:])
            try:
                self.translator.from_peer(data[:step])
            except ProtocolViolation as violation:
                assert self.is_wild, violation
                self.violation = violation
            self._take()
            moved = True
        return moved

    def _hand(self, frames: bytes, known: tuple[str, list[int], bool] | None) -> None:
        what, uids, redelivered = known or ("", [], False)
        if what == "acked":
            self.confirmed.update(uids)
        elif what == "delivered":
            assert redelivered or not self.delivered[uids[0]]
            self.delivered.update(uids)
        self.translator.from_gateway(frames)
        self._take()

    def _take(self) -> bool:
        moved = False
        while self.translator.has_frames:
            data = self.translator.frames_for_gateway(1 << 16)
            assert data
            self.broker.hear(data)
            for uid in self.broker.returned:
                was_heard = self.heard_of[uid] == self.delivered[uid]
                assert self.is_wild or not was_heard or uid in self.claimed[amqp10.MessageRelease], (
                    "sent, and given back"
                )
            self.broker.returned.clear()
            moved = True
        output = self.translator.bytes_for_peer()
        for sent in self.splitter.feed(output):
            self._hear(sent)
        return moved or bool(output)

    def settle(self) -> None:
        """Until nothing moves any more. Then the client must be read, for all is answered."""
        while True:
            moved = self.move(hands=1 << 20)
            for channel in list(self.broker.channels.values()):
                if channel.unconfirmed and not channel.is_closing:
                    self.broker.confirm(channel, len(channel.unconfirmed) - 1, multiple=True)
                    moved = True
            if not self.broker.out:
                moved |= self.broker.dispatch(1 << 20)
            if not (moved or self.broker.out):
                break
        assert self.violation is not None or self.translator.wants_bytes
        assert self.violation is not None or not self.inbox

    # -- what the client hears ---------------------------------------------------------------------

    def _hear(self, sent: Sent) -> None:
        life = self.lives.get(sent.channel)
        if sent.control is not None:
            self._hear_control(sent.channel, life, sent.control)
        elif life is not None and not life.is_over and not self.is_wild:
            assert sent.command is not None
            self._hear_command(life, sent)

    def _hear_control(self, channel: int, life: Life | None, said: Control) -> None:
        match said:
            case amqp10.ConnectionClose():
                assert self.is_wild or self.is_closing
                self.inbox.append(control(amqp10.ConnectionCloseOk()))
            case amqp10.SessionDetach(name=name):
                self.inbox.append(control(amqp10.SessionDetached(name=name, code=0), channel))
                if life is not None:
                    assert self.is_wild or life.is_failed
                    life.is_over = True
                    del self.lives[channel]
            case amqp10.SessionDetached() if life is not None:
                assert self.is_wild or life.is_leaving
                life.is_over = True
                del self.lives[channel]
            case amqp10.SessionCompleted(commands=ids) if life is not None and not self.is_wild:
                self._completed(life, ids or SequenceSet())

    def _completed(self, life: Life, ids: SequenceSet) -> None:
        assert len(ids.ranges) <= 1, ids
        for lower, upper in ids.ranges:
            assert lower <= life.completed <= upper + 1
            assert upper < len(life.sent)
            for number in range(life.completed, upper + 1):
                uid = life.sent[number]
                assert uid is None or uid in self.confirmed or uid in self.in_tx
            life.completed = upper + 1

    def _hear_command(self, life: Life, sent: Sent) -> None:
        match sent.command:
            case amqp10.MessageTransfer():
                uid = int.from_bytes(sent.body[:4])
                number = len(life.got)
                life.got[number] = uid
                for kind, ids in life.claims:
                    self.claim(number, uid, kind, ids)
                self.heard[uid] += 1
                self.heard_of[uid] = self.delivered[uid]
                assert self.heard[uid] <= self.delivered[uid], "sent twice"
                assert sent.structs is not None
                assert isinstance(sent.structs[0], amqp10.DeliveryProperties)
                assert sent.structs[0].redelivered or self.heard[uid] == 1
                if sent.command.accept_mode == 1:
                    self.unaccepted.add(uid)
                else:
                    life.mine.append(number)
            case amqp10.MessageAccept(transfers=ids):
                life.got[len(life.got)] = 0
                assert ids is not None
                for lower, upper in ids.ranges:
                    for number in range(lower, upper + 1):
                        assert number in life.explicit
                        assert number not in life.accepted, "accepted twice"
                        uid = life.sent[number]
                        assert uid in self.confirmed or uid in self.in_tx
                        life.accepted.add(number)
            case amqp10.ExecutionException():
                life.got[len(life.got)] = 0
                life.is_failed = True
            case amqp10.ExecutionResult(command_id=command_id):
                life.got[len(life.got)] = 0
                assert command_id is not None
                assert life.completed <= command_id < len(life.sent), "a result of what is complete"

    # -- what the client says ------------------------------------------------------------------------

    def attach(self, channel: int, name: bytes) -> Life:
        life = self.lives[channel] = Life(channel, name)
        self.all_lives.append(life)
        self.inbox.append(control(amqp10.SessionAttach(name=name), channel))
        self.inbox.append(control(amqp10.SessionCommandPoint(command_id=0, command_offset=0), channel))
        return life

    def say(self, life: Life, said: Command, *, sync: bool) -> None:
        life.is_transactional |= isinstance(said, amqp10.TxSelect)
        life.sent.append(None)
        self.inbox.append(command(said, sync=sync, channel=life.channel))

    def control(self, life: Life, said: Control) -> None:
        self.inbox.append(control(said, life.channel))

    def publish(self, life: Life, choices: Choices) -> None:
        uid = self.next_uid
        self.next_uid += 1
        is_missing = choices.rarely() and choices.flag()
        exchange = MISSING if is_missing else choices.pick(("", "", "", "amq.direct"))
        mode = choices.pick((None, 0, 1))
        if mode == 0:
            life.explicit.add(len(life.sent))
        life.sent.append(uid)
        if life.is_transactional:
            self.in_tx.add(uid)
        body = uid.to_bytes(4) + bytes(choices.pick((0, 10, 300, 5000)))
        whole = command(
            amqp10.MessageTransfer(destination=exchange.encode(), accept_mode=mode),
            (amqp10.DeliveryProperties(routing_key=choices.pick((*QUEUES, "none")).encode()),),
            body,
            sync=choices.flag(),
            channel=life.channel,
        )
        first = int.from_bytes(whole[2:4])
        if choices.rarely():
            # Its frames in three reads, and what others say in between.
            second = first + int.from_bytes(whole[first + 2 : first + 4])
            self.inbox.extend((whole[:first], whole[first:second], whole[second:]))
        else:
            self.inbox.append(whole)

    def claim(self, number: int, uid: int, kind: type[Command], ids: SequenceSet) -> None:
        """A client has said something of these ids; it has this message by this number."""
        if any(lower <= number <= upper for lower, upper in ids.ranges):
            self.claimed[kind].add(uid)

    def leave(self, life: Life) -> None:
        life.is_leaving = True
        self.control(life, amqp10.SessionDetach(name=life.name))

    def end(self) -> None:
        """All is answered; what was asked for is told; then the client closes, and nothing is left."""
        for channel in self.broker.channels.values():
            if not channel.is_closing:
                self.broker.say(channel.number, amqp.ChannelFlow(True))
        self.broker.refusal = 0
        self.settle()
        if self.violation is None and not self.is_closing:
            for life in list(self.lives.values()):
                if not life.is_leaving:
                    self.control(life, amqp10.SessionFlush(completed=True))
            self.settle()
            for life in self.lives.values():
                assert self.is_wild or life.is_leaving or life.completed == len(life.sent), "never complete"
            if not self.is_wild:
                assert not self.broker.forgotten(self.heard_of, self.delivered), "kept from the queue"
            self.inbox.append(control(amqp10.ConnectionClose(reply_code=200)))
            self.settle()
        if self.violation is not None or self.is_wild:
            return
        assert self.broker.is_closed
        acked = Counter(self.broker.acked)
        assert max(acked.values(), default=0) <= 1, "acknowledged twice"
        for uid in acked:
            assert self.heard[uid], "acknowledged, and not sent"
            assert uid in self.claimed[amqp10.MessageAccept] or uid in self.unaccepted
        assert set(self.broker.rejected) <= self.claimed[amqp10.MessageReject]
        for life in self.all_lives:
            order = [uid for uid in self.broker.received if uid in life.sent]
            assert order == sorted(order), "published in another order"
        self._leaves_nothing()

    def _leaves_nothing(self) -> None:
        link = self.translator._link
        assert not self.translator._ending
        assert not self.translator._sessions
        assert (link.queued, link.kept) == (0, 0)
        assert not link.topology._owners
        numbers = link.numbers
        assert not numbers._waiting
        assert all(holder.state.value == "closing" for holder in numbers._holders.values())


# -- what is chosen -------------------------------------------------------------------------------------


def _ids(choices: Choices, life: Life) -> SequenceSet:
    """Some of what it got, mostly; ascending and disjoint."""
    known = max(len(life.got), 1)
    if choices.rarely():
        lower = choices.below(known + 3)
        return SequenceSet(((lower, lower + choices.pick((0, 5, 0x7FFF_0000))),))
    lower = choices.below(known)
    upper = min(lower + choices.below(4), known - 1)
    if choices.flag() and upper + 2 < known:
        return SequenceSet(((lower, upper), (upper + 2, known - 1)))
    return SequenceSet(((lower, upper),))


def _settle(play: Play, life: Life, choices: Choices) -> Command:
    ids = _ids(choices, life)
    kind: type[amqp10.MessageAccept | amqp10.MessageRelease | amqp10.MessageReject] = choices.pick(
        (amqp10.MessageAccept, amqp10.MessageAccept, amqp10.MessageRelease, amqp10.MessageReject)
    )
    life.claims.append((kind, ids))
    for number, uid in life.got.items():
        play.claim(number, uid, kind, ids)
    return kind(transfers=ids)


def _arguments(choices: Choices) -> Map | None:
    if choices.below(4):
        return None
    value = Value(0x95, bytes(choices.pick((0, 100, 3500))))
    return Map(((choices.pick((b"x", b"qpid.max_count", b"x-match")), value),))


def _question(choices: Choices) -> Command:
    queue = choices.pick(("p", "q", "r" if choices.rarely() else "p")).encode()
    exchange = choices.pick((b"amq.direct", b"amq.direct", b"none" if choices.rarely() else b"amq.fanout"))
    return choices.pick(
        (
            lambda: amqp10.QueueDeclare(
                queue=queue,
                exclusive=choices.rarely(),
                auto_delete=choices.flag(),
                passive=choices.rarely(),
                arguments=_arguments(choices),
            ),
            lambda: amqp10.QueueQuery(queue=queue),
            lambda: amqp10.ExchangeQuery(name=exchange),
            lambda: amqp10.ExchangeDeclare(exchange=exchange, type=b"direct", arguments=_arguments(choices)),
            lambda: amqp10.ExchangeBind(
                queue=queue, exchange=exchange, binding_key=choices.pick((b"p", b""))
            ),
            lambda: amqp10.ExchangeUnbind(queue=queue, exchange=exchange, binding_key=b"p"),
            lambda: amqp10.ExchangeBound(queue=queue, exchange=exchange, binding_key=b"p"),
            lambda: amqp10.QueuePurge(queue=queue),
            lambda: amqp10.QueueDelete(queue=queue) if choices.rarely() else amqp10.QueueQuery(queue=queue),
            lambda: amqp10.ExecutionSync(),
            lambda: amqp10.MessageAcquire(transfers=SequenceSet(((0, 3),))),
        )
    )()


def _consume(play: Play, life: Life, choices: Choices) -> None:
    """A subscription with credit, or something about one that there is, mostly."""
    free = [name for name in (b"a", b"b") if name not in life.subscribed]
    sync = choices.flag()
    if free and (not life.subscribed or choices.flag()):
        name = free[0]
        life.subscribed.add(name)
        subscribe = amqp10.MessageSubscribe(
            queue=choices.pick(QUEUES).encode(),
            destination=name,
            accept_mode=choices.pick((0, 0, 1)),
            exclusive=choices.rarely(),
        )
        play.say(life, subscribe, sync=sync)
        if choices.flag():
            mode = amqp10.MessageSetFlowMode(destination=name, flow_mode=choices.below(2))
            play.say(life, mode, sync=False)
        room = choices.pick((INFINITE, INFINITE, 50, 400))
        play.say(life, amqp10.MessageFlow(destination=name, unit=1, value=room), sync=False)
        count = choices.pick((1, 2, 5, INFINITE))
        play.say(life, amqp10.MessageFlow(destination=name, unit=0, value=count), sync=False)
        return
    name = b"none" if choices.rarely() or not life.subscribed else choices.pick(sorted(life.subscribed))
    said = choices.pick(
        (
            lambda: amqp10.MessageFlow(destination=name, unit=0, value=choices.pick((1, 2, 5, INFINITE))),
            lambda: amqp10.MessageFlow(destination=name, unit=0, value=choices.pick((1, 2, 5))),
            lambda: amqp10.MessageFlow(destination=name, unit=1, value=choices.pick((INFINITE, 50, 400))),
            lambda: amqp10.MessageSetFlowMode(destination=name, flow_mode=choices.below(2)),
            lambda: amqp10.MessageStop(destination=name),
            lambda: amqp10.MessageFlush(destination=name),
            lambda: amqp10.MessageCancel(destination=name),
        )
    )()
    if isinstance(said, amqp10.MessageCancel):
        life.subscribed.discard(name)
    play.say(life, said, sync=sync)


def _of_session(play: Play, life: Life, choices: Choices) -> None:
    match choices.below(6):
        case 0:
            play.control(life, amqp10.SessionFlush(completed=True, expected=choices.flag()))
        case 1 | 2:
            top = len(life.got)
            if top:
                upper = choices.below(top)
                ids = SequenceSet(((0, upper),))
                play.control(life, amqp10.SessionCompleted(commands=ids, timely_reply=choices.flag()))
        case 3:
            if life.completed:
                ids = SequenceSet(((0, life.completed - 1),))
                play.control(life, amqp10.SessionKnownCompleted(commands=ids))
        case 4:
            play.control(life, amqp10.SessionRequestTimeout(timeout=5))
        case _:
            play.control(life, amqp10.SessionAttach(name=life.name))


def _of_client(play: Play, choices: Choices) -> None:
    channel = choices.below(CHANNEL_MAX // 3)
    life = play.lives.get(channel)
    if life is None:
        life = play.attach(channel, b"%d-%d" % (channel, len(play.all_lives)))
    if life.is_leaving or life.is_failed:
        return
    match choices.below(12):
        case 0 | 1 | 2:
            for _ in range(1 + choices.below(4)):
                play.publish(life, choices)
        case 3 | 4 | 5:
            _consume(play, life, choices)
        case 6 | 7:
            play.say(life, _settle(play, life, choices), sync=choices.flag())
        case 8 | 9:
            play.say(life, _question(choices), sync=choices.flag())
        case 10:
            kind = choices.pick((amqp10.TxSelect, amqp10.TxCommit, amqp10.TxRollback, amqp10.TxCommit))
            if not life.is_transactional and not choices.rarely():
                kind = amqp10.TxSelect
            if kind is not amqp10.TxSelect or not choices.below(3):
                play.say(life, kind(), sync=choices.flag())
        case _:
            if choices.below(8):
                _of_session(play, life, choices)
            else:
                play.leave(life)


def _of_broker(play: Play, choices: Choices) -> None:
    broker = play.broker
    channels = [one for one in broker.channels.values() if not one.is_closing]
    channel = choices.pick(channels) if channels else None
    match choices.below(8):
        case 0 | 1:
            broker.dispatch(1 + choices.below(8))
        case 2 | 3 | 4:
            if channel is not None and channel.unconfirmed:
                index = choices.below(len(channel.unconfirmed))
                broker.confirm(channel, index, multiple=choices.flag(), refuses=choices.rarely())
        case 5:
            name = choices.pick(QUEUES)
            if name in broker.queues:
                uid = play.next_uid
                play.next_uid += 1
                broker.queues[name].put(uid, uid.to_bytes(4) + bytes(choices.pick((0, 40, 5000))))
        case 6:
            broker.refusal = choices.pick((403, 404, 405, 406)) if choices.rarely() else 0
        case _:
            match choices.below(8):
                case 0 if channel is not None and not choices.below(4):
                    broker.close(channel, choices.pick((404, 406, 541)))
                case 1 | 2 if channel is not None:
                    broker.say(channel.number, amqp.ChannelFlow(choices.flag()))
                case 3 if not choices.below(4):
                    broker.delete(choices.pick(QUEUES))
                case 4 if not play.is_closing and choices.rarely():
                    play.is_closing = True
                    broker.out.append((method_frame(0, amqp.ConnectionClose(320, "bye", 0, 0)), None))
                case 5:
                    broker.out.append((HEARTBEAT, None))
                case _:
                    for name in QUEUES:
                        broker.queues.setdefault(name, Queue())


def _wild(play: Play, choices: Choices) -> None:
    """What no client should say."""
    play.is_wild = play.broker.is_wild = True
    channel = choices.below(CHANNEL_MAX // 3 + 1)
    match choices.below(6):
        case 0:
            play.inbox.append(choices.some(60))
        case 1:
            kind = choices.below(4)
            play.inbox.append(
                frame(choices.below(16), kind, choices.some(40), channel=channel, track=choices.below(3))
            )
        case 2:
            play.inbox.append(frame(ALONE, choices.below(2), choices.some(40), channel=channel))
        case 3 if play.inbox and play.inbox[-1]:
            spoilt = bytearray(play.inbox.pop())
            spoilt[choices.below(len(spoilt))] = choices.byte()
            play.inbox.append(bytes(spoilt))
        case 4:
            raw = command(amqp10.MessageTransfer(destination=b"amq.direct"))[12:]
            pieces = [frame(B | b | e, 1, raw, channel=channel)]
            pieces += [frame(E | b, 3, b"", channel=channel)]
            pieces += [frame(E, 3, choices.some(3), channel=channel) for _ in range(choices.below(9))]
            play.inbox.append(b"".join(pieces))
        case _:
            said = choices.pick(
                (
                    amqp10.SessionAttach(name=b"0-0", force=True),
                    amqp10.SessionDetached(name=b"0-0", code=0),
                    amqp10.SessionGap(),
                    amqp10.SessionCommandPoint(command_id=choices.byte(), command_offset=0),
                    amqp10.SessionKnownCompleted(commands=SequenceSet(((0, 200),))),
                    amqp10.SessionCompleted(commands=SequenceSet(((0, 200),))),
                    amqp10.ConnectionClose(reply_code=200),
                )
            )
            play.is_closing |= isinstance(said, amqp10.ConnectionClose)
            play.inbox.append(control(said, 0 if said.CLASS_CODE == 1 else channel))


def seeds() -> Iterator[bytes]:
    """Each kind of step, some of them twice, and broker and client in turn."""
    for kind in range(12):
        for more in range(0, 256, 32):
            yield bytes((1, 0, kind, more, *range(more, more + 12), 9, 3, 12, 0, 0, 9, 3, 12, 2, 0, 9, 3)) * 2


def check(data: bytes) -> None:
    """Play what the bytes say."""
    choices = Choices(data)
    play = Play()
    is_tame = choices.below(4) > 0
    while choices and play.violation is None:
        match choices.below(16):
            case number if number < 9:
                if not play.is_closing:
                    _of_client(play, choices)
            case number if number < 11:
                play.move(hands=choices.below(6), cut=choices.pick((0, 0, 0, 1, 7, 50)))
            case 15 if not is_tame:
                _wild(play, choices)
            case _:
                _of_broker(play, choices)
    play.end()
