"""When a certificate expires, without asking OpenSSL, which does not tell of one's own."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import Final

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18


def expiry(pem: str) -> float:
    """``notAfter`` of the first certificate in a PEM file, in seconds since 1970 (RFC 5280, section 4.1).

    Raises ``ValueError`` where there is none.
    """
    begin = pem.find(ssl.PEM_HEADER)
    if begin < 0:
        raise ValueError("no certificate")
    der = ssl.PEM_cert_to_DER_cert(pem[begin : pem.index(ssl.PEM_FOOTER, begin) + len(ssl.PEM_FOOTER)])
    certificate, _ = _content(der, 0, _SEQUENCE)
    body, _ = _content(der, certificate, _SEQUENCE)
    at = _after(der, body) if der[body] == _VERSION else body
    # serialNumber, signature, issuer
    for _ in range(3):
        at = _after(der, at)
    validity, _ = _content(der, at, _SEQUENCE)
    at = _after(der, validity)
    kind = _UTC_TIME if der[at] == _UTC_TIME else _GENERALIZED_TIME
    start, stop = _content(der, at, kind)
    text = der[start:stop].decode("ascii")
    if kind == _UTC_TIME:
        # Section 4.1.2.5.1: two digits from 50 on are of the last century. strptime has another pivot.
        text = ("20" if text[:2] < "50" else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _content(der: bytes, at: int, kind: int) -> tuple[int, int]:
    """Where the value of the element at ``at`` begins and ends (X.690, section 8.1)."""
    if at + 2 > len(der) or der[at] != kind:
        raise ValueError("not a certificate")
    size, start = der[at + 1], at + 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(der[at + 2 : start], "big")
    if start + size > len(der):
        raise ValueError("not a certificate")
    return start, start + size


def _after(der: bytes, at: int) -> int:
    if at >= len(der):
        raise ValueError("not a certificate")
    return _content(der, at, der[at])[1]
