"""Which tokens are taken, and who comes out."""

from __future__ import annotations

import json
from typing import get_args

import attrs
import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.config import Algorithm, OAuth
from amqpgate.gateway.identity.keys import KeySet
from amqpgate.gateway.identity.tokens import TokenError, VerifiedToken
from amqpgate.gateway.identity.verification import verify
from amqpgate.telemetry.tokens import OUTCOMES
from tests.support.tokens import (
    AUDIENCE,
    ISSUER,
    NOW,
    PrivateKey,
    by_hand,
    claims,
    jwk,
    key_for,
    key_set,
    token,
    with_secret,
)
from tests.unit.gateway.identity.test_tokens import any_json

ALGORITHMS = get_args(Algorithm)
OAUTH = OAuth(issuer=ISSUER, audience=(AUDIENCE, "second"), claims=("unit", "realm.roles"))
KEYS = KeySet.read(
    key_set(*(jwk(key_for(name), name) for name in ("RS256", "ES256", "ES384", "ES512", "EdDSA")))
)


def taken(data: bytes, oauth: OAuth = OAUTH, now: float = NOW) -> VerifiedToken:
    return verify(data, oauth, KEYS, now)


def refused(data: bytes, oauth: OAuth = OAUTH, now: float = NOW) -> str:
    with pytest.raises(TokenError) as raised:
        taken(data, oauth, now)
    for part in data.split(b"."):
        assert not part or part.decode("latin-1") not in str(raised.value)
    assert raised.value.outcome in OUTCOMES
    return raised.value.outcome


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm(algorithm: str) -> None:
    assert taken(token(algorithm=algorithm)).user == "bob"
    others = tuple(name for name in ALGORITHMS if name != algorithm)
    assert refused(token(algorithm=algorithm), attrs.evolve(OAUTH, algorithms=others)) == "algorithm"


def test_who_comes_out() -> None:
    said = claims(groups=["a", "b"], unit="x", realm={"roles": ["r1", "r2"]}, other="y")
    found = taken(token(said))
    assert found.user == "bob"
    assert found.groups == {"a", "b"}
    assert found.identity.scopes == {"rabbitmq.read:*/*", "rabbitmq.write:*/*"}
    assert found.identity.claims == (("realm.roles", ("r1", "r2")), ("unit", ("x",)))
    assert found.expires == NOW + 60


@pytest.mark.parametrize(
    ("more", "user"),
    [
        ({}, "bob"),
        ({"sub": None, "client_id": "svc"}, "svc"),
        ({"sub": "ünï \n"}, "ünï \n"),
    ],
)
def test_the_first_claim_that_is_there_names_the_user(more: dict[str, object], user: str) -> None:
    assert taken(token(claims(NOW, **more))).user == user


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ({"exp": NOW - 31}, "expired"),
        ({"exp": None}, "claims"),
        ({"exp": str(NOW + 60)}, "claims"),
        ({"exp": True}, "claims"),
        ({"nbf": NOW + 31}, "not-yet-valid"),
        ({"nbf": "x"}, "claims"),
        ({"iat": NOW + 31}, "not-yet-valid"),
        ({"iss": ISSUER + "/"}, "issuer"),
        ({"iss": [ISSUER]}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"aud": "other"}, "audience"),
        ({"aud": []}, "audience"),
        ({"aud": None}, "audience"),
        ({"aud": [AUDIENCE, 1]}, "audience"),
        ({"aud": {AUDIENCE: 1}}, "audience"),
        ({"sub": ""}, "claims"),
        ({"sub": 7, "client_id": "svc"}, "claims"),
        ({"sub": ["bob"]}, "claims"),
        ({"sub": "a\0b"}, "claims"),
        ({"sub": "\ud800"}, "claims"),
        ({"sub": "x" * 256}, "claims"),
        ({"sub": None}, "claims"),
        ({"scope": {"a": 1}}, "claims"),
        ({"groups": [["a"]]}, "claims"),
        ({"unit": {"a": 1}}, "claims"),
        ({"unit": 1.5}, "claims"),
    ],
)
def test_what_must_hold(more: dict[str, object], outcome: str) -> None:
    assert refused(token(claims(NOW, **more))) == outcome


@pytest.mark.parametrize(
    "more",
    [
        {"exp": NOW - 29},
        {"exp": NOW + 0.5},
        {"nbf": NOW + 29},
        {"iat": None},
        {"aud": ["x", "second"]},
        {"scope": None},
        {"unit": None},
    ],
)
def test_what_may_be(more: dict[str, object]) -> None:
    assert taken(token(claims(NOW, **more))).user == "bob"


def test_no_skew_is_no_skew() -> None:
    exact = attrs.evolve(OAUTH, clock_skew=type(OAUTH.clock_skew)(0))
    assert taken(token(claims(exp=NOW + 1)), exact).user == "bob"
    assert refused(token(claims(exp=NOW)), exact) == "expired"


def test_claims_that_stand_twice() -> None:
    body = json.dumps(claims())[:-1] + ', "sub": "admin"}'
    assert refused(token(body.encode())) == "malformed"
    assert refused(token(b"[]")) == "malformed"


# -- signatures ----------------------------------------------------------------------------------


def test_none_and_secrets_are_never_taken() -> None:
    body = json.dumps(claims()).encode()
    for name in (b"none", b"None", b"NONE", b"HS256", b"HS512", b""):
        assert refused(by_hand(b'{"alg":"%s"}' % name, body)) == "algorithm"
    public = key_for("RS256").public_key()
    for encoding, form in (
        (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
    ):
        assert refused(with_secret(claims(), public.public_bytes(encoding, form))) == "algorithm"
    # Even where somebody could say that they are.
    with_hs = attrs.evolve(OAUTH, algorithms=("HS256", "none"))  # type: ignore[arg-type]  # nobody can say that
    assert refused(by_hand(b'{"alg":"none"}', body, b"x"), with_hs) == "key"
    assert refused(with_secret(claims(), b"x"), with_hs) == "key"


def test_a_key_verifies_what_is_its_own() -> None:
    assert refused(token(key_id="unknown")) == "key"
    # Of another type than the header says.
    assert refused(token(key_id="RS256")) == "key"
    stranger = token(key=_other_key(), key_id="ES256")
    assert refused(stranger) == "signature"
    assert refused(token(algorithm="ES256", key=_other_key())) == "signature"


def _other_key() -> PrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def test_keys_in_the_header_are_not_looked_at() -> None:
    key = _other_key()
    own = token(key=key, header={"jwk": jwk(key), "jku": "https://evil.example.org", "x5c": ["AA=="]})
    assert refused(own) == "signature"


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_token_with_one_bit_changed_is_none(at: int, bit: int) -> None:
    data = bytearray(token(key_id="ES256"))
    data[at % len(data)] ^= 1 << bit
    with pytest.raises(TokenError):
        taken(bytes(data))


@given(
    st.dictionaries(
        st.sampled_from(["sub", "client_id", "scope", "groups", "unit", "realm", "aud", "exp", "nbf", "iat"]),
        any_json,
    )
)
def test_whatever_the_issuer_signs_is_text_or_refused(said: dict[str, object]) -> None:
    try:
        found = taken(token(json.dumps(claims() | said).encode()))
    except TokenError:
        return
    texts = [found.user, *found.groups, *found.identity.scopes]
    texts += [value for _, values in found.identity.claims for value in values]
    assert all(text.encode().decode() == text for text in texts)
    assert found.user
    assert found.expires > NOW - 30
