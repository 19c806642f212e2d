"""Names of queues and exchanges folded into patterns, as a careful engineer would write them.

A name is text with pieces that look like ids: UUIDs, hexadecimal numbers of eight digits and more that have
both letters and digits, days, numbers of four digits and more. Names that are alike but for these become a
regular expression with a class for each piece: ``reply-<UUID>`` is ``regex: reply-[0-9a-fA-F]{8}-...``.

Such a piece stands apart; glued to letters before it are only UUIDs, with or without their hyphens.

More than `TemplateBounds.values` names that are alike but for a number of any length are folded in the
same way; more than that with the same beginning, up to its first separator, become its prefix. What
RabbitMQ names is ``amq.gen-`` and 22 letters; for names of another broker, the prefix. Else a name stands for
itself. No pattern means more than that, and each name lies within its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable
from enum import Enum
from typing import Final, TypeAlias

import attrs

from amqpgate.pipeline.jobs.templates import DEFAULT, TemplateBounds, Why, escaped
from amqpgate.policy.engine.matching import Form, variables_in
from amqpgate.policy.engine.operations import SERVER_NAMED


class NameKind(Enum):
    """A piece of a name that differs: what all such pieces are like, as a regular expression."""

    NUMBER = r"[0-9]+"
    UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    HEX = r"[0-9a-fA-F]{8,}"
    DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    #: What RabbitMQ adds to `SERVER_NAMED`: 128 bits in base64url. A declare has nothing there yet.
    GENERATED = r"(?:[0-9A-Za-z_-]{22})?"
    #: What brokers add to the beginnings that they give.
    ANY = r".*"


#: A name: text, and pieces that differ.
Name: TypeAlias = "tuple[str | NameKind, ...]"

#: A name that RabbitMQ gives to a queue.
GENERATED: Final[Name] = (SERVER_NAMED, NameKind.GENERATED)

#: What stands for a piece in a shape. A name that has one itself has no pieces, and so another shape.
_MARKS: Final = {
    NameKind.NUMBER: "\ue000",
    NameKind.UUID: "\ue001",
    NameKind.HEX: "\ue002",
    NameKind.ANY: "\ue003",
    NameKind.GENERATED: "\ue004",
    NameKind.DATE: "\ue005",
}
_KINDS: Final = {mark: kind for kind, mark in _MARKS.items()}
_MARKED: Final = re.compile("([\ue000-\ue005])")

_BOTH: Final = r"(?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])"
_PIECE: Final = re.compile(
    rf"(?:{NameKind.UUID.value}|(?<![0-9a-zA-Z]){_BOTH}{NameKind.HEX.value}|{_BOTH}[0-9a-fA-F]{{32}})"
    rf"(?![0-9a-zA-Z])|(?<![0-9]){NameKind.DATE.value}(?![0-9])|[0-9]{{4,}}"
)
_NUMBERS: Final = re.compile(NameKind.NUMBER.value)
_GENERATED: Final = re.compile(NameKind.GENERATED.value)
_BEGINNING: Final = re.compile(r"[^._:/@-]{2,}[._:/@-]")

#: Beginnings after which nothing tells one name from another: queues that the broker names, direct replies.
_GIVEN: Final = (SERVER_NAMED, "amq.rabbitmq.reply-to.")


@attrs.frozen
class ProposedPattern:
    """What a rule may say of a name."""

    form: Form
    text: str
    why: Why = "seen"
    #: Of an expression for routing keys, a topic pattern that it lies within.
    topic: str | None = attrs.field(default=None, eq=False)

    @property
    def label(self) -> str:
        """The text as people say it: ``job.number.in`` for the expression ``job\\.[0-9]+\\.in``."""
        if self.form != "regex":
            return self.text
        text = self.text.removesuffix(NameKind.GENERATED.value)
        for kind in NameKind:
            text = text.replace(kind.value, kind.name.lower())
        return re.sub(r"\\(.)", r"\1", text)


def literal(text: str, why: Why = "seen") -> ProposedPattern:
    """This text exactly. What looks like a variable is no literal: patterns would put a value in."""
    if variables_in(text):
        return ProposedPattern("search", rf"\A{escaped(text)}\z", why)
    return ProposedPattern("literal", text, why)


def shape_of(name: str) -> tuple[str, list[str]]:
    """The name with a mark for each piece that looks like an id, and the pieces.

    Names with the same shape, and as many pieces, are alike.
    """
    for given in _GIVEN:
        if name.startswith(given):
            rest = name[len(given) :]
            is_known = given == SERVER_NAMED and _GENERATED.fullmatch(rest)
            return given + _MARKS[NameKind.GENERATED if is_known else NameKind.ANY], [rest]
    if _MARKED.search(name):
        return name, []
    return _PIECE.sub(lambda match: _MARKS[_kind_of(match[0])], name), _PIECE.findall(name)


def without_ids(name: str, sign: str) -> str:
    """The name with the sign for each piece that looks like an id."""
    for given in _GIVEN:
        if name.startswith(given):
            return given + sign
    return name if _MARKED.search(name) else _PIECE.sub(sign, name)


def has_an_id(name: str) -> bool:
    """Whether a piece of the name looks like an id."""
    return bool(shape_of(name)[1])


def name_from_shape(shape: str, pieces: Iterable[str | None]) -> Name:
    """The name back from a shape that has pieces: None for one that differs."""
    left = iter(pieces)
    parts: list[str | NameKind] = []
    for part in _MARKED.split(shape):
        piece = next(left, None) if part in _KINDS else part
        parts.append(_KINDS[part] if piece is None else piece)
    return _joined(parts)


def fold(names: Collection[Name], bounds: TemplateBounds = DEFAULT) -> dict[Name, ProposedPattern]:
    """The pattern of each name."""
    found: dict[Name, ProposedPattern] = {}
    plain: dict[str, Name] = {}
    for name in names:
        if any(isinstance(part, NameKind) for part in name):
            found[name] = _pattern(name, "ids")
        else:
            plain["".join(map(str, name))] = name
    folded: dict[str, ProposedPattern] = {}
    for text in plain:
        if text.startswith(_GIVEN):
            folded[text] = _pattern(name_from_shape(shape_of(text)[0], ()), "ids")
    for group in _groups(plain.keys() - folded, _shape_key):
        if len(group) > 1:
            columns = zip(*(shape_of(name)[1] for name in group), strict=True)
            same = [column[0] if len(set(column)) == 1 else None for column in columns]
            general = name_from_shape(shape_of(group[0])[0], same)
            folded |= dict.fromkeys(group, _pattern(general, "ids"))
    for group in _groups(plain.keys() - folded, _number_key):
        if len(group) > bounds.values:
            texts = _NUMBERS.split(group[0])
            parts: list[str | NameKind] = [texts[0]]
            for text in texts[1:]:
                parts += [NameKind.NUMBER, text]
            folded |= dict.fromkeys(group, _pattern(_joined(parts), "values"))
    for group in _groups(plain.keys() - folded, _beginning):
        start = _beginning(group[0])
        if start is not None and len(group) > bounds.values and not variables_in(start):
            folded |= dict.fromkeys(group, ProposedPattern("prefix", start, "values"))
    for text, name in plain.items():
        found[name] = folded.get(text) or literal(text)
    return found


def _groups(names: Iterable[str], key: Callable[[str], Hashable]) -> list[list[str]]:
    groups: dict[Hashable, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(key(name), []).append(name)
    return list(groups.values())


def _shape_key(name: str) -> Hashable:
    """Names without pieces are alike only if they are the same."""
    shape, pieces = shape_of(name)
    return shape, len(pieces)


def _number_key(name: str) -> Hashable:
    return tuple(_NUMBERS.split(name))


def _beginning(name: str) -> str | None:
    found = _BEGINNING.match(name)
    return found[0] if found is not None else None


def _kind_of(piece: str) -> NameKind:
    return next(kind for kind in NameKind if re.fullmatch(kind.value, piece))


def _joined(parts: Iterable[str | NameKind]) -> Name:
    """Texts that stand beside each other made one, empty ones left out."""
    name: list[str | NameKind] = []
    for part in parts:
        last = name[-1] if name else None
        if isinstance(part, str) and isinstance(last, str):
            name[-1] = last + part
        elif part != "":
            name.append(part)
    return tuple(name)


def _pattern(name: Name, why: Why) -> ProposedPattern:
    start = name[0]
    if isinstance(start, str) and name[1:] == (NameKind.ANY,):
        return ProposedPattern("prefix", start, why)
    text = "".join(part.value if isinstance(part, NameKind) else escaped(part) for part in name)
    return ProposedPattern("regex", text, why)
