"""Digests of Python's own, for what is small and no secret: OpenSSL is not loaded for it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from hashlib import blake2b
else:
    from _blake2 import blake2b

__all__ = ["blake2b", "sha256"]


class Digest(Protocol):
    """As ``hashlib`` makes them."""

    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


class _Make(Protocol):
    def __call__(self, data: bytes = b"", /) -> Digest: ...


def _own() -> _Make:
    # The modules that ``hashlib`` takes where there is no OpenSSL: from 3.12 on, and before.
    for name in ("_sha2", "_sha256"):
        try:
            make: _Make = import_module(name).sha256
        except ImportError:
            continue
        return make
    import hashlib

    return hashlib.sha256


sha256: Final = _own()
