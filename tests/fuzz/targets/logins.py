"""SASL responses: who it is, as a second reader finds it; the password comes through and nobody is told."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.handshake.start_ok import UsualStartOk, usual_start_ok
from amqpgate.protocol.frames import method_frame
from amqpgate.protocol.sasl import (
    AMQPLAIN,
    PLAIN,
    Credentials,
    SaslWatcher,
    amqplain_response,
    credentials,
    in_terms_of,
    plain_response,
    user_of,
)
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.fuzz.choices import Choices

MOST = 300
MECHANISMS = (
    PLAIN,
    AMQPLAIN,
    "CRAM-MD5",
    "RABBIT-CR-DEMO",
    "SCRAM-SHA-256",
    "EXTERNAL",
    "ANONYMOUS",
    "\udcff",
    "",
)
CANARY = b"cAnArY"
TOKENS = (
    CANARY,
    b"\0",
    b"\x05LOGINS\0\0\0\x01",
    b"\x08PASSWORDS\0\0\0\x06",
    b"n,,n=",
    b",r=",
    b"=2C",
    b"=3D",
)


def seeds() -> Iterator[bytes]:
    """One of each."""
    yield b"\0" + plain_response("guest", CANARY)
    yield b"\1" + amqplain_response("guest", CANARY)
    yield b"\2\x00user 0123"
    yield b"\3user"
    yield b"\4n,,n=us=2Cer,r=nonce"
    yield b"\5"


def plain_of(response: bytes) -> tuple[bytes, bytes] | None:
    """NUL, user, NUL, password."""
    parts = response.split(b"\0")
    return (parts[1], parts[2]) if len(parts) == 3 and not parts[0] else None


def entries_of(table: bytes) -> list[tuple[bytes, bytes]] | None:
    """The entries of a table without its length, where all are long strings; else None."""
    entries, at = [], 0
    while at < len(table):
        end = at + 1 + table[at]
        if table[end : end + 1] != b"S" or len(table) < end + 5:
            return None
        (size,) = struct.unpack_from(">I", table, end + 1)
        value = table[end + 5 : end + 5 + size]
        if len(value) < size:
            return None
        entries.append((table[at + 1 : end], value))
        at = end + 5 + size
    return entries


def check(data: bytes) -> None:
    """Read it in two ways."""
    choices = Choices(data)
    mechanism = choices.pick(MECHANISMS)
    response = choices.rest()
    watcher = SaslWatcher(mechanism)
    try:
        found = credentials(mechanism, response)
        watcher.response(response)
        user = user_of(mechanism, response)
    except ProtocolViolation as violation:
        assert violation.code in (502, 541, 501, 506), violation.code
        assert CANARY.decode() not in str(violation), violation
        numbers = ",".join(map(str, CANARY))
        assert numbers not in str(violation), violation
        assert mechanism != PLAIN or not is_good_plain(response), response
        assert stepped_through(mechanism, response) is None, response
        return
    assert user == watcher.user
    said = stepped_through(mechanism, response)
    assert said is None or said.user == user, response
    shown = f"{found!r}{watcher!r}{said!r}"
    assert CANARY.decode() not in shown or CANARY in bytes_of(user), shown
    if found is not None:
        check_found(mechanism, response, found)


def stepped_through(mechanism: str, response: bytes) -> UsualStartOk | None:
    """What the fast path makes of it, if it takes it."""
    if mechanism not in (PLAIN, AMQPLAIN):
        return None
    return usual_start_ok(method_frame(0, amqp.ConnectionStartOk(Table(), mechanism, response, "en_US")))


def bytes_of(user: str | None) -> bytes:
    """As on the wire."""
    return b"" if user is None else user.encode("utf-8", "surrogateescape")


def is_good_plain(response: bytes) -> bool:
    """Whether a broker takes it for a login, with a name that is text."""
    parts = plain_of(response)
    try:
        return parts is not None and bool(parts[0].decode() or True)
    except UnicodeDecodeError:
        return False


def check_found(mechanism: str, response: bytes, found: Credentials) -> None:
    """It is what the response says, and says the same in the other mechanism."""
    if mechanism == PLAIN:
        assert plain_of(response) == (bytes_of(found.user), found.password), response
    else:
        entries = entries_of(response)
        if entries is not None:
            names = dict(reversed(entries))
            assert names.get(b"LOGIN") == bytes_of(found.user), response
            assert names.get(b"PASSWORD") == found.password, response
    for offered in ((PLAIN,), (AMQPLAIN,)):
        try:
            other, said = in_terms_of(offered, mechanism, response)
        except UnicodeEncodeError:
            # A name that is no text is refused before it is said in other terms.
            continue
        again = credentials(other, said)
        assert again is not None
        assert (again.user, again.password) == (found.user, found.password), (other, said)
