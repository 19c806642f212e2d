"""AMQP names to Python names, the same for the same thing in every version."""

from __future__ import annotations

import keyword

#: 0-8 and 0-9 write "nowait", 0-9-1 "no-wait" (but "nowait" in confirm.select).
_SPELLINGS = {"nowait": "no-wait"}

#: Names that generated annotations use, and that an attribute would hide within its class.
_ANNOTATIONS = frozenset({"bool", "bytes", "int", "str"})


def canonical(name: str) -> str:
    """Lower case with hyphens: 0-8 has spaces ("access ticket")."""
    hyphened = name.strip().lower().replace(" ", "-").replace("_", "-")
    return _SPELLINGS.get(hyphened, hyphened)


def attribute(name: str) -> str:
    """An attribute: ``routing_key``; keywords and annotation names get an underscore (``global_``)."""
    attr = canonical(name).replace("-", "_")
    return attr + "_" if keyword.iskeyword(attr) or attr in _ANNOTATIONS else attr


def class_name(*parts: str) -> str:
    """A class: ("connection", "start-ok") becomes ``ConnectionStartOk``."""
    return "".join(word.capitalize() for part in parts for word in canonical(part).split("-"))


def constant(name: str) -> str:
    """A constant: ``FRAME_MIN_SIZE``."""
    return canonical(name).replace("-", "_").upper()
