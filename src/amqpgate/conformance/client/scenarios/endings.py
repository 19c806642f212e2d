"""Closes and cancels of the broker's, and heartbeats."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.client.line import ClientLine
from amqpgate.conformance.client.rules import client_rule
from amqpgate.conformance.client.scenario import Scenario
from amqpgate.conformance.client.scenarios.handshake import close_outcome, closes
from amqpgate.wire.method import Method

#: What closes answer to.
_ASKED: Final = ("queue.declare", "exchange.declare", "basic.consume", "basic.get", "basic.qos")

_NO_QUESTION: Final = "no program declared, consumed or asked for a message"


class BrokerClosesChannel(Scenario):
    """channel.close in the place of an answer."""

    rule = client_rule(
        "channel.close.answered",
        "channel.close is answered with close-ok",
        "1.5.2.5",
        obeys="channel.close-ok",
    )
    needs = _NO_QUESTION
    may_fail = True

    def before(self, line: ClientLine, channel: int, said: Method) -> bool:
        if line.course.has_acted or said.NAME not in _ASKED:
            return False
        line.course.act(lambda where, method: where == channel and method.NAME == "channel.close-ok")
        line.say(
            channel,
            line.method(
                "ChannelClose",
                reply_code=406,
                reply_text="PRECONDITION_FAILED - amqpgate conformance",
                class_id=said.CLASS_ID,
                method_id=said.METHOD_ID,
            ),
        )
        return True

    def outcome(self, line: ClientLine) -> str | None:
        said = line.course.outcome()
        return "channel.close-ok" if line.course.has_proved else said


class ClosesCross(Scenario):
    """The broker's channel.close meets the client's."""

    rule = client_rule(
        "channel.close.crosses",
        "channel.close that meets the client's own is answered with close-ok, too",
        "1.5.2.5",
        obeys="channel.close-ok",
        strength="should",
        # It waits for no answer.
        rabbitmq="passes over it",
    )
    needs = "no program closed a channel"
    may_fail = True

    def before(self, line: ClientLine, channel: int, said: Method) -> bool:
        if said.NAME == "channel.close" and not line.course.has_acted:
            line.course.act(lambda where, method: where == channel and method.NAME == "channel.close-ok")
            line.say(
                channel,
                line.method("ChannelClose", reply_code=406, reply_text="PRECONDITION_FAILED - crossing"),
            )
        return False

    def outcome(self, line: ClientLine) -> str | None:
        said = line.course.outcome()
        return "channel.close-ok" if line.course.has_proved else said


class BrokerClosesConnection(Scenario):
    """connection.close in the place of an answer."""

    rule = client_rule(
        "connection.close.answered",
        "connection.close is answered with close-ok",
        "1.4.2.9",
        obeys="connection.close-ok",
    )
    needs = _NO_QUESTION
    may_fail = True

    def before(self, line: ClientLine, channel: int, said: Method) -> bool:
        if line.course.has_acted or said.NAME not in _ASKED:
            return False
        line.course.act(closes)
        line.say(
            0,
            line.method(
                "ConnectionClose", reply_code=320, reply_text="CONNECTION_FORCED - amqpgate conformance"
            ),
        )
        return True

    def outcome(self, line: ClientLine) -> str | None:
        return close_outcome(line)


class ConsumerCancelled(Scenario):
    """basic.cancel of the broker's, after the deliveries."""

    rule = client_rule(
        "basic.cancel.broker",
        "basic.cancel of the broker's is taken by whoever has asked for it",
        "consumer_cancel_notify",
        obeys="goes on",
    )
    needs = "no program that names consumer_cancel_notify among its capabilities consumed, and went on"
    may_fail = True

    def after(self, line: ClientLine, channel: int, said: Method) -> None:
        if said.NAME != "basic.consume" or line.capabilities.get("consumer_cancel_notify") is not True:
            return
        if not line.course.has_acted:
            line.course.act()
            line.say(channel, line.method("BasicCancel", consumer_tag=line.dismiss(channel), no_wait=True))

    def outcome(self, line: ClientLine) -> str | None:
        said = line.course.outcome()
        return None if said == "hangs up" else said


class HeartbeatsSent(Scenario):
    """An answer takes its time."""

    rule = client_rule(
        "connection.heartbeat.sent",
        "where nothing else is to be said for two heartbeat intervals, a heartbeat is",
        "4.2.7",
        obeys="heartbeats",
    )
    is_early = True
    needs = "the client agreed to no heartbeats, or to one in more than three seconds"
    tune = (2047, 131072, 1)

    def __init__(self) -> None:
        self.has_waited = False

    def delay(self, said: Method, heartbeat: int) -> float:
        if said.NAME != "channel.open" or self.has_waited or not 0 < heartbeat <= 3:
            return 0
        self.has_waited = True
        return 3.5 * heartbeat

    def outcome(self, line: ClientLine) -> str | None:
        if not self.has_waited or not line.heartbeat:
            return None
        if line.silence < 2 * line.heartbeat + 0.5:
            return "heartbeats"
        return f"{line.silence:.1f} s of silence, with a heartbeat every {line.heartbeat} s"


class HeartbeatsHeard(HeartbeatsSent):
    """The broker says nothing at all."""

    rule = client_rule(
        "connection.heartbeat.heard",
        "where nothing comes for two heartbeat intervals the client gives up",
        "4.2.7",
        obeys=("gives up", "connection.close *"),
        strength="should",
    )
    may_fail = True

    def __init__(self) -> None:
        super().__init__()
        self.stays = False

    def delay(self, said: Method, heartbeat: int) -> float:
        return super().delay(said, heartbeat) and 14 * heartbeat

    def after(self, line: ClientLine, channel: int, said: Method) -> None:
        if said.NAME == "connection.open":
            line.is_mute = True
        elif said.NAME == "channel.open":
            self.stays = True

    def outcome(self, line: ClientLine) -> str | None:
        if not self.has_waited:
            return None
        return line.course.error or (f"stays for {line.silence:.0f} s" if self.stays else "gives up")


SCENARIOS: Final[tuple[type[Scenario], ...]] = (
    BrokerClosesChannel,
    ClosesCross,
    BrokerClosesConnection,
    ConsumerCancelled,
    HeartbeatsSent,
    HeartbeatsHeard,
)
