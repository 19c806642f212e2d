"""What is wrong with values of the chart: all of it, each at its place, with the nearest key.

What the schema says is found by the library ``jsonschema``, as Helm finds it; policies are read as the
gateway reads them. Of a value Helm makes what YAML 1.1 does: ``off`` is false.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Final, cast

import attrs
import jsonschema

from amqpgate.chart.finding import at
from amqpgate.chart.schema import NEVER_NULL, schema
from amqpgate.chart.together import errors_together, notes_in
from amqpgate.errors import ConfigError
from amqpgate.policy.loader import placed_document
from amqpgate.yamldoc import Mapping, Mark, Node, Scalar, compose, nearest
from amqpgate.yamldoc import Sequence as Items
from amqpgate.yamldoc.schema import REFERENCE_PATTERN, Json, Schema
from amqpgate.yamldoc.values import PERCENT_PATTERN, SECONDS_PATTERN, SIZE_PATTERN

#: What the chart is called in the values of one that depends on it.
NAME: Final = "amqpgate"

_TYPES: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}
#: Settings and policies.
_WITHOUT_DEFAULTS: Final = ("config", "policies")
#: Beyond these a whole number is a number to Helm, and Python reads no more than some thousands.
_MOST_DIGITS: Final = 400
#: Keys that are told beside the nearest one.
_MOST_KNOWN: Final = 20
_FORMS: Final = {
    SECONDS_PATTERN: "a time such as 5s or 500ms",
    SIZE_PATTERN: "a size such as 65536 or 256Ki",
    PERCENT_PATTERN: "a share of a hundred such as 25",
}
#: What is a boolean to Helm, and text to YAML 1.2.
_YAML_1_1: Final = re.compile(r"(?i:y|yes|on|n|no|off)\Z")
_TRUE: Final = re.compile(r"(?i:y|yes|on|true)\Z")


def errors_in(documents: Sequence[Node]) -> list[ConfigError]:
    """Of values files that Helm is given together. What one lacks, another may have."""
    errors: list[ConfigError] = []
    read = [_as_helm_reads(node) for node in documents]
    roots = _roots(read)
    for number, root in enumerate(roots):
        if not isinstance(root, Mapping):
            errors.append(root.mark.error("expected a mapping of values"))
            continue
        others = [other for place, other in enumerate(roots) if place != number]
        errors += _Values(root, others, root is not read[number], _validator()).errors()
    errors += errors_together(roots)
    return errors


def notes_on(documents: Sequence[Node]) -> list[ConfigError]:
    """What of these values may be meant so, and is told."""
    return list(notes_in(_roots(documents)))


def _roots(documents: Sequence[Node]) -> list[Node]:
    return [at(node, [NAME]) or node for node in documents]


@cache
def _validator() -> jsonschema.Draft7Validator:
    """Policies are read for themselves; and the mode, like all else, has a default in the chart."""
    whole = schema(merged=False)
    keys = whole["properties"]
    assert isinstance(keys, dict)
    policies = keys["policies"]
    assert isinstance(policies, dict)
    kept: Schema = {key: value for key, value in whole.items() if key != "required"}
    kept["properties"] = keys | {"policies": policies | {"additionalProperties": True}}
    return jsonschema.Draft7Validator(kept)


def _as_helm_reads(node: Node) -> Node:
    if isinstance(node, Mapping):
        entries = {key: _as_helm_reads(value) for key, value in node.entries.items()}
        return attrs.evolve(node, entries=entries)
    if isinstance(node, Items):
        return attrs.evolve(node, items=tuple(map(_as_helm_reads, node.items)))
    if node.plain and _YAML_1_1.match(node.text):
        text = "true" if _TRUE.match(node.text) else "false"
        return attrs.evolve(
            node, text=text, shown=f"{node.text}, which Helm reads as {text}: put it in quotes"
        )
    return node


def _plain(node: Node, *, is_own: bool = False) -> Json:
    """``is_own``: below what the chart has no defaults for."""
    if isinstance(node, Mapping):
        plain = {
            key: _plain(value, is_own=is_own or key in _WITHOUT_DEFAULTS)
            for key, value in node.entries.items()
        }
        # What is null takes a default away.
        return {key: value for key, value in plain.items() if value is not None or is_own}
    if isinstance(node, Items):
        return [_plain(item, is_own=is_own) for item in node.items]
    match node.kind:
        case "null":
            return None
        case "boolean":
            return _TRUE.match(node.text) is not None
        case "integer" if node.text[:2] in ("0x", "0o"):
            return int(node.text, 0)
        case "integer" if len(node.text) < _MOST_DIGITS:
            return int(node.text)
        case "integer":
            return float(node.text)
        case "number":
            return float(node.text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        case _:
            return node.text


@attrs.frozen
class _Values:
    """The values of one file."""

    root: Mapping
    others: Sequence[Node]
    #: In the values of a chart that depends on this one.
    is_within: bool
    validator: jsonschema.Draft7Validator

    def errors(self) -> Iterator[ConfigError]:
        mode = next((found for one in (self.root, *self.others) if (found := at(one, ["mode"]))), None)
        plain = _plain(self.root)
        assert isinstance(plain, dict)
        plain["mode"] = "gateway" if mode is None else _plain(mode)
        for error in self.validator.iter_errors(plain):
            yield from self._told(error)
        for path in NEVER_NULL:
            node = at(self.root, path.split("."))
            if isinstance(node, Scalar) and node.kind == "null":
                yield node.mark.error(
                    "is empty, which takes its default away; leave the key out, and that holds"
                )
        yield from self._of_policies()

    def _told(self, error: jsonschema.ValidationError) -> Iterator[ConfigError]:
        node = at(self.root, error.absolute_path)
        if node is None:
            # The mode of another file.
            return
        rule, limit = cast("Schema", error.schema), cast("Json", error.validator_value)
        if isinstance(node, Mapping) and isinstance(error.instance, str):
            # Of a key that may not be so.
            yield node.keys[error.instance].error(f"expected {_wanted(rule)}, not '{error.instance}'")
            return
        match error.validator:
            case "additionalProperties" if isinstance(node, Mapping):
                known = cast("Schema", rule["properties"])
                for key, mark in node.keys.items():
                    if key not in known:
                        yield mark.error(f"unknown key '{key}'{_known(key, known)}")
            case "required":
                for key in cast("list[str]", limit):
                    if at(node, [key]) is None and not self._may_be_elsewhere([*error.absolute_path, key]):
                        yield node.mark.error(f"key '{key}' is missing")
            case "anyOf":
                yield from self._of_any(error, node)
            case "enum":
                names = [str(one) for one in cast("list[Json]", limit)]
                seen = (
                    f"'{node.shown}'{nearest(node.text, names)}" if isinstance(node, Scalar) else _kind(node)
                )
                yield node.mark.error(f"expected one of {', '.join(names)}; not {seen}")
            case "type" | "pattern":
                seen = f", not {_kind(node)}" if error.validator == "type" else ""
                yield node.mark.error(f"expected {_wanted(rule)}{seen}")
            case _ if isinstance(error.instance, int | float):
                yield node.mark.error(error.message)
            case _:
                # The library repeats the value, which may be a secret.
                yield node.mark.error(f"does not fit: {error.validator} is {limit}")

    def _of_any(self, error: jsonschema.ValidationError, node: Node) -> Iterator[ConfigError]:
        """What is wrong by the form that the value has; where it has none of them, which there are."""
        forms: dict[object, list[jsonschema.ValidationError]] = {}
        for inner in error.context or ():
            forms.setdefault(inner.schema_path[0], []).append(inner)
        for form in forms.values():
            if not any(one.validator == "type" and not one.relative_path for one in form):
                if form[0].validator_value == REFERENCE_PATTERN:
                    continue
                for one in form:
                    yield from self._told(one)
                return
        words = dict.fromkeys(
            map(_wanted, _resolved(cast("list[Schema]", error.validator_value), self.validator))
        )
        yield node.mark.error(f"expected {' or '.join(words)}, not {_kind(node)}")

    def _may_be_elsewhere(self, path: Sequence[str | int]) -> bool:
        """A list is never merged, and what an application's chart says by itself is not seen here."""
        if any(isinstance(step, int) for step in path):
            return False
        return self.is_within or any(at(other, path) is not None for other in self.others)

    def _of_policies(self) -> Iterator[ConfigError]:
        policies = self.root.entries.get("policies")
        for entry in policies.entries.values() if isinstance(policies, Mapping) else ():
            try:
                if isinstance(entry, Scalar) and entry.kind == "string":
                    for node in compose(entry.text, entry.mark.file):
                        placed_document(node)
                elif isinstance(entry, Mapping):
                    placed_document(entry)
                else:
                    raise entry.mark.error("expected a policy, as text or as a mapping")
            except ConfigError as error:
                is_text = isinstance(entry, Scalar) and entry.kind == "string"
                yield from (_within(one, entry.mark) if is_text else one for one in error.all)


def _within(error: ConfigError, text: Mark) -> ConfigError:
    """An error in a text that begins below its key, as block scalars do."""
    return ConfigError(error.message, file=text.file, line=text.line + (error.line or 0))


def _resolved(forms: Sequence[Schema], validator: jsonschema.Draft7Validator) -> Iterator[Schema]:
    for form in forms:
        reference = str(form.get("$ref", ""))
        found: Json = cast("Schema", validator.schema) if reference else form
        for step in reference.removeprefix("#/").split("/") if reference else ():
            assert isinstance(found, dict)
            found = found[step]
        assert isinstance(found, dict)
        yield found


def _wanted(form: Schema) -> str:
    """A form in words."""
    pattern, names, types = form.get("pattern"), form.get("enum"), form.get("type", "string")
    if pattern == REFERENCE_PATTERN:
        return "${NAME}"
    if isinstance(pattern, str):
        return _FORMS.get(pattern, f"text like {pattern}")
    if isinstance(names, list):
        return f"one of {', '.join(map(str, names))}"
    return " or ".join(_TYPES[str(one)] for one in (types if isinstance(types, list) else [types]))


def _known(key: str, known: Collection[str]) -> str:
    """The nearest of the keys that there are, and which those are: few enough to be read, or none is near."""
    near = nearest(key, known)
    return near if near and len(known) > _MOST_KNOWN else f"{near}; known are {', '.join(known)}"


def _kind(node: Node) -> str:
    """What a node is, without its text, which may be a secret."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Items):
        return "a list"
    read = " (as Helm reads it)" if node.shown != node.text else ""
    return f"{_TYPES.get(node.kind, node.kind)}{read}"
