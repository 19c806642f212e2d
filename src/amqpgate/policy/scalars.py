"""What one value of a field table is to a rule: its text, and its number.

A client chooses the type. To RabbitMQ's headers exchanges whole numbers of most types are equal, and bytes
are equal to text; a consumer may read digits as a number. So a rule about a text, or a number, is about all
of these.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, InvalidOperation

from amqpgate.policy.operations import text_of


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
