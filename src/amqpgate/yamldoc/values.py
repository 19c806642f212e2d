"""Values with a unit or a secret in them, and the checks that fields share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, NewType, Self, TypeVar

import attrs

from amqpgate.values import frozen

V = TypeVar("V")

#: A number of bytes. Written ``65536``, ``256Ki``, ``1Mi``, ``2Gi``, or decimal ``10k``, ``5M``, ``1G``.
Size = NewType("Size", int)
#: A time in seconds. Written ``5``, ``0.5``, ``500ms``, ``5s``, ``2m``, ``1h``, ``1m30s``.
Seconds = NewType("Seconds", float)
#: A time that the protocol carries as whole seconds. Written like `Seconds`.
WholeSeconds = NewType("WholeSeconds", int)
#: A share of a hundred. Written ``25``, ``0.5``, ``25%``.
Percent = NewType("Percent", float)
#: A share of one. Written ``0.01``, ``0``, ``1``.
Ratio = NewType("Ratio", float)
#: Whatever YAML can say: text, a number, true or false, nothing, a list or a mapping of such.
AnyValue = NewType("AnyValue", object)
#: A file that exists. Relative paths start at the folder of the document that names it.
FilePath = NewType("FilePath", Path)
#: A folder that exists. Relative paths start at the folder of the document that names it.
FolderPath = NewType("FolderPath", Path)

SIZE_PATTERN = r"^[0-9]+(Ki|Mi|Gi|k|M|G)?$"
PERCENT_PATTERN = r"^[0-9]{1,3}(\.[0-9]+)?%?$"
SECONDS_PATTERN = r"^([0-9]+(\.[0-9]+)?|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$"

_SIZE_UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "k": 1000, "M": 10**6, "G": 10**9}
_SECOND_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SECONDS_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")


class Invalid(ValueError):
    """A value that its type refuses.

    ``path`` leads from the object that refuses to the culprit: attribute names and list positions.
    """

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path
        #: What else the same object refuses.
        self.others: tuple[Invalid, ...] = ()

    @classmethod
    def together(cls, errors: Sequence[Invalid]) -> Invalid:
        """Several as one; each of them without others."""
        first, *others = errors
        first.others = tuple(others)
        return first


class Secret:
    """Text that no log line, repr, comparison in a failed test or error message shows."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> str:
        raise TypeError("a secret cannot be pickled")


def parse_size(text: str) -> Size:
    """Bytes from ``256Ki`` and the like; ValueError names the forms."""
    match = re.match(r"([0-9]{1,15})(Ki|Mi|Gi|k|M|G)?\Z", text)
    if match is None:
        raise ValueError("a size: bytes, or a number with Ki, Mi, Gi, k, M or G, such as 256Ki")
    return Size(int(match[1]) * _SIZE_UNITS[match[2] or ""])


def parse_seconds(text: str) -> Seconds:
    """Seconds from ``500ms``, ``5s``, ``1m30s`` and the like; ValueError names the forms."""
    if not re.match(SECONDS_PATTERN, text) or len(text) > 32 or text.endswith("\n"):
        raise ValueError("a time: seconds, or numbers with ms, s, m or h, such as 500ms or 1m30s")
    parts = _SECONDS_PART.findall(text)
    if not parts:
        return Seconds(float(text))
    return Seconds(sum(float(number) * _SECOND_UNITS[unit] for number, unit in parts))


def parse_percent(text: str) -> Percent:
    """A share from ``25``, ``0.5`` or ``25%``; ValueError names the forms."""
    if not re.match(PERCENT_PATTERN, text) or text.endswith("\n"):
        raise ValueError("a share of a hundred such as 25 or 0.5")
    return Percent(float(text.removesuffix("%")))


def nearest(word: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the closest of ``known``, or nothing if none is close."""
    names = {name.lower(): name for name in known}
    # Of a word that is wrong: who has made no mistake need not have it.
    import difflib

    close = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f" (did you mean '{names[close[0]]}'?)" if close else ""


class TextValue:
    """Base of types that are written as one string; `parse` raises ValueError with a remedy."""

    #: How it is written, for tables and schemas.
    FORM: ClassVar[str]
    #: A regular expression for the JSON Schema, where one helps.
    PATTERN: ClassVar[str | None] = None

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The value, or ValueError. The message must not repeat the text if it may hold a secret."""
        raise ValueError(f"{cls.__name__} cannot be written as text")


@frozen
class Between:
    """An attrs validator that keeps a number within bounds; the JSON Schema repeats them."""

    low: float
    high: float | None

    def __call__(self, instance: object, attribute: attrs.Attribute[V], value: V) -> None:
        if not isinstance(value, int | float):
            return  # an optional value that is not given
        if self.low <= value and (self.high is None or value <= self.high):
            return
        span = f"{self.low} or more" if self.high is None else f"between {self.low} and {self.high}"
        raise Invalid(f"must be {span}", attribute.name)


@frozen
class NotEmpty:
    """An attrs validator: at least one item, or one character."""

    def __call__(self, instance: object, attribute: attrs.Attribute[V], value: V) -> None:
        if isinstance(value, str | tuple) and not value:
            raise Invalid("must not be empty", attribute.name)


def between(low: float, high: float | None = None) -> Between:
    """Validator for ``attrs.field``: ``low <= value <= high``; None passes where the type allows it."""
    return Between(low, high)


def not_empty() -> NotEmpty:
    """Validator for ``attrs.field``: text or a list that must have something in it."""
    return NotEmpty()
