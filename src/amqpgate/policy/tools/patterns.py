"""Patterns that do not say what they seem to: wildcards where there are none, users that are not told apart,
prefixes that leave less room for names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from amqpgate.policy.engine.conditions import Pattern
from amqpgate.policy.engine.first_match import FirstMatchRule
from amqpgate.policy.engine.matching import MAX_BYTES, variables_in
from amqpgate.policy.engine.operations import OPERATIONS
from amqpgate.policy.engine.separators import separators
from amqpgate.policy.engine.subjects import NamePattern, Subject
from amqpgate.policy.kinds.access import AccessPolicy, Rule
from amqpgate.policy.kinds.audit import AuditPolicy
from amqpgate.policy.kinds.trace import TracePolicy
from amqpgate.policy.kinds.transform import NamesSpec, RenamingSpec, TransformPolicy
from amqpgate.policy.tools.findings import Finding
from amqpgate.yamldoc import Mark, Node, locate

#: A user that some document names, and where.
_Users: TypeAlias = "Mapping[str, Mark]"


@attrs.frozen
class _Place:
    """One rule."""

    policy: str
    rule: str
    mark: Mark

    def __str__(self) -> str:
        return f"rule '{self.policy}/{self.rule}'"


def about_patterns(documents: Iterable[tuple[Node, object]]) -> Iterator[Finding]:
    """Findings about the patterns of rules, and about prefixes of names."""
    documents = list(documents)
    users = dict(_users(documents))
    for node, document in documents:
        if isinstance(document, AccessPolicy | AuditPolicy | TracePolicy):
            rules: Sequence[Rule | FirstMatchRule] = document.spec.rules
            for index, rule in enumerate(rules):
                mark = locate(node, type(document), ("spec", "rules", index))
                place = _Place(document.metadata.name, rule.id, mark)
                yield from _about_wildcards(place, rule)
                if isinstance(document, AccessPolicy) and isinstance(rule, Rule):
                    yield from _about_variables(place, rule, document.spec.subjects, users)
        elif isinstance(document, TransformPolicy) and document.spec.names is not None:
            yield from _about_room(node, document, document.spec.names)


# -- wildcards -------------------------------------------------------------------------------


def _about_wildcards(place: _Place, rule: Rule | FirstMatchRule) -> Iterator[Finding]:
    for attribute, match in rule.matches.items():
        exception = [] if match.unless is None else [match.unless]
        for pattern in (match, *exception):
            form, text = pattern.given
            if form not in ("literal", "prefix"):
                continue
            if attribute == "routing_key":
                if not {"*", "#"}.isdisjoint(text.split(".")) and _is_published(rule):
                    yield Finding(
                        "problem",
                        place.mark,
                        f"{place}: routingKey {form} '{text}' means * and # as they stand, not any words",
                        f"say topic: '{text}'" if form == "literal" else "say topic",
                    )
            elif "*" in text or "#" in text:
                yield Finding(
                    "note",
                    place.mark,
                    f"{place}: {attribute} {form} '{text}' means * and # as they stand",
                    "say prefix, topic or regex, or keep it if names have these characters",
                )


def _is_published(rule: Rule | FirstMatchRule) -> bool:
    """Whether a routing key of the rule is one of a message: a binding key is written with wildcards."""
    names = [name for pattern in rule.operations for name in pattern.names if rule.applies_to(name)]
    return any("routing_key" in OPERATIONS[name].attributes and not OPERATIONS[name].binds for name in names)


# -- variables -------------------------------------------------------------------------------


def _about_variables(
    place: _Place, rule: Rule, subjects: Sequence[Subject], users: _Users
) -> Iterator[Finding]:
    for pattern in _granting(rule):
        form, text = pattern.given
        told: dict[str, set[str | None]] = {}
        for variable, separator in separators(form, text):
            told.setdefault(variable, set()).add(separator)
        for variable, ends in told.items():
            if None in ends:
                what = "may not tell" if form in ("regex", "search") else "does not tell"
                yield Finding(
                    "note" if form in ("regex", "search") else "problem",
                    place.mark,
                    f"{place}: {form} '{text}' {what} one {variable} from another whose name begins or ends "
                    "like it: they share what it grants",
                    f"put a character next to {{{variable}}} that no {variable} has in its name",
                )
                continue
            for name, mark in _named(variable, subjects, users).items():
                found = sorted(end for end in ends if end is not None and end in name)
                if found:
                    where = "" if mark is None else f" ({mark.file}:{mark.line})"
                    yield Finding(
                        "problem" if mark is None else "note",
                        place.mark,
                        f"{place}: {form} '{text}' grants nothing to the {variable} '{name}'{where}: with "
                        f"'{found[0]}' in the name, it would share names with others",
                        f"put a character next to {{{variable}}} that no {variable} has in its name, or say "
                        "the name itself",
                    )
                    break


def _granting(rule: Rule) -> Iterator[Pattern]:
    """The patterns that say what somebody may: those of an allow rule, and exceptions of a deny rule."""
    matches = [*rule.matches.values()]
    for target in rule.bind_to or ():
        matches += [match for match in (target.exchange, target.routing_key) if match is not None]
    if rule.properties is not None:
        matches += rule.properties.texts.values()
    for match in matches:
        if rule.effect == "allow":
            yield match
        elif match.unless is not None:
            yield match.unless


def _named(variable: str, subjects: Sequence[Subject], users: _Users) -> Mapping[str, Mark | None]:
    """Values of a variable that documents name: the policy's own without a mark."""
    patterns: list[NamePattern] = []
    if variable == "user":
        patterns = [subject.user for subject in subjects]
    elif variable == "vhost":
        patterns = [name for subject in subjects for name in subject.vhosts or ()]
    elif variable == "listener":
        patterns = [name for subject in subjects for name in subject.listeners or ()]
    found: dict[str, Mark | None] = {str(pattern): None for pattern in patterns if pattern.text}
    if variable == "user":
        for name, mark in users.items():
            if any(pattern.matches(name) for pattern in patterns):
                found.setdefault(name, mark)
    return found


def _users(documents: Iterable[tuple[Node, object]]) -> Iterator[tuple[str, Mark]]:
    for node, document in documents:
        subjects = getattr(getattr(document, "spec", None), "subjects", ())
        for index, subject in enumerate(subjects):
            if isinstance(subject, Subject) and not subject.user.is_prefix:
                yield subject.user.text, locate(node, type(document), ("spec", "subjects", index))


# -- prefixes of names -----------------------------------------------------------------------


def _about_room(node: Node, policy: TransformPolicy, names: NamesSpec) -> Iterator[Finding]:
    for key in ("exchanges", "queues", "both"):
        spec: RenamingSpec | None = getattr(names, key)
        if spec is None or not spec.prefix:
            continue
        what = "exchanges and queues" if key == "both" else key
        if variables_in(spec.prefix):
            room = f"{MAX_BYTES} bytes less those of the prefix '{spec.prefix}'"
        else:
            room = f"{MAX_BYTES - len(spec.prefix.encode())} bytes"
        yield Finding(
            "note",
            locate(node, TransformPolicy, ("spec", "names", key, "prefix")),
            f"policy '{policy.metadata.name}' leaves names of {what} {room} at most: a longer one is refused "
            "with 406",
            "keep it if no client has longer names",
        )
