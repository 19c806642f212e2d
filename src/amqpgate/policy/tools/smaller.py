"""Policies without what nobody needed: the text of their files, as a diff that a person reviews.

Whole rules go with the comments right above them. Of a rule that was needed in part its operations are named
one by one. Denies stay, and so does all that is written beside rules.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import yaml

from amqpgate.policy.engine.access_rule import OperationPattern
from amqpgate.policy.loader import Source
from amqpgate.values import frozen
from amqpgate.yamldoc.composed import at

#: By policy and rule: the operations that the rule is about, and whether they were needed.
Needed: TypeAlias = Mapping[tuple[str, str], Mapping[str, bool]]


@frozen
class Smaller:
    """A file as it may be, and what could not be taken out of it."""

    source: Source
    notes: tuple[str, ...] = ()


def smaller(source: Source, needed: Needed) -> Smaller:
    """The file without them. ``source`` is one that was loaded."""
    text = source.data.decode("utf-8-sig")
    edits: list[_Edit] = []
    notes: list[str] = []
    for document in yaml.compose_all(text, Loader=yaml.SafeLoader):
        name = _scalar(at(document, "metadata", "name"))
        rules = at(document, "spec", "rules")
        if _scalar(at(document, "kind")) != "AccessPolicy" or not isinstance(rules, yaml.SequenceNode):
            continue
        gone = []
        for rule in rules.value:
            label = _scalar(at(rule, "id"))
            about = needed.get((name, label), {})
            if all(about.values()):
                continue
            operations = at(rule, "operations")
            assert isinstance(operations, yaml.SequenceNode)
            kept = _kept([_scalar(one) for one in operations.value], about)
            if not kept:
                gone.append(rule)
            elif operations.flow_style:
                written = ", ".join(f"'{one}'" if "*" in one else one for one in kept)
                edits.append(_Edit(operations.start_mark.index, operations.end_mark.index, f"[{written}]"))
            else:
                notes.append(f"{name}/{label}: write {', '.join(kept)} as its operations")
        if rules.flow_style:
            notes += [f"{name}/{_scalar(at(rule, 'id'))}: take it out by hand" for rule in gone]
        elif len(gone) == len(rules.value):
            # What is between may be comments, which speak of rules that are gone.
            edits.append(_Edit(_end_of_key(document, text), _end(rules), " []"))
        else:
            edits += [_whole_lines(text, rule) for rule in gone]
    for edit in sorted(edits, key=lambda one: -one.start):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return Smaller(Source(source.name, text.encode()), tuple(notes))


def diff_of(before: Source, after: Source) -> str:
    """What differs, for ``patch -p1``; empty if nothing does."""
    name = before.name.lstrip("/")
    lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(source: Source) -> list[str]:
    return io.StringIO(source.data.decode("utf-8-sig"), newline="\n").readlines()


@frozen
class _Edit:
    start: int
    end: int
    text: str


def _kept(patterns: list[str], about: Mapping[str, bool]) -> list[str]:
    """Patterns of which all was needed, and of others what was."""
    found: dict[str, None] = {}
    for pattern in patterns:
        names = [name for name in OperationPattern.parse(pattern).names if name in about]
        needed = [name for name in names if about[name]]
        found |= dict.fromkeys([pattern] if needed == names and names else needed)
    return list(found)


def _scalar(node: yaml.Node | None) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _leaves(node: yaml.Node) -> Iterator[yaml.Node]:
    """Nodes that end where they say: those in blocks end where the next one begins."""
    if not isinstance(node, yaml.CollectionNode) or node.flow_style:
        yield node
        return
    for one in node.value:
        # Of a mapping these are pairs.
        for inner in one if isinstance(one, tuple) else (one,):
            yield from _leaves(inner)


def _end(node: yaml.Node) -> int:
    return max(one.end_mark.index for one in _leaves(node))


def _end_of_key(document: yaml.Node, text: str) -> int:
    """Behind the colon of ``rules:``."""
    spec = at(document, "spec")
    assert isinstance(spec, yaml.MappingNode)
    key = next(name for name, _ in spec.value if name.value == "rules")
    return text.index(":", key.end_mark.index) + 1


def _whole_lines(text: str, rule: yaml.Node) -> _Edit:
    start = text.rindex("\n", 0, rule.start_mark.index) + 1
    while (above := text[text.rfind("\n", 0, start - 1) + 1 : start]).lstrip().startswith("#"):
        start -= len(above)
    end = text.find("\n", _end(rule))
    return _Edit(start, len(text) if end < 0 else end + 1, "")
