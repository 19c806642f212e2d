"""SCRAM-SHA-256 and SCRAM-SHA-512, the client's side (RFC 5802, RFC 7677). Bytes in, bytes out.

::

    client                                  server
      │ n,,n=user,r=nonce ────────────────────▶ │  client-first-message
      │ ◀──────── r=nonce+theirs,s=salt,i=count │  server-first-message
      │ c=biws,r=nonce+theirs,p=proof ────────▶ │  client-final-message
      │ ◀─────────────────────────── v=signature│  server-final-message: the server knows the password, too

The server never hears the password, and one that does not know it is found out: an exchange that ends without
a right signature has failed. There is no channel binding ("n").
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import stringprep
import unicodedata
from typing import Final

from amqpgate.errors import AmqpgateError

#: Mechanism -> the name of its hash.
HASHES: Final = {"SCRAM-SHA-512": "sha512", "SCRAM-SHA-256": "sha256"}

#: What a server may ask for. Fewer make guessing cheap for who listens (RFC 7677, section 4); more are a
#: load.
FEWEST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 1_000_000

#: No message of a server's is longer.
_LONGEST: Final = 4096

_GS2_HEADER: Final = b"n,,"

_PROHIBITED: Final = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


class SaslError(AmqpgateError):
    """A login that cannot be said, or a server that does not keep to the mechanism. Without secrets."""


def saslprep(text: str) -> str:
    """A user name or password as both sides write it (RFC 4013), unassigned code points allowed ("query").

    Raises `SaslError`.
    """
    mapped = "".join(
        " " if stringprep.in_table_c12(letter) else letter
        for letter in text
        if not stringprep.in_table_b1(letter)
    )
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    if any(is_in(letter) for letter in prepared for is_in in _PROHIBITED):
        raise SaslError("the login has a character in it that SASLprep prohibits (RFC 4013)")
    if any(map(stringprep.in_table_d1, prepared)):
        ends = stringprep.in_table_d1(prepared[0]) and stringprep.in_table_d1(prepared[-1])
        if not ends or any(map(stringprep.in_table_d2, prepared)):
            raise SaslError("the login mixes directions of writing as SASLprep prohibits (RFC 4013)")
    return prepared


class Scram:
    """One exchange: ``first``, then ``answer`` for each challenge, then ``finish``.

    ``answer`` hashes some thousand times: a millisecond or more. All may raise `SaslError`.
    """

    def __init__(self, mechanism: str, user: str, password: bytes, nonce: str | None = None) -> None:
        self.mechanism = mechanism
        self._hash = HASHES[mechanism]
        try:
            self._password = saslprep(password.decode()).encode()
        except UnicodeDecodeError:
            raise SaslError(f"{mechanism} needs a password that is text in UTF-8") from None
        name = saslprep(user)
        if not name or not self._password:
            raise SaslError(f"{mechanism} needs a user name and a password that are not empty")
        self._nonce = nonce or secrets.token_urlsafe(24)
        self._bare = f"n={name.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}".encode()
        #: What the server has to sign with; None: it has not been asked yet.
        self._signature: bytes | None = None
        self._is_proven = False

    def first(self) -> bytes:
        """The client-first-message."""
        return _GS2_HEADER + self._bare

    def answer(self, challenge: bytes) -> bytes:
        """The response to the server's next message; the last one is empty."""
        if self._is_proven:
            raise SaslError(f"{self.mechanism}: a challenge after the end")
        values = _attributes(self.mechanism, challenge)
        if self._signature is None:
            return self._final(challenge, values)
        if "e" in values:
            raise SaslError(f"{self.mechanism}: the server refuses the proof")
        if list(values)[:1] != ["v"]:
            raise SaslError(f"{self.mechanism}: the server did not sign")
        if not hmac.compare_digest(_decoded(self.mechanism, values["v"]), self._signature):
            raise SaslError(
                f"{self.mechanism}: the server's signature is wrong: it does not know the password"
            )
        self._is_proven = True
        return b""

    def finish(self) -> None:
        """The server lets us in: it must have shown that it knows the password."""
        if not self._is_proven:
            raise SaslError(f"{self.mechanism}: the server did not show that it knows the password")

    def _final(self, challenge: bytes, values: dict[str, str]) -> bytes:
        if list(values)[:3] != ["r", "s", "i"]:
            raise SaslError(f"{self.mechanism}: the server's first message is not as RFC 5802 has it")
        nonce, iterations = values["r"], values["i"]
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslError(f"{self.mechanism}: the server's nonce does not continue ours")
        salt = _decoded(self.mechanism, values["s"])
        count = (
            int(iterations) if iterations.isascii() and iterations.isdigit() and len(iterations) < 10 else 0
        )
        if not salt or not FEWEST_ITERATIONS <= count <= MOST_ITERATIONS:
            raise SaslError(
                f"{self.mechanism}: the server asks for {count} iterations and {len(salt)} bytes of salt; "
                f"there must be {FEWEST_ITERATIONS} to {MOST_ITERATIONS}, and some"
            )
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, count)
        bare = b"c=" + base64.b64encode(_GS2_HEADER) + b",r=" + nonce.encode()
        signed = b",".join((self._bare, challenge, bare))
        client_key = self._hmac(salted, b"Client Key")
        proof = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        mixed = bytes(one ^ other for one, other in zip(client_key, proof, strict=True))
        return bare + b",p=" + base64.b64encode(mixed)

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._hash)


def _attributes(mechanism: str, message: bytes) -> dict[str, str]:
    """``a=value,b=value``. An extension that must be understood ("m") is none that we do."""
    found: dict[str, str] = {}
    try:
        text = message.decode() if len(message) <= _LONGEST else ""
    except UnicodeDecodeError:
        text = ""
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if len(name) != 1 or not equals or name in found:
            raise SaslError(f"{mechanism}: a server's message of {len(message)} bytes is malformed")
        found[name] = value
    if "m" in found:
        raise SaslError(f"{mechanism}: the server insists on an extension")
    return found


def _decoded(mechanism: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SaslError(f"{mechanism}: what should be base64 in a server's message is not") from None
