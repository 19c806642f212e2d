"""Requests that are read without the web framework: the simplest ones, with a small body at most.

What is read here is a part of HTTP/1.1 (RFC 9112) that leaves no two ways to read it: each line ends with CR
LF, no header folds or comes twice, a body has its length, and nothing speaks of another protocol. Whatever is
written in any other way, right or wrong, is for the framework to read, with all that came before it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from amqpgate.values import frozen

#: Bytes of a request, its body included. A longer one is the framework's.
LONGEST: Final = 8 * 1024

_END: Final = b"\r\n\r\n"
_STARTS: Final = (b"GET /", b"POST /")
#: A path of letters alone: what is asked for here needs no others, and no decoding.
_LINE: Final = re.compile(rb"(GET|POST) (/[a-z]+) HTTP/1\.([01])")
#: A ``token`` (RFC 9110, section 5.6.2), and a value of ASCII that can be seen.
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([!-~](?:[ \t!-~]*[!-~])?)?[ \t]*")
_LENGTH: Final = re.compile(r"[0-9]{1,4}")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: More than an answer, or a body that has no length.
_MORE: Final = frozenset({"transfer-encoding", "expect", "upgrade", "te", "trailer", "http2-settings"})


@frozen
class PlainRequest:
    """A request as a whole."""

    method: str
    path: str
    #: By name in small letters.
    headers: Mapping[str, str]
    body: bytes
    #: Another request may follow on its connection.
    keeps_alive: bool
    #: Bytes that it takes.
    size: int


class NotPlainError(Exception):
    """It is for the framework to read."""


def read(data: bytes | bytearray) -> PlainRequest | None:
    """The first request, or None where there may be one when more has come. Raises ``NotPlainError``."""
    if not any(data[: len(start)] == start[: len(data)] for start in _STARTS):
        raise NotPlainError
    end = data.find(_END, 0, LONGEST)
    if end < 0:
        if len(data) >= LONGEST:
            raise NotPlainError
        return None
    first, *lines = bytes(data[:end]).split(b"\r\n")
    line = _LINE.fullmatch(first)
    if line is None:
        raise NotPlainError
    headers = _headers(lines)
    start = end + len(_END)
    size = start + _length(headers)
    if size > LONGEST:
        raise NotPlainError
    keeps_alive = _keeps_alive(headers, is_1_1=line[3] == b"1")
    if len(data) < size:
        return None
    return PlainRequest(
        line[1].decode(), line[2].decode(), headers, bytes(data[start:size]), keeps_alive, size
    )


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for one in lines:
        field = _FIELD.fullmatch(one)
        if field is None:
            raise NotPlainError
        name = field[1].decode().lower()
        if name in headers or name in _MORE:
            raise NotPlainError
        headers[name] = (field[2] or b"").decode()
    return headers


def _length(headers: Mapping[str, str]) -> int:
    text = headers.get("content-length", "0")
    if _LENGTH.fullmatch(text) is None:
        raise NotPlainError
    return int(text)


def _keeps_alive(headers: Mapping[str, str], *, is_1_1: bool) -> bool:
    connection = headers.get("connection", "keep-alive").lower()
    if connection not in ("keep-alive", "close") or (is_1_1 and "host" not in headers):
        raise NotPlainError
    # A connection of HTTP/1.0 is closed: its client may not know that another way can be asked for.
    return is_1_1 and connection == "keep-alive"


def response(
    status: int, body: bytes, media: str, *, now: float, keeps_alive: bool, more: tuple[str, ...] = ()
) -> bytes:
    """A whole answer; ``now`` in seconds since 1970, ``more`` further headers."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"date: {_date(now)}",
        f"content-type: {media}",
        f"content-length: {len(body)}",
        *more,
    ]
    if not keeps_alive:
        lines.append("connection: close")
    return "\r\n".join([*lines, "", ""]).encode() + body


def _date(now: float) -> str:
    """As HTTP has it (RFC 9110, section 5.6.7), whatever the locale."""
    at = time.gmtime(now)
    day, month = _DAYS[at.tm_wday], _MONTHS[at.tm_mon - 1]
    return f"{day}, {at.tm_mday:02} {month} {at.tm_year} {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT"
