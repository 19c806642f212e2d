"""Keys and tokens of an issuer that is made for a test."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.api_jws import PyJWS

ISSUER: Final = "https://issuer.example.org"
AUDIENCE: Final = "rabbitmq"
#: Seconds since 1970.
NOW: Final = 1_800_000_000.0

PrivateKey = (
    rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey
)

_MAKERS: Final[Mapping[str, Callable[[], PrivateKey]]] = {
    "RS": lambda: rsa.generate_private_key(65537, 2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ES384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ES512": lambda: ec.generate_private_key(ec.SECP521R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}
_MADE: dict[str, PrivateKey] = {}


def key_for(algorithm: str) -> PrivateKey:
    """The private key for an algorithm: one for each type, made when it is first asked for."""
    kind = "RS" if algorithm[:2] in ("RS", "PS") else algorithm
    if kind not in _MADE:
        _MADE[kind] = _MAKERS[kind]()
    return _MADE[kind]


def jwk(key: PrivateKey, key_id: str | None = None, **more: object) -> dict[str, object]:
    """The public key as a JWK."""
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        said = RSAAlgorithm.to_jwk(public)
    elif isinstance(public, ec.EllipticCurvePublicKey):
        said = ECAlgorithm.to_jwk(public)
    else:
        said = OKPAlgorithm.to_jwk(public)
    found: dict[str, object] = json.loads(said)
    found.pop("key_ops", None)
    return found | ({"kid": key_id} if key_id is not None else {}) | more


def key_set(*keys: Mapping[str, object]) -> bytes:
    """A JWK Set."""
    return json.dumps({"keys": list(keys)}).encode()


def claims(now: float = NOW, /, **more: object) -> dict[str, object]:
    """Claims that are right at ``now``; of a claim that is None, nothing."""
    usual: dict[str, object] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "bob",
        "exp": int(now) + 60,
        "iat": int(now),
        "scope": "rabbitmq.read:*/* rabbitmq.write:*/*",
    }
    return {name: value for name, value in (usual | more).items() if value is not None}


def token(
    said: Mapping[str, object] | bytes | None = None,
    *,
    algorithm: str = "ES256",
    key: PrivateKey | None = None,
    key_id: str | None = None,
    header: Mapping[str, object] | None = None,
) -> bytes:
    """A token with these claims, or this payload, signed as it should be."""
    payload = said if isinstance(said, bytes) else json.dumps(claims() if said is None else said).encode()
    headers = dict(header or {}) | ({"kid": key_id} if key_id is not None else {})
    return PyJWS().encode(payload, key or key_for(algorithm), algorithm, headers).encode()


def by_hand(header: bytes, payload: bytes, signature: bytes = b"x" * 64) -> bytes:
    """A token of these bytes, whatever they are."""
    return b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in (header, payload, signature))


def with_secret(said: Mapping[str, object], secret: bytes) -> bytes:
    """A token signed by a secret (HS256)."""
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=")
    body = base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=")
    signed = head + b"." + body

    mac = hmac.new(secret, signed, hashlib.sha256).digest()
    return signed + b"." + base64.urlsafe_b64encode(mac).rstrip(b"=")
