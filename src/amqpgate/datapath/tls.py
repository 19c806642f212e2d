"""What is asked of Python's ``ssl`` so that who speaks no TLS does not load it (`amqpgate.later`)."""

from __future__ import annotations

import socket
import ssl
import sys
from typing import TypeAlias, TypeGuard

#: What an ``except`` takes.
Errors: TypeAlias = tuple[type[OSError], ...]


def is_tls(sock: object) -> TypeGuard[ssl.SSLSocket]:
    """Whether a socket speaks TLS."""
    return type(sock) is not socket.socket and is_loaded() and isinstance(sock, ssl.SSLSocket)


def is_loaded() -> bool:
    """Whether there is any TLS in this process."""
    return "_ssl" in sys.modules


def tls_errors() -> tuple[type[ssl.SSLError], ...]:
    """Whatever OpenSSL raises."""
    return (ssl.SSLError,) if is_loaded() else ()


def wants_read() -> Errors:
    """What OpenSSL raises that has to receive before it goes on."""
    return (ssl.SSLWantReadError,) if is_loaded() else ()


def wants_write() -> Errors:
    """Likewise to send."""
    return (ssl.SSLWantWriteError,) if is_loaded() else ()


def would_block() -> Errors:
    """What a socket raises where there is nothing now, be it TLS or not."""
    return (BlockingIOError, InterruptedError, *wants_read(), *wants_write())


def has_ended() -> Errors:
    """What is raised at the end of a stream, and where a peer drops TCP without close_notify: AMQP's frames
    guard against truncation."""
    return (ssl.SSLZeroReturnError, ssl.SSLEOFError) if is_loaded() else ()
