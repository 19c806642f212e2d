"""A store that speaks S3, by boto3: who asks is in the environment, and in the files of AWS's own tools."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Final, Protocol, cast

from amqpgate.gateway.objects.store import ObjectLostError, Stored, StoreError, Unfinished
from amqpgate.policy.kinds.claim_check import StoreAddress
from amqpgate.values import define

#: Seconds until a store must have taken a connection.
_CONNECT: Final = 10.0
#: How often a call is made, where the store fails in passing.
_ATTEMPTS: Final = 3
_MOST_CONNECTIONS: Final = 32
#: Bytes of one piece of an object that is read.
_PIECE: Final = 1 << 20

#: What boto3's answers hold, as far as it is read here.
_Answer = Mapping[str, object]


class _Body(Protocol):
    def iter_chunks(self, chunk_size: int) -> Iterator[bytes]: ...
    def close(self) -> None: ...


class _Paginator(Protocol):
    def paginate(self, *, Bucket: str, Prefix: str) -> Iterator[_Answer]: ...  # noqa: N803


class _S3Client(Protocol):
    """What is used of boto3's client."""

    def put_object(self, **said: object) -> _Answer: ...
    def create_multipart_upload(self, **said: object) -> _Answer: ...
    def upload_part(self, **said: object) -> _Answer: ...
    def complete_multipart_upload(self, **said: object) -> _Answer: ...
    def abort_multipart_upload(self, **said: object) -> _Answer: ...
    def get_object(self, **said: object) -> _Answer: ...
    def delete_object(self, **said: object) -> _Answer: ...
    def get_paginator(self, name: str) -> _Paginator: ...


@define(eq=False)
class S3Store:
    """One prefix of a bucket. Threads may share it."""

    address: StoreAddress
    _client: _S3Client

    @classmethod
    def connect(cls, address: StoreAddress, timeout: float) -> S3Store:
        """Nothing is asked yet. Raises ``StoreError`` where boto3 is not there, or its files are wrong.

        ``timeout``: seconds that the store may say nothing.
        """
        try:
            boto3 = importlib.import_module("boto3")
            config = importlib.import_module("botocore.config").Config(
                connect_timeout=min(_CONNECT, timeout),
                read_timeout=timeout,
                retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
                max_pool_connections=_MOST_CONNECTIONS,
                s3={"addressing_style": "path"} if address.url is not None else {},
                # Stores other than AWS's know no trailing checksums; what is read is compared here.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            )
            # Each thread's first call would make a session of its own, which is not safe at once.
            client = boto3.session.Session().client(
                "s3", endpoint_url=address.url, region_name=address.region or None, config=config
            )
        except ImportError as error:
            raise StoreError("boto3 is not installed: pip install 'amqpgate[claims]'") from error
        except Exception as error:
            raise StoreError(f"{address}: {type(error).__name__}") from error
        return cls(address, cast(_S3Client, client))

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self.address.bucket, "Key": f"{self.address.prefix}/{key}"}

    def put(self, key: str, data: bytes | bytearray) -> None:
        with _told("put"):
            self._client.put_object(**self._at(key), Body=data)

    def begin(self, key: str) -> str:
        with _told("create"):
            return str(self._client.create_multipart_upload(**self._at(key))["UploadId"])

    def part(self, key: str, upload: str, number: int, data: bytes | bytearray) -> str:
        with _told("put a part of"):
            said = self._client.upload_part(**self._at(key), UploadId=upload, PartNumber=number, Body=data)
            return str(said["ETag"])

    def complete(self, key: str, upload: str, parts: list[str]) -> None:
        with _told("complete"):
            numbered = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(parts, 1)]
            self._client.complete_multipart_upload(
                **self._at(key), UploadId=upload, MultipartUpload={"Parts": numbered}
            )

    def abort(self, key: str, upload: str) -> None:
        with _told("abort"):
            self._client.abort_multipart_upload(**self._at(key), UploadId=upload)

    def read(self, key: str) -> Iterator[bytes]:
        with _told("get"):
            body = cast(_Body, self._client.get_object(**self._at(key))["Body"])
            try:
                yield from body.iter_chunks(_PIECE)
            finally:
                body.close()

    def delete(self, key: str) -> None:
        with _told("delete"):
            self._client.delete_object(**self._at(key))

    def stored(self) -> Iterator[Stored]:
        for one in self._listed("list_objects_v2", "Contents"):
            yield Stored(
                self._key(one), cast(int, one["Size"]), cast(datetime, one["LastModified"]).timestamp()
            )

    def unfinished(self) -> Iterator[Unfinished]:
        for one in self._listed("list_multipart_uploads", "Uploads"):
            since = cast(datetime, one["Initiated"]).timestamp()
            yield Unfinished(self._key(one), str(one["UploadId"]), since)

    def _listed(self, what: str, where: str) -> Iterator[_Answer]:
        prefix = f"{self.address.prefix}/"
        with _told("list"):
            for page in self._client.get_paginator(what).paginate(Bucket=self.address.bucket, Prefix=prefix):
                yield from cast(list[_Answer], page.get(where, []))

    def _key(self, one: _Answer) -> str:
        return str(one["Key"]).removeprefix(f"{self.address.prefix}/")


@contextmanager
def _told(what: str) -> Iterator[None]:
    """What boto3 and botocore raise, in this room's terms, without what might be a secret."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        code = _code(error)
        if code in ("NoSuchKey", "404"):
            raise ObjectLostError("there is no such object") from error
        raise StoreError(f"cannot {what} the object: {code or type(error).__name__}") from error


def _code(error: Exception) -> str:
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return ""
    found = response.get("Error")
    return str(found.get("Code", "")) if isinstance(found, dict) else ""
