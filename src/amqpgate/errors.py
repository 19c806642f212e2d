"""One tree of errors; each protocol error knows the AMQP reply that it causes.

Neighbours: everybody imports this room, it imports nobody.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Final, Literal

Scope = Literal["channel", "connection"]

#: Reply codes as RabbitMQ names them in reply-text (AMQP 0-9-1, section 1.2 "Protocol constants").
REPLY_NAMES: dict[int, str] = {
    200: "OK",
    310: "NOT_DELIVERED",
    311: "CONTENT_TOO_LARGE",
    312: "NO_ROUTE",
    313: "NO_CONSUMERS",
    320: "CONNECTION_FORCED",
    402: "INVALID_PATH",
    403: "ACCESS_REFUSED",
    404: "NOT_FOUND",
    405: "RESOURCE_LOCKED",
    406: "PRECONDITION_FAILED",
    501: "FRAME_ERROR",
    502: "SYNTAX_ERROR",
    503: "COMMAND_INVALID",
    504: "CHANNEL_ERROR",
    505: "UNEXPECTED_FRAME",
    506: "RESOURCE_ERROR",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
    541: "INTERNAL_ERROR",
}

#: Those that AMQP 0-10 has besides, for the end of a session (class "execution", domain "error-code").
SESSION_REPLY_NAMES: dict[int, str] = {
    408: "RESOURCE_DELETED",
    409: "ILLEGAL_STATE",
    531: "ILLEGAL_ARGUMENT",
    542: "INVALID_ARGUMENT",
}

#: Soft errors close one channel; every other code closes the connection (same section, "soft-error").
CHANNEL_SCOPED: frozenset[int] = frozenset({310, 311, 312, 313, 403, 404, 405, 406})


def cut_reply(text: str) -> str:
    """A reply text as it fits a short string: RabbitMQ cuts it to 252 bytes and adds three dots.

    What is not UTF-8 in it, such as a name that a client gave, is written as ``\\xff``: RabbitMQ ends the
    whole connection for a short string that is not (501), be it a pooled one.
    """
    data = text.encode("utf-8", "surrogateescape")
    text = data.decode("utf-8", "backslashreplace")
    data = text.encode()
    return text if len(data) <= 255 else data[:252].decode("utf-8", "ignore") + "..."


class AmqpgateError(Exception):
    """Root of every error that amqpgate raises on purpose."""


class UnsupportedVersionError(AmqpgateError):
    """A version of AMQP that no module of ``bridge`` speaks, or that has no generated methods."""


#: How errors start of what YAML itself cannot read.
NOT_YAML: Final = "not valid YAML"


class ConfigError(AmqpgateError):
    """A setting or document that cannot take effect; says where and what to do.

    ``file``, ``line`` and ``column`` (both counted from 1) point at the culprit where it is known. ``others``
    are what else is wrong in the same document.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        others: tuple[ConfigError, ...] = (),
    ) -> None:
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.others = others
        where = ":".join(str(part) for part in (file, line, column) if part is not None)
        super().__init__(f"{where}: {message}" if where else message)

    @classmethod
    def together(cls, errors: Sequence[ConfigError]) -> ConfigError:
        """Several as one; each of them without others."""
        first, *others = errors
        return cls(first.message, file=first.file, line=first.line, column=first.column, others=tuple(others))

    @property
    def all(self) -> tuple[ConfigError, ...]:
        """This one and the others."""
        return (self, *self.others)


class ListenError(OSError):
    """An address that cannot be listened on; says for what, which, why, and what to do."""

    def __init__(self, what: str, address: str, port: int, cause: OSError) -> None:
        low = "ports below 1024 need root or CAP_NET_BIND_SERVICE; use a higher one"
        shows = f"ss -ltnp 'sport = :{port}' shows it"
        remedy = {
            errno.EADDRINUSE: f"stop what is there ({shows}), or use another port",
            errno.EACCES: low,
            errno.EPERM: low,
            errno.EADDRNOTAVAIL: "this machine does not have that address; 0.0.0.0 stands for all it has",
        }.get(cause.errno or 0)
        text = f"{what}: cannot listen on {address}: {cause.strerror or cause}"
        self.text = f"{text}; {remedy}" if remedy else text
        super().__init__(cause.errno, self.text)

    def __str__(self) -> str:
        return self.text


class ProtocolViolation(AmqpgateError):
    """A peer broke the protocol, or may not do what it asked for.

    ``code`` is the reply code of the standard, ``class_id`` and ``method_id`` name the method that
    caused it (0 where no method did), ``channel`` is where it happened (0 for the connection).
    """

    def __init__(
        self, code: int, text: str, *, class_id: int = 0, method_id: int = 0, channel: int = 0
    ) -> None:
        self.code = code
        self.text = text
        self.class_id = class_id
        self.method_id = method_id
        self.channel = channel
        #: The text as RabbitMQ writes it: the code's name, a dash, the explanation; cut to what fits.
        name = REPLY_NAMES.get(code) or SESSION_REPLY_NAMES.get(code, str(code))
        self.reply_text = cut_reply(f"{name} - {text}")
        super().__init__(self.reply_text)

    @property
    def scope(self) -> Scope:
        """Whether the reply is a channel.close or a connection.close."""
        return "channel" if self.code in CHANNEL_SCOPED and self.channel else "connection"


class OverLimit(ProtocolViolation):
    """A client has used up what a rate policy grants, and is refused rather than delayed."""


class UpstreamLost(ProtocolViolation):
    """The way to the broker is gone; neither side broke the protocol."""


class Forced(ProtocolViolation):
    """An operator ends the connection; neither side broke the protocol."""

    def __init__(self, why: str) -> None:
        super().__init__(320, why)
