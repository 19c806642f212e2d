"""What a token is and what it says: JWS in compact form (RFC 7515) around JSON claims (RFC 7519).

What two readers could take for two different things is no token: a name that an object has twice, base64url
that is not as it would be written, numbers beyond JSON. Whoever sends one is a stranger, so sizes are bounded
first.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from typing import Final, NoReturn, TypeAlias

import attrs

from amqpgate.errors import AmqpgateError
from amqpgate.policy import TokenIdentity
from amqpgate.values import frozen

#: Bytes of a token. Issuers that list groups get to some KiB; a frame of a login has 4 KiB unless it is said.
MAX_TOKEN: Final = 32 << 10

#: Scopes and groups of one token, and values of one of its claims.
MAX_VALUES: Final = 1000

JSON: TypeAlias = "str | int | float | bool | list[JSON] | dict[str, JSON] | None"

_SEGMENT: Final = re.compile(rb"[A-Za-z0-9_-]+")
_NOT_BASE64: Final = re.compile(rb"[^A-Za-z0-9+/_-]+")
#: Some readers of JSON pass over it (RFC 8259, section 8.1).
_BOM: Final = b"\xef\xbb\xbf"
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")

#: What `typ` may say. Other tokens that an issuer signs are not for logins (RFC 8725, section 3.11).
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})


class TokenError(AmqpgateError):
    """A token that is not taken. The text is for operators; nothing of the token is in it."""

    def __init__(self, outcome: str, why: str) -> None:
        super().__init__(f"token: {why}")
        #: What has become of it: one of `amqpgate.telemetry.tokens.OUTCOMES`.
        self.outcome = outcome


@frozen
class VerifiedToken:
    """What comes out of a token that is right."""

    user: str
    groups: frozenset[str]
    identity: TokenIdentity
    #: Its `exp`, in seconds since 1970.
    expires: float


@frozen
class UnverifiedToken:
    """A token by its form. Nobody has looked at its signature."""

    algorithm: str
    #: The key that it names.
    key_id: str | None = attrs.field(repr=False)
    #: What is signed: header and payload as they are written.
    signed: bytes = attrs.field(repr=False)
    payload: bytes = attrs.field(repr=False)
    signature: bytes = attrs.field(repr=False)


def looks_like_token(password: bytes) -> bool:
    """Whether somebody might take a password for a token, however leniently it is read.

    It says yes rather than no: where passwords are taken beside tokens, a token that is not recognized would
    not be verified. Compact JWS and JWE start with a JSON object in base64, and have dots; in JSON form they
    are an object with a payload, or a ciphertext.
    """
    if password.removeprefix(_BOM).lstrip().startswith(b"{"):
        # A name in JSON may be written by escapes, too.
        return any(sign in password for sign in (b'"payload"', b'"ciphertext"', b"\\u"))
    if password.count(b".") < 2:
        return False
    head = _NOT_BASE64.sub(b"", password.partition(b".")[0]).translate(_URL_SAFE)
    if len(head) % 4 == 1:
        head = head[:-1]
    data = base64.b64decode(head + b"=" * (-len(head) % 4))
    return data.removeprefix(_BOM).lstrip().startswith(b"{")


def read_token(token: bytes) -> UnverifiedToken:
    """Its form and its header. Raises `TokenError`."""
    if len(token) > MAX_TOKEN:
        raise TokenError("malformed", f"it is longer than {MAX_TOKEN} bytes")
    parts = token.split(b".", 3)
    if len(parts) != 3:
        _malformed("it is no signed token of three parts")
    header = read_object(decode_segment(parts[0]), "header")
    payload, signature = decode_segment(parts[1]), decode_segment(parts[2])
    algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ")
    if not isinstance(algorithm, str):
        _malformed("its header names no algorithm")
    if key_id is not None and not isinstance(key_id, str):
        _malformed("its kid is no text")
    if kind is not None and (not isinstance(kind, str) or kind.lower() not in _TYPES):
        raise TokenError("malformed", "it is no access token by its typ")
    if "crit" in header or "b64" in header:
        # There is no extension that is understood here (RFC 7515, section 4.1.11).
        _malformed("its header demands an extension")
    return UnverifiedToken(algorithm, key_id, b".".join(parts[:2]), payload, signature)


def decode_segment(segment: bytes) -> bytes:
    """Base64url without padding, written as it would be encoded. Raises `TokenError`."""
    if not _SEGMENT.fullmatch(segment):
        _malformed("a part of it is not base64url")
    try:
        data = base64.urlsafe_b64decode(segment + b"=" * (-len(segment) % 4))
    except binascii.Error:
        _malformed("a part of it is not base64url")
    if base64.urlsafe_b64encode(data).rstrip(b"=") != segment:
        _malformed("a part of it is not base64url as it is written")
    return data


def read_object(data: bytes, what: str) -> dict[str, JSON]:
    """A JSON object in which no name stands twice. Raises `TokenError`."""
    try:
        found: JSON = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_constant)
    except (ValueError, RecursionError):
        # Of what is wrong the text may be quoted.
        raise TokenError("malformed", f"its {what} is no JSON that is read in one way only") from None
    if not isinstance(found, dict):
        _malformed(f"its {what} is no JSON object")
    return found


def _once(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _constant(_text: str) -> NoReturn:
    raise ValueError("no JSON")


def claim_of(claims: Mapping[str, JSON], name: str) -> JSON:
    """A claim by its name; else, where the name has dots, by its path: ``realm_access.roles``."""
    if name in claims:
        return claims[name]
    found: JSON = dict(claims)
    for part in name.split("."):
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    return found


def number_of(claims: Mapping[str, JSON], name: str) -> float | None:
    """A time. Raises `TokenError` where it is no number."""
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenError("claims", f"its {name} is no number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise TokenError("claims", f"its {name} is no time")
    return number


def texts_of(value: JSON, what: str, *, splits: bool = False) -> tuple[str, ...]:
    """The values of a claim as text: one or a list of them; ``splits``: text is words. Raises `TokenError`
    for what is not text: what is left out might be what a policy denies."""
    if value is None:
        return ()
    items: list[JSON] = value if isinstance(value, list) else [value]
    if splits and isinstance(value, str):
        items = [word for word in value.split(" ") if word]
    if len(items) > MAX_VALUES:
        raise TokenError("claims", f"its {what} has more than {MAX_VALUES} values")
    return tuple([_text(item, what) for item in items])


def _text(value: JSON, what: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str) or not is_text(value):
        raise TokenError("claims", f"its {what} is neither text, a whole number, true nor false")
    return value


def is_text(value: str) -> bool:
    """Whether it can be said on the wire: UTF-8 has no lone surrogates, which JSON can escape."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _malformed(why: str) -> NoReturn:
    raise TokenError("malformed", why)
