"""The item ``claimCheck`` of a compatibility policy: bodies that are too large go to an object store."""

from __future__ import annotations

import re
from typing import ClassVar, Final, Self
from urllib.parse import parse_qsl, quote

import attrs

from amqpgate.values import frozen
from amqpgate.yamldoc import Seconds, Size, TextValue, between, doc

#: The smallest body that may be put into a store: below, the way there costs more than the message.
LEAST: Final = 64 * 1024
#: The largest that the gateway puts there.
MOST: Final = 8 << 30

_FORM: Final = "s3://BUCKET/PREFIX, with ?endpoint_override=...&region=... where needed"
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,62}\Z")
_PART: Final = re.compile(r"[A-Za-z0-9!_.*'()=-]{1,128}\Z")
_OPTIONS: Final = frozenset({"endpoint_override", "region", "scheme"})


@frozen
class StoreAddress(TextValue):
    """A bucket of a store that speaks S3, and where in it."""

    bucket: str
    #: Without slashes at its ends.
    prefix: str
    #: Host and port, or a URL; empty: that of AWS, or of the environment.
    endpoint: str = ""
    region: str = ""
    #: "http" or "https".
    scheme: str = "https"

    FORM: ClassVar[str] = _FORM
    PATTERN: ClassVar[str | None] = "^s3://[a-z0-9]"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ``ValueError``, which does not repeat the text: somebody may have put a key there."""
        start, _, query = text.partition("?")
        bucket, _, prefix = start.removeprefix("s3://").partition("/")
        if {"@", ":"} & set(bucket):
            raise ValueError(
                "no key belongs into an address: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or AWS_PROFILE"
            )
        prefix = prefix.rstrip("/")
        parts = prefix.split("/")
        if not text.startswith("s3://") or not _BUCKET.match(bucket):
            raise ValueError(f"a store is like {_FORM}")
        if {".", ".."}.intersection(parts) or not all(map(_PART.match, parts)):
            raise ValueError(f"a store has a prefix of its own in its bucket, like {_FORM}")
        options = parse_qsl(query, keep_blank_values=True) if query else []
        said = dict(options)
        if len(said) < len(options) or not said.keys() <= _OPTIONS:
            raise ValueError("a store has no other options than endpoint_override, region and scheme")
        scheme, endpoint = said.get("scheme", "https"), said.get("endpoint_override", "")
        for known in ("http", "https"):
            if endpoint.startswith(f"{known}://"):
                scheme, endpoint = known, endpoint.removeprefix(f"{known}://")
        if scheme not in ("http", "https") or not re.match(r"[A-Za-z0-9.:\[\]-]*\Z", endpoint):
            raise ValueError("a store's scheme is http or https, and its endpoint a host, maybe with a port")
        return cls(bucket, prefix, endpoint, said.get("region", ""), scheme)

    def __str__(self) -> str:
        told = {"endpoint_override": self.endpoint, "region": self.region}
        if self.endpoint:
            told["scheme"] = self.scheme
        query = "&".join(f"{name}={quote(value)}" for name, value in told.items() if value)
        return f"s3://{self.bucket}/{self.prefix}{'?' if query else ''}{query}"

    def same_place(self, other: StoreAddress) -> bool:
        """Whether both may hold the same objects."""
        return (self.bucket, self.prefix, self.endpoint) == (other.bucket, other.prefix, other.endpoint)

    @property
    def url(self) -> str | None:
        """Of the endpoint; None: it is not said."""
        return f"{self.scheme}://{self.endpoint}" if self.endpoint else None


@frozen(kw_only=True)
class ClaimCheck:
    """Bodies of messages that go to an object store, and how long they stay there."""

    store: StoreAddress = attrs.field(
        metadata=doc("where: credentials come from the environment, or from the files of AWS's own tools")
    )
    above: Size = attrs.field(
        default=Size(16 << 20),
        validator=between(LEAST, MOST),
        metadata=doc("bodies with more bytes go there", default="16Mi"),
    )
    keep_for: Seconds = attrs.field(
        default=Seconds(168 * 3600),
        validator=between(60),
        metadata=doc(
            "how long messages may wait: `amqpgate claims collect` removes what is older", default="168h"
        ),
    )
    timeout: Seconds = attrs.field(
        default=Seconds(30),
        validator=between(0.1, 3600),
        metadata=doc("how long the store may say nothing", default="30s"),
    )
