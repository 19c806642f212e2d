"""The three versions as peers speak them: a header, a dialect, and the classes of their methods."""

from __future__ import annotations

from types import ModuleType

import attrs

from amqpgate.protocol.header import HEADER_0_8, HEADER_0_9, HEADER_0_9_1
from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.dialects import LEGACY_CLIENT, LEGACY_CLIENT_0_9, RABBITMQ_0_9_1, Dialect
from amqpgate.wire.generated import v0_8, v0_9, v0_9_1
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

from .talker import CAPABILITIES, Talker

GUEST = plain_response("guest", "guest")


@attrs.frozen
class Spoken:
    """One version."""

    #: As settings name it.
    name: str
    header: bytes
    dialect: Dialect
    words: ModuleType
    #: version-major and version-minor of its connection.start.
    start: tuple[int, int]
    #: What such clients say of themselves.
    properties: Table = Table.of({"product": "talker"})  # noqa: RUF009 - frozen


SPOKEN = {
    spoken.name: spoken
    for spoken in (
        Spoken("0-8", HEADER_0_8, LEGACY_CLIENT, v0_8, (8, 0)),
        Spoken("0-9", HEADER_0_9, LEGACY_CLIENT_0_9, v0_9, (0, 9)),
        Spoken("0-9-1", HEADER_0_9_1, RABBITMQ_0_9_1, v0_9_1, (0, 9), CAPABILITIES),
    )
}


# -- a client's half ----------------------------------------------------------------------------------------


def greet(client: Talker, spoken: Spoken, header: bytes | None = None) -> None:
    """Say the protocol header of a version."""
    client.dialect = spoken.dialect
    client.raw(header or spoken.header)


def log_in(client: Talker, spoken: Spoken, *, mechanism: str = "PLAIN", response: bytes = GUEST) -> Method:
    """Hear start and say start-ok; what was heard."""
    start = client.expect(spoken.words.ConnectionStart)
    client.say(spoken.words.ConnectionStartOk(spoken.properties, mechanism, response, "en_US"))
    return start


def ask_for(
    client: Talker,
    spoken: Spoken,
    *,
    vhost: str = "/",
    tune_ok: tuple[int, int, int] | None = None,
    capabilities: str = "",
    insist: bool = False,
) -> Method:
    """Hear tune and say tune-ok and open; what was heard. ``tune_ok`` as it is in the method."""
    tune = client.expect(spoken.words.ConnectionTune)
    tune_ok = tune_ok or (tune.channel_max, tune.frame_max, 0)
    client.frame_max = tune_ok[1] or tune.frame_max
    client.say(spoken.words.ConnectionTuneOk(*tune_ok))
    client.say(spoken.words.ConnectionOpen(vhost, capabilities, insist))
    return tune


def open_up(
    client: Talker, spoken: Spoken, *, tune_ok: tuple[int, int, int] | None = None, **login: object
) -> None:
    """All of it, up to open-ok."""
    greet(client, spoken)
    log_in(client, spoken, **login)  # type: ignore[arg-type]
    ask_for(client, spoken, tune_ok=tune_ok)
    client.expect(spoken.words.ConnectionOpenOk)


def bye(client: Talker, spoken: Spoken) -> None:
    """connection.close and its answer, then the end."""
    client.ask(spoken.words.ConnectionClose(200, "bye"), spoken.words.ConnectionCloseOk)
    client.expect_end()
    client.close()


# -- a broker's half ----------------------------------------------------------------------------------------


def start(broker: Talker, spoken: Spoken, mechanisms: bytes = b"PLAIN AMQPLAIN", **more: object) -> None:
    """Hear the protocol header of a version, and say start. ``more`` are server properties."""
    header = broker.exactly(8)
    assert header == spoken.header, header
    broker.dialect = spoken.dialect
    properties = Table.of({"product": "scripted", **more})
    broker.say(spoken.words.ConnectionStart(*spoken.start, properties, mechanisms, b"en_US"))


def propose(broker: Talker, spoken: Spoken, *tune: int) -> Method:
    """Hear start-ok, and say tune; what was heard."""
    start_ok = broker.expect(spoken.words.ConnectionStartOk)
    broker.say(spoken.words.ConnectionTune(*(tune or (2047, 131072, 0))))
    return start_ok


def asked(broker: Talker, spoken: Spoken) -> tuple[Method, Method]:
    """Hear tune-ok and open."""
    tune_ok = broker.expect(spoken.words.ConnectionTuneOk)
    broker.frame_max = tune_ok.frame_max
    return tune_ok, broker.expect(spoken.words.ConnectionOpen)
