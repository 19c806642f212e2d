"""Patterns that do not say what they seem to: wildcards where there are none, and users
that are not told apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from amqpgate.policy.engine.access_rule import Rule
from amqpgate.policy.engine.conditions import Pattern
from amqpgate.policy.engine.first_match import FirstMatchRule
from amqpgate.policy.engine.operations import OPERATIONS
from amqpgate.policy.engine.separators import separators
from amqpgate.policy.engine.subjects import NamePattern, Subject
from amqpgate.policy.kinds.finding import Finding
from amqpgate.yamldoc import Mark

# -- wildcards -------------------------------------------------------------------------------


def about_wildcards(place: str, mark: Mark, rule: Rule | FirstMatchRule) -> Iterator[Finding]:
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
                        mark,
                        f"{place}: routingKey {form} '{text}' means * and # as they stand, not any words",
                        f"say topic: '{text}'" if form == "literal" else "say topic",
                    )
            elif "*" in text or "#" in text:
                yield Finding(
                    "note",
                    mark,
                    f"{place}: {attribute} {form} '{text}' means * and # as they stand",
                    "say prefix, topic or regex, or keep it if names have these characters",
                )


def _is_published(rule: Rule | FirstMatchRule) -> bool:
    """Whether a routing key of the rule is one of a message: a binding key is written with wildcards."""
    names = [name for pattern in rule.operations for name in pattern.names if rule.applies_to(name)]
    return any("routing_key" in OPERATIONS[name].attributes and not OPERATIONS[name].binds for name in names)


# -- variables -------------------------------------------------------------------------------


def about_variables(
    place: str, mark: Mark, rule: Rule, subjects: Sequence[Subject], users: Mapping[str, Mark]
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
                    mark,
                    f"{place}: {form} '{text}' {what} one {variable} from another whose name begins or ends "
                    "like it: they share what it grants",
                    f"put a character next to {{{variable}}} that no {variable} has in its name",
                )
                continue
            for name, named_at in _named(variable, subjects, users).items():
                found = sorted(end for end in ends if end is not None and end in name)
                if found:
                    where = "" if named_at is None else f" ({named_at.file}:{named_at.line})"
                    yield Finding(
                        "problem" if named_at is None else "note",
                        mark,
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


def _named(
    variable: str, subjects: Sequence[Subject], users: Mapping[str, Mark]
) -> Mapping[str, Mark | None]:
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
