"""What boto3's client is asked, and what becomes of what it raises."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
import pytest

from amqpgate.gateway.objects.s3 import S3Store
from amqpgate.gateway.objects.store import ObjectLostError, Stored, StoreError, Unfinished
from amqpgate.policy.kinds.claim_check import StoreAddress

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


class ClientError(Exception):
    """As botocore's."""

    def __init__(self, code: str) -> None:
        super().__init__("https://key:secret@store")
        self.response = {"Error": {"Code": code}}


@attrs.define
class FakeClient:
    asked: list[tuple[str, dict[str, object]]] = attrs.field(factory=list)
    error: Exception | None = None

    def __getattr__(self, name: str) -> object:
        def call(**said: object) -> dict[str, object]:
            self.asked.append((name, said))
            if self.error is not None:
                raise self.error
            return {"UploadId": "u", "ETag": '"e"', "Body": self}

        return call

    def iter_chunks(self, size: int) -> list[bytes]:
        return [b"a", b"b"]

    def close(self) -> None:
        self.asked.append(("close", {}))

    def get_paginator(self, name: str) -> FakeClient:
        return self

    def paginate(self, **said: object) -> list[dict[str, object]]:
        assert said == {"Bucket": "bucket", "Prefix": "prefix/"}
        return [
            {},
            {
                "Contents": [{"Key": "prefix/a/b", "Size": 7, "LastModified": WHEN}],
                "Uploads": [{"Key": "prefix/c", "UploadId": "u", "Initiated": WHEN}],
            },
        ]


def store_of(client: FakeClient) -> S3Store:
    return S3Store(StoreAddress("bucket", "prefix"), client)  # type: ignore[arg-type]


def test_keys_are_below_the_prefix() -> None:
    client = FakeClient()
    store = store_of(client)
    at = {"Bucket": "bucket", "Key": "prefix/k"}
    store.put("k", b"1")
    upload = store.begin("k")
    tag = store.part("k", upload, 1, b"2")
    store.complete("k", upload, [tag])
    store.abort("k", upload)
    store.delete("k")
    assert list(store.read("k")) == [b"a", b"b"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": '"e"'}]}
    assert client.asked == [
        ("put_object", {**at, "Body": b"1"}),
        ("create_multipart_upload", at),
        ("upload_part", {**at, "UploadId": "u", "PartNumber": 1, "Body": b"2"}),
        ("complete_multipart_upload", {**at, "UploadId": "u", "MultipartUpload": parts}),
        ("abort_multipart_upload", {**at, "UploadId": "u"}),
        ("delete_object", at),
        ("get_object", at),
        ("close", {}),
    ]


def test_what_is_there_is_listed() -> None:
    store = store_of(FakeClient())
    assert list(store.stored()) == [Stored("a/b", 7, WHEN.timestamp())]
    assert list(store.unfinished()) == [Unfinished("c", "u", WHEN.timestamp())]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ClientError("NoSuchKey"), ObjectLostError, "no such object"),
        (ClientError("AccessDenied"), StoreError, "AccessDenied"),
        (TimeoutError("secret"), StoreError, "TimeoutError"),
    ],
)
def test_what_it_raises_is_told_without_what_may_be_secret(
    error: Exception, kind: type[StoreError], text: str
) -> None:
    with pytest.raises(kind, match=text) as caught:
        list(store_of(FakeClient(error=error)).read("k"))
    assert type(caught.value) is kind
    assert "secret" not in str(caught.value)
