"""The kinds of policies as CustomResourceDefinitions, of the JSON Schemas that editors check by.

Kubernetes takes *structural* schemas only: no references, one type for a value, and no
``additionalProperties: false``. What it cannot say is left open there and judged by the operator. Three
things are left out on purpose:

- Unknown keys are kept, not cut out. Without a key that was written wrongly a rule would mean more than its
  author wrote, and nobody would be told.
- Defaults are not filled in: a resource is judged as it was written.
- Lists are replaced whole, so that two managers never share one rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

import attrs
import yaml

from amqpgate.policy.kinds.common import API_VERSION
from amqpgate.policy.kinds.kind import AnyDocumentKind
from amqpgate.policy.kinds.registry import POLICY_KINDS
from amqpgate.policy.kinds.schema import schema
from amqpgate.policy.kinds.user_groups import USER_GROUPS
from amqpgate.yamldoc.schema import Json, Schema

GROUP, _, VERSION = API_VERSION.partition("/")

#: Keywords of a value that Kubernetes knows as we do.
_VALUE: Final = ("minimum", "maximum", "minItems", "minLength", "minProperties", "maxProperties", "pattern")
_KEEP: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"


@attrs.frozen
class ResourceKind:
    """A kind of document as a kind of resource."""

    document: AnyDocumentKind
    plural: str
    short: str

    @property
    def name(self) -> str:
        """``AccessPolicy``."""
        return self.document.name

    def path(self, namespace: str) -> str:
        """Where the API server has those of a namespace."""
        return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{self.plural}"


def _resource_kind(kind: AnyDocumentKind) -> ResourceKind:
    name = kind.name.lower()
    # As `netpol` is short for a NetworkPolicy.
    return ResourceKind(kind, re.sub("y$", "ies", name), re.sub("(icy|oups)$", "", name))


#: The kinds that there are as resources: all but tests, which nothing enforces.
RESOURCE_KINDS: Final = tuple(_resource_kind(kind) for kind in (*POLICY_KINDS, USER_GROUPS))


def definitions() -> list[Schema]:
    """All of them."""
    return [definition(kind) for kind in RESOURCE_KINDS]


def definition(kind: ResourceKind) -> Schema:
    """The CustomResourceDefinition of one kind."""
    singular = kind.name.lower()
    version: Schema = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": structural(schema(kind.document))},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {
                "name": "Accepted",
                "type": "string",
                "jsonPath": '.status.conditions[?(@.type=="Accepted")].status',
            },
            {
                "name": "Reason",
                "type": "string",
                "jsonPath": '.status.conditions[?(@.type=="Accepted")].reason',
            },
            {"name": "Digest", "type": "string", "jsonPath": ".status.digest"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            {
                "name": "Message",
                "type": "string",
                "priority": 1,
                "jsonPath": '.status.conditions[?(@.type=="Accepted")].message',
            },
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": singular,
                "shortNames": [kind.short],
                "categories": ["amqpgate"],
            },
            "versions": [version],
        },
    }


def structural(document: Schema) -> Schema:
    """A structural schema of the JSON Schema of a kind."""
    named = document.get("$defs", {})
    parts = document["properties"]
    assert isinstance(named, dict)
    assert isinstance(parts, dict)
    spec = parts["spec"]
    assert isinstance(spec, dict)
    return {
        "type": "object",
        "description": document["description"],
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _Folding(named).value(spec, ()),
            "status": _STATUS,
        },
        _KEEP: True,
    }


_TEXT: Final[Schema] = {"type": "string"}
_STATUS: Final[Schema] = {
    "type": "object",
    "description": "what the operator found",
    "properties": {
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "description": "the generation that was judged",
        },
        "inForceGeneration": {
            "type": "integer",
            "format": "int64",
            "description": "the generation that is in force",
        },
        "digest": {"type": "string", "description": "SHA-256 of what is in force of this resource, in part"},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status", "lastTransitionTime", "reason", "message"],
                "properties": {
                    "type": _TEXT,
                    "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                    "observedGeneration": {"type": "integer", "format": "int64"},
                    "lastTransitionTime": {"type": "string", "format": "date-time"},
                    "reason": _TEXT,
                    "message": _TEXT,
                },
            },
        },
    },
}


@attrs.frozen
class _Folding:
    """Folds the named parts of a schema in where they are referred to."""

    named: Mapping[str, Json]

    def value(self, node: Schema, inside: tuple[str, ...]) -> Schema:
        """The form of one value; ``inside`` are the named parts that it stands in."""
        made: Schema = {}
        if "description" in node:
            made["description"] = node["description"]
        forms, is_nullable = self._forms(node)
        if is_nullable:
            made["nullable"] = True
        if len(forms) != 1:
            # Text or a mapping: Kubernetes knows no such value, so it takes any.
            return {**made, _KEEP: True}
        form = forms[0]
        reference = form.get("$ref")
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            part = self.named[name]
            assert isinstance(part, dict)
            if name in inside:
                return {**made, _KEEP: True}
            return {**self.value(part, (*inside, name)), **made}
        return {**made, **self._plain(form, inside)}

    def _forms(self, node: Schema) -> tuple[list[Schema], bool]:
        choices = node.get("anyOf")
        forms = [node]
        if isinstance(choices, list):
            outer = {key: value for key, value in node.items() if key in _VALUE}
            forms = [{**one, **outer} for one in choices if isinstance(one, dict)]
        kept = [one for one in forms if one.get("type") != "null"]
        return kept, len(kept) < len(forms)

    def _plain(self, form: Schema, inside: tuple[str, ...]) -> Schema:
        made: Schema = {key: form[key] for key in _VALUE if key in form}
        kind = form.get("type")
        words = form.get("enum")
        if isinstance(words, list):
            # YAML reads "2" without its quotes as a number, and the gateway takes both.
            is_number = any(str(word).isdecimal() for word in words)
            return {_INT_OR_STRING: True} if is_number else {**made, "type": "string", "enum": words}
        if isinstance(kind, list):
            bounds = {key: value for key, value in made.items() if key != "pattern"}
            return {**bounds, _INT_OR_STRING: True} if "integer" in kind else {**bounds, _KEEP: True}
        if kind == "array":
            items = form["items"]
            assert isinstance(items, dict)
            return {**made, "type": "array", "items": self.value(items, inside)}
        if kind == "object":
            return {**made, **self._object(form, inside)}
        return {**made, "type": kind} if kind else {_KEEP: True}

    def _object(self, form: Schema, inside: tuple[str, ...]) -> Schema:
        made: Schema = {"type": "object"}
        values = form.get("additionalProperties")
        if isinstance(values, dict):
            return {**made, "additionalProperties": self.value(values, inside)}
        properties = form.get("properties", {})
        assert isinstance(properties, dict)
        made["properties"] = {
            key: self.value(entry, inside) for key, entry in properties.items() if isinstance(entry, dict)
        }
        for key in ("required", "oneOf", "anyOf"):
            if key in form:
                made[key] = form[key]
        # A key that is not known is told of, not cut out.
        return {**made, _KEEP: True}


def manifests() -> dict[str, str]:
    """The definitions as YAML, by the names of their files."""
    made = {}
    for kind in RESOURCE_KINDS:
        # By way of JSON, so that what stands there twice is written twice.
        text = yaml.safe_dump(json.loads(json.dumps(definition(kind))), sort_keys=False, width=110)
        made[f"{kind.plural}.yaml"] = f"# Made by `make crds`. DO NOT EDIT.\n{text}"
    return made
