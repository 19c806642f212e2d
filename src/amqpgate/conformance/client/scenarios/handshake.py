"""Handshakes that a client has to take, and one that it must not."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.client.line import ClientLine
from amqpgate.conformance.client.rules import client_rule
from amqpgate.conformance.client.scenario import Scenario
from amqpgate.conformance.field_types import types_of
from amqpgate.wire.dialects import HEADER_0_9_1
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table


class Ordinary(Scenario):
    """Nothing out of the ordinary."""

    rule = client_rule(
        "connection.ordinary",
        "nothing out of the ordinary happens, and the client goes on",
        "2.2.4",
        obeys="goes on",
    )

    def after(self, line: ClientLine, channel: int, said: Method) -> None:
        line.course.act()


class ServerProperties(Ordinary):
    """server-properties of all types."""

    rule = client_rule(
        "connection.start.server-properties",
        "server-properties of all types, and capabilities that nobody knows, are taken",
        "1.4.2.1.3",
        obeys="goes on",
    )
    is_early = True

    def server_properties(self, line: ClientLine) -> Table:
        line.course.act()
        said = super().server_properties(line)
        more = types_of(line.version.name)
        capabilities = said.get("capabilities")
        if isinstance(capabilities, dict):
            unknown = {"amqpgate.unknown": True, "amqpgate.table": more}
            said = said.with_("capabilities", capabilities | unknown)
        return Table(said.entries + more.entries)


class Mechanisms(Ordinary):
    """PLAIN is the last of many."""

    rule = client_rule(
        "connection.start.mechanisms",
        "the client finds its mechanism and locale among others",
        "1.4.2.1.4",
        obeys="goes on",
    )
    is_early = True
    mechanisms = b"X-AMQPGATE EXTERNAL SCRAM-SHA-256 AMQPLAIN PLAIN"
    locales = b"de_DE en_US fr_FR"


class NoMechanism(Scenario):
    """None that anybody knows."""

    rule = client_rule(
        "connection.start.no-mechanism",
        "where its mechanism is not offered the client gives up; it does not try it all the same",
        "1.4.2.2.2",
        obeys=("gives up", "connection.close *"),
    )
    is_early = True
    may_fail = True
    mechanisms = b"X-AMQPGATE"

    def refuses(self, line: ClientLine, said: Method) -> Method | None:
        # This scenario's own rule says it already.
        line.watch.findings.outcomes.pop("connection.start-ok.mechanism", None)
        return line.method("ConnectionClose", reply_code=503, reply_text="COMMAND_INVALID - not offered")

    def outcome(self, line: ClientLine) -> str | None:
        if line.watch.stage != "start":
            return "start-ok"
        return line.course.error or ("gives up" if line.course.has_hung_up else "silence")


class OtherHeader(Scenario):
    """The broker answers with the header that it would take, and hangs up."""

    rule = client_rule(
        "connection.header.refused",
        "a protocol header in the place of connection.start, and the end, are taken: the client goes",
        "4.2.2",
        obeys="gives up",
    )
    is_early = True
    may_fail = True

    def greet(self, line: ClientLine) -> bytes | Method:
        return HEADER_0_9_1

    def outcome(self, line: ClientLine) -> str | None:
        return "gives up" if line.watch.stage == "start" and not line.course.error else "goes on"


class NoLimits(Ordinary):
    """Zeros in the tune."""

    rule = client_rule(
        "connection.tune.no-limits",
        "channel-max, frame-max and heartbeat of 0 (no limit, none) are taken",
        "1.4.2.5",
        obeys="goes on",
    )
    is_early = True
    tune = (0, 0, 0)


class SmallLimits(Ordinary):
    """The smallest frame-max, few channels."""

    rule = client_rule(
        "connection.tune.small-limits",
        "the smallest frame-max and seven channels are taken, and kept",
        "1.4.2.5",
        obeys="goes on",
    )
    is_early = True
    tune = (7, 4096, 60)

    def outcome(self, line: ClientLine) -> str | None:
        found = line.watch.findings.outcomes
        for rule in ("framing.frame-max", "channel.open.channel-max"):
            said = found.get(rule, "kept")
            if said != "kept":
                return said
        return line.course.outcome()


class Reserved(Ordinary):
    """Reserved fields that are not empty."""

    rule = client_rule(
        "connection.open-ok.reserved",
        "what is in reserved fields of open-ok (of old, the known hosts) is passed over",
        "1.4.2.8",
        obeys="goes on",
    )

    def refuses(self, line: ClientLine, said: Method) -> Method | None:
        if said.NAME != "connection.open":
            return None
        line.course.act()
        name = "known_hosts" if line.version.name == "0-8" else "reserved_1"
        return line.method("ConnectionOpenOk", **{name: "broker-a:5672,broker-b:5672"})


class LoginRefused(Scenario):
    """connection.close after start-ok."""

    rule = client_rule(
        "connection.start-ok.refused",
        "connection.close 403 in the place of tune is answered with close-ok",
        "1.4.2.9",
        obeys="connection.close-ok",
    )
    is_early = True
    may_fail = True

    def refuses(self, line: ClientLine, said: Method) -> Method | None:
        if line.capabilities.get("authentication_failure_close") is not True:
            return None
        line.course.act(closes)
        return line.method(
            "ConnectionClose", reply_code=403, reply_text="ACCESS_REFUSED - amqpgate conformance"
        )

    needs = "the client does not name authentication_failure_close among its capabilities"

    def outcome(self, line: ClientLine) -> str | None:
        return close_outcome(line)


class HostRefused(Scenario):
    """connection.close after open."""

    rule = client_rule(
        "connection.open.refused",
        "connection.close 530 in the place of open-ok is answered with close-ok",
        "1.4.2.9",
        obeys="connection.close-ok",
    )
    may_fail = True
    is_early = True

    def refuses(self, line: ClientLine, said: Method) -> Method | None:
        if said.NAME != "connection.open":
            return None
        line.course.act(closes)
        return line.method("ConnectionClose", reply_code=530, reply_text="NOT_ALLOWED - amqpgate conformance")

    def outcome(self, line: ClientLine) -> str | None:
        return close_outcome(line)


def closes(channel: int, said: Method) -> bool:
    """The answer to a close."""
    return said.NAME == "connection.close-ok"


def close_outcome(line: ClientLine) -> str | None:
    """``connection.close-ok``, or what came in its place."""
    said = line.course.outcome()
    return "connection.close-ok" if line.course.has_proved else said


SCENARIOS: Final[tuple[type[Scenario], ...]] = (
    Ordinary,
    ServerProperties,
    Mechanisms,
    NoMechanism,
    OtherHeader,
    NoLimits,
    SmallLimits,
    Reserved,
    LoginRefused,
    HostRefused,
)
