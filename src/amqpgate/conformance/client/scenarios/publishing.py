"""What publishers have to take: confirms in all forms, returns, flow control."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from amqpgate.conformance.client.line import ClientLine
from amqpgate.conformance.client.rules import client_rule
from amqpgate.conformance.client.scenario import Scenario
from amqpgate.conformance.peer import BODY, frame
from amqpgate.wire.method import Method

_NO_CONFIRMS: Final = "no program published with confirms"


class HeldConfirms(Scenario):
    """Confirms that go out when the client waits for them."""

    needs = _NO_CONFIRMS

    def __init__(self) -> None:
        self.held: dict[int, list[int]] = {}

    def confirms(self, line: ClientLine, channel: int, number: int) -> Iterator[Method]:
        self.held.setdefault(channel, []).append(number)
        return iter(())

    def flush(self, line: ClientLine) -> None:
        for channel, numbers in self.held.items():
            # The client may have closed it meanwhile.
            if channel in line.watch.channels:
                line.say(channel, *self.answers(line, numbers))
        self.held.clear()

    def answers(self, line: ClientLine, numbers: list[int]) -> Iterator[Method]:
        """For these publishes."""
        line.course.act()
        yield line.method("BasicAck", delivery_tag=numbers[-1], multiple=True)


class MultipleConfirms(HeldConfirms):
    """One for all."""

    rule = client_rule(
        "basic.ack.multiple",
        "a confirm with `multiple` is one for all publishes up to it",
        "confirm",
        obeys="goes on",
    )


class ReversedConfirms(HeldConfirms):
    """The last first."""

    rule = client_rule(
        "basic.ack.order", "confirms may come in another order than the publishes", "confirm", obeys="goes on"
    )
    needs = "no program published several messages before it waited for their confirms"

    def answers(self, line: ClientLine, numbers: list[int]) -> Iterator[Method]:
        if len(numbers) > 1:
            line.course.act()
        for number in reversed(numbers):
            yield line.method("BasicAck", delivery_tag=number)


class Nacked(Scenario):
    """The first publish is not taken."""

    rule = client_rule(
        "basic.nack.confirm",
        "basic.nack of a publish is taken: the connection goes on",
        "confirm",
        obeys="goes on",
    )
    needs = "no program published with confirms, and went on"
    may_fail = True

    def confirms(self, line: ClientLine, channel: int, number: int) -> Iterator[Method]:
        if number > 1:
            yield from super().confirms(line, channel, number)
            return
        line.course.act()
        yield line.method("BasicNack", delivery_tag=number)

    def outcome(self, line: ClientLine) -> str | None:
        said = line.course.outcome()
        return None if said == "hangs up" else said


class Returned(Scenario):
    """A message comes back byte by byte."""

    rule = client_rule(
        "basic.return.content",
        "basic.return and its content, which comes before the confirm, are taken",
        "1.8.3.8",
        obeys="goes on",
    )
    needs = "no program published a mandatory message that no queue takes"

    def returns(self, line: ClientLine, channel: int, frames: list[bytes]) -> Sequence[bytes]:
        line.course.act()
        body = b"".join(one[7:-1] for one in frames[2:])
        if len(body) > 1000:
            return frames
        small = (frame(BODY, channel, body[at : at + 1]) for at in range(len(body)))
        return [*frames[:2], *small]


class FlowAnswered(Scenario):
    """channel.flow after the first publish."""

    rule = client_rule(
        "channel.flow.answered", "channel.flow is answered with flow-ok", "1.5.2.3", obeys="flow-ok"
    )
    needs = "no program published and went on"

    def __init__(self) -> None:
        self.channel = 0
        self.answers = 0
        self.is_off = False
        self.published = 0

    def after(self, line: ClientLine, channel: int, said: Method) -> None:
        if said.NAME == "basic.publish" and not self.channel:
            self.channel = channel
            line.course.act(lambda where, method: where == channel and method.NAME == "channel.flow-ok")
            line.say(channel, line.method("ChannelFlow", active=False))
            self.is_off = True

    def before(self, line: ClientLine, channel: int, said: Method) -> bool:
        if channel != self.channel:
            return False
        if said.NAME == "channel.flow-ok":
            self.answers += 1
        elif said.NAME == "basic.publish" and self.is_off and self.answers:
            self.published += 1
        return False

    def flush(self, line: ClientLine) -> None:
        if self.is_off and self.channel in line.watch.channels:
            self.is_off = False
            line.say(self.channel, line.method("ChannelFlow", active=True))

    def outcome(self, line: ClientLine) -> str | None:
        said = line.course.outcome()
        return "flow-ok" if said == "goes on" else said


class FlowObeyed(FlowAnswered):
    """The same; what counts is what is published meanwhile."""

    rule = client_rule(
        "channel.flow.obeyed",
        "nothing is published between flow-ok and the next channel.flow",
        "1.5.2.3",
        obeys="nothing is published",
        strength="should",
    )
    needs = "no program answered channel.flow"

    def outcome(self, line: ClientLine) -> str | None:
        if not self.answers:
            return None
        return f"{self.published} are published" if self.published else "nothing is published"


class Blocked(Scenario):
    """connection.blocked, and unblocked."""

    rule = client_rule(
        "connection.blocked",
        "connection.blocked and unblocked are taken by whoever has asked for them",
        "connection.blocked",
        obeys="goes on",
    )
    needs = "no program that names connection.blocked among its capabilities published"

    def __init__(self) -> None:
        self.is_blocked = False

    def after(self, line: ClientLine, channel: int, said: Method) -> None:
        # Of the versions, 0-8 has no such method.
        is_asked = line.capabilities.get("connection.blocked") is True and line.version.name != "0-8"
        if said.NAME != "basic.publish" or not is_asked:
            return
        if not line.course.has_acted:
            line.course.act()
            self.is_blocked = True
            line.say(0, line.method("ConnectionBlocked", reason="low on amqpgate conformance"))

    def flush(self, line: ClientLine) -> None:
        if self.is_blocked:
            self.is_blocked = False
            line.say(0, line.method("ConnectionUnblocked"))


SCENARIOS: Final[tuple[type[Scenario], ...]] = (
    MultipleConfirms,
    ReversedConfirms,
    Nacked,
    Returned,
    FlowAnswered,
    FlowObeyed,
    Blocked,
)
