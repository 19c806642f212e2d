"""What a request for a file says of it: how it may be packed, and which one is there already (RFC 9110)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_TAG: Final = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')
_WEIGHT: Final = re.compile(r"q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)", re.IGNORECASE)


def takes_gzip(accept: Sequence[str]) -> bool:
    """Whether gzip is what is wanted, by the lines of Accept-Encoding (section 12.5.3).

    What is written wrongly is not wanted. Where nothing is, it is sent as it is.
    """
    weights: dict[str, float] = {}
    for one in ",".join(accept).lower().split(","):
        coding, _, rest = (part.strip() for part in one.partition(";"))
        weight = _WEIGHT.fullmatch(rest) if rest else None
        weights[coding.removeprefix("x-")] = float(weight[1]) if weight else 0.0 if rest else 1.0
    gzip = weights.get("gzip", weights.get("*", 0.0))
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


def takes_open_metrics(accept: str) -> bool:
    """Whether OpenMetrics' text is asked for by name, in Accept (section 12.5.1), and not refused there."""
    for one in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in one.split(";"))
        if kind == "application/openmetrics-text":
            weights = [part for part in parameters if part.startswith("q=")]
            if not weights or ((weight := _WEIGHT.fullmatch(weights[0])) and float(weight[1]) > 0):
                return True
    return False


def is_known(tag: str, tags: Sequence[str]) -> bool:
    """Whether whoever asks has it, by the lines of If-None-Match (section 13.1.2), compared weakly."""
    said = ",".join(tags).strip()
    return said == "*" or tag.removeprefix("W/") in _TAG.findall(said)
