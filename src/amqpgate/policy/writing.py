"""Values on one line of YAML, as documents are written by the program."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

#: What a document says.
Value: TypeAlias = "str | bool | Sequence[Value] | Mapping[str, Value]"


def flow(value: Value) -> str:
    """The value on one line of YAML; text that is more than a plain word stands in quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {flow(entry)}" for key, entry in value.items()) + "}"
    if not isinstance(value, str):
        return "[" + ", ".join(map(flow, value)) + "]"
    if re.fullmatch(r"[a-z]+([.-][a-z]+)*", value) and value not in ("true", "false", "null"):
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return re.sub(
        "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", quoted
    )
