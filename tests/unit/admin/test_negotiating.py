"""How a file of the page is sent, by RFC 9110."""

from __future__ import annotations

import pytest

from amqpgate.admin.negotiating import is_known, takes_gzip


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ([], False),
        ([""], False),
        (["gzip"], True),
        (["GZIP"], True),
        (["x-gzip"], True),
        (["br, gzip;q=0.1"], True),
        (["br", "gzip"], True),
        (["*"], True),
        (["gzip; q=0"], False),
        (["gzip;q=0.000"], False),
        (["*;q=0"], False),
        (["gzip;q=0, *"], False),
        (["*;q=0, gzip"], True),
        (["identity;q=0"], False),
        (["identity;q=0, *"], True),
        (["identity, gzip;q=0.5"], False),
        (["identity;q=0.5, gzip;q=1.0"], True),
        (["notgzip"], False),
        (["gzip-like"], False),
        (["gzip;q=2"], False),
        (["gzip;q=nan"], False),
        (["gzip;q"], False),
        ([";;,,;q=,"], False),
    ],
)
def test_gzip(said: list[str], wanted: bool) -> None:
    assert takes_gzip(said) is wanted


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ([], False),
        ([""], False),
        (['"a"'], True),
        (['W/"a"'], True),
        (['"x", W/"y" ,"a"'], True),
        (['"x"', '"a"'], True),
        (["*"], True),
        (["a"], False),
        (['"b"'], False),
        (['"x\\"a"'], False),
        (['"*"'], False),
        (['"a'], False),
    ],
)
def test_tags(said: list[str], known: bool) -> None:
    assert is_known('W/"a"', said) is known
    assert is_known('"a"', said) is known
