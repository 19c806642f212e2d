"""Many clients on one pool do what they like, and nothing ever reaches another one.

`model` tells what each client is owed. At the end every message is accounted for: it was acknowledged, or it
is in its queue, once.
"""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.pooling.model import Channel, Client, Copy, Ledger, frame
from tests.interop.pooling.ways import Place, refused
from tests.support.frames import content_frames
from tests.support.inprocess import eventually

#: Examples and steps in `make test`, and in `make interop`.
QUICK, LONG = (20, 50), (400, 60)

MOST_CLIENTS, MOST_CHANNELS = 6, 4
#: Of which one is larger than a frame, and one than what a link collects by default.
SIZES = [0, 100, 5_000, 200_000, 1_100_000]

_runs = itertools.count(1)

Pick = st.integers(0, 1 << 16)


class Pool(RuleBasedStateMachine):
    """The clients of one run, which all have the same credentials and vhost."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.prefix = f"run{next(_runs)}"
        self.numbers = itertools.count(1)
        self.ledger = Ledger()
        self.clients: list[Client] = []
        self.queues = [f"{self.prefix}-q{number}" for number in range(3)]
        #: Of clients that are gone.
        self.gone: list[str] = []

    @initialize()
    def start(self) -> None:
        self.witness = self.place.witness()
        for queue in self.queues:
            self.witness.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
        for _ in range(2):
            self.arrive()

    # -- picking -----------------------------------------------------------------------------------------

    def channel(self, pick: int) -> Channel | None:
        every = [channel for client in self.clients for channel in client.channels.values()]
        return every[pick % len(every)] if every else None

    def queue(self, pick: int) -> str:
        """A shared queue, or an exclusive one of somebody."""
        every = self.queues + [name for client in self.clients for name in client.exclusive]
        return every[pick % len(every)]

    def readable(self, client: Client, pick: int) -> str:
        """A shared queue, or an exclusive one of the client's own."""
        every = self.queues + client.exclusive
        return every[pick % len(every)]

    # -- coming and going --------------------------------------------------------------------------------

    @precondition(lambda self: len(self.clients) < MOST_CLIENTS)
    @rule()
    def arrive(self) -> None:
        talker = self.place.client(channels=0)
        client = Client(f"{self.prefix}-c{next(self.numbers)}", talker, self.ledger)
        client.open(1)
        self.clients.append(client)

    @rule(pick=Pick, number=st.integers(1, 9), prefetch=st.integers(0, 3), confirm=st.booleans())
    def open_channel(self, pick: int, number: int, prefetch: int, confirm: bool) -> None:
        if not self.clients:
            return
        client = self.clients[pick % len(self.clients)]
        if number in client.channels or len(client.channels) >= MOST_CHANNELS:
            return
        channel = client.open(number)
        if confirm:
            self.confirm(channel)
        if prefetch:
            client.ask(channel, amqp.BasicQos(prefetch_count=prefetch), amqp.BasicQosOk)

    @rule(pick=Pick)
    def close_channel(self, pick: int) -> None:
        channel = self.channel(pick)
        if channel is not None:
            channel.client.close(channel)

    @rule(
        pick=Pick,
        reset=st.booleans(),
        half=st.one_of(st.none(), st.integers(0, 1 << 15)),
    )
    def vanish(self, pick: int, reset: bool, half: int | None) -> None:
        if not self.clients:
            return
        client = self.leaves(pick)
        channel = next(iter(client.channels.values()), None)
        begun = None if half is None or channel is None else (channel, self.queue(pick), half)
        client.vanish(reset=reset, half=begun)

    @rule(pick=Pick)
    def bye(self, pick: int) -> None:
        if self.clients:
            self.leaves(pick).bye()

    def leaves(self, pick: int) -> Client:
        client = self.clients.pop(pick % len(self.clients))
        self.gone += client.exclusive
        return client

    # -- publishing --------------------------------------------------------------------------------------

    @rule(pick=Pick)
    def confirm_select(self, pick: int) -> None:
        channel = self.channel(pick)
        if channel is not None:
            self.confirm(channel)

    def confirm(self, channel: Channel) -> None:
        channel.client.ask(channel, amqp.ConfirmSelect(), amqp.ConfirmSelectOk)
        channel.confirming = True

    @rule(pick=Pick, to=Pick, size=st.sampled_from(SIZES), count=st.integers(1, 4), wait=st.booleans())
    def publish(self, pick: int, to: int, size: int, count: int, wait: bool) -> None:
        channel = self.channel(pick)
        if channel is None:
            return
        for _ in range(count if size < 1 << 20 else 1):
            channel.client.publish(channel, self.queue(to), size)
        if wait:
            self.settle(channel)

    @rule(pick=Pick, size=st.sampled_from(SIZES[:3]))
    def publish_to_nobody(self, pick: int, size: int) -> None:
        channel = self.channel(pick)
        if channel is not None:
            copy = channel.client.publish(channel, f"{self.prefix}-nowhere", size, mandatory=True)
            copy.is_over = True
            self.settle(channel)

    @rule(pick=Pick, to=Pick, commit=st.booleans(), gone=st.booleans())
    def transaction(self, pick: int, to: int, commit: bool, gone: bool) -> None:
        """On a channel of its own."""
        channel = self.channel(pick)
        if channel is None:
            return
        client = channel.client
        free = next(number for number in range(10, 20) if number not in client.channels)
        mine = client.open(free)
        client.ask(mine, amqp.TxSelect(), amqp.TxSelectOk)
        copies = [client.publish(mine, self.queue(to), 100) for _ in range(2)]
        mine.sent.clear()
        for copy in copies:
            # Nobody may see it before the commit, or ever.
            copy.is_over = True
        client.sync(mine)
        self.listen()
        if commit:
            for copy in copies:
                copy.is_sure, copy.is_over = True, False
            client.ask(mine, amqp.TxCommit(), amqp.TxCommitOk)
        elif not gone:
            client.ask(mine, amqp.TxRollback(), amqp.TxRollbackOk)
        client.close(mine)

    def settle(self, channel: Channel) -> None:
        """Everything that was published on it has been answered."""
        channel.client.sync(channel)
        while channel.unconfirmed or +channel.returns:
            channel.client._take(*channel.client._next())

    # -- consuming ---------------------------------------------------------------------------------------

    @rule(pick=Pick, what=Pick, tag=st.sampled_from(["a", "b", ""]))
    def consume(self, pick: int, what: int, tag: str) -> None:
        channel = self.channel(pick)
        if channel is None or tag in channel.consumers:
            return
        client = channel.client
        queue = self.readable(client, what)
        # Deliveries may come at once behind the answer, never before it.
        answer = client.ask(channel, amqp.BasicConsume(queue=queue, consumer_tag=tag), amqp.BasicConsumeOk)
        assert not tag or answer.consumer_tag == tag
        channel.consumers[answer.consumer_tag] = queue

    @rule(pick=Pick, which=Pick)
    def cancel(self, pick: int, which: int) -> None:
        channel = self.channel(pick)
        if channel is None or not channel.consumers:
            return
        tag = sorted(channel.consumers)[which % len(channel.consumers)]
        channel.client.ask(channel, amqp.BasicCancel(tag), amqp.BasicCancelOk)
        del channel.consumers[tag]

    @rule(pick=Pick, what=Pick)
    def get(self, pick: int, what: int) -> None:
        channel = self.channel(pick)
        if channel is not None:
            channel.client.get(channel, self.readable(channel.client, what))

    @rule(pick=Pick, which=Pick, multiple=st.booleans(), requeue=st.booleans())
    def answer(self, pick: int, which: int, multiple: bool, requeue: bool) -> None:
        channel = self.channel(pick)
        if channel is None or not channel.held:
            return
        tag = sorted(channel.held)[which % len(channel.held)]
        what = channel.client.requeue if requeue else channel.client.ack
        what(channel, tag, multiple=multiple)

    @rule()
    def listen(self) -> None:
        """Everybody hears all that has come."""
        for client in self.clients:
            for channel in list(client.channels.values()):
                client.sync(channel)

    # -- exclusive queues --------------------------------------------------------------------------------

    @rule(pick=Pick)
    def declare_exclusive(self, pick: int) -> None:
        channel = self.channel(pick)
        if channel is None:
            return
        name = f"{channel.client.name}-x{next(self.numbers)}"
        channel.client.ask(channel, amqp.QueueDeclare(queue=name, exclusive=True), amqp.QueueDeclareOk)
        channel.client.exclusive.append(name)

    @rule(pick=Pick, whose=Pick, passive=st.booleans())
    def trespass(self, pick: int, whose: int, passive: bool) -> None:
        channel = self.channel(pick)
        if channel is None:
            return
        others = [
            name for client in self.clients if client is not channel.client for name in client.exclusive
        ]
        if others:
            name = others[whose % len(others)]
            asked = amqp.QueueDeclare(queue=name, passive=True) if passive else amqp.BasicConsume(queue=name)
            channel.client.err(channel, asked, 405, f"'{name}'")

    # -- errors ------------------------------------------------------------------------------------------

    @rule(pick=Pick, what=st.sampled_from([404, 406, 403, 4060]))
    def error(self, pick: int, what: int) -> None:
        """Each with words that only this client has given cause for."""
        channel = self.channel(pick)
        if channel is None:
            return
        number = next(self.numbers)
        name = f"{channel.client.name}-n{number}"
        client = channel.client
        if what == 404:
            client.err(channel, amqp.QueueDeclare(queue=name, passive=True), 404, f"'{name}'")
        elif what == 406:
            arguments = amqp.QueueDeclare(queue=self.queues[0], durable=True)
            client.err(channel, arguments, 406, f"'{self.queues[0]}'")
        elif what == 403:
            client.err(channel, amqp.ExchangeDeclare(exchange=f"amq.{name}", type="fanout"), 403, name)
        else:
            tag = 1_000_000 + number
            client.err(channel, amqp.BasicAck(tag), 406, f"unknown delivery tag {tag}")

    @rule(pick=Pick, what=st.sampled_from(["tag", "immediate", "header"]))
    def fatal(self, pick: int, what: str) -> None:
        """An error that ends the client's own connection."""
        channel = self.channel(pick)
        if channel is None:
            return
        client, number = channel.client, channel.number
        if what == "tag":
            if not channel.consumers:
                return
            tag = sorted(channel.consumers)[0]
            said = frame(amqp.BasicConsume(queue=self.queues[0], consumer_tag=tag), number)
            code, words = 530, f"'{tag}'"
        elif what == "immediate":
            publish = amqp.BasicPublish(routing_key=self.queues[0], immediate=True)
            said = content_frames(number, publish, amqp.BasicProperties(), b"x", 4096)
            code, words = 540, "immediate"
        else:
            said = frame(amqp.BasicPublish(), number) + frame(amqp.BasicQos(), number)
            code, words = 505, "content header"
        self.leaves(self.clients.index(client))
        client.err_all(channel, said, code, words)

    # -- the end -----------------------------------------------------------------------------------------

    def teardown(self) -> None:
        if not hasattr(self, "witness"):
            return
        self.listen()
        for client in self.clients:
            for channel in client.channels.values():
                self.settle(channel)
        for client in list(self.clients):
            self.leaves(self.clients.index(client)).bye()
        for name in self.gone:
            passive = amqp.QueueDeclare(queue=name, passive=True)
            eventually(lambda passive=passive: refused(self.witness, passive).reply_code == 404)  # type: ignore[misc]
        for queue in self.queues:
            self.account(queue)
        self.witness.bye()

    def account(self, queue: str) -> None:
        """What must be in the queue is there, once, and nothing else."""
        copies = [copy for copy in self.ledger.copies.values() if copy.queue == queue]
        due = {copy.body for copy in copies if is_due(copy)}
        may = {copy.body for copy in copies if copy.is_unsure and not copy.is_over}
        passive = amqp.QueueDeclare(queue=queue, passive=True)
        eventually(lambda: self.witness.ask(passive, amqp.QueueDeclareOk, 1).consumer_count == 0)
        eventually(lambda: self.witness.ask(passive, amqp.QueueDeclareOk, 1).message_count >= len(due))
        found: Counter[bytes] = Counter()
        while True:
            self.witness.say(amqp.BasicGet(queue=queue, no_ack=True), 1)
            _, method = self.witness.hear()
            if isinstance(method, amqp.BasicGetEmpty):
                break
            found[self.witness.content_of(method).body] += 1
        assert due <= set(found) <= due | may, f"{queue}: {lack(due, may, found)}"
        assert not found or max(found.values()) == 1
        self.witness.ask(amqp.QueueDelete(queue=queue), amqp.QueueDeleteOk, 1)


def is_due(copy: Copy) -> bool:
    return copy.is_sure and not copy.is_over and not copy.is_unsure


def lack(due: set[bytes], may: set[bytes], found: Counter[bytes]) -> str:
    lost = sorted(body[:40] for body in due - set(found))
    extra = sorted(body[:40] for body in set(found) - due - may)
    return f"lost {lost}, too many {extra}"


def play(place: Place, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        lambda: Pool(place),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            # What comes when is not the same twice: smaller examples would be found by luck alone.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_nothing_reaches_another_client(place: Place) -> None:
    play(place, *QUICK)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_nothing_reaches_another_client_for_long(place: Place) -> None:
    play(place, *LONG)
