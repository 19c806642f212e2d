"""What passes in the place of a body that is in an object store, and how a gateway knows it for its own.

A reference is the message as it was published, with another body and one more header::

    x-amqpgate-claim: 1;KEY;BYTES;SHA-256;HAD-HEADERS;MAC

``MAC`` is an HMAC with SHA-256, under a key that gateways share and clients do not know, over all before it
and the virtual host. So nobody can make a reference to an object, move one to another virtual host, or change
what the body must be; ``KEY`` is a name below the store's prefix, and holds 128 random bits.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Final

import attrs

from amqpgate.errors import ConfigError
from amqpgate.policy import Peek
from amqpgate.values import frozen
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import EMPTY_TABLE

#: The header.
CLAIM: Final = "x-amqpgate-claim"
#: Where the keys are: the first one signs, each is good.
VARIABLE: Final = "AMQPGATE_CLAIM_KEYS"
#: What whoever consumes without a gateway reads.
BODY: Final = b"The body of this message is in an object store. amqpgate puts it in its place.\n"

#: Which deliveries must be shown.
REFERENCES: Final = Peek(headers=frozenset({CLAIM}))

_VERSION: Final = "1"
_LEAST_KEY: Final = 32
_KEY: Final = re.compile(r"[0-9a-f]{16}/[0-9a-f]{32}\Z")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}\Z")


@frozen
class Reference:
    """An object that holds a body."""

    key: str
    byte_count: int
    #: SHA-256 of the body, as hexadecimal digits.
    digest: str
    #: Whether the message had headers, maybe none in them.
    had_headers: bool


def new_key(vhost: str) -> str:
    """A name for an object that nobody can guess, below that of its virtual host."""
    return (
        f"{hashlib.sha256(vhost.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}/{secrets.token_hex(16)}"
    )


@frozen
class ClaimKeys:
    """What references are signed with."""

    _keys: tuple[bytes, ...] = attrs.field(repr=False)

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> ClaimKeys:
        """Those that the environment has. Raises ``ConfigError``, which does not repeat them."""
        said = [key.strip() for key in environ.get(VARIABLE, "").split(",") if key.strip()]
        if not said:
            raise ConfigError(
                f"claimCheck needs {VARIABLE} in the environment: a secret that all gateways share, of "
                f"{_LEAST_KEY} characters or more"
            )
        if any(len(key) < _LEAST_KEY for key in said):
            raise ConfigError(f"{VARIABLE}: a key has {_LEAST_KEY} characters or more")
        return cls(tuple([key.encode("utf-8", "surrogateescape") for key in said]))

    def sign(self, reference: Reference, vhost: str) -> str:
        """The header's value."""
        said = ";".join(
            (
                _VERSION,
                reference.key,
                str(reference.byte_count),
                reference.digest,
                str(int(reference.had_headers)),
            )
        )
        return f"{said};{_mac(self._keys[0], said, vhost)}"

    def read(self, value: object, vhost: str) -> Reference | None:
        """What a gateway with one of the keys has signed for this virtual host; None: nothing of that."""
        if not isinstance(value, str) or not value.isascii():
            return None
        said, _, mac = value.rpartition(";")
        # All are asked, so that the time does not tell which.
        if not sum(hmac.compare_digest(_mac(key, said, vhost), mac) for key in self._keys):
            return None
        version, key, size, digest, had_headers = said.split(";")
        if version != _VERSION or not _KEY.match(key) or not _DIGEST.match(digest):
            return None
        return Reference(key, int(size), digest, had_headers == "1")


def _mac(key: bytes, said: str, vhost: str) -> str:
    text = f"{said}\0{vhost}".encode("utf-8", "surrogateescape")
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def referring(header: ContentHeader, reference: Reference, value: str) -> ContentHeader:
    """The content header of a reference, for that of a message."""
    assert isinstance(header.properties, amqp.BasicProperties)
    headers = (header.properties.headers or EMPTY_TABLE).with_(CLAIM, value)
    return attrs.evolve(
        header, body_size=len(BODY), properties=attrs.evolve(header.properties, headers=headers)
    )


def has_headers(header: ContentHeader) -> bool:
    """Whether a message has a table of headers, which may be empty."""
    return isinstance(header.properties, amqp.BasicProperties) and header.properties.headers is not None


def claim_of(header: ContentHeader) -> object:
    """What a message says that it refers to; None: nothing."""
    if not isinstance(header.properties, amqp.BasicProperties) or header.properties.headers is None:
        return None
    return header.properties.headers.get(CLAIM)


def restored(header: ContentHeader, reference: Reference) -> ContentHeader:
    """The content header of a message, for that of its reference, with what brokers have added to it."""
    assert isinstance(header.properties, amqp.BasicProperties)
    assert header.properties.headers is not None, "one of them is the reference"
    headers = header.properties.headers.without(CLAIM)
    left = headers if headers.entries or reference.had_headers else None
    return attrs.evolve(
        header, body_size=reference.byte_count, properties=attrs.evolve(header.properties, headers=left)
    )
