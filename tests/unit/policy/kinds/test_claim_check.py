"""Where bodies go that are too large."""

from __future__ import annotations

import pytest

from amqpgate.policy.kinds.claim_check import StoreAddress


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/prefix",
        "s3://bucket/a/b?region=eu-1",
        "s3://bucket/prefix?endpoint_override=localhost%3A9000&scheme=http",
    ],
)
def test_an_address_is_as_it_was_written(text: str) -> None:
    assert str(StoreAddress.parse(text)) == text


def test_an_endpoint_may_be_a_url() -> None:
    one = StoreAddress.parse("s3://bucket/prefix?endpoint_override=http://127.0.0.1:9000")
    assert one.url == "http://127.0.0.1:9000"
    assert StoreAddress.parse("s3://bucket/prefix").url is None


@pytest.mark.parametrize(
    "text",
    [
        "s3://key:secret@bucket/prefix",
        "s3://bucket",
        "s3://bucket/",
        "s3://bucket/../other",
        "s3://bucket//x",
        "http://bucket/prefix",
        "s3://bucket/prefix?access_key=secret",
        "s3://bucket/prefix?region=a&region=b",
        "s3://bucket/prefix?scheme=ftp",
        "s3://bucket/prefix?endpoint_override=user@host",
        "s3://Bucket/prefix",
        "bucket/prefix",
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        StoreAddress.parse(text)
    assert "secret" not in str(caught.value)


def test_places_are_told_apart() -> None:
    one = StoreAddress.parse("s3://bucket/prefix?region=a")
    assert one.same_place(StoreAddress.parse("s3://bucket/prefix?region=b"))
    assert not one.same_place(StoreAddress.parse("s3://bucket/other"))
