"""A token's signature and claims, and the principal that comes out (RFC 7519, 8725, 9068)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jwt.algorithms import Algorithm, get_default_algorithms

from amqpgate.config import OAuth
from amqpgate.gateway.identity.keys import KeySet
from amqpgate.gateway.identity.tokens import (
    JSON,
    TokenError,
    UnverifiedToken,
    VerifiedToken,
    claim_of,
    is_text,
    number_of,
    read_object,
    read_token,
    texts_of,
)
from amqpgate.policy import TokenIdentity

#: What verifies signatures, by algorithm. `none` and HS256 are among them, and no key is for those.
_ALGORITHMS: Final[Mapping[str, Algorithm]] = get_default_algorithms()

#: Bytes of a user's name: AMQP's short strings are no longer, and so is no name in a broker's answers.
_LONGEST_NAME: Final = 255


class UnknownKeyError(TokenError):
    """No key of the set may have signed the token: a new one may."""


def verify(token: bytes, oauth: OAuth, keys: KeySet, now: float) -> VerifiedToken:
    """Who bears the token. ``now``: seconds since 1970. Raises `TokenError`."""
    said = read_token(token)
    claims = read_object(_payload(said, oauth, keys), "payload")
    _check_times(claims, now, oauth.clock_skew)
    if claims.get("iss") != oauth.issuer:
        raise TokenError("issuer", "another issuer's")
    _check_audience(claims, oauth)
    return VerifiedToken(
        _user(claims, oauth),
        frozenset(texts_of(claim_of(claims, oauth.groups_claim), "groups")),
        TokenIdentity(
            frozenset(texts_of(claim_of(claims, oauth.scopes_claim), "scopes", splits=True)),
            tuple(
                [
                    (name, values)
                    for name in sorted(oauth.claims)
                    if (values := texts_of(claim_of(claims, name), f"claim {name}"))
                ]
            ),
        ),
        number_of(claims, "exp") or 0.0,
    )


def _payload(said: UnverifiedToken, oauth: OAuth, keys: KeySet) -> bytes:
    """What is signed, by one of the keys."""
    if said.algorithm not in oauth.algorithms:
        raise TokenError("algorithm", "signed by an algorithm that is not taken")
    candidates = keys.candidates(said.algorithm, said.key_id)
    if not candidates:
        raise UnknownKeyError("key", "signed by a key that the issuer does not have")
    # PyJWT would read the header and the parts once more, a character at a time.
    algorithm = _ALGORITHMS[said.algorithm]
    for key in candidates:
        if algorithm.verify(said.signed, key.public, said.signature):
            return said.payload
    # A token that names no key may be signed by a new one.
    wrong = UnknownKeyError if said.key_id is None else TokenError
    raise wrong("signature", "its signature is wrong")


def _check_times(claims: Mapping[str, JSON], now: float, skew: float) -> None:
    expires = number_of(claims, "exp")
    if expires is None:
        raise TokenError("claims", "it never expires: it has no exp")
    if expires + skew <= now:
        raise TokenError("expired", "it has expired")
    for name in ("nbf", "iat"):
        begins = number_of(claims, name)
        if begins is not None and begins - skew > now:
            raise TokenError("not-yet-valid", f"it is not valid yet, by its {name}")


def _check_audience(claims: Mapping[str, JSON], oauth: OAuth) -> None:
    said = claims.get("aud")
    audience: list[JSON] = said if isinstance(said, list) else [said]
    if not all(isinstance(one, str) for one in audience):
        raise TokenError("audience", "its aud is neither text nor a list of text")
    if not any(one in oauth.audience for one in audience):
        raise TokenError("audience", "for another audience")


def _user(claims: Mapping[str, JSON], oauth: OAuth) -> str:
    for name in oauth.user_claims:
        user = claim_of(claims, name)
        if user is None:
            continue
        if not isinstance(user, str) or not user or not is_text(user) or "\0" in user:
            raise TokenError("claims", f"its {name} is no user's name")
        if len(user.encode()) > _LONGEST_NAME:
            raise TokenError("claims", f"its {name} is longer than {_LONGEST_NAME} bytes")
        return user
    raise TokenError("claims", f"it names no user: it has no {' and no '.join(oauth.user_claims)}")
