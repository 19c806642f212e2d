"""Documents as the program writes them: values on one line of YAML, and what stands in front of rules."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from amqpgate.policy.kinds.common import API_VERSION, Mode

#: What a document says.
Value: TypeAlias = "str | bool | Sequence[Value] | Mapping[str, Value]"


def access_policy(name: str, user: str, vhosts: Sequence[str], mode: Mode = "enforce") -> list[str]:
    """The lines of an AccessPolicy for one user, up to ``rules:``."""
    return [
        f"apiVersion: {API_VERSION}",
        "kind: AccessPolicy",
        f"metadata: {flow({'name': name})}",
        "spec:",
        *([] if mode == "enforce" else [f"  mode: {mode}"]),
        f"  subjects: [{flow({'user': user, 'vhosts': vhosts})}]",
        "  rules:",
    ]


def flow(value: Value) -> str:
    """The value on one line of YAML; text that is more than a plain word stands in quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {flow(entry)}" for key, entry in value.items()) + "}"
    if not isinstance(value, str):
        return "[" + ", ".join(map(flow, value)) + "]"
    if re.fullmatch(r"[a-z]+([.-][a-z]+)*", value) and value not in ("true", "false", "null"):
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return re.sub(
        "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", quoted
    )


def _key(name: str) -> str:
    """Names of fields stand as they are; names that clients chose as `flow` writes text."""
    return name if re.fullmatch(r"[a-z]+([A-Z][a-z]+)+", name) else flow(name)
