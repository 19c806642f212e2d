"""The unit of a metric, which is a part of its name."""

from __future__ import annotations

from typing import Final

#: By what the name ends in, as OTLP says it (UCUM).
_UNITS: Final = {"seconds": "s", "bytes": "By"}


def unit_of(name: str) -> str:
    """Of a metric; 1 where it is a number of things."""
    return _UNITS.get(name.removesuffix("_total").rpartition("_")[2], "1")
