"""What all honest model clients have in common: connection, login, heartbeats, channels, waits."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

import attrs

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.simulation.clock import Clock
from tests.simulation.connection import Line
from tests.simulation.entries import Lane, Transaction
from tests.simulation.ledger import Ledger, Violation
from tests.simulation.network import Network
from tests.simulation.sockets import Address
from tests.simulation.story import ClientPlan
from tests.simulation.talk import Content, Talk, Wrong

_CAPABILITIES = dict.fromkeys(
    ("basic.nack", "publisher_confirms", "consumer_cancel_notify", "connection.blocked",
     "authentication_failure_close"), True
)  # fmt: skip
_PROPERTIES = Table.of({"product": "model", "capabilities": Table.of(_CAPABILITIES)})
_OLD = Table.of({"product": "model"})

#: Seconds after which somebody who waits, waits for ever.
PATIENCE = 600.0
#: Seconds that a login may take.
LOGIN = 60.0
#: What an honest client may be told: success, drained or lost, denied, not found, over a limit, no resources.
FAIR = {200, 320, 403, 404, 311, 506}


class Surroundings(Protocol):
    """What a client asks of its world."""

    clock: Clock
    network: Network
    ledger: Ledger
    listener: Address

    @property
    def is_ending(self) -> bool:
        """No new work is begun."""

    def tell(self, text: str) -> None: ...
    def denies(self, user: str, key: str) -> str:
        """What policies make of a publish: "" it may pass."""

    def closed(self, lane: Lane) -> None:
        """A client has asked for a channel's close, and heard that it is closed."""

    def may_deny(self, user: str, code: int) -> bool:
        """Whether a channel may be closed so."""


@attrs.define(eq=False)
class Wait:
    """An answer that is waited for."""

    answers: tuple[type[Method], ...]
    then: Callable[[Method], None]
    since: float
    what: str


class Working(Protocol):
    """A session, as its client and those who look see it."""

    name: str

    def dial(self) -> None: ...
    def oldest(self) -> tuple[float, str]: ...


class Client:
    """One client, which connects again whenever its connection is over."""

    def __init__(self, world: Surroundings, plan: ClientPlan) -> None:
        self.world, self.plan = world, plan
        self.random = Random(plan.seed)
        self.name = plan.name
        self.session: Working | None = None
        self.sessions = 0

    def start(self) -> None:
        self.world.clock.after(self.random.uniform(0, 3), self.dial)

    def dial(self) -> None:
        if self.world.is_ending and not self.has_more():
            return
        self.sessions += 1
        self.session = self.make()
        session = self.session
        session.dial()

    def make(self) -> Working:
        raise NotImplementedError

    def finish(self) -> None:
        """The world is about to end."""

    def has_more(self) -> bool:
        """Whether there is work left though the world is about to end."""
        return False

    def over(self, session: Working) -> None:
        """The session is over."""
        if session is self.session:
            self.session = None
            self.world.clock.after(self.random.uniform(0.5, self.plan.pause), self.dial)


class Session:
    """One connection of a client."""

    def __init__(self, client: Client) -> None:
        self.client, self.world, self.random = client, client.world, client.random
        self.clock, self.ledger = client.world.clock, client.world.ledger
        self.name = f"{client.name}.{client.sessions}"
        self.talk = Talk(client.plan.version)
        self.connection: Line | None = None
        self.is_over = self.is_leaving = False
        self.lanes: dict[int, Lane] = {}
        self.waits: dict[int, Wait] = {}
        self.heard_at = self.clock.now
        self.heartbeat = 0.0

    # -- as a peer ---------------------------------------------------------------------------------

    def dial(self) -> None:
        plan = self.client.plan
        self.world.network.connect(self, plan.name, plan.source, self.world.listener)
        self._wait(0, "the start", (amqp.ConnectionStart,), self._login)
        self.clock.after(LOGIN, self._has_logged_in)

    def connected(self, connection: Line) -> None:
        self.connection = connection
        if self.is_over:
            connection.close()
            return
        connection.send(self.talk.version.header)

    def ended(self, why: str) -> None:
        if not self.is_over:
            self.is_over = True
            for lane in self.lanes.values():
                lane.is_over = True
            self.waits.clear()
            self.client.over(self)

    def received(self, data: bytes) -> None:
        self.heard_at = self.clock.now
        self.talk.feed(data)
        try:
            while not self.is_over and (heard := self.talk.next()) is not None:
                channel, method, content = heard
                if method is not None:
                    self._dispatch(channel, method, content)
        except Wrong as wrong:
            raise Violation(f"{self.name}: {wrong}") from wrong

    def _dispatch(self, channel: int, method: Method, content: Content | None) -> None:
        wait = self.waits.get(channel)
        if wait is not None and isinstance(method, wait.answers):
            del self.waits[channel]
            wait.then(method)
        elif isinstance(method, amqp.ConnectionClose):
            if method.reply_code not in FAIR:
                raise Violation(
                    f"{self.name} heard connection.close {method.reply_code} {method.reply_text!r}"
                )
            self.say(0, amqp.ConnectionCloseOk())
            self.leave()
        elif channel == 0:
            raise Violation(f"{self.name} heard {method.NAME} on channel 0")
        elif channel not in self.lanes:
            raise Violation(f"{self.name} heard {method.NAME} on channel {channel}, which is not open")
        elif isinstance(method, amqp.ChannelClose):
            is_fair = method.reply_code in FAIR or self._is_beyond(method)
            if not is_fair or not self.world.may_deny(self.client.plan.user, method.reply_code):
                raise Violation(f"{self.name} heard channel.close {method.reply_code} {method.reply_text!r}")
            self.world.tell(f"{self.name}: channel {channel} closed, {method.reply_code} {method.reply_text}")
            lane = self.lanes[channel]
            lane.is_over = True
            self.talk.forget(channel)
            self.say(channel, amqp.ChannelCloseOk())
            if wait is not None and wait.what == "channel.close":
                # Both have closed it, and both answer.
                return
            del self.lanes[channel]
            self.waits.pop(channel, None)
            self.lost(channel, lane)
        else:
            self.heard(channel, self.lanes[channel], method, content)

    def _is_beyond(self, close: amqp.ChannelClose) -> bool:
        """Whether an old client is told that more waits for it than may: its limit came behind a consumer."""
        return self.talk.version.is_old and close.reply_code == 406 and "beyond the limit" in close.reply_text

    # -- for those who do something ----------------------------------------------------------------

    def begin(self) -> None:
        """The connection is open."""

    def heard(self, channel: int, lane: Lane, method: Method, content: Content | None) -> None:
        """What is no answer."""
        raise Violation(f"{self.name} heard {method} on channel {channel}")

    def lost(self, channel: int, lane: Lane) -> None:
        """The other end has closed a channel."""

    def say(self, channel: int, method: Method) -> None:
        if self.connection is not None:
            self.connection.send(self.talk.method(channel, method))

    def ask(
        self, channel: int, method: Method, answers: tuple[type[Method], ...], then: Callable[[Method], None]
    ) -> None:
        """Say it, and do something with the answer."""
        self._wait(channel, method.NAME, answers, then)
        self.say(channel, method)

    def _wait(
        self, channel: int, what: str, answers: tuple[type[Method], ...], then: Callable[[Method], None]
    ) -> None:
        self.waits[channel] = Wait(answers, then, self.clock.now, what)

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do it then, unless the session is over, or says no more."""
        self.clock.after(seconds, lambda: None if self.is_over or self.is_leaving else act())

    def open(self, channel: int, then: Callable[[Lane], None]) -> None:
        """Open a channel."""
        lane = self.lanes[channel] = self.ledger.lane(f"{self.name} channel {channel}")
        self.ask(channel, amqp.ChannelOpen(), (amqp.ChannelOpenOk,), lambda _: then(lane))

    def close_channel(self, channel: int, then: Callable[[], None]) -> None:
        lane = self.lanes[channel]

        def closed(_: Method) -> None:
            if self.lanes.pop(channel, None) is lane and not lane.is_over:
                self.world.closed(lane)
            lane.is_over = True
            self.talk.forget(channel)
            then()

        self.ask(channel, amqp.ChannelClose(200, "done"), (amqp.ChannelCloseOk,), closed)

    def end_transaction(self, channel: int, lane: Lane, then: Callable[[Transaction], None]) -> None:
        """Commit mostly, and go on once that is done."""
        is_commit = self.random.random() < 0.8
        transaction = self.ledger.end_transaction(lane, is_commit=is_commit)

        def ended(_: Method) -> None:
            self.ledger.transaction_ended(lane, transaction)
            then(transaction)

        if is_commit:
            self.ask(channel, amqp.TxCommit(), (amqp.TxCommitOk,), ended)
        else:
            self.ask(channel, amqp.TxRollback(), (amqp.TxRollbackOk,), ended)

    def leave_politely(self) -> None:
        """Say connection.close, and hear the answer: by then all has arrived that was said before."""

        def closed(_: Method) -> None:
            for lane in self.lanes.values():
                if not lane.is_over:
                    self.world.closed(lane)
            self.leave()

        self.is_leaving = True
        self.ask(0, amqp.ConnectionClose(200, "bye"), (amqp.ConnectionCloseOk,), closed)

    def leave(self) -> None:
        """Hang up."""
        if self.connection is not None:
            self.connection.close()
        self.ended("left")

    # -- the connection ----------------------------------------------------------------------------

    def _login(self, _: Method) -> None:
        plan = self.client.plan
        response = b"\0" + plan.user.encode() + b"\0secret"
        properties = _OLD if self.talk.version.is_old else _PROPERTIES
        start_ok = amqp.ConnectionStartOk(properties, "PLAIN", response, "en_US")
        self.ask(0, start_ok, (amqp.ConnectionTune,), self._tune)

    def _tune(self, tune: Method) -> None:
        assert isinstance(tune, amqp.ConnectionTune)
        plan = self.client.plan
        frame_max = min(plan.frame_max, tune.frame_max) if tune.frame_max else plan.frame_max
        self.heartbeat = float(plan.heartbeat)
        self.say(0, amqp.ConnectionTuneOk(tune.channel_max, frame_max, plan.heartbeat))
        self.talk.agree(frame_max)
        self.clock.after(self.heartbeat / 2, self._beat)
        self.ask(0, amqp.ConnectionOpen("/"), (amqp.ConnectionOpenOk,), lambda _: self.begin())

    def _has_logged_in(self) -> None:
        if not self.is_over and not self.heartbeat:
            self.leave()

    def _beat(self) -> None:
        if self.is_over or self.connection is None:
            return
        if self.clock.now - self.heard_at > 2 * self.heartbeat:
            self.world.tell(f"{self.name} has heard nothing for {2 * self.heartbeat:g} s, and hangs up")
            self.connection.reset()
            return
        self.connection.send(self.talk.heartbeat)
        self.clock.after(self.heartbeat / 2, self._beat)

    def oldest(self) -> tuple[float, str]:
        """Since when it waits for what; infinity: for nothing."""
        return min(((wait.since, wait.what) for wait in self.waits.values()), default=(float("inf"), ""))
