"""Nodes to frozen attrs types.

A document's keys are the attributes' names in camelCase. Each attribute carries its sentence in
``metadata=doc("...")``. A class may name keys that a later version will know in the class variable
``RESERVED_KEYS``: they are refused with that reason instead of "unknown key". Where ``SHORTHAND`` names a
field, plain text may stand in the place of a mapping with that field alone.

Every failure is a `ConfigError` at the node that causes it. Validators and ``__attrs_post_init__``
raise `Invalid` with the path from their object to the culprit.
"""

from __future__ import annotations

import contextlib
import re
import types
from collections.abc import Callable, Iterable
from collections.abc import Mapping as AbstractMapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs

from amqpgate.errors import ConfigError
from amqpgate.yamldoc.nodes import Mapping, Mark, Node, Scalar, Sequence
from amqpgate.yamldoc.values import (
    AnyValue,
    FilePath,
    FolderPath,
    Invalid,
    Percent,
    Ratio,
    Seconds,
    Secret,
    Size,
    TextValue,
    WholeSeconds,
    nearest,
    parse_percent,
    parse_seconds,
    parse_size,
)

T = TypeVar("T")

#: Errors of one document that are told; more than that are one mistake, made many times.
MOST_ERRORS: Final = 50

#: How numbers are written that have to be exact.
DECIMAL: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?\Z")

#: Makes a value of the type that is its second argument.
Hook: TypeAlias = Callable[[Node, object], object]
#: What a class has to say of the values of its fields together; ``...`` is one that could not be read.
Faults: TypeAlias = Callable[[AbstractMapping[str, object]], Iterable[Invalid]]


def doc(text: str, *, key: str | None = None, default: str | None = None) -> dict[str, str]:
    """Metadata of an attrs field: its sentence, its key if not camelCase, its default in words."""
    metadata = {"doc": text}
    if key is not None:
        metadata["key"] = key
    if default is not None:
        metadata["default"] = default
    return metadata


def key_of(field: attrs.Attribute[object]) -> str:
    """The key that fills an attribute: ``client_ca`` is written ``clientCa``."""
    if "key" in field.metadata:
        return str(field.metadata["key"])
    first, *rest = field.name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def structure(node: Node, cls: type[T]) -> T:
    """The object of type ``cls`` that ``node`` describes; `ConfigError` at the first thing wrong."""
    try:
        result: T = _structure(node, cls)  # type: ignore[assignment]  # of the hint that was asked for
        return result
    except Invalid as error:
        raise _placed(error, node, cls) from None


def _placed(error: Invalid, node: Node, cls: object) -> ConfigError:
    found = [locate(node, cls, one.path).error(str(one)) for one in (error, *error.others)]
    return ConfigError.together(found[:MOST_ERRORS])


def locate(node: Node, cls: object, path: tuple[str | int, ...]) -> Mark:
    """Where the value at ``path`` (attribute names and positions) stands, or the nearest thing around it."""
    mark = node.mark
    for step in path:
        if isinstance(step, int):
            if not isinstance(node, Sequence) or step >= len(node.items):
                break
            node, cls = node.items[step], (get_args(cls) or (cls,))[0]
        else:
            field = attrs.fields_dict(cls).get(step) if isinstance(cls, type) and attrs.has(cls) else None
            key = key_of(field) if field is not None else step
            if not isinstance(node, Mapping) or key not in node.entries:
                break
            node = node.entries[key]
            if isinstance(cls, type) and field is not None:
                cls = _without_none(get_type_hints(cls)[field.name])
        mark = node.mark
    return mark


def _without_none(hint: object) -> object:
    rest = [arg for arg in get_args(hint) if arg is not type(None)]
    return rest[0] if _is_optional(hint) and len(rest) == 1 else hint


def _is_optional(hint: object) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def _seen(node: Node) -> str:
    """What stands there, in words that do not reveal what the environment filled in."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    if node.kind == "null" and not node.expanded:
        return "nothing"
    return f"'{node.shown}'"


def _scalar(node: Node, wanted: str) -> Scalar:
    if not isinstance(node, Scalar) or node.kind == "null":
        raise node.mark.error(f"expected {wanted}, not {_seen(node)}")
    return node


def _text(node: Node, _: object) -> str:
    scalar = _scalar(node, "text")
    if scalar.kind != "string":
        raise node.mark.error(
            f"expected text: put it in quotes, '{scalar.shown}', or it is read as {scalar.kind}"
        )
    return scalar.text


def _boolean(node: Node, _: object) -> bool:
    scalar = _scalar(node, "true or false")
    if (scalar.kind == "boolean" or scalar.expanded) and scalar.text.lower() in ("true", "false"):
        return scalar.text.lower() == "true"
    raise node.mark.error(f"expected true or false, not {_seen(node)}")


def _integer(node: Node, _: object) -> int:
    scalar = _scalar(node, "a whole number")
    if scalar.kind == "integer" or scalar.expanded:
        try:
            return int(scalar.text, 0 if scalar.text[:2] in ("0x", "0o") else 10)
        except ValueError:
            pass
    raise node.mark.error(f"expected a whole number, not {_seen(node)}")


def _size(node: Node, _: object) -> Size:
    wanted = "a size such as 65536 or 256Ki"
    try:
        return parse_size(_scalar(node, wanted).text)
    except ValueError as error:
        raise node.mark.error(f"expected {error}; not {_seen(node)}") from None


def _seconds(node: Node, _: object) -> Seconds:
    try:
        return parse_seconds(_scalar(node, "a time such as 5s or 500ms").text)
    except ValueError as error:
        raise node.mark.error(f"expected {error}; not {_seen(node)}") from None


def _percent(node: Node, _: object) -> Percent:
    try:
        return parse_percent(_scalar(node, "a share of a hundred such as 25").text)
    except ValueError as error:
        raise node.mark.error(f"expected {error}; not {_seen(node)}") from None


def _ratio(node: Node, _: object) -> Ratio:
    scalar = _scalar(node, "a number between 0 and 1")
    if scalar.kind in ("integer", "number") or scalar.expanded:
        with contextlib.suppress(ValueError):
            return Ratio(float(scalar.text))
    raise node.mark.error(f"expected a number between 0 and 1, not {_seen(node)}")


def _decimal(node: Node, _: object) -> Decimal:
    scalar = _scalar(node, "a number such as 0.25")
    # As it is written: no binary fraction comes between.
    if (scalar.kind in ("integer", "number") or scalar.expanded) and DECIMAL.match(scalar.text):
        return Decimal(scalar.text)
    raise node.mark.error(
        f"expected a number of at most 12 digits, and 9 behind the point, such as 0.25; not {_seen(node)}"
    )


def _whole_seconds(node: Node, hint: object) -> WholeSeconds:
    seconds = _seconds(node, hint)
    if not float(seconds).is_integer():
        raise node.mark.error(f"expected whole seconds, not {_seen(node)}")
    return WholeSeconds(int(seconds))


def _secret(node: Node, _: object) -> Secret:
    if not isinstance(node, Scalar) or node.kind == "null":
        raise node.mark.error("expected a secret as text; write it in quotes, or ${NAME}")
    if node.kind != "string":
        raise node.mark.error("expected a secret as text: put it in quotes")
    return Secret(node.text)


def _path(node: Node) -> Path:
    """Relative to the document's folder; a document that is no file (a command line) has the current one."""
    text = _text(node, str)
    if not text or "\0" in text:
        raise node.mark.error("expected a path")
    return Path(node.mark.file).parent / text if node.mark.line else Path(text)


def _file(node: Node, _: object) -> FilePath:
    path = _path(node)
    if not path.is_file():
        raise node.mark.error(f"no such file: {path}")
    return FilePath(path)


def _folder(node: Node, _: object) -> FolderPath:
    path = _path(node)
    if not path.is_dir():
        raise node.mark.error(f"no such folder: {path}")
    return FolderPath(path)


def _any_value(node: Node, _: object) -> AnyValue:
    if isinstance(node, Mapping):
        return AnyValue({key: _any_value(entry, None) for key, entry in node.entries.items()})
    if isinstance(node, Sequence):
        return AnyValue([_any_value(item, None) for item in node.items])
    if node.kind == "null":
        return AnyValue(None)
    if node.kind == "boolean":
        return AnyValue(_boolean(node, None))
    if node.kind == "integer":
        return AnyValue(_integer(node, None))
    return AnyValue(float(node.text) if node.kind == "number" else node.text)


def _literal(node: Node, hint: object) -> object:
    allowed = [str(value) for value in get_args(hint)]
    choices = ", ".join(allowed)
    scalar = _scalar(node, f"one of {choices}")
    if scalar.text in allowed:
        return scalar.text
    raise node.mark.error(f"expected one of {choices}; not {_seen(node)}{nearest(scalar.shown, allowed)}")


def _text_value(node: Node, hint: object) -> TextValue:
    assert _is_text_value(hint)
    text = _text(node, str)
    try:
        return hint.parse(text)
    except ValueError as error:
        raise node.mark.error(str(error)) from None


def _items(node: Node, hint: object) -> tuple[object, ...]:
    if not isinstance(node, Sequence):
        raise node.mark.error(f"expected a list, not {_seen(node)}")
    (item, _) = get_args(hint)
    errors: list[ConfigError] = []
    found = []
    for entry in node.items:
        try:
            found.append(_structure(entry, item))
        except ConfigError as error:
            _note(errors, error)
    _raise_all(errors)
    return tuple(found)


def _entries(node: Node, hint: object) -> dict[str, object]:
    if not isinstance(node, Mapping):
        raise node.mark.error(f"expected a mapping, not {_seen(node)}")
    (_, value) = get_args(hint)
    errors: list[ConfigError] = []
    found = {}
    for key, entry in node.entries.items():
        try:
            found[key] = _structure(entry, value)
        except ConfigError as error:
            _note(errors, error)
    _raise_all(errors)
    return found


def _note(errors: list[ConfigError], error: ConfigError) -> None:
    """Keep what an error says, up to the most that are told.

    Its traceback goes: the frames hold the whole document, and this list too, so that the document would
    live until the next full collection.
    """
    error.__traceback__ = error.__context__ = None
    errors.extend(error.all[: MOST_ERRORS - len(errors)])


def _raise_all(errors: list[ConfigError]) -> None:
    """Raise them as one, if there are any."""
    if errors:
        raise ConfigError.together(errors[:MOST_ERRORS])


def _optional(node: Node, hint: object) -> object:
    if isinstance(node, Scalar) and node.kind == "null":
        return None
    inner = _without_none(hint)
    return _structure(node, inner)


def _class_hook(cls: type[T]) -> Callable[[Node, object], T]:
    """The hook of one attrs class, with its keys and types looked up once."""
    hints = get_type_hints(cls)
    fields = {key_of(field): field for field in attrs.fields(cls) if field.init}  # type: ignore[arg-type]
    reserved: dict[str, str] = getattr(cls, "RESERVED_KEYS", {})
    shorthand: str | None = getattr(cls, "SHORTHAND", None)
    # What a class has to say of values together is said beside what cannot be read, where it can tell.
    faults: Faults = getattr(cls, "faults", _no_faults)

    def hook(node: Node, _: object) -> T:
        if shorthand is not None and isinstance(node, Scalar) and node.kind != "null":
            try:
                return cls(**{shorthand: _text(node, str)})
            except ValueError as error:
                raise node.mark.error(str(error)) from None
        if not isinstance(node, Mapping):
            raise node.mark.error(f"expected a mapping with {_known(fields)}; not {_seen(node)}")
        errors: list[ConfigError] = []
        for key, mark in node.keys.items():
            if key in fields:
                continue
            if key in reserved:
                _note(errors, mark.error(f"'{key}' {reserved[key]}"))
                continue
            said = f"unknown key '{key}'{nearest(key, fields)}; known are {_known(fields)}"
            _note(errors, mark.error(said))
        values: dict[str, object] = {}
        missing = []
        for key, field in fields.items():
            if key in node.entries:
                try:
                    values[field.name] = _structure(node.entries[key], hints[field.name])
                except ConfigError as error:
                    _note(errors, error)
            elif field.default is attrs.NOTHING:
                missing.append(node.mark.error(f"key '{key}' is missing"))
        # A key that is written wrongly is not missing as well.
        errors = errors or missing
        if errors:
            for outside in _out_of_bounds(fields.values(), values):
                _note(errors, _placed(outside, node, cls))
            unread = {field.name: ... for key, field in fields.items() if key in node.entries}
            for fault in faults({**unread, **values}):
                _note(errors, _placed(fault, node, cls))
        _raise_all(errors)
        try:
            return cls(**values)  # the types were checked value by value
        except Invalid as error:
            # attrs stops at the first value.
            outside_all = _out_of_bounds(fields.values(), values)
            raise _placed(Invalid.together(outside_all) if outside_all else error, node, cls) from None
        except ValueError as error:
            raise node.mark.error(str(error)) from None

    return hook


def _no_faults(values: AbstractMapping[str, object]) -> Iterable[Invalid]:
    return ()


def _out_of_bounds(
    fields: Iterable[attrs.Attribute[object]], values: AbstractMapping[str, object]
) -> list[Invalid]:
    """What validators of single fields have to say of the values that there are; they ask no object."""
    found = []
    for field in fields:
        if field.validator is not None and field.name in values:
            try:
                field.validator(None, field, values[field.name])
            except Invalid as error:
                # As in `_note`.
                error.__traceback__ = error.__context__ = None
                found.append(error)
    return found


def _known(fields: dict[str, attrs.Attribute[object]]) -> str:
    return ", ".join(fields)


def _is_text_value(hint: object) -> TypeGuard[type[TextValue]]:
    return isinstance(hint, type) and issubclass(hint, TextValue)


#: What makes the values of the types that are no types of documents.
_VALUES: Final[AbstractMapping[object, Hook]] = {
    str: _text,
    bool: _boolean,
    int: _integer,
    Secret: _secret,
    Size: _size,
    Seconds: _seconds,
    WholeSeconds: _whole_seconds,
    Percent: _percent,
    Ratio: _ratio,
    Decimal: _decimal,
    AnyValue: _any_value,
    FilePath: _file,
    FolderPath: _folder,
}
_GENERICS: Final[AbstractMapping[object, Hook]] = {
    Literal: _literal,
    tuple: _items,
    AbstractMapping: _entries,
}


def _structure(node: Node, hint: object) -> object:
    return _hook_of(hint)(node, hint)


@cache
def _hook_of(hint: object) -> Hook:
    """What makes values of a type. ``TypeError`` where documents cannot have it."""
    # A TextValue is written as text, attrs class or not.
    if _is_text_value(hint):
        return _text_value
    if isinstance(hint, type) and attrs.has(hint):
        return _class_hook(hint)
    if _is_optional(hint):
        return _optional
    hook = _VALUES.get(hint) or _GENERICS.get(get_origin(hint))
    if hook is None:
        raise TypeError(f"no value of a document is a {hint}")
    return hook


__all__ = ["ConfigError", "doc", "key_of", "locate", "structure"]
