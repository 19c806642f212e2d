"""What the project's own schemas say, within the chart's ``values.schema.json``.

The file is written by hand but for ``$defs``, which are those of settings and policies.
"""

from __future__ import annotations

import json
from typing import TypeAlias

from amqpgate.policy.kinds.registry import DOCUMENT_KINDS
from tests.unit.chart.rendering import CHART, ROOT

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Schema: TypeAlias = "dict[str, Json]"

FILE = CHART / "values.schema.json"


def made() -> str:
    """The file as it should be."""
    whole: Schema = json.loads(FILE.read_text())
    definitions: Schema = {}
    # The chart knows a listener, a Redis and a certificate; brokers have to be said where there is a gateway.
    definitions |= _parts("Settings", "config.json")
    definitions |= _parts("Injector", "injector.json")
    definitions |= _parts("Operator", "operator.json")
    for name in ("Settings", "Settings.SharedLimits", "Injector.ListenerTls"):
        part = definitions[name]
        assert isinstance(part, dict)
        del part["required"]
    injector = definitions["Injector"]
    assert isinstance(injector, dict)
    keys = injector["properties"]
    assert isinstance(keys, dict)
    # failurePolicy says the same to both, and the Service knows the port.
    del keys["onError"], keys["bind"]
    operator = definitions["Operator"]
    assert isinstance(operator, dict)
    keys = operator["properties"]
    assert isinstance(keys, dict)
    for name in ("configMap", "lease", "owner", "tenants", "bind"):
        del keys[name]
    for kind in sorted(DOCUMENT_KINDS, key=lambda one: one.name):
        definitions |= _parts(kind.name, kind.schema_file)
    definitions["Policy"] = _any_policy()
    whole["$defs"] = definitions
    return json.dumps(whole, indent=2) + "\n"


def _any_policy() -> Schema:
    """A document as text, of which the gateway says what is wrong, or as it is."""
    kinds: list[Json] = sorted(kind.name for kind in DOCUMENT_KINDS)
    each: list[Json] = [
        {"if": {"properties": {"kind": {"const": kind}}}, "then": {"$ref": f"#/$defs/{kind}"}}
        for kind in kinds
    ]
    document: Schema = {"required": ["kind"], "properties": {"kind": {"enum": kinds}}, "allOf": each}
    return {"type": ["string", "object"], "if": {"type": "object"}, "then": document}


def _parts(name: str, file: str) -> Schema:
    """A schema of the project and its definitions, of a draft that Helm 3 reads as well."""
    schema: Schema = json.loads((ROOT / "spec/schema" / file).read_text())
    inner = schema.pop("$defs", {})
    assert isinstance(inner, dict)
    outer: Schema = {key: value for key, value in schema.items() if key not in ("$schema", "$id")}
    parts = {name: outer} | {f"{name}.{key}": value for key, value in inner.items()}
    return {key: _moved(value, name) for key, value in parts.items()}


def _moved(value: Json, name: str) -> Json:
    if isinstance(value, list):
        return [_moved(item, name) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: f"#/$defs/{name}.{str(item).removeprefix('#/$defs/')}" if key == "$ref" else _moved(item, name)
        for key, item in value.items()
    }
