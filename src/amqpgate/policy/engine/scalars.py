"""What one value of a field table is to a rule: its text, and its number.

A client chooses the type. To RabbitMQ's headers exchanges whole numbers of most types are equal, and bytes
are equal to text; a consumer may read digits as a number. So a rule about a text, or a number, is about all
of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import ClassVar

import attrs

from amqpgate.policy.engine.matching import Form, check_pattern, compile_pattern, variables_in
from amqpgate.policy.engine.operations import every_value, text_of
from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, doc


@frozen(kw_only=True)
class ValueMatch:
    """What a value must be: a text, or a number between bounds. Plain text is short for `literal`."""

    literal: str | None = attrs.field(default=None, metadata=doc("this text exactly"))
    prefix: str | None = attrs.field(default=None, metadata=doc("every text that starts so"))
    regex: str | None = attrs.field(
        default=None, metadata=doc("regular expression (RE2) for the whole text, in time linear in it")
    )
    min: int | None = attrs.field(default=None, metadata=doc("a number, this or more"))
    max: int | None = attrs.field(default=None, metadata=doc("a number, this or less"))

    SCHEMA: ClassVar[dict[str, int]] = {"minProperties": 1, "maxProperties": 2}
    SHORTHAND: ClassVar[str] = "literal"

    def __attrs_post_init__(self) -> None:
        texts = [text for text in (self.literal, self.prefix, self.regex) if text is not None]
        bounds = self.min is not None or self.max is not None
        if len(texts) + bounds != 1:
            raise Invalid("give one of literal, prefix and regex, or min and max")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise Invalid("no number is that", "min")
        if self.pattern is not None:
            check_pattern(*self.pattern)
            if variables_in(self.pattern[1]):
                raise Invalid("variables are not expanded here")

    @property
    def pattern(self) -> tuple[Form, str] | None:
        """Its form and its text; None: bounds are given."""
        forms: tuple[Form, ...] = ("literal", "prefix", "regex")
        return next(((form, text) for form in forms if (text := getattr(self, form)) is not None), None)

    def matches(self, value: object) -> bool:
        """Whether the value of an argument or header is meant. An array, a table and void never are."""
        if self.pattern is not None:
            text = words_of(value)
            matcher = compile_pattern(*self.pattern, {})
            return text is not None and matcher is not None and matcher.matches(text)
        number = number_of(value)
        if number is None:
            return False
        return (self.min is None or number >= self.min) and (self.max is None or number <= self.max)

    def matches_within(self, value: object) -> bool:
        """Whether the value is meant, or any of those within it, at any depth."""
        if isinstance(value, Mapping):
            return any(map(self.matches_within, every_value(value)))
        if isinstance(value, list | tuple):
            return any(map(self.matches_within, value))
        return self.matches(value)


def words_of(value: object) -> str | None:
    """The text of a value: a number's are its digits, a timestamp's its seconds. None: it has none.

    The text of a whole number is the same whatever type it has.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | bytes):
        return text_of(value)
    number = number_of(value)
    if number is None:
        return str(value) if isinstance(value, float) else None
    if isinstance(number, float):
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(number, Decimal):
        digits = f"{number:f}"
        return (digits.rstrip("0").rstrip(".") if "." in digits else digits) or "0"
    return str(number)


def number_of(value: object) -> int | float | Decimal | None:
    """The number that a value is, or that its text says; a timestamp's are its seconds. None: it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float | Decimal):
        return value if value == value else None  # NaN is not itself
    if isinstance(value, datetime):
        return int(value.timestamp())
    text = text_of(value)
    return None if text is None else _number_in(text)


def _number_in(text: str) -> float | Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        # Digits that are beyond decimals may still be a float's infinity.
        try:
            number = Decimal(float(text))
        except ValueError:
            return None
    return None if number.is_nan() else number
