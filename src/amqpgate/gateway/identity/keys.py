"""An issuer's public keys (JWK Set, RFC 7517), and which of them may have signed a token.

Only what is public is taken of a key, so no key is ever a secret that both sides know: what is signed by one
(HS256) with a public key's bytes finds nothing to be verified with.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import attrs
import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from amqpgate.errors import AmqpgateError
from amqpgate.gateway.identity.tokens import JSON, TokenError, read_object
from amqpgate.values import frozen

log = logging.getLogger(__name__)

#: Bytes of a key set, and keys of one that are looked at.
MAX_SET: Final = 256 << 10
MAX_KEYS: Final = 64

#: Keys that are tried for a token that names none: each takes some 50 us.
MAX_TRIED: Final = 8

#: Bits of an RSA modulus: fewer are not safe (RFC 7518, section 3.3), and more take a millisecond to verify.
RSA_BITS: Final = range(2048, 8192 + 1)

PublicKey: TypeAlias = "RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | Ed448PublicKey"

_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES: Final[Mapping[str, frozenset[str]]] = {
    "P-256": frozenset({"ES256"}),
    "P-384": frozenset({"ES384"}),
    "P-521": frozenset({"ES512"}),
}
_EDDSA: Final[Mapping[str, frozenset[str]]] = {
    "Ed25519": frozenset({"EdDSA"}),
    "Ed448": frozenset({"EdDSA"}),
}
#: Of each type, the members that are public (RFC 7518, section 6; RFC 8037, section 2), and what reads them.
_TYPES: Final[Mapping[str, tuple[tuple[str, ...], Callable[[dict[str, str]], object]]]] = {
    "RSA": (("kty", "n", "e"), lambda members: RSAAlgorithm.from_jwk(dict(members))),
    "EC": (("kty", "crv", "x", "y"), lambda members: ECAlgorithm.from_jwk(dict(members))),
    "OKP": (("kty", "crv", "x"), lambda members: OKPAlgorithm.from_jwk(dict(members))),
}


class KeysError(AmqpgateError):
    """No keys could be had. The text says why, for operators."""


@frozen(eq=False)
class IssuerKey:
    """A public key, and what it may verify."""

    key_id: str | None
    algorithms: frozenset[str]
    public: PublicKey = attrs.field(repr=False)


@frozen(eq=False)
class KeySet:
    """The keys of one issuer at one time."""

    keys: tuple[IssuerKey, ...]
    #: Of what was read: the same digest means the same keys.
    digest: bytes

    @classmethod
    def read(cls, data: bytes) -> KeySet:
        """The keys that can be used. Raises `KeysError` where there are none."""
        if len(data) > MAX_SET:
            raise KeysError(f"the key set is larger than {MAX_SET} bytes")
        try:
            listed = read_object(data, "key set").get("keys")
        except TokenError:
            raise KeysError("what is there is no JSON object") from None
        if not isinstance(listed, list):
            raise KeysError("what is there is no key set: it has no list of keys")
        if len(listed) > MAX_KEYS:
            log.warning("of %d keys of an issuer the first %d are looked at", len(listed), MAX_KEYS)
        keys = tuple([key for key in map(_key, listed[:MAX_KEYS]) if key is not None])
        if not keys:
            raise KeysError("the key set has no public key for signatures")
        return cls(keys, hashlib.sha256(data).digest())

    def candidates(self, algorithm: str, key_id: str | None) -> list[IssuerKey]:
        """Those that may have signed a token with such a header."""
        fitting = [key for key in self.keys if algorithm in key.algorithms]
        if key_id is not None:
            return [key for key in fitting if key.key_id == key_id]
        return fitting[:MAX_TRIED]


def _key(said: JSON) -> IssuerKey | None:
    """The key that an entry describes; None: it is none for signatures that are taken here."""
    if not isinstance(said, dict) or said.get("use", "sig") != "sig":
        return None
    operations = said.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    kind = said.get("kty")
    if not isinstance(kind, str) or kind not in _TYPES:
        return None
    names, read = _TYPES[kind]
    members = {name: value for name in names if isinstance(value := said.get(name), str)}
    if len(members) < len(names):
        return None
    try:
        public = read(members)
    except (jwt.PyJWTError, ValueError, TypeError):
        log.debug("a key of an issuer cannot be read")
        return None
    algorithms = _algorithms(kind, members.get("crv", ""), public)
    named = said.get("alg")
    if isinstance(named, str):
        algorithms = algorithms & {named}
    key_id = said.get("kid")
    if not algorithms or not isinstance(
        public, RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | Ed448PublicKey
    ):
        return None
    return IssuerKey(key_id if isinstance(key_id, str) else None, algorithms, public)


def _algorithms(kind: str, curve: str, public: object) -> frozenset[str]:
    if kind == "RSA":
        is_usual = isinstance(public, RSAPublicKey) and public.key_size in RSA_BITS
        return _RSA if is_usual else frozenset()
    return (_CURVES if kind == "EC" else _EDDSA).get(curve, frozenset())
