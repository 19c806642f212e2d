"""How a connection begins and ends: header, login, open, close (AMQP 0-10, class connection)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import Conversation
from amqpgate.conformance.endings import Untestable
from amqpgate.conformance.v0_10.peer import control_frame
from amqpgate.conformance.v0_10.talk import SessionTalk, section, tune_ok
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.structs import Control
from amqpgate.wire.v0_10.types import Map

NEGOTIATION: Final = section("negotiation", "Negotiation")

_HEADERS: Final = "Transport: Version Negotiation"
#: A login that is refused: 0-10 has no other code for it.
_NO_LOGIN: Final = ("connection.close 320", "hangs up")
_OUT_OF_ORDER: Final = ("connection.close *", "hangs up")


def _header(header: bytes) -> Conversation[SessionTalk]:
    async def conversation(talk: SessionTalk) -> str:
        peer = await talk.dial()
        await peer.send(header)
        return await peer.outcome()

    return conversation


NEGOTIATION.rule(
    "negotiation.header.taken",
    "the protocol header is answered with the same one, and connection.start",
    section=_HEADERS,
    obeys="connection.start",
)(_header(amqp.PROTOCOL_HEADER))

for _name, _title, _bytes in (
    ("other-protocol", "another protocol's first bytes", b"GET / HTTP/1.1\r\n\r\n"),
    ("version-99", "a header of AMQP 99-99", b"AMQP\x01\x01\x63\x63"),
    ("protocol-class", "a header of another protocol class", b"AMQP\x07\x01\x00\x0a"),
    ("lower-case", "a header in lower case", b"amqp\x01\x01\x00\x0a"),
):
    NEGOTIATION.rule(
        f"negotiation.header.{_name}",
        f"{_title} is answered with a header that is taken, and the end",
        section=_HEADERS,
        obeys=("header AMQP *", "hangs up"),
        # It goes by the numbers of the version alone.
        qpid="connection.start" if _name in ("protocol-class", "lower-case") else (),
    )(_header(_bytes))


@NEGOTIATION.rule(
    "negotiation.header.split",
    "the header may come in pieces",
    section=_HEADERS,
    obeys="connection.start",
)
async def _(talk: SessionTalk) -> str:
    peer = await talk.dial()
    for byte in amqp.PROTOCOL_HEADER:
        await peer.send(bytes([byte]))
    return await peer.outcome()


@NEGOTIATION.rule(
    "connection.start.server-properties.required-fields",
    "server-properties name host, product, version, platform, copyright and information",
    section="connection.start.server-properties, required-fields",
    strength="should",
    obeys="all",
    qpid="without copyright, information",
)
async def _(talk: SessionTalk) -> str:
    _, start = await talk.started()
    said = start.server_properties or Map()
    wanted = (b"host", b"product", b"version", b"platform", b"copyright", b"information")
    lacks = [name.decode() for name in wanted if said.get(name) is None]
    return f"without {', '.join(lacks)}" if lacks else "all"


@NEGOTIATION.rule(
    "connection.start.mechanisms.list",
    "mechanisms are an array of names, and not empty",
    section="connection.start.mechanisms",
    obeys="names",
)
async def _(talk: SessionTalk) -> str:
    _, start = await talk.started()
    items = start.mechanisms.items if start.mechanisms is not None else ()
    return "names" if items and all(isinstance(one, bytes) and one for one in items) else f"{items}"


@NEGOTIATION.rule(
    "connection.start.locales.required-support",
    "locales have en_US",
    section="connection.start.locales, required-support",
    obeys="has it",
)
async def _(talk: SessionTalk) -> str:
    _, start = await talk.started()
    items = start.locales.items if start.locales is not None else ()
    return "has it" if b"en_US" in items else f"{items}"


def _login(**changes: object) -> Conversation[SessionTalk]:
    """This start-ok."""

    async def conversation(talk: SessionTalk) -> str:
        peer, _ = await talk.started()
        await peer.say(talk.start_ok(**changes))
        tune = await peer.control(amqp.ConnectionTune)
        await peer.say(tune_ok(tune), talk.open())
        return await peer.outcome()

    return conversation


_TAKEN: Final = "connection.open-ok"
_LOGINS: Final = "connection.start-ok"

for _name, _title, _said in (
    ("right", "the right login is taken", {}),
    ("properties", "a client need not say what it is", {"client_properties": None}),
    ("no-locale", "a client need not choose a locale", {"locale": None}),
):
    NEGOTIATION.rule(
        f"connection.start-ok.{_name}",
        _title,
        section=_LOGINS,
        obeys=_TAKEN,
        strength="must" if _name == "right" else "should",
    )(_login(**_said))

NEGOTIATION.rule(
    "connection.start-ok.locale.unknown",
    "a locale that was not offered is refused, or taken",
    section="connection.start-ok.locale",
    strength="should",
    obeys=(_TAKEN, *_NO_LOGIN),
)(_login(locale=b"xx_XX"))

NEGOTIATION.rule(
    "connection.start-ok.mechanism.validity",
    "a mechanism that was not offered is refused",
    section="connection.start-ok.mechanism, validity",
    obeys=(*_NO_LOGIN, "connection.close 501"),
)(_login(mechanism=b"NOBODY-OFFERS-THIS"))


def _refused(user: str | None, password: str | None) -> Conversation[SessionTalk]:
    async def conversation(talk: SessionTalk) -> str:
        said = f"\0{user or talk.target.user}\0{password or talk.target.password}".encode()
        outcome = await _login(response=said)(talk)
        if outcome != _TAKEN:
            return outcome
        if await _login(response=b"\0nobody-of-this-name\0nothing")(talk) == _TAKEN:
            raise Untestable("it takes any login")
        return outcome

    return conversation


NEGOTIATION.rule(
    "connection.start-ok.response.wrong",
    "a wrong password is refused",
    section=_LOGINS,
    obeys=_NO_LOGIN,
)(_refused(None, "not-the-password"))
NEGOTIATION.rule(
    "connection.start-ok.response.unknown-user",
    "a user that nobody knows is refused",
    section=_LOGINS,
    obeys=_NO_LOGIN,
)(_refused("nobody-of-this-name", None))

for _name, _title, _response in (
    ("empty", "an empty response is refused", b""),
    ("no-zero", "a response of PLAIN without zero bytes is refused", b"guest"),
):
    NEGOTIATION.rule(
        f"connection.start-ok.response.{_name}",
        _title,
        section=_LOGINS,
        # SASL: who says nothing may be asked.
        obeys=(*_NO_LOGIN, "connection.close 501", *(("connection.secure",) if _name == "empty" else ())),
    )(_login(response=_response))


@NEGOTIATION.rule(
    "connection.secure.response",
    "a response may be left out: then it is asked for, or the login is refused",
    section="connection.secure",
    obeys=("asked, and taken", *_NO_LOGIN),
)
async def _(talk: SessionTalk) -> str:
    peer, _ = await talk.started()
    await peer.say(talk.start_ok(response=None))
    await peer.control(amqp.ConnectionSecure)
    await peer.say(amqp.ConnectionSecureOk(response=talk.start_ok().response))
    await peer.control(amqp.ConnectionTune)
    return "asked, and taken"


_EARLY: Final[tuple[tuple[str, str, Control], ...]] = (
    ("open", "open in the place of start-ok ends the connection", amqp.ConnectionOpen()),
    ("tune-ok", "tune-ok in the place of start-ok ends the connection", amqp.ConnectionTuneOk(channel_max=1)),
    ("attach", "no session is attached before the login", amqp.SessionAttach(name=b"amqpgate-conformance")),
)
for _name, _title, _control in _EARLY:

    async def _early(talk: SessionTalk, control: Control = _control) -> str:
        peer, _ = await talk.started()
        await peer.say(control)
        return await peer.outcome()

    NEGOTIATION.rule(
        f"connection.start-ok.order.{_name}",
        _title,
        section="connection: order of controls",
        obeys=_OUT_OF_ORDER,
        # It waits for start-ok.
        qpid="silence",
    )(_early)

_AGAIN: Final[tuple[tuple[str, str, Control], ...]] = (
    ("start-ok", "start-ok again ends the connection", amqp.ConnectionStartOk(mechanism=b"PLAIN")),
    ("tune-ok", "tune-ok again ends the connection", amqp.ConnectionTuneOk(channel_max=1)),
    ("open", "open again ends the connection", amqp.ConnectionOpen(virtual_host=b"")),
    ("tune", "what only a server says ends the connection", amqp.ConnectionTune(channel_max=1)),
)
for _name, _title, _control in _AGAIN:

    async def _again(talk: SessionTalk, control: Control = _control) -> str:
        session = await talk.session()
        await session.peer.say(control)
        said = await session.outcome()
        # What it answers besides counts, too.
        return session.peer.controls[0].NAME if said == "goes on" and session.peer.controls else said

    NEGOTIATION.rule(
        f"connection.open.order.{_name}",
        _title,
        section="connection: order of controls",
        obeys=_OUT_OF_ORDER,
        qpid=("goes on", "connection.open-ok", "connection.secure", "connection.tune"),
    )(_again)


@NEGOTIATION.rule(
    "connection.tune-ok.order",
    "open in the place of tune-ok ends the connection",
    section="connection: order of controls",
    obeys=_OUT_OF_ORDER,
    qpid="connection.open-ok",
)
async def _(talk: SessionTalk) -> str:
    peer, _ = await talk.tuned()
    await peer.say(talk.open())
    return await peer.outcome()


@NEGOTIATION.rule(
    "connection.open.virtual-host.unknown",
    "a virtual host that is not there is refused with 402, or 320",
    section="connection.open.virtual-host",
    obeys=("connection.close 402", "connection.close 320"),
    # It has one, whatever it is called.
    qpid="connection.open-ok",
)
async def _(talk: SessionTalk) -> str:
    peer, tune = await talk.tuned()
    await peer.say(tune_ok(tune), talk.open(virtual_host=b"no-such-virtual-host"))
    return await peer.outcome()


@NEGOTIATION.rule(
    "connection.open.virtual-host.absent",
    "who names no virtual host is let into the default one",
    section="connection.open.virtual-host",
    strength="should",
    obeys="connection.open-ok",
)
async def _(talk: SessionTalk) -> str:
    if talk.target.vhost != "/":
        raise Untestable("the virtual host is not the default one")
    peer, tune = await talk.tuned()
    await peer.say(tune_ok(tune), amqp.ConnectionOpen())
    return await peer.outcome()


@NEGOTIATION.rule(
    "connection.open.at-once",
    "tune-ok, open, attach and the first command may come in one piece",
    section="connection.open",
    strength="should",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    peer, tune = await talk.tuned()
    session = talk.attachable(peer, 0)
    await peer.say(
        tune_ok(tune),
        talk.open(),
        amqp.SessionAttach(name=session.name),
        amqp.SessionCommandPoint(command_id=0, command_offset=0),
    )
    return await session.outcome()


@NEGOTIATION.rule(
    "connection.close.answered",
    "connection.close is answered with close-ok",
    section="connection.close",
    obeys="connection.close-ok",
)
async def _(talk: SessionTalk) -> str:
    peer = await talk.connected()
    await peer.say(amqp.ConnectionClose(reply_code=200, reply_text=b""))
    return await peer.outcome()


@NEGOTIATION.rule(
    "connection.close.ends",
    "nothing is taken behind connection.close",
    section="connection.close",
    obeys=("hangs up", "goes on"),
)
async def _(talk: SessionTalk) -> str:
    peer = await talk.connected()
    close = control_frame(amqp.ConnectionClose(reply_code=200, reply_text=b""))
    await peer.send(close, control_frame(amqp.SessionAttach(name=talk.bytes_name())))
    await peer.control(amqp.ConnectionCloseOk)
    said = await peer.ends()
    return peer.controls[0].NAME if peer.controls else said


@NEGOTIATION.rule(
    "connection.close.sessions",
    "the sessions of a connection that closes are over",
    section="connection.close",
    obeys="exception 404",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.peer.say(amqp.ConnectionClose(reply_code=200, reply_text=b""))
    await session.peer.control(amqp.ConnectionCloseOk)
    await session.peer.aclose()
    other = await talk.session()
    return await other.tried(amqp.QueueDeclare(queue=queue, passive=True))


@NEGOTIATION.rule(
    "connection.close-ok.unasked",
    "close-ok that answers no close ends the connection, or means nothing",
    section="connection.close-ok",
    strength="should",
    obeys=("connection.close *", "hangs up", "goes on"),
    qpid="silence",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.peer.say(amqp.ConnectionCloseOk())
    return await session.outcome()
