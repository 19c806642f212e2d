"""What a token is by its form, and that nothing else is."""

from __future__ import annotations

import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.identity.tokens import (
    MAX_TOKEN,
    MAX_VALUES,
    TokenError,
    claim_of,
    decode_segment,
    looks_like_token,
    number_of,
    read_object,
    read_token,
    texts_of,
)
from tests.support.tokens import by_hand, token

HEADER = b'{"alg":"ES256","typ":"JWT"}'

any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_a_token() -> None:
    read = read_token(token(key_id="k1"))
    assert (read.algorithm, read.key_id) == ("ES256", "k1")
    assert "k1" not in repr(read)
    assert repr(read.payload)[2:20] not in repr(read)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"secret",
        b"a.b",
        b"a.b.c.d.e",
        b"..",
        by_hand(b"{}", b"{}"),
        by_hand(b"[]", b"{}"),
        by_hand(b'{"alg":1}', b"{}"),
        by_hand(b'{"alg":null}', b"{}"),
        by_hand(b'{"alg":"ES256","kid":7}', b"{}"),
        by_hand(b'{"alg":"ES256","kid":["k"]}', b"{}"),
        by_hand(b'{"alg":"none","alg":"ES256"}', b"{}"),
        by_hand(b'{"alg":"ES256","crit":["exp"],"exp":1}', b"{}"),
        by_hand(b'{"alg":"ES256","b64":false}', b"{}"),
        by_hand(b'{"alg":"ES256","typ":"logout+jwt"}', b"{}"),
        by_hand(b'{"alg":"ES256","typ":3}', b"{}"),
        by_hand(b'{"alg":"ES256",}', b"{}"),
        by_hand(b'{"alg":"ES256","x":NaN}', b"{}"),
        by_hand(b'{"alg":"ES256","x":"\xff"}', b"{}"),
        by_hand(b'{"alg":"ES256","x":' + b"[" * 20000, b"{}"),
        by_hand(HEADER, b"{}") + b"=",
        by_hand(HEADER, b"{}").replace(b".", b".\n", 1),
        b" " + by_hand(HEADER, b"{}"),
        by_hand(HEADER, b"{}", b"\xfb\xff").replace(b"-", b"+").replace(b"_", b"/"),
        by_hand(HEADER, b" " * MAX_TOKEN),
    ],
)
def test_what_is_none(data: bytes) -> None:
    with pytest.raises(TokenError) as raised:
        read_token(data)
    assert raised.value.outcome == "malformed"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(TokenError):
        read_token(data)


@given(st.binary(min_size=1, max_size=60))
def test_a_part_is_written_in_one_way(data: bytes) -> None:
    written = base64.urlsafe_b64encode(data).rstrip(b"=")
    assert decode_segment(written) == data
    for other in (b"A", b"B", b"_"):
        changed = written[:-1] + other
        if changed != written:
            with contextlib.suppress(TokenError):
                assert decode_segment(changed) != data


@given(any_json)
def test_an_object_is_read_as_json_has_it(value: object) -> None:
    data = json.dumps({"x": value}).encode()
    try:
        assert read_object(data, "payload") == {"x": value}
    except TokenError:
        assert b"NaN" in data or b"Infinity" in data


@pytest.mark.parametrize(
    "data",
    [b'{"a":1,"a":1}', b'{"o":{"a":1,"a":2}}', b'[{"a":1}]', b'"x"', b'{"a":1e999}x', b"9" * 5000, b""],
)
def test_what_is_read_in_two_ways_or_none(data: bytes) -> None:
    with pytest.raises(TokenError):
        read_object(data, "payload")


# -- what somebody might take for one ------------------------------------------------------------


@given(
    header=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    space=st.sampled_from(["", " ", "\n\t ", " " * 300]),
    form=st.sampled_from(["url", "standard", "padded", "lines"]),
    more=st.integers(0, 2),
    before=st.sampled_from([b"", b" ", b"\r\n"]),
)
def test_whatever_a_lenient_reader_takes_looks_like_one(
    header: dict[str, str], space: str, form: str, more: int, before: bytes
) -> None:
    """Erlang's base64 skips white space, and reads both alphabets by its mode."""
    data = (space + json.dumps(header)).encode()
    head = base64.b64encode(data) if form == "standard" else base64.urlsafe_b64encode(data)
    if form != "padded":
        head = head.rstrip(b"=")
    if form == "lines":
        head = b"\n".join(head[at : at + 7] for at in range(0, len(head), 7))
    assert looks_like_token(before + head + b".e30.c2ln" + b".x" * more)


@pytest.mark.parametrize(
    ("password", "is_one"),
    [
        (b"guest", False),
        (b"", False),
        (b"a.b.c", False),
        (b"{secret}", False),
        (b"my.dotted.password", False),
        (b"eyJhbGciOiJub25lIn0", False),
        (b"eyJhbGciOiJub25lIn0.e30.", True),
        (b' {"payload":"e30","signatures":[]}', True),
        (b'{"ciphertext":""}', True),
        (b'{"p\\u0061yload":"e30","signatures":[]}', True),
        (b'\xef\xbb\xbf{"payload":"e30"}', True),
        (base64.b64encode(b'\xef\xbb\xbf{"alg":"x"}') + b".e30.c2ln", True),
        (b"\xff\x00.\xff.\xff", False),
    ],
)
def test_passwords(password: bytes, is_one: bool) -> None:
    assert looks_like_token(password) is is_one


@given(st.binary(max_size=100))
def test_any_password_is_told(password: bytes) -> None:
    looks_like_token(password)


# -- claims --------------------------------------------------------------------------------------


def test_claims_by_name_and_by_path() -> None:
    claims = read_object(b'{"a":{"b":{"c":[1]}},"a.b":"own","n":null}', "payload")
    assert claim_of(claims, "a.b") == "own"
    assert claim_of(claims, "a.b.c") == [1]
    assert claim_of(claims, "a.x") is None
    assert claim_of(claims, "n.x") is None
    assert claim_of(claims, "x") is None


@pytest.mark.parametrize(
    ("data", "values"),
    [
        (b'"a b"', ("a b",)),
        (b'["a b","c",7,true]', ("a b", "c", "7", "true")),
        (b"null", ()),
        (b"[]", ()),
    ],
)
def test_values_of_a_claim(data: bytes, values: tuple[str, ...]) -> None:
    claim = read_object(b'{"x":' + data + b"}", "payload")["x"]
    assert texts_of(claim, "claim x") == values


def test_scopes_are_words() -> None:
    assert texts_of("  a  b\tc ", "scopes", splits=True) == ("a", "b\tc")
    assert texts_of(["a b"], "scopes", splits=True) == ("a b",)


@pytest.mark.parametrize("data", [b"{}", b"[{}]", b"[null]", b"1.5", b'"\\ud800"', b"[[]]"])
def test_what_is_no_text_is_not_left_out(data: bytes) -> None:
    claim = read_object(b'{"x":' + data + b"}", "payload")["x"]
    with pytest.raises(TokenError):
        texts_of(claim, "claim x")


def test_values_are_bounded() -> None:
    with pytest.raises(TokenError):
        texts_of(["x"] * (MAX_VALUES + 1), "groups")


@pytest.mark.parametrize("data", [b"true", b'"1"', b"null", b"[1]", b"1e999", b"9" * 400])
def test_what_is_no_time(data: bytes) -> None:
    with pytest.raises(TokenError):
        number_of(read_object(b'{"exp":' + data + b"}", "payload"), "exp")
