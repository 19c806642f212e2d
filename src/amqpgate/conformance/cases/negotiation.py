"""How a connection begins: headers, login, tune, open (AMQP 0-9-1, sections 2.2.4, 4.2.2 and 1.4.2)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import CaseSection, Conversation
from amqpgate.conformance.endings import Untestable
from amqpgate.conformance.talk import Talk
from amqpgate.wire.tables import Table

NEGOTIATION: Final = CaseSection("negotiation", "Negotiation", Talk)

_HEADERS: Final = "4.2.2"
#: A header that is not taken is answered with one that is, and the socket is closed.
_REFUSED: Final = ("header AMQP *", "hangs up")
#: A login that is refused: hung up on (0-9-1, 2.2.4), or closed with a word where the client knows it.
_NO_LOGIN: Final = ("connection.close 403", "connection.close 530", "hangs up")


def _header(header: bytes) -> Conversation[Talk]:
    async def conversation(talk: Talk) -> str:
        peer = await talk.dial()
        await peer.send(header)
        return await peer.outcome()

    return conversation


@NEGOTIATION.rule(
    "negotiation.header.taken",
    "the version's protocol header is answered with connection.start",
    section=_HEADERS,
    obeys="connection.start",
)
async def _(talk: Talk) -> str:
    return await _header(talk.version.header)(talk)


for _name, _title, _bytes in (
    ("other-protocol", "another protocol's first bytes", b"GET / HTTP/1.1\r\n\r\n"),
    ("version-99", "a header of AMQP 99-99", b"AMQP\x01\x01\x63\x63"),
    ("version-0", "a header whose version is all zero", b"AMQP\0\0\0\0"),
    ("protocol-id", "a header of 0-9-1 with another protocol id", b"AMQP\x05\0\x09\x01"),
    ("revision", "a header of 0-9-7", b"AMQP\0\0\x09\x07"),
    ("lower-case", "a header in lower case", b"amqp\0\0\x09\x01"),
):
    NEGOTIATION.rule(
        f"negotiation.header.{_name}",
        f"{_title} is answered with a header that is taken, and the end",
        section=_HEADERS,
        versions=("0-9-1",),
        obeys=_REFUSED,
        rabbitmq=("connection.start",) if _name == "revision" else (),
    )(_header(_bytes))


@NEGOTIATION.rule(
    "negotiation.header.closed",
    "whoever is answered with a header is hung up on",
    section=_HEADERS,
    versions=("0-9-1",),
    obeys="hangs up",
)
async def _(talk: Talk) -> str:
    peer = await talk.dial()
    await peer.send(b"AMQP\x01\x01\x63\x63")
    said = await talk.raw(peer, 9, seconds=talk.patience)
    if len(said) > 8:
        return "more than a header"
    return "hangs up" if await talk.ends(peer, seconds=talk.patience) else "goes on"


@NEGOTIATION.rule(
    "negotiation.header.split",
    "the header may come in pieces",
    section=_HEADERS,
    obeys="connection.start",
)
async def _(talk: Talk) -> str:
    peer = await talk.dial()
    for byte in talk.version.header:
        await peer.send(bytes([byte]))
    return await peer.outcome()


@NEGOTIATION.rule(
    "connection.start.version",
    "connection.start names the version of the header",
    section="1.4.2.1",
    obeys="the same",
    rabbitmq="0-9 for *",
)
async def _(talk: Talk) -> str:
    peer = await talk.dial()
    await peer.send(talk.version.header)
    start = await peer.expect(talk.amqp.ConnectionStart)
    major, minor = start.version_major, start.version_minor
    wanted = {"0-9-1": (0, 9), "0-9": (0, 9), "0-8": (8, 0)}[talk.version.name]
    return "the same" if (major, minor) == wanted else f"{major}-{minor} for {talk.version.name}"


@NEGOTIATION.rule(
    "connection.start.server-properties.required",
    "server-properties name host, product, version, platform, copyright and information",
    section="1.4.2.1.4",
    strength="should",
    obeys="all",
    rabbitmq="without host",
)
async def _(talk: Talk) -> str:
    peer = await talk.dial()
    await peer.send(talk.version.header)
    start = await peer.expect(talk.amqp.ConnectionStart)
    wanted = ("host", "product", "version", "platform", "copyright", "information")
    lacks = [name for name in wanted if name not in start.server_properties]
    return f"without {', '.join(lacks)}" if lacks else "all"


@NEGOTIATION.rule(
    "connection.start.mechanisms.list",
    "mechanisms are a list with spaces, and not empty",
    section="1.4.2.1.5",
    obeys="a list",
)
async def _(talk: Talk) -> str:
    peer = await talk.dial()
    await peer.send(talk.version.header)
    start = await peer.expect(talk.amqp.ConnectionStart)
    return "a list" if start.mechanisms.split() else f"{start.mechanisms!r}"


@NEGOTIATION.rule(
    "connection.start.locales.required",
    "locales have en_US",
    section="1.4.2.1.6",
    obeys="has it",
)
async def _(talk: Talk) -> str:
    peer = await talk.dial()
    await peer.send(talk.version.header)
    start = await peer.expect(talk.amqp.ConnectionStart)
    return "has it" if b"en_US" in start.locales.split() else f"{start.locales!r}"


def _login(**changes: object) -> Conversation[Talk]:
    """This start-ok. A login that is taken may be refused when the virtual host is known."""

    async def conversation(talk: Talk) -> str:
        peer = await talk.started()
        await peer.say(0, talk.start_ok(**changes))
        said = await peer.method(0)
        if not isinstance(said, talk.amqp.ConnectionTune):
            return await peer.told(0, said)
        await talk.open(peer, said)
        return await peer.outcome()

    return conversation


@NEGOTIATION.rule(
    "connection.start-ok.response.right",
    "the right login is taken",
    section="1.4.2.2",
    obeys="connection.open-ok",
)
async def _(talk: Talk) -> str:
    return await _login()(talk)


@NEGOTIATION.rule(
    "connection.start-ok.response.wrong",
    "a wrong password is refused",
    section="1.4.2.2",
    obeys=_NO_LOGIN,
)
async def _(talk: Talk) -> str:
    return await _login(response=f"\0{talk.target.user}\0not{talk.target.password}".encode())(talk)


for _name, _title, _said in (
    ("unknown-user", "a user that nobody knows", {"response": b"\0nobody-of-this-name\0guest"}),
    ("empty", "an empty response", {"response": b""}),
    ("no-zero", "a response of PLAIN without zero bytes", {"response": b"guest"}),
    ("garbage", "a response that is no text", {"response": b"\0\xff\xfe\0\xff"}),
):
    NEGOTIATION.rule(
        f"connection.start-ok.response.{_name}",
        f"{_title} is refused",
        section="1.4.2.2",
        # SASL: who says nothing may be asked.
        obeys=(*_NO_LOGIN, "connection.close 50?", *(("connection.secure",) if _name == "empty" else ())),
        rabbitmq="connection.close 541",
    )(_login(**_said))

NEGOTIATION.rule(
    "connection.start-ok.mechanism.unknown",
    "a mechanism that was not offered is refused",
    section="1.4.2.2",
    obeys=(*_NO_LOGIN, "connection.close 504", "connection.close 501", "connection.close 503"),
    rabbitmq="connection.close 541",
)(_login(mechanism="NOBODY-OFFERS-THIS"))

NEGOTIATION.rule(
    "connection.start-ok.locale.unknown",
    "a locale that was not offered is refused, or taken",
    section="1.4.2.2.4",
    strength="should",
    obeys=(*_NO_LOGIN, "connection.open-ok", "connection.close 50?"),
)(_login(locale="xx_XX"))

NEGOTIATION.rule(
    "connection.start-ok.client-properties.empty",
    "a client need not say what it is",
    section="1.4.2.2.1",
    strength="should",
    obeys="connection.open-ok",
)(_login(client_properties=Table()))


@NEGOTIATION.rule(
    "connection.start-ok.order",
    "another method in the place of start-ok ends the connection",
    section="2.2.4",
    obeys=("connection.close 50?", "hangs up"),
)
async def _(talk: Talk) -> str:
    peer = await talk.started()
    await peer.say(0, talk.amqp.ConnectionOpen(virtual_host=talk.target.vhost))
    return await peer.outcome()


@NEGOTIATION.rule(
    "connection.start-ok.channel-first",
    "a channel is not opened before the login",
    section="2.2.4",
    obeys=("connection.close 50?", "hangs up"),
)
async def _(talk: Talk) -> str:
    peer = await talk.started()
    await peer.say(1, talk.amqp.ChannelOpen())
    return await peer.outcome()


@NEGOTIATION.rule(
    "connection.tune-ok.order",
    "open in the place of tune-ok ends the connection",
    section="2.2.4",
    obeys=("connection.close 50?", "hangs up"),
)
async def _(talk: Talk) -> str:
    peer, _ = await talk.tuned()
    await peer.say(0, talk.amqp.ConnectionOpen(virtual_host=talk.target.vhost))
    return await peer.outcome()


@NEGOTIATION.rule(
    "connection.tune.frame-max.minimum",
    "a frame-max that is offered is 0, or 4096 at least",
    section="1.4.2.5.2",
    obeys="within",
)
async def _(talk: Talk) -> str:
    _, tune = await talk.tuned()
    return "within" if tune.frame_max == 0 or tune.frame_max >= 4096 else f"{tune.frame_max}"


def _tuned(above: str) -> Conversation[Talk]:
    """Say more than was offered of this."""

    async def conversation(talk: Talk) -> str:
        peer, tune = await talk.tuned()
        offered = getattr(tune, above)
        if offered in (0, 0xFFFF, 0xFFFFFFFF):
            raise Untestable(f"{above.replace('_', '-')} has no limit")
        said = {"channel_max": tune.channel_max, "frame_max": tune.frame_max, "heartbeat": 0}
        said[above] = offered + 1
        open_ = talk.amqp.ConnectionOpen(virtual_host=talk.target.vhost)
        await peer.say(0, talk.amqp.ConnectionTuneOk(**said), open_)
        return await peer.outcome()

    return conversation


for _field in ("channel_max", "frame_max"):
    _id = _field.replace("_", "-")
    NEGOTIATION.rule(
        f"connection.tune-ok.{_id}.upper-limit",
        f"a {_id} above what was offered ends the connection",
        section="1.4.2.6",
        obeys=("connection.close 5??", "hangs up"),
    )(_tuned(_field))


def _tune_ok(**said: int) -> Conversation[Talk]:
    async def conversation(talk: Talk) -> str:
        peer, tune = await talk.tuned()
        whole = {"channel_max": tune.channel_max, "frame_max": tune.frame_max, "heartbeat": 0} | said
        open_ = talk.amqp.ConnectionOpen(virtual_host=talk.target.vhost)
        await peer.say(0, talk.amqp.ConnectionTuneOk(**whole), open_)
        return await peer.outcome()

    return conversation


NEGOTIATION.rule(
    "connection.tune-ok.frame-max.minimum",
    "a frame-max of 4096 is taken",
    section="1.4.2.6.2",
    obeys="connection.open-ok",
    # RabbitMQ 4 wants 8192.
    rabbitmq=("connection.close 5??", "hangs up"),
)(_tune_ok(frame_max=4096))
NEGOTIATION.rule(
    "connection.tune-ok.frame-max.below-minimum",
    "a frame-max below 4096 ends the connection",
    section="1.4.2.6.2",
    obeys=("connection.close 5??", "hangs up"),
)(_tune_ok(frame_max=100))
NEGOTIATION.rule(
    "connection.tune-ok.channel-max.one",
    "a channel-max of 1 is taken",
    section="1.4.2.6.1",
    obeys="connection.open-ok",
)(_tune_ok(channel_max=1))
NEGOTIATION.rule(
    "connection.tune-ok.heartbeat.largest",
    "a heartbeat of 65,535 seconds is taken",
    section="1.4.2.6.3",
    obeys="connection.open-ok",
)(_tune_ok(heartbeat=0xFFFF))


@NEGOTIATION.rule(
    "connection.tune-ok.heartbeat.kept",
    "a peer sends heartbeats as agreed",
    section="4.2.7",
    obeys="beats",
)
async def _(talk: Talk) -> str:
    peer = await talk.connected(heartbeat=1)
    beat = await talk.raw(peer, 8, seconds=3)
    return "beats" if beat.startswith(b"\x08\0\0\0\0\0\0\xce") else f"{beat!r}"


@NEGOTIATION.rule(
    "connection.tune-ok.heartbeat.missed",
    "who sends nothing for longer than agreed is hung up on",
    section="4.2.7",
    obeys="hangs up",
)
async def _(talk: Talk) -> str:
    peer = await talk.connected(heartbeat=1)
    return "hangs up" if await talk.ends(peer, seconds=8) else "goes on"


def _open(vhost: str) -> Conversation[Talk]:
    async def conversation(talk: Talk) -> str:
        peer, tune = await talk.tuned()
        await talk.open(peer, tune, virtual_host=vhost)
        return await peer.outcome()

    return conversation


NEGOTIATION.rule(
    "connection.open.virtual-host.unknown",
    "a virtual host that is not there is refused with 402, or 530",
    section="1.4.2.7",
    obeys=("connection.close 402", "connection.close 530"),
)(_open("no-such-virtual-host"))


@NEGOTIATION.rule(
    "connection.open.twice",
    "open again ends the connection",
    section="2.2.4",
    obeys=("connection.close 503", "connection.close 504", "connection.close 530"),
    rabbitmq="connection.close 50?",
)
async def _(talk: Talk) -> str:
    peer = await talk.connected()
    await peer.say(0, talk.amqp.ConnectionOpen(virtual_host=talk.target.vhost))
    return await peer.outcome()


@NEGOTIATION.rule(
    "connection.open.at-once",
    "tune-ok, open and channel.open may come in one piece",
    section="2.2.4",
    strength="should",
    obeys="channel.open-ok",
)
async def _(talk: Talk) -> str:
    peer, tune = await talk.tuned()
    tune_ok = talk.amqp.ConnectionTuneOk(channel_max=tune.channel_max, frame_max=tune.frame_max, heartbeat=0)
    open_ = talk.amqp.ConnectionOpen(virtual_host=talk.target.vhost)
    channel = peer.encoded(1, talk.amqp.ChannelOpen())
    await peer.send(peer.encoded(0, tune_ok), peer.encoded(0, open_), channel)
    await peer.expect(talk.amqp.ConnectionOpenOk)
    return await peer.outcome()
