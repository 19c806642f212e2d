"""No password reaches a log line, a reply or an exception, whatever is wrong with its login."""

from __future__ import annotations

import base64
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amqpgate.errors import AmqpgateError
from amqpgate.protocol.frames import FRAME_HEADER, FRAME_METHOD, encode_frame, method_frame
from amqpgate.protocol.sasl import amqplain_response, plain_response
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.inprocess import Doorway, InProcess, eventually, serving
from tests.support.talker import CAPABILITIES, Gone, Talker
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

CANARY = b"Kq7zXw9vTbLm"
#: So much of it in a row is a leak.
_PIECE = 5


def _forms() -> Iterator[str]:
    """How a piece of the secret may look in a text."""
    for at in range(len(CANARY) - _PIECE + 1):
        piece = CANARY[at : at + _PIECE]
        yield piece.decode()
        yield piece.hex()
        yield piece.hex(" ")
        yield from (separator.join(map(str, piece)) for separator in (",", ", ", " "))
    # Base64 without what depends on its neighbours.
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + CANARY).decode()
        for at in range(4, len(whole) - 12, 4):
            yield whole[at : at + 8]


FORMS = sorted({form.lower() for form in _forms()})

START_OK = amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", plain_response("guest", CANARY), "en_US")
#: So short that even a text that is cut off would have all of it.
BARE = attrs.evolve(START_OK, client_properties=Table())
AMQPLAIN = attrs.evolve(BARE, mechanism="AMQPLAIN", response=amqplain_response("guest", CANARY))
CHALLENGED = attrs.evolve(START_OK, mechanism="RABBIT-CR-DEMO", response=b"guest")
UPDATE = amqp.ConnectionUpdateSecret(CANARY, "soon over")
OPENING = method_frame(0, amqp.ConnectionTuneOk(2047, 131072, 0)) + method_frame(0, amqp.ConnectionOpen("/"))


class Listening(logging.Handler):
    """All that the process logs, as text, tracebacks and fields included."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        fields = record.__dict__.get("about", "")
        self.lines.append(f"{self.format(record)}{''.join(map(repr, record.args or ()))}{fields}")


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    root, handler = logging.getLogger(), Listening()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield handler.lines
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def leaks(texts: list[str]) -> list[str]:
    return [text for text in texts if any(form in text.lower() for form in FORMS)]


def host(door: Doorway) -> None:
    """A broker that lets everybody in, and quotes what it is told where that answers a challenge."""
    while True:
        try:
            broker = door.accept()
        except OSError:
            return
        threading.Thread(target=converse, args=(broker,), daemon=True).start()


def converse(broker: Talker) -> None:
    with broker, contextlib.suppress(Gone, OSError, AmqpgateError):
        broker.exactly(8)
        broker.say(amqp.ConnectionStart(0, 9, CAPABILITIES, b"PLAIN AMQPLAIN RABBIT-CR-DEMO", b"en_US"))
        while True:
            frame = broker.frame()
            match decode_method(frame.payload):
                case amqp.ConnectionStartOk(mechanism="RABBIT-CR-DEMO"):
                    broker.say(amqp.ConnectionSecure(b"Please tell me your password"))
                case amqp.ConnectionStartOk():
                    broker.say(amqp.ConnectionTune(2047, 131072, 0))
                case amqp.ConnectionSecureOk(response=said):
                    broker.say(amqp.ConnectionClose(502, f"SYNTAX_ERROR - Invalid response {said!r}", 10, 21))
                case amqp.ConnectionOpen():
                    broker.say(amqp.ConnectionOpenOk())
                case amqp.ConnectionUpdateSecret():
                    broker.say(amqp.ConnectionUpdateSecretOk())
                case amqp.ConnectionClose():
                    broker.say(amqp.ConnectionCloseOk())
                case amqp.ConnectionCloseOk():
                    return


@attrs.frozen
class Scene:
    running: InProcess
    lines: list[str]

    def play(self, said: bytes) -> list[str]:
        """What is logged and answered when a client has said this, and nothing more."""
        del self.lines[:]
        with self.running.dial() as client:
            heard = b""
            with contextlib.suppress(Gone, OSError):
                client.raw(said)
                client.sock.shutdown(1)
            with contextlib.suppress(Gone, OSError):
                while data := client.receive():
                    heard += data
        # A link of a pool stays.
        eventually(lambda: self.running.call(lambda: self.running.gateway.acceptor.connections.count) == 0)
        return [*self.lines, heard.decode("latin-1"), heard.hex()]


SETTINGS = """
listeners: [{{name: main, bind: 127.0.0.1:0}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}{upstream}}}]
limits: {{closeTimeout: 0.05, handshakeTimeout: 2}}
"""


@pytest.fixture(scope="module", params=["", ", connections: pooled"], ids=["own", "pooled"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    with contextlib.closing(Doorway()) as door:
        door.sock.settimeout(None)
        threading.Thread(target=host, args=(door,), daemon=True).start()
        text = SETTINGS.format(port=door.port, upstream=request.param)
        with listening() as lines, serving(text) as running:
            yield Scene(running, lines)
        door.sock.shutdown(2)


def login(start_ok: bytes, *more: bytes) -> bytes:
    return b"".join((amqp.PROTOCOL_HEADER, start_ok, *more))


def framed(method: amqp.Method, trailing: bytes = b"", **other: int) -> bytes:
    return encode_frame(other.get("kind", FRAME_METHOD), other.get("channel", 0), method.encode() + trailing)


def bad_end(frame: bytes) -> bytes:
    return frame[:-1] + b"\0"


KNOWN = {
    "start-ok, trailing bytes": login(framed(BARE, b"x")),
    "start-ok, cut short": login(encode_frame(1, 0, BARE.encode()[:-3])),
    "start-ok, bad end": login(bad_end(encode_frame(1, 0, CANARY))),
    "start-ok on a channel": login(encode_frame(1, 1, CANARY)),
    "start-ok as a header": login(encode_frame(FRAME_HEADER, 0, CANARY)),
    "start-ok as a heartbeat": login(encode_frame(8, 0, CANARY)),
    "start-ok as no frame": login(encode_frame(7, 0, CANARY)),
    "AMQPLAIN, trailing bytes": login(framed(AMQPLAIN, b"x")),
    "AMQPLAIN that is PLAIN": login(framed(attrs.evolve(AMQPLAIN, response=START_OK.response))),
    "PLAIN that is AMQPLAIN": login(framed(attrs.evolve(START_OK, response=AMQPLAIN.response))),
    "the password for a mechanism": login(framed(attrs.evolve(START_OK, mechanism=CANARY.decode()))),
    "the password for a type of a value": login(
        encode_frame(1, 0, b"\0\x0a\0\x0b\0\0\0\x10\x01a" + CANARY + b"\0\0\0\0\0")
    ),
    "a challenge, and a broker that quotes": login(
        framed(CHALLENGED), framed(amqp.ConnectionSecureOk(CANARY))
    ),
    "secure-ok, trailing bytes": login(framed(CHALLENGED), framed(amqp.ConnectionSecureOk(CANARY), b"x")),
    "an empty response, then trailing bytes": login(
        framed(attrs.evolve(START_OK, response=b"")),
        framed(amqp.ConnectionSecureOk(START_OK.response), b"x"),
    ),
    "update-secret": login(framed(START_OK), OPENING, framed(UPDATE)),
    "update-secret, trailing bytes": login(framed(START_OK), OPENING, framed(UPDATE, b"x")),
    "update-secret, bad end": login(framed(START_OK), OPENING, bad_end(encode_frame(1, 0, CANARY))),
    "update-secret on a channel": login(framed(START_OK), OPENING, framed(UPDATE, channel=1)),
    "update-secret as a body": login(framed(START_OK), OPENING, framed(UPDATE, kind=3)),
    "update-secret as a heartbeat": login(framed(START_OK), OPENING, encode_frame(8, 0, CANARY)),
    "instead of a header": CANARY * 2,
}


@pytest.mark.parametrize("what", KNOWN)
def test_no_word_of_a_login_that_is_wrong(scene: Scene, what: str) -> None:
    assert leaks(scene.play(KNOWN[what])) == []


@attrs.frozen
class Mutation:
    """One change of a conversation."""

    what: str
    at: float
    length: int
    bytes_: bytes

    def of(self, said: bytes) -> bytes:
        at = int(self.at * len(said))
        kept = at if self.what == "insert" else at + self.length
        return said[:at] + (b"" if self.what == "delete" else self.bytes_) + said[kept:]


mutations = st.builds(
    Mutation,
    st.sampled_from(["insert", "delete", "replace"]),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 12),
    st.binary(min_size=1, max_size=8) | st.sampled_from([b"\xce", b"\0", b"\0\0\0\x05", b"PLAIN"]),
)
conversations = st.sampled_from(
    [
        login(framed(START_OK), OPENING, framed(UPDATE)),
        login(framed(BARE), OPENING, framed(UPDATE)),
        login(framed(AMQPLAIN), OPENING, framed(UPDATE)),
        login(framed(CHALLENGED), framed(amqp.ConnectionSecureOk(CANARY))),
    ]
)


# A password that gets out is worth more examples than others.
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(conversations, st.lists(mutations, min_size=1, max_size=3), st.booleans())
def test_no_word_of_a_login_that_was_changed_on_its_way(
    scene: Scene, said: bytes, changes: list[Mutation], resized: bool
) -> None:
    header, frames = said[:8], said[8:]
    for change in changes:
        if resized:
            # Within the first frame, whose size is made right.
            size = int.from_bytes(frames[3:7], "big")
            payload = change.of(frames[7 : 7 + size])
            frames = encode_frame(1, 0, payload) + frames[size + 8 :]
        else:
            frames = change.of(frames)
    assert leaks(scene.play(header + frames)) == []


def test_a_proxy_header_that_is_none_is_not_quoted(make_stage: MakeStage) -> None:
    stage = make_stage(listener="proxyProtocol: any")
    with listening() as lines:
        for said in (CANARY, b"PROXY " + CANARY + b"\r\n", b"PROXY TCP4 1.2.3.4 " + CANARY + b" 1 1\r\n"):
            client = stage.client()
            with contextlib.suppress(Gone, OSError):
                client.raw(said)
                client.expect_end()
        stage.running.wait_idle()
    assert leaks(lines) == []
    assert any("PROXY" in text for text in lines)


def test_a_login_of_the_gateways_own_is_not_quoted(make_stage: MakeStage) -> None:
    """A broker that says what it has heard."""
    stage = make_stage(upstream=f"user: app, password: {CANARY.decode()}, connections: pooled")
    with listening() as lines:
        client = stage.client()
        client.raw(amqp.PROTOCOL_HEADER)
        # Asked what it offers, then for the login.
        stage.broker().greet()
        client.expect(amqp.ConnectionStart)
        client.say(START_OK)
        broker = stage.broker()
        broker.greet()
        said = broker.expect(amqp.ConnectionStartOk).response
        broker.say(amqp.ConnectionClose(502, f"SYNTAX_ERROR - {said!r}", 10, 11))
        told = client.expect(amqp.ConnectionClose)
        client.say(amqp.ConnectionCloseOk())
        client.expect_end()
    assert leaks([*lines, told.reply_text]) == []
    assert told.reply_text.startswith("SYNTAX_ERROR - ")


@pytest.mark.parametrize(
    "method", [START_OK, amqp.ConnectionSecureOk(CANARY), UPDATE], ids=lambda one: one.NAME
)
def test_the_objects_do_not_show_it(method: amqp.Method) -> None:
    assert leaks([repr(method)]) == []
    assert repr(method).startswith("Connection")
