"""User names out of logins, and nothing of the password."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.sasl import (
    Credentials,
    SaslWatcher,
    amqplain_response,
    credentials,
    in_terms_of,
    offered_by,
    plain_response,
    repeatable,
    response_for,
    user_of,
    with_both_plain,
)
from amqpgate.wire.table_codec import put_table
from amqpgate.wire.tables import Field, Table

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


def amqplain(*entries: tuple[str, Field]) -> bytes:
    return put_table(Table(entries))[4:]


def longstr(value: str) -> Field:
    return Field("S", value)


@given(WORDS, WORDS)
def test_plain_and_back(user: str, password: str) -> None:
    found = credentials("PLAIN", plain_response(user, password))
    assert found == Credentials(user, password.encode())


@given(WORDS, st.text(max_size=40))
def test_amqplain_and_back(user: str, password: str) -> None:
    response = amqplain_response(user, password.encode(errors="surrogatepass"))
    assert credentials("AMQPLAIN", response) == Credentials(user, password.encode(errors="surrogatepass"))


def test_known_bytes() -> None:
    assert plain_response("guest", "secret") == b"\x00guest\x00secret"
    assert amqplain_response("guest", "secret") == (
        b"\x05LOGINS\x00\x00\x00\x05guest\x08PASSWORDS\x00\x00\x00\x06secret"
    )


@pytest.mark.parametrize(("user", "password"), [("a\0b", "c"), ("a", "b\0c"), ("a", b"b\0c")])
def test_plain_carries_no_nul(user: str, password: str | bytes) -> None:
    with pytest.raises(ValueError, match="NUL"):
        plain_response(user, password)


MALFORMED = [
    ("PLAIN", b"guest"),
    ("PLAIN", b"guest\x00guest"),
    ("PLAIN", b"\x00guest"),
    ("PLAIN", b"admin\x00guest\x00guest"),  # an authorization identity: whose rights count?
    ("PLAIN", b"\x00guest\x00guest\x00"),
    ("PLAIN", b"\x00guest\x00gu\x00est"),
    ("PLAIN", b"\x00gu\xffest\x00guest"),
    ("AMQPLAIN", amqplain(("LOGIN", longstr("guest")))),
    ("AMQPLAIN", amqplain(("PASSWORD", longstr("guest")))),
    ("AMQPLAIN", amqplain(("login", longstr("guest")), ("password", longstr("guest")))),
    ("AMQPLAIN", amqplain(("LOGIN", Field("x", b"guest")), ("PASSWORD", longstr("guest")))),
    ("AMQPLAIN", amqplain(("LOGIN", longstr("guest")), ("PASSWORD", Field("I", 7)))),
    ("AMQPLAIN", amqplain(("LOGIN", longstr("guest")), ("PASSWORD", Field("x", b"guest")))),
    ("AMQPLAIN", amqplain(("LOGIN", Field("S", b"\xff")), ("PASSWORD", longstr("guest")))),
    (
        "AMQPLAIN",
        amqplain(("LOGIN", longstr("a")), ("LOGIN", longstr("b")), ("PASSWORD", longstr("guest"))),
    ),
    ("AMQPLAIN", put_table(Table((("LOGIN", longstr("a")), ("PASSWORD", longstr("b")))))),  # with its length
    ("AMQPLAIN", amqplain_response("guest", "guest")[:-1]),
    ("RABBIT-CR-DEMO", b"\xff"),
    ("SCRAM-SHA-256", b"n,a=admin,n=guest,r=abc"),
    ("SCRAM-SHA-256", b"n,,n=guest"),
    ("SCRAM-SHA-256", b"n,,m=ext,n=guest,r=abc"),
    ("SCRAM-SHA-256", b"n,,n=gu=est,r=abc"),
]


@pytest.mark.parametrize(("mechanism", "response"), MALFORMED)
def test_malformed_responses_are_502_and_not_quoted(mechanism: str, response: bytes) -> None:
    with pytest.raises(ProtocolViolation, match="response invalid") as caught:
        user_of(mechanism, response)
    error = caught.value
    assert (error.code, error.class_id, error.method_id) == (502, 10, 11)
    assert "guest" not in str(error)


@given(st.sampled_from(["PLAIN", "AMQPLAIN", "RABBIT-CR-DEMO", "SCRAM-SHA-1", "EXTERNAL"]), st.binary())
def test_hostile_responses_raise_nothing_else(mechanism: str, response: bytes) -> None:
    with suppress(ProtocolViolation):
        user_of(mechanism, response)


@pytest.mark.parametrize(
    ("mechanism", "response", "user"),
    [
        ("PLAIN", b"\x00guest\x00secret", "guest"),
        ("PLAIN", b"\x00\x00", ""),
        ("PLAIN", "\x00jürgen\x00x".encode(), "jürgen"),
        ("PLAIN", b"", None),
        ("AMQPLAIN", amqplain_response("guest", "secret"), "guest"),
        (
            "AMQPLAIN",
            amqplain(("X", longstr("y")), ("PASSWORD", longstr("p")), ("LOGIN", longstr("guest"))),
            "guest",
        ),
        ("EXTERNAL", b"somebody", None),
        ("ANONYMOUS", b"trace", None),
        ("RABBIT-CR-DEMO", b"guest", "guest"),
        ("CRAM-MD5", b"", None),
        ("SCRAM-SHA-256", b"n,,n=gu=2Ces=3Dt,r=abc", "gu,es=t"),
        ("SCRAM-SHA-1", b"y,,n=guest,r=abc", "guest"),
        ("SCRAM-SHA-512", b"p=tls-unique,,n=guest,r=abc", "guest"),
        ("GSSAPI", b"\x60\x00", None),
        ("plain", b"\x00guest\x00secret", None),
    ],
)
def test_user_of(mechanism: str, response: bytes, user: str | None) -> None:
    assert user_of(mechanism, response) == user


@pytest.mark.parametrize(
    ("mechanism", "responses", "user"),
    [
        ("PLAIN", [b"", b"\x00guest\x00secret"], "guest"),
        ("AMQPLAIN", [b"", amqplain_response("guest", "secret")], "guest"),
        ("CRAM-MD5", [b"", b"the guest 0123456789abcdef"], "the guest"),
        ("RABBIT-CR-DEMO", [b"guest", b"My password is secret"], "guest"),
        ("SCRAM-SHA-256", [b"n,,n=guest,r=a", b"c=biws,r=ab,p=proof"], "guest"),
        ("EXTERNAL", [b"", b"somebody"], None),
    ],
)
def test_a_watcher_follows_the_challenges(mechanism: str, responses: list[bytes], user: str | None) -> None:
    watcher = SaslWatcher(mechanism)
    for response in responses:
        watcher.response(response)
    assert watcher.user == user
    assert watcher.by_certificate == (mechanism == "EXTERNAL")


def test_an_empty_answer_to_a_challenge_is_malformed() -> None:
    watcher = SaslWatcher("PLAIN")
    watcher.response(b"")
    with pytest.raises(ProtocolViolation):
        watcher.response(b"")


def test_cram_md5_needs_a_digest() -> None:
    watcher = SaslWatcher("CRAM-MD5")
    with pytest.raises(ProtocolViolation):
        watcher.response(b"guest")


def test_passwords_are_in_no_repr() -> None:
    assert repr(credentials("PLAIN", b"\x00guest\x00secret")) == "Credentials(user='guest')"


OF_ALICE = {"PLAIN": plain_response("alice", "s3cret"), "AMQPLAIN": amqplain_response("alice", "s3cret")}


@pytest.mark.parametrize(
    ("offered", "said", "heard"),
    [
        (["PLAIN"], "PLAIN", "PLAIN"),
        (["PLAIN"], "AMQPLAIN", "PLAIN"),
        (["AMQPLAIN"], "PLAIN", "AMQPLAIN"),
        (["PLAIN", "AMQPLAIN"], "AMQPLAIN", "AMQPLAIN"),
        (["EXTERNAL"], "PLAIN", "PLAIN"),
    ],
)
def test_the_same_login_by_what_is_offered(offered: list[str], said: str, heard: str) -> None:
    assert in_terms_of(offered, said, OF_ALICE[said]) == (heard, OF_ALICE[heard])


@pytest.mark.parametrize(
    ("offered", "password", "mechanism"),
    [
        (["PLAIN", "AMQPLAIN"], b"s3cret", "PLAIN"),
        (["AMQPLAIN"], b"s3cret", "AMQPLAIN"),
        (["EXTERNAL"], b"s3cret", "PLAIN"),
        (["PLAIN", "AMQPLAIN"], b"s\0cret", "AMQPLAIN"),
        (["PLAIN"], b"s\0cret", "AMQPLAIN"),
    ],
)
def test_a_login_by_what_is_offered(offered: list[str], password: bytes, mechanism: str) -> None:
    login = Credentials("alice", password)
    chosen, response = response_for(offered, login)
    assert (chosen, credentials(chosen, response)) == (mechanism, login)


@pytest.mark.parametrize(
    ("offered", "both", "once"),
    [
        (b"PLAIN", b"PLAIN AMQPLAIN", b"PLAIN AMQPLAIN"),
        (b"AMQPLAIN CRAM-MD5", b"AMQPLAIN CRAM-MD5 PLAIN", b"AMQPLAIN PLAIN"),
        (b"AMQPLAIN EXTERNAL PLAIN", b"AMQPLAIN EXTERNAL PLAIN", b"AMQPLAIN EXTERNAL PLAIN"),
        (b"SCRAM-SHA-256 \xff", b"SCRAM-SHA-256 \xff", b"PLAIN AMQPLAIN"),
    ],
)
def test_what_a_client_may_use_of_what_is_offered(offered: bytes, both: bytes, once: bytes) -> None:
    assert with_both_plain(offered.split()) == both.split()
    assert repeatable(offered.split()) == once.split()
    assert offered_by(offered) == offered.decode(errors="replace").split()


def test_what_cannot_be_said_otherwise_stays() -> None:
    assert in_terms_of(["PLAIN"], "SCRAM-SHA-256", b"n,,n=a,r=b") == ("SCRAM-SHA-256", b"n,,n=a,r=b")
    # PLAIN has no word for a NUL.
    response = amqplain_response("alice", b"s\0cret")
    assert in_terms_of(["PLAIN"], "AMQPLAIN", response) == ("AMQPLAIN", response)
    with pytest.raises(ProtocolViolation, match="PLAIN response invalid"):
        in_terms_of(["AMQPLAIN"], "PLAIN", b"alice")
