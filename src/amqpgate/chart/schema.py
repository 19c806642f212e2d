"""The JSON Schema of the chart's values: ``values.json``, and the schemas of settings and policies."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Final

from amqpgate.config.load import schema as schema_of_settings
from amqpgate.inject.settings import schema as schema_of_injector
from amqpgate.policy.kinds.registry import DOCUMENT_KINDS
from amqpgate.policy.kinds.schema import schema as schema_of_kind
from amqpgate.resources.settings import schema as schema_of_operator
from amqpgate.yamldoc.schema import Json, Schema

#: What the chart fills in itself, or says elsewhere: ``failurePolicy`` is the injector's ``onError``.
_FILLED_IN: Final = {
    "Injector": ("onError", "bind"),
    "Operator": ("configMap", "lease", "owner", "tenants", "bind", "webhook"),
}
#: What need not be said: the chart knows a listener, a Redis and a certificate.
_NOT_REQUIRED: Final = ("Settings", "Settings.SharedLimits", "Injector.ListenerTls")
#: What templates look into. An empty key, such as ``service:``, takes the default away, which Helm alone has.
NEVER_NULL: Final = (
    *("audit", "audit.enabled", "audit.persistence", "autoscaling", "autoscaling.enabled"),
    *("autoscaling.keda", "commonAnnotations", "commonLabels"),
    *("customResources", "customResources.config", "customResources.webhook"),
    *("customResources.webhook.certManager", "image", "injector", "injector.certManager", "injector.config"),
    *("livenessProbe", "metrics", "metrics.dashboard", "metrics.podMonitor", "metrics.prometheusRule"),
    *("metrics.serviceMonitor", "networkPolicy", "pipeline", "pipeline.image", "pipeline.records"),
    *("pipeline.spark", "pipeline.table", "pipeline.table.persistence", "podAnnotations"),
    *("podDisruptionBudget", "podLabels", "readinessProbe", "redis", "redis.image", "service"),
    *("service.nodePorts", "service.ports", "service.type", "serviceAccount", "sidecar", "startupProbe"),
    "workload",
)


def schema(*, merged: bool = True) -> Schema:
    """The whole, as committed in the chart's ``values.schema.json``, of a draft that Helm 3 reads as well.

    Of values that are not ``merged`` with the chart's own, nothing is missing.
    """
    definitions: Schema = {}
    definitions |= _parts("Settings", schema_of_settings())
    definitions |= _parts("Injector", schema_of_injector())
    definitions |= _parts("Operator", schema_of_operator())
    for name in _NOT_REQUIRED:
        _mapping(definitions[name]).pop("required")
    for name, keys in _FILLED_IN.items():
        for key in keys:
            _mapping(_mapping(definitions[name])["properties"]).pop(key)
    for kind in sorted(DOCUMENT_KINDS, key=lambda one: one.name):
        definitions |= _parts(kind.name, schema_of_kind(kind))
    definitions["Policy"] = _any_policy()
    whole: Schema = json.loads(files("amqpgate.chart").joinpath("values.json").read_text())
    if merged:
        for path in NEVER_NULL:
            _require(whole, path.split("."))
    return whole | {"$defs": definitions}


def _require(whole: Schema, path: list[str]) -> None:
    for step in path[:-1]:
        whole = _mapping(_mapping(whole["properties"])[step])
    assert path[-1] in _mapping(whole["properties"])
    required = whole.setdefault("required", [])
    assert isinstance(required, list)
    required.append(path[-1])


def _mapping(value: Json) -> Schema:
    assert isinstance(value, dict)
    return value


def _any_policy() -> Schema:
    """A document as text, of which the gateway says what is wrong, or as it is."""
    kinds: list[Json] = list[Json](sorted(kind.name for kind in DOCUMENT_KINDS))
    each: list[Json] = [
        {"if": {"properties": {"kind": {"const": kind}}}, "then": {"$ref": f"#/$defs/{kind}"}}
        for kind in kinds
    ]
    document: Schema = {"required": ["kind"], "properties": {"kind": {"enum": kinds}}, "allOf": each}
    return {"type": ["string", "object"], "if": {"type": "object"}, "then": document}


def _parts(name: str, schema: Schema) -> Schema:
    """A schema and its definitions, each as a definition of its own."""
    inner = _mapping(schema.get("$defs", {}))
    outer: Schema = {key: value for key, value in schema.items() if key not in ("$schema", "$id", "$defs")}
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
