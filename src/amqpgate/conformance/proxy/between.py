"""What conversations through a proxy are made of: a client's channel, and the broker's end of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import ModuleType
from typing import TypeAlias

import attrs
import trio

from amqpgate.conformance.case import ConformanceRule, Strength
from amqpgate.conformance.endings import Unexpected
from amqpgate.conformance.field_types import types_of
from amqpgate.conformance.peer import TestedPeer
from amqpgate.conformance.proxy.inner import Noted, ProbeBroker, ProbeEnd
from amqpgate.conformance.talk import Talk
from amqpgate.conformance.versions import ALL, Name, said_in
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table


@attrs.define(eq=False)
class ProbedChannel:
    """A channel, as the client before the proxy and the broker behind it have it."""

    peer: TestedPeer
    number: int
    end: ProbeEnd
    #: Its number at the broker.
    inner_number: int

    async def say(self, *said: Method) -> None:
        """As the client."""
        await self.peer.say(self.number, *said)

    async def answer(self, *said: Method) -> None:
        """As the broker."""
        await self.end.say(self.inner_number, *said)


@attrs.define(eq=False)
class ProxyTalk:
    """One conversation."""

    talk: Talk
    inner: ProbeBroker

    @property
    def amqp(self) -> ModuleType:
        """The methods of the client's version."""
        return self.talk.amqp

    @property
    def types(self) -> Table:
        """A field of each type that the client's version has."""
        return types_of(self.talk.version.name)

    @property
    def patience(self) -> float:
        """Seconds for an answer."""
        return self.talk.patience

    def name(self) -> str:
        """One that nobody else says."""
        return self.talk.name()

    async def channel(self, peer: TestedPeer | None = None, number: int = 1) -> ProbedChannel:
        """A channel whose two ends are known: what the client declares on it has come to the broker."""
        peer = await self.talk.channel(peer, number)
        name = self.name()
        await peer.say(number, self.amqp.QueueDeclare(queue=name))
        noted = await self.hears("queue.declare", queue=name)
        await noted.end.say(noted.channel, self.amqp.QueueDeclareOk(queue=name))
        await peer.expect(self.amqp.QueueDeclareOk, number)
        return ProbedChannel(peer, number, noted.end, noted.channel)

    async def hears(self, name: str, **fields: object) -> Noted:
        """A method with these fields, as it came to the broker."""
        return await self.inner.hears(
            name, lambda said: all(getattr(said, field) == value for field, value in fields.items())
        )

    async def passes(
        self, at: ProbedChannel, said: Method, answer: Method | None = None, **fields: object
    ) -> str:
        """A method there, found by its fields, and its answer back: ``as it was``, or what is other."""
        await at.say(said)
        noted = await self.hears(said.NAME, **fields)
        if not self.came(noted, said):
            return changed(said, noted.method)
        if answer is None:
            return "as it was"
        await noted.end.say(noted.channel, answer)
        return await self.returns(at.peer, at.number, answer)

    def came(self, noted: Noted, said: Method) -> bool:
        """Whether what the client has said came as it was: byte for byte, or with the same fields where the
        proxy speaks another version to its broker."""
        spoken = noted.end.version
        if spoken is self.talk.version:
            return noted.payload == self.encoded(said)
        return noted.method == said_in(spoken, said)

    def encoded(self, said: Method) -> bytes:
        """The payload of a method of the client's version."""
        return said.encode(self.talk.version.dialect)

    async def returns(self, peer: TestedPeer, channel: int, said: Method) -> str:
        """What the broker has said, at the client."""
        found = await peer.frame()
        if found is None:
            raise Unexpected("hangs up")
        if found.payload == self.encoded(said) and found.channel == channel:
            return "as it was"
        return changed(said, peer.decoded(found))

    async def either(self, at: ProbedChannel, found: Callable[[], bool | None], what: str) -> str:
        """``what`` once the broker has it, or what is said to the client before."""
        said: list[str] = []
        async with trio.open_nursery() as nursery:

            async def broker() -> None:
                with suppress(Unexpected):
                    await self.inner.until(found, what)
                    said.append(what)
                    nursery.cancel_scope.cancel()

            async def client() -> None:
                said.append(await at.peer.outcome())
                nursery.cancel_scope.cancel()

            nursery.start_soon(broker)
            nursery.start_soon(client)
        return said[0]

    async def confirming(self) -> ProbedChannel:
        """A channel with confirms."""
        channel = await self.channel()
        await channel.say(self.amqp.ConfirmSelect())
        await self.hears("confirm.select")
        await channel.answer(self.amqp.ConfirmSelectOk())
        await channel.peer.expect(self.amqp.ConfirmSelectOk, channel.number)
        return channel

    async def asks(self, at: ProbedChannel, said: Method, **fields: object) -> ProbedChannel:
        """A method there, found by its fields; and where the broker has to answer it."""
        await at.say(said)
        noted = await self.hears(said.NAME, **fields)
        return ProbedChannel(at.peer, at.number, noted.end, noted.channel)

    async def consuming(self) -> tuple[ProbedChannel, str]:
        """A consumer that the client calls ``reader``, and its tag at the broker."""
        at = await self.channel()
        queue = self.name()
        await at.say(self.amqp.BasicConsume(queue=queue, consumer_tag="reader"))
        noted = await self.hears("basic.consume", queue=queue)
        tag: str = getattr(noted.method, "consumer_tag", "")
        channel = ProbedChannel(at.peer, at.number, noted.end, noted.channel)
        await channel.answer(self.amqp.BasicConsumeOk(tag))
        said = await at.peer.expect(self.amqp.BasicConsumeOk, at.number)
        if said.consumer_tag != "reader":
            raise Unexpected(f"the consumer is called {said.consumer_tag}")
        return channel, tag

    async def gone(self, at: ProbedChannel) -> str:
        """How the broker hears that a client has left. Raises `Unexpected`."""

        def found() -> str | None:
            if at.end.has_ended:
                return "the connection ends"
            said = [
                one.method for one in self.inner.noted if one.end is at.end and one.channel == at.inner_number
            ]
            is_closed = any(one is not None and one.NAME == "channel.close" for one in said)
            return "its channel ends" if is_closed else None

        return await self.inner.until(found, "the broker is not told")


def changed(said: Method, found: Method | None) -> str:
    """The fields that are other."""
    if type(found) is not type(said):
        return f"{found.NAME if found is not None else 'something unknown'} in the place of {said.NAME}"
    names = [name for name in said.__match_args__ if getattr(said, name) != getattr(found, name)]
    return f"{said.NAME} has another {', '.join(names) or 'encoding'}"


ProxyConversation: TypeAlias = Callable[[ProxyTalk], Awaitable[str]]


@attrs.frozen(kw_only=True, eq=False)
class ProxyCase(ConformanceRule):
    """A rule on proxies, and the conversation that tries it."""

    talk: ProxyConversation


@attrs.define(eq=False)
class ProxySection:
    """Rules of one subject, in order."""

    name: str
    title: str
    cases: list[ProxyCase] = attrs.field(factory=list)

    def rule(
        self,
        path: str,
        title: str,
        *,
        section: str,
        obeys: str | tuple[str, ...] = "as it was",
        strength: Strength = "must",
        versions: tuple[Name, ...] = ALL,
    ) -> Callable[[ProxyConversation], ProxyConversation]:
        """Add a case, whose conversation is decorated."""

        def add(talk: ProxyConversation) -> ProxyConversation:
            case = ProxyCase(
                id=f"proxy.{path}",
                title=title,
                section=section,
                strength=strength,
                versions=versions,
                talk=talk,
                obeys=(obeys,) if isinstance(obeys, str) else obeys,
            )
            self.cases.append(case)
            return talk

        return add
