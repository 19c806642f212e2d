"""Log set-up for a process: readable lines for people, JSON lines for machines. Both go to standard error.

A JSON line always has the same five keys, in this order, and then those of ``about`` that it has something to
say of:

=============  =====================================================================
``time``       UTC, RFC 3339 with milliseconds: ``2026-11-20T12:00:00.000Z``
``level``      ``debug``, ``info``, ``warning``, ``error`` or ``critical``
``logger``     which part of amqpgate speaks, such as ``amqpgate.gateway.server.gateway``
``message``    the text
``exception``  the traceback as text, or null
``session``    the session's id; ``client`` is its address, ``user`` and ``vhost`` as it says
``listener``   by which the client came; ``upstream`` is the name of the broker's
``operation``  such as ``basic.publish``, with ``exchange``, ``routing_key`` and ``queue``
``policy``     the policy, and its ``rule``, that decided so
``reply_code`` that the client, or the broker, was told
``trace_id``   of the trace context that a message carries, with its ``span_id``
=============  =====================================================================

No credentials ever: the code logs none, and passwords inside URLs are blanked here besides. What
peers sent (names, headers, texts) cannot forge a line or drive a terminal: control characters are
written as escapes.

Neighbours: ``cli`` calls it once; everybody else uses the standard ``logging``.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Literal, TextIO, TypedDict, Unpack

Format = Literal["console", "json"]
FORMATS: tuple[Format, ...] = ("console", "json")
#: Names for ``--log-level``, in rising order of importance.
LEVELS = ("debug", "info", "warning", "error")

#: Libraries that tell at INFO what only their authors want to know.
_CHATTY = ("hypercorn", "opentelemetry")
#: Libraries that tell of a collector that is away each time that they try.
_REPETITIVE = "opentelemetry."
#: For ``extra`` of a record that may come many times in a second.
RECURRING = {"recurring": True}


class About(TypedDict, total=False):
    """What a record may be about; see above."""

    session: str | None
    client: str | None
    user: str | None
    vhost: str | None
    listener: str | None
    upstream: str | None
    operation: str | None
    exchange: str | None
    routing_key: str | None
    queue: str | None
    policy: str | None
    rule: str | None
    reply_code: int | None
    trace_id: str | None
    span_id: str | None


def about(*, recurring: bool = False, **fields: Unpack[About]) -> Mapping[str, object]:
    """For ``extra``: what a record is about, as keys of a JSON line; None is left out."""
    known = {name: value for name, value in fields.items() if value is not None}
    return {"about": known, "recurring": recurring}


#: How a URL begins that has a password, which ends with the last "@" of its word. A password may hold an
#: unescaped "@" (the host is after the last one), or contain "/", "?", "#" and quotes, too, as people write
#: them.
_USER = re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]{0,20}://[^\s/:@'\"]*:")
#: A word. A quote ends it where something ends there: in JSON, and as Python shows lists and the like.
_WORD = re.compile(r"[^\s'\"]+(?:(?:(?<=\\)['\"]|['\"](?![\s\],}):;]|$))[^\s'\"]*)*")

_STYLES = {
    logging.DEBUG: "dim",
    logging.WARNING: "yellow",
    logging.ERROR: "red",
    logging.CRITICAL: "bold red",
}


def set_up(format_: Format = "console", level: str = "info", *, stream: TextIO | None = None) -> None:
    """Send every record of ``level`` and above to ``stream`` (standard error), in one format.

    Replaces what an earlier call set up. Warnings of the ``warnings`` module become records, too.
    """
    stream = stream if stream is not None else sys.stderr
    handler = JsonHandler(stream) if format_ == "json" else ConsoleHandler(stream)
    handler.addFilter(Recurring())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    set_level(level)
    logging.captureWarnings(True)


def tee(sink: Callable[[logging.LogRecord], None]) -> None:
    """From now on whoever takes lines elsewhere is given each that is written here."""
    for handler in logging.getLogger().handlers:
        # Behind the filter of those that recur: it is asked for what is written alone.
        handler.addFilter(_Tee(sink))


class _Tee(logging.Filter):
    def __init__(self, sink: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._sink = sink

    def filter(self, record: logging.LogRecord) -> bool:
        # Who writes a line must not hear of it, and a line on it would come here.
        with contextlib.suppress(Exception):
            self._sink(record)
        return True


def set_level(level: str) -> None:
    """The least important message that is written from now on; one of `LEVELS`."""
    root = logging.getLogger()
    root.setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def level_now() -> str:
    """What ``set_level`` was given last."""
    return logging.getLevelName(logging.getLogger().level).lower()


def without_passwords(text: str) -> str:
    """The same text with the password of every URL in it replaced by ``***``."""
    # Nothing is looked at twice: whoever sends a text may make it long.
    return _WORD.sub(_without_password, text) if "://" in text and "@" in text else text


def _without_password(word: re.Match[str]) -> str:
    text = word[0]
    end = text.rfind("@")
    user = _USER.search(text, 0, end) if end > 0 else None
    return text if user is None else f"{text[: user.end()]}***{text[end:]}"


def shown(asker: Mapping[str, str]) -> str:
    """Who has asked for something, behind what it is: `` (token, 10.0.0.7)``; nothing where nobody knows."""
    said = ", ".join(on_one_line(asker[name]) for name in ("by", "address") if name in asker)
    return f" ({said})" if said else ""


def on_one_line(text: str) -> str:
    """The same text with escapes for what a reader cannot see, or what moves what he sees.

    Control characters, line separators, marks of the direction of writing (U+202E), zero-width letters, lone
    surrogates: all that is not printable.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")


def _about(record: logging.LogRecord) -> Mapping[str, object]:
    """What ``about`` has given the record."""
    found: Mapping[str, object] = getattr(record, "about", {})
    return {
        name: without_passwords(value) if isinstance(value, str) else value for name, value in found.items()
    }


def _exception_of(record: logging.LogRecord) -> str | None:
    if record.exc_info and record.exc_info[0] is not None:
        return without_passwords(logging.Formatter().formatException(record.exc_info))
    return None


def fields_of(record: logging.LogRecord) -> Mapping[str, object]:
    """What a record says, but for its time: passwords of URLs are blanked."""
    return {
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": without_passwords(record.getMessage()),
        "exception": _exception_of(record),
        **_about(record),
    }


def log_failure(log: logging.Logger, message: str, *args: object, recurring: bool = False) -> None:
    """As ``log.exception``, but where that fails, for want of memory maybe, nothing is logged.

    For those who hold what others raise: nothing may leave them. (What ``contextlib.suppress`` makes wants
    memory itself.)
    """
    try:
        log.exception(message, *args, extra=RECURRING if recurring else None)
    except Exception:
        return


class Recurring(logging.Filter):
    """Writes what comes again and again once, and then once in ``INTERVAL`` seconds, with how often it came.

    That is for records with ``extra=RECURRING``, and for libraries that repeat themselves.
    """

    INTERVAL = 60.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        #: When the last one was written, and how many were not since: for each place in the code.
        self._last: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not getattr(record, "recurring", False) and not record.name.startswith(_REPETITIVE):
            return True
        now, key = self._clock(), (record.name, str(record.msg))
        last, more = self._last.get(key, (-self.INTERVAL, 0))
        if now - last < self.INTERVAL:
            self._last[key] = last, more + 1
            return False
        self._last[key] = now, 0
        if more:
            record.msg, record.args = (
                f"{record.getMessage()} (and {more} times more in {now - last:.0f} s)",
                (),
            )
        return True


class JsonHandler(logging.StreamHandler[TextIO]):
    """One JSON object per line, in ASCII: safe for any encoding and any collector."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return json.dumps({"time": f"{seconds}.{int(record.msecs):03d}Z", **fields_of(record)})


class ConsoleHandler(logging.Handler):
    """Local time, level, text; coloured where the stream is a terminal. Never wrapped or cut."""

    def __init__(self, stream: TextIO) -> None:
        # Rich takes longer to import than the rest of the front door together, and JSON needs none of it.
        from rich.console import Console

        super().__init__()
        self._console = Console(
            file=stream, soft_wrap=True, highlight=False, markup=False, emoji=False, legacy_windows=False
        )

    def emit(self, record: logging.LogRecord) -> None:
        from rich.text import Text

        try:
            clock = time.strftime("%H:%M:%S", time.localtime(record.created))
            line = f"{clock} {record.levelname:<8}{on_one_line(without_passwords(record.getMessage()))}"
            exception = _exception_of(record)
            if exception is not None:
                # Indented, so that nothing inside of it can pass for a line of the log.
                line += "".join(f"\n  {on_one_line(part)}" for part in exception.split("\n"))
            encoding = self._console.encoding
            printable = line.encode(encoding, "backslashreplace").decode(encoding)
            self._console.print(Text(printable, style=_STYLES.get(record.levelno, "")))
        except Exception:
            self.handleError(record)
