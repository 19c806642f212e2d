"""JSON Schema (draft 2020-12) and Markdown tables, from the attrs types that the loader fills.

A class may add keywords of its own in the class variable ``SCHEMA`` (for instance "exactly one of
these keys"). Its docstring's first sentence and its fields' sentences become the descriptions.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from collections.abc import Mapping as AbstractMapping
from typing import Final, Literal, TypeAlias, get_args, get_origin, get_type_hints

import attrs

from amqpgate.values import frozen
from amqpgate.yamldoc.structure import _is_optional, _is_text_value, _without_none, key_of
from amqpgate.yamldoc.values import (
    PERCENT_PATTERN,
    SECONDS_PATTERN,
    SIZE_PATTERN,
    AnyValue,
    Between,
    FilePath,
    FolderPath,
    NotEmpty,
    Percent,
    Ratio,
    Seconds,
    Secret,
    Size,
    TextValue,
    WholeSeconds,
)

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Schema: TypeAlias = "dict[str, Json]"

#: What stands for any value that the environment fills in.
REFERENCE_PATTERN: Final = r"\$\{"
_REFERENCE: Schema = {"type": "string", "pattern": REFERENCE_PATTERN}

_WORDS: dict[object, tuple[str, Schema]] = {
    str: ("text", {"type": "string"}),
    bool: ("true or false", {"type": "boolean"}),
    int: ("whole number", {"type": "integer"}),
    Ratio: ("number", {"type": "number"}),
    AnyValue: ("any value", {}),
    Secret: ("secret text", {"type": "string"}),
    FilePath: ("file", {"type": "string", "minLength": 1}),
    FolderPath: ("folder", {"type": "string", "minLength": 1}),
}


def schema_for(cls: type, *, identifier: str, environment: bool = False) -> Schema:
    """The JSON Schema of ``cls``; with ``environment``, ``${NAME}`` may stand for any single value."""
    definitions: Schema = {}
    root = _of_class(cls, definitions, environment)
    schema: Schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": identifier, **root}
    if definitions:
        schema["$defs"] = {name: definitions[name] for name in sorted(definitions)}
    return schema


def _of_class(cls: type, definitions: Schema, environment: bool) -> Schema:
    hints = get_type_hints(cls)
    properties: Schema = {}
    required: list[Json] = []
    for field in _fields(cls):
        forms = _forms(hints[field.name], definitions, environment)
        forms[0] = _bounded(forms[0], field)
        entry = _one_of(forms)
        entry["description"] = str(field.metadata.get("doc", ""))
        if field.default is attrs.NOTHING:
            required.append(key_of(field))
        else:
            default = _default(field)
            if default is not None:
                entry["default"] = default
        properties[key_of(field)] = entry
    schema: Schema = {
        "title": cls.__name__,
        "description": _summary(cls),
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }
    if required:
        schema["required"] = required
    extra: Schema = getattr(cls, "SCHEMA", {})
    return {**schema, **extra}


def _one_of(forms: list[Schema]) -> Schema:
    if len(forms) == 1:
        return dict(forms[0])
    return {"anyOf": list[Json](forms)}


def _forms(hint: object, definitions: Schema, environment: bool) -> list[Schema]:
    """The ways in which a value of this type is written; the plain one first."""
    if _is_optional(hint):
        return [*_forms(_without_none(hint), definitions, environment), {"type": "null"}]
    if get_origin(hint) is tuple:
        return [{"type": "array", "items": _one_of(_forms(get_args(hint)[0], definitions, environment))}]
    if get_origin(hint) is AbstractMapping:
        value = _one_of(_forms(get_args(hint)[1], definitions, environment))
        return [{"type": "object", "additionalProperties": value}]
    if isinstance(hint, type) and attrs.has(hint) and not issubclass(hint, TextValue):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # stands in while the class is described: it may hold itself
            definitions[hint.__name__] = _of_class(hint, definitions, environment)
        reference: Schema = {"$ref": f"#/$defs/{hint.__name__}"}
        return [reference, {"type": "string"}] if hasattr(hint, "SHORTHAND") else [reference]
    form = _scalar(hint)
    return (
        [form, _REFERENCE] if environment and ("pattern" in form or form.get("type") != "string") else [form]
    )


def _scalar(hint: object) -> Schema:
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    if hint is Size:
        return {"type": ["integer", "string"], "minimum": 0, "pattern": SIZE_PATTERN}
    if hint is Seconds or hint is WholeSeconds:
        number = "number" if hint is Seconds else "integer"
        return {"type": [number, "string"], "minimum": 0, "pattern": SECONDS_PATTERN}
    if hint is Percent:
        return {"type": ["number", "string"], "minimum": 0, "pattern": PERCENT_PATTERN}
    if hint in _WORDS:
        return dict(_WORDS[hint][1])
    if isinstance(hint, type) and issubclass(hint, TextValue):
        return {"type": "string"} if hint.PATTERN is None else {"type": "string", "pattern": hint.PATTERN}
    raise TypeError(f"no JSON Schema for {hint!r}")


def _bounded(form: Schema, field: attrs.Attribute[object]) -> Schema:
    """The form within the bounds of the field's validator."""
    # Out of ``attrs.validators.optional``, if it is in there.
    validator = getattr(field.validator, "validator", field.validator)
    if isinstance(validator, Between):
        high: Schema = {} if validator.high is None else {"maximum": validator.high}
        return {**form, "minimum": validator.low, **high}
    if isinstance(validator, NotEmpty):
        return {**form, "minItems" if form.get("type") == "array" else "minLength": 1}
    return form


def _fields(cls: type) -> list[attrs.Attribute[object]]:
    return [field for field in attrs.fields(cls) if field.init]


def _summary(cls: type) -> str:
    """The first paragraph of the docstring, on one line."""
    return " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())


def _default(field: attrs.Attribute[object]) -> Json:
    """The default as it would be written; None if it depends on other values, or is a mapping."""
    value: object = field.default
    if isinstance(value, str | int | float | bool):
        return value
    return str(value) if isinstance(value, TextValue) else None


@frozen
class SchemaRow:
    """One key of a document, for a table."""

    path: str
    kind: str
    default: str
    meaning: str


def rows_of(cls: type, prefix: str = "") -> Iterator[SchemaRow]:
    """Every key under ``cls``, depth first, as ``listeners[].tls.cert``."""
    hints = get_type_hints(cls)
    for field in _fields(cls):
        hint = _without_none(hints[field.name])
        path = prefix + key_of(field)
        yield SchemaRow(path, _kind(hint), _shown_default(field, hint), str(field.metadata.get("doc", "")))
        if get_origin(hint) is tuple:
            hint, path = get_args(hint)[0], path + "[]"
        elif get_origin(hint) is AbstractMapping:
            hint, path = get_args(hint)[1], path + ".NAME"
        if isinstance(hint, type) and attrs.has(hint) and not _is_text_value(hint):
            yield from rows_of(hint, path + ".")


def _shown_default(field: attrs.Attribute[object], hint: object) -> str:
    if field.default is attrs.NOTHING:
        return "required"
    if "default" in field.metadata:
        return str(field.metadata["default"])
    default = _default(field)
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return "-" if default is None else f"`{_quantity(default, hint)}`"


def _quantity(value: Json, hint: object) -> str:
    if isinstance(value, int) and hint is Size:
        for unit, shift in (("Gi", 30), ("Mi", 20), ("Ki", 10)):
            if value and value % (1 << shift) == 0:
                return f"{value >> shift}{unit}"
    if isinstance(value, int | float) and hint in (Seconds, WholeSeconds):
        return f"{value:g}s"
    return str(value)


def _kind(hint: object) -> str:
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return "list" if isinstance(item, type) and attrs.has(item) else f"list of {_kind(item)}"
    if get_origin(hint) is AbstractMapping:
        return f"mapping of names to {_kind(get_args(hint)[1])}"
    if get_origin(hint) is Literal:
        return " \\| ".join(f"`{value}`" for value in get_args(hint))
    if hint is Size:
        return "size"
    if hint is Seconds or hint is WholeSeconds:
        return "time"
    if hint is Percent:
        return "share of 100"
    if hint in _WORDS:
        return _WORDS[hint][0]
    if isinstance(hint, type) and issubclass(hint, TextValue):
        return hint.FORM
    return "mapping"


def describe(cls: type) -> str:
    """A Markdown table of every key under ``cls``: type, default, meaning."""
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{row.path}` | {row.kind} | {row.default} | {row.meaning} |" for row in rows_of(cls)]
    return "\n".join(lines) + "\n"
