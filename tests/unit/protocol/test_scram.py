"""SCRAM, the client's side: the RFC's own example, a server that others wrote, and servers that cheat."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramMechanism

from amqpgate.protocol.scram import HASHES, MOST_ITERATIONS, SaslError, Scram, saslprep

# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CHALLENGE = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
FINAL = f"c=biws,r={SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
SIGNED = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def example() -> Scram:
    return Scram("SCRAM-SHA-256", "user", b"pencil", NONCE)


def test_the_example_of_the_rfc() -> None:
    client = example()
    assert client.first() == FIRST
    assert client.answer(CHALLENGE) == FINAL
    assert client.answer(SIGNED) == b""
    client.finish()


@pytest.mark.parametrize("mechanism", HASHES)
# Each example hashes some thousand times on both ends.
@settings(max_examples=15)
@given(
    user=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20),
    password=st.text(
        st.characters(codec="latin-1", exclude_categories=["Cc", "Cf", "Zs"]), min_size=1, max_size=20
    ),
)
def test_a_server_that_others_wrote(mechanism: str, user: str, password: str) -> None:
    theirs = ScramMechanism(mechanism)
    made = theirs.make_auth_info(password)
    server = theirs.make_server(lambda name: made if name == user else None)
    client = Scram(mechanism, user, password.encode())
    server.set_client_first(client.first().decode())
    server.set_client_final(client.answer(server.get_server_first().encode()).decode())
    assert client.answer(server.get_server_final().encode()) == b""
    client.finish()


def test_every_exchange_has_a_nonce_of_its_own() -> None:
    nonces = {Scram("SCRAM-SHA-512", "user", b"pencil").first() for _ in range(50)}
    assert len(nonces) == 50


def changed(old: str, new: str) -> bytes:
    text = CHALLENGE.decode()
    assert old in text
    return text.replace(old, new).encode()


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        (b"", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b"r=x" * 5000, "malformed"),
        (CHALLENGE + b",r=again", "malformed"),
        (changed("r=", "m=ext,r="), "extension"),
        (changed("s=", "x="), "not as RFC 5802"),
        (b"s=W22ZaJ0SNY7soEsUEjb6gQ==,r=x,i=4096", "not as RFC 5802"),
        (changed(SERVER_NONCE, "another"), "does not continue ours"),
        (changed(SERVER_NONCE, NONCE), "does not continue ours"),
        (changed("W22ZaJ0SNY7soEsUEjb6gQ==", "W22%"), "base64"),
        (changed("W22ZaJ0SNY7soEsUEjb6gQ==", ""), "iterations"),
        (changed("4096", "4095"), "iterations"),
        (changed("4096", str(MOST_ITERATIONS + 1)), "iterations"),
        (changed("4096", "9" * 400), "iterations"),
        (changed("4096", "-4096"), "iterations"),
        (changed("4096", "٤٠٩٦"), "iterations"),
    ],
)
def test_a_first_message_that_is_not_right(challenge: bytes, why: str) -> None:
    with pytest.raises(SaslError, match=why) as caught:
        example().answer(challenge)
    assert "pencil" not in str(caught.value)


@pytest.mark.parametrize(
    ("signature", "why"),
    [
        (b"v=" + base64.b64encode(bytes(32)), "does not know the password"),
        (b"v=x", "base64"),
        (b"v=", "does not know the password"),
        (b"e=invalid-proof", "refuses the proof"),
        (b"x=1", "did not sign"),
        (CHALLENGE, "did not sign"),
        (b"", "malformed"),
    ],
)
def test_a_signature_that_is_not_right(signature: bytes, why: str) -> None:
    client = example()
    client.answer(CHALLENGE)
    with pytest.raises(SaslError, match=why):
        client.answer(signature)
    with pytest.raises(SaslError, match="did not show"):
        client.finish()


@pytest.mark.parametrize("heard", [[], [CHALLENGE]], ids=["at once", "before it has signed"])
def test_a_server_that_lets_us_in_too_soon(heard: list[bytes]) -> None:
    client = example()
    for challenge in heard:
        client.answer(challenge)
    with pytest.raises(SaslError, match="did not show"):
        client.finish()


def test_nothing_comes_after_the_end() -> None:
    client = example()
    client.answer(CHALLENGE)
    client.answer(SIGNED)
    with pytest.raises(SaslError, match="after the end"):
        client.answer(CHALLENGE)


# RFC 4013, section 3, and what it refers to.
@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
    ],
)
def test_saslprep(text: str, prepared: str) -> None:
    assert saslprep(text) == prepared


@pytest.mark.parametrize("text", ["\u0007", "\u06271", "a\u0627", "\ue000", "\ufffd"])
def test_what_saslprep_prohibits(text: str) -> None:
    with pytest.raises(SaslError, match="SASLprep"):
        saslprep(text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Scram("SCRAM-SHA-256", "user", b"\xff"),
        lambda: Scram("SCRAM-SHA-256", "", b"pencil"),
        lambda: Scram("SCRAM-SHA-256", "user", b""),
        lambda: Scram("SCRAM-SHA-256", "user", "\u00ad".encode()),
    ],
)
def test_logins_that_cannot_be_said(make: Callable[[], Scram]) -> None:
    with pytest.raises(SaslError):
        make()


def test_a_user_name_is_escaped() -> None:
    assert Scram("SCRAM-SHA-256", "a,b=c", b"x", "N").first() == b"n,,n=a=2Cb=3Dc,r=N"
