"""Which keys of an issuer are taken, and which fit a token."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.identity.keys import MAX_KEYS, MAX_SET, MAX_TRIED, KeysError, KeySet
from tests.support.tokens import jwk, key_for, key_set
from tests.unit.gateway.identity.test_tokens import any_json


def ids(keys: KeySet, algorithm: str, key_id: str | None = None) -> list[str | None]:
    return [key.key_id for key in keys.candidates(algorithm, key_id)]


def test_which_fit_a_token() -> None:
    keys = KeySet.read(
        key_set(
            jwk(key_for("RS256"), "r"),
            jwk(key_for("RS256"), "r-ps", alg="PS256"),
            jwk(key_for("ES256"), "e"),
            jwk(key_for("ES384"), "e3", use="sig"),
            jwk(key_for("EdDSA"), "d", key_ops=["verify"]),
            jwk(ed448.Ed448PrivateKey.generate(), "d4"),
        )
    )
    assert ids(keys, "RS256") == ["r"]
    assert ids(keys, "PS256") == ["r", "r-ps"]
    assert ids(keys, "ES256") == ["e"]
    assert ids(keys, "ES384") == ["e3"]
    assert ids(keys, "EdDSA") == ["d", "d4"]
    assert ids(keys, "PS256", "r") == ["r"]
    assert ids(keys, "ES256", "r") == []
    assert ids(keys, "HS256") == []


def test_what_is_no_key_for_signatures() -> None:
    secret: dict[str, object] = {"kty": "oct", "k": "c2VjcmV0", "kid": "s"}
    small = rsa.generate_private_key(65537, 1024)
    other_curve = ec.generate_private_key(ec.SECP256K1())
    others: list[dict[str, object]] = [
        secret,
        jwk(key_for("ES256"), use="enc"),
        jwk(key_for("ES256"), key_ops=["encrypt"]),
        jwk(key_for("ES256"), key_ops=3),
        jwk(key_for("ES256"), alg="HS256"),
        jwk(key_for("ES256")) | {"x": "AA"},
        jwk(key_for("ES256")) | {"x": 3},
        jwk(key_for("ES256")) | {"kty": ["EC"]},
        jwk(small),
        jwk(other_curve),
        {},
    ]
    for one in others:
        with pytest.raises(KeysError, match="no public key"):
            KeySet.read(key_set(one))
    keys = KeySet.read(key_set(*others, jwk(key_for("ES256"), "e")))
    assert [key.key_id for key in keys.keys] == ["e"]


def test_nothing_private_is_kept_of_a_key_that_has_it() -> None:
    from jwt.algorithms import RSAAlgorithm

    key = key_for("RS256")
    assert isinstance(key, rsa.RSAPrivateKey)
    private = json.loads(RSAAlgorithm.to_jwk(key))
    private.pop("key_ops", None)
    assert "d" in private
    (found,) = KeySet.read(key_set(private)).keys
    assert isinstance(found.public, rsa.RSAPublicKey)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"keys":{}}', b'{"keys":[]}', b'{"keys":[1]}', b" " * (MAX_SET + 1), b"\xff"],
)
def test_what_is_no_key_set(data: bytes) -> None:
    with pytest.raises(KeysError):
        KeySet.read(data)


def test_as_many_as_may_be() -> None:
    keys = KeySet.read(key_set(*(jwk(key_for("EdDSA"), str(number)) for number in range(MAX_KEYS + 3))))
    assert len(keys.keys) == MAX_KEYS
    assert len(ids(keys, "EdDSA")) == MAX_TRIED
    assert ids(keys, "EdDSA", str(MAX_KEYS - 1)) == [str(MAX_KEYS - 1)]


@given(
    st.lists(any_json | st.dictionaries(st.sampled_from(["kty", "crv", "x", "y", "n", "e", "kid"]), any_json))
)
def test_any_entry_is_read_or_left_out(entries: list[object]) -> None:
    good = jwk(key_for("ES256"), "e")
    try:
        keys = KeySet.read(json.dumps({"keys": [*entries[:5], good]}).encode())
    except KeysError:
        assert "NaN" in json.dumps(entries[:5]) or "Infinity" in json.dumps(entries[:5])
    else:
        assert ids(keys, "ES256", "e") == ["e"]
