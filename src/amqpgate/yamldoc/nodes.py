"""YAML text to a tree of nodes that know their file, line and column.

Built from PyYAML's events, so that it is iterative and bounded: file size, nesting depth, number of
nodes and of documents. Anchors, aliases, tags and merge keys are refused, and so are duplicate keys:
each of them makes a document mean something else than what a reader sees.

Scalars keep their text. What a plain scalar is follows YAML 1.2's core schema (section 10.3), which
editors and JSON Schema validators use: ``yes`` and ``no`` are strings, ``12:30`` is not a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as AbstractMapping
from collections.abc import Sequence as AbstractSequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import attrs
import yaml

from amqpgate.errors import NOT_YAML, ConfigError
from amqpgate.values import define, frozen

Kind = Literal["string", "boolean", "integer", "number", "null"]

_NULL = re.compile(r"(?:null|Null|NULL|~|)\Z")
_BOOLEAN = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_INTEGER = re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
_NUMBER = re.compile(
    r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
)

_LOADER: type[yaml.SafeLoader] | type[yaml.CSafeLoader] = (
    yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
)


@frozen
class Mark:
    """A place in a document: lines and columns count from 1, 0 where there are none (a command line)."""

    file: str
    line: int = 0
    column: int = 0

    def error(self, message: str) -> ConfigError:
        """The error to raise for what stands here."""
        return ConfigError(message, file=self.file, line=self.line or None, column=self.column or None)


@frozen
class Scalar:
    """One value. ``text`` is what counts; ``shown`` is what messages may repeat of it."""

    text: str
    mark: Mark
    #: Written without quotes, so that it may be a number, a boolean or null.
    plain: bool = False
    #: The text as written, before ``${NAME}`` was expanded (the expansion may be a secret).
    shown: str = attrs.field(default=attrs.Factory(lambda self: self.text, takes_self=True))
    #: Filled from the environment: whatever type is wanted is read from the text.
    expanded: bool = False

    @property
    def kind(self) -> Kind:
        """What YAML 1.2's core schema makes of it."""
        if not self.plain:
            return "string"
        if _NULL.match(self.text):
            return "null"
        if _BOOLEAN.match(self.text):
            return "boolean"
        if _INTEGER.match(self.text):
            return "integer"
        return "number" if _NUMBER.match(self.text) else "string"


@frozen
class Sequence:
    """A list of nodes."""

    items: tuple[Node, ...]
    mark: Mark


@frozen
class Mapping:
    """Entries in the order written; ``keys`` says where each key stands."""

    entries: dict[str, Node]
    keys: dict[str, Mark]
    mark: Mark


Node: TypeAlias = Scalar | Sequence | Mapping


@frozen
class NumberBounds:
    """What one file may be: bytes, nesting levels, documents, nodes."""

    size: int = 1 << 20
    depth: int = 32
    documents: int = 1000
    nodes: int = 200_000


def read(path: Path, *, bounds: NumberBounds | None = None) -> tuple[Node, ...]:
    """The documents of the file at ``path``; `ConfigError` if it cannot be read or is not such a file."""
    bounds = bounds or NumberBounds()
    try:
        with path.open("rb") as file:
            data = file.read(bounds.size + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=str(path)) from None
    return compose(data, str(path), bounds=bounds)


def compose(data: bytes | str, file: str, *, bounds: NumberBounds | None = None) -> tuple[Node, ...]:
    """The documents in ``data`` (UTF-8), empty ones left out; ``file`` is the name that errors cite."""
    bounds = bounds or NumberBounds()
    if len(data) > bounds.size:
        raise ConfigError(f"the file is larger than {bounds.size} bytes; split it", file=file)
    try:
        return tuple(_documents(data if isinstance(data, str) else data.decode("utf-8-sig"), file, bounds))
    except UnicodeDecodeError as error:
        before = bytes(error.object)[: error.start].decode("utf-8", "replace")
        raise _place(file, before).error("the file is not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        # Only the parser's own sentence: its snippet of the line could show a password.
        if error.context == "while scanning a quoted scalar" and "end of stream" in str(error.problem):
            opens = _mark(file, error.context_mark)
            raise opens.error(f"{NOT_YAML}: the quote that begins here has no end") from None
        where = _mark(file, error.problem_mark or error.context_mark)
        problem = str(error.problem or error.context)
        is_tab = "tab" in problem or "\\t" in problem or _character_at(data, where) == "\t"
        remedy = "; indent by spaces" if is_tab else ""
        raise where.error(f"{NOT_YAML}: {problem}{remedy}") from None
    except yaml.reader.ReaderError as error:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        number = error.character if isinstance(error.character, int) else ord(error.character[:1])
        where = _place(file, text.partition(chr(number))[0])
        raise where.error(
            f"{NOT_YAML}: no character #x{number:04x} may be in it; in double quotes it is written "
            f"{_written(number)}"
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{NOT_YAML}: {str(error).splitlines()[0]}", file=file) from None


def _place(file: str, before: str) -> Mark:
    """Where the text ends that stands before something."""
    return Mark(file, before.count("\n") + 1, len(before) - before.rfind("\n"))


def _written(number: int) -> str:
    """A character as double quotes of YAML have it."""
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def _character_at(data: bytes | str, mark: Mark) -> str:
    text = data if isinstance(data, str) else data.decode("utf-8-sig")
    lines = text.split("\n")
    line = lines[mark.line - 1] if 0 < mark.line <= len(lines) else ""
    return line[mark.column - 1 : mark.column]


@define
class _Open:
    """A collection whose end has not been seen."""

    mark: Mark
    is_mapping: bool
    items: list[Node] = attrs.Factory(list)
    entries: dict[str, Node] = attrs.Factory(dict)
    keys: dict[str, Mark] = attrs.Factory(dict)
    #: The key that waits for its value.
    key: str | None = None
    #: What is wrong, and does not hide what comes after it.
    wrong: list[ConfigError] = attrs.Factory(list)

    def add(self, node: Node) -> None:
        if not self.is_mapping:
            self.items.append(node)
        elif self.key is not None:
            self.entries[self.key] = node
            self.key = None
        elif not isinstance(node, Scalar):
            raise node.mark.error("a key must be a plain word, not a list or a mapping")
        elif node.text == "<<":
            raise node.mark.error("merge keys (<<) are not supported; write the entries out")
        elif node.text in self.keys:
            first = self.keys[node.text]
            said = f"key '{node.text}' is given twice (first on line {first.line})"
            self.wrong.append(node.mark.error(said))
            self.key = node.text
        else:
            self.key = node.text
            self.keys[node.text] = node.mark

    def close(self) -> Node:
        if self.is_mapping:
            return Mapping(self.entries, self.keys, self.mark)
        return Sequence(tuple(self.items), self.mark)


def _documents(text: str, file: str, bounds: NumberBounds) -> Iterator[Node]:
    stack: list[_Open] = []
    wrong: list[ConfigError] = []
    nodes = documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > bounds.documents:
                raise _mark(file, event.start_mark).error(
                    f"more than {bounds.documents} documents in one file"
                )
        if isinstance(event, yaml.NodeEvent):
            mark = _mark(file, event.start_mark)
            nodes += 1
            if isinstance(event, yaml.AliasEvent) or event.anchor:
                raise mark.error("anchors and aliases (& and *) are not supported; write the value out")
            if nodes > bounds.nodes:
                raise mark.error(f"more than {bounds.nodes} values in one file; split it")
        done: Node
        if isinstance(event, yaml.ScalarEvent):
            if event.tag is not None and event.tag != "!":
                raise mark.error("tags (!) are not supported; remove it")
            done = Scalar(event.value, mark, plain=event.implicit[0])
        elif isinstance(event, yaml.CollectionStartEvent):
            if event.tag is not None:
                raise mark.error("tags (!) are not supported; remove it")
            if len(stack) == bounds.depth:
                raise mark.error(f"nested deeper than {bounds.depth} levels")
            stack.append(_Open(mark, isinstance(event, yaml.MappingStartEvent), wrong=wrong))
            continue
        elif isinstance(event, yaml.CollectionEndEvent):
            done = stack.pop().close()
        else:
            continue
        if stack:
            stack[-1].add(done)
        elif not (isinstance(done, Scalar) and done.kind == "null"):
            yield done
    if wrong:
        raise ConfigError.together(wrong)


class _Position(Protocol):
    """What both of PyYAML's parsers call a mark; they count from 0."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


def _mark(file: str, mark: _Position | None) -> Mark:
    return Mark(file) if mark is None else Mark(file, mark.line + 1, mark.column + 1)


Plain: TypeAlias = "str | int | float | bool | AbstractSequence[Plain] | AbstractMapping[str, Plain] | None"


def from_python(value: Plain, source: str) -> Node:
    """A tree from values that were not read from a file; errors cite ``source`` in the file's place."""
    mark = Mark(source)
    if isinstance(value, AbstractMapping):
        entries = {key: from_python(entry, source) for key, entry in value.items()}
        return Mapping(entries, dict.fromkeys(entries, mark), mark)
    if isinstance(value, AbstractSequence) and not isinstance(value, str):
        return Sequence(tuple(from_python(item, source) for item in value), mark)
    if value is None:
        return Scalar("null", mark, plain=True)
    if isinstance(value, bool):
        return Scalar("true" if value else "false", mark, plain=True)
    return Scalar(str(value), mark, plain=not isinstance(value, str))
