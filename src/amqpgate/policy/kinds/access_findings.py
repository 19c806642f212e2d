"""What ``amqpgate policy check`` says of access policies: rules that never decide, open doors, overlaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from amqpgate.policy.engine.access_rule import OperationPattern, Rule
from amqpgate.policy.engine.conditions import Match
from amqpgate.policy.engine.inclusion import rule_within, subject_within
from amqpgate.policy.engine.operations import OPERATIONS
from amqpgate.policy.engine.overlaps import common_request
from amqpgate.policy.engine.requests import words_for
from amqpgate.policy.kinds.access_document import AccessPolicy
from amqpgate.policy.kinds.finding import Finding
from amqpgate.policy.kinds.kind import FolderCheck, Placed
from amqpgate.policy.kinds.pattern_findings import about_variables, about_wildcards
from amqpgate.values import frozen
from amqpgate.yamldoc import Mark

#: Pairs of rules that are compared; a set with more is told so.
MAX_PAIRS = 500_000

#: Pairs of an allow and a deny of which a common request is looked for.
MAX_OVERLAPS = 50_000


@frozen
class _PlacedRule:
    """A rule and where it stands."""

    policy: AccessPolicy
    rule: Rule
    mark: Mark

    @property
    def name(self) -> str:
        return f"{self.policy.metadata.name}/{self.rule.id}"

    @property
    def place(self) -> str:
        return f"'{self.name}' ({self.mark.file}:{self.mark.line})"

    @property
    def operations(self) -> list[str]:
        return operations_of(self.rule)


def findings(folder: FolderCheck[AccessPolicy]) -> Iterator[Finding]:
    """What cannot be meant so."""
    rules: list[_PlacedRule] = []
    for placed in folder.documents:
        if not placed.document.spec.rules:
            yield _without_rules(placed)
        for index, rule in enumerate(placed.document.spec.rules):
            one = _PlacedRule(placed.document, rule, placed.mark("spec", "rules", index))
            place = f"rule '{one.name}'"
            yield from about_wildcards(place, one.mark, rule)
            yield from about_variables(place, one.mark, rule, placed.document.spec.subjects, folder.users)
            if placed.document.spec.mode != "off":
                rules.append(one)
    for one in rules:
        yield from _about_rule(one)
    yield from _open_doors(rules)
    yield from _pairs(rules)
    if folder.overlaps:
        yield from _overlaps(rules)


def needed_rules(rules: Sequence[Rule]) -> list[int]:
    """Which rules of one policy say something that none of the others of their effect says, by index."""
    names = [operations_of(rule) for rule in rules]
    needed = list(range(len(rules)))

    def says(other: int, index: int, name: str) -> bool:
        return (
            other != index
            and rules[other].effect == rules[index].effect
            and name in names[other]
            and rule_within(rules[index], rules[other], name)
        )

    # From the end: what is said first, and more widely, stays.
    for index in reversed(range(len(rules))):
        if names[index] and all(any(says(other, index, name) for other in needed) for name in names[index]):
            needed.remove(index)
    return needed


def operations_of(rule: Rule) -> list[str]:
    """The operations that a rule can match, in the order of all."""
    listed = {name for pattern in rule.operations for name in pattern.names}
    return [name for name in OPERATIONS if name in listed and rule.applies_to(name)]


def _without_rules(placed: Placed[AccessPolicy]) -> Finding:
    return Finding(
        "note",
        placed.mark("spec", "rules"),
        f"policy '{placed.name}' has no rules: whom it selects may do only what other policies allow",
        "keep it if that is meant",
    )


def _about_rule(placed: _PlacedRule) -> Iterator[Finding]:
    rule = placed.rule
    if rule.passive and rule.arguments is not None and (rule.arguments.require or rule.effect == "deny"):
        yield Finding(
            "problem",
            placed.mark,
            f"rule '{placed.name}' never matches: a passive declare has no arguments",
            "remove passive or arguments",
        )


def _open_doors(rules: list[_PlacedRule]) -> Iterator[Finding]:
    """Rules that let publish to every queue, by way of the default exchange."""
    everywhere = Rule(
        id="any",
        effect="allow",
        operations=(OperationPattern.parse("basic.publish"),),
        exchange=Match(literal=""),
    )
    closing = [
        one
        for one in rules
        if one.rule.effect == "deny" and rule_within(everywhere, one.rule, "basic.publish")
    ]
    for one in rules:
        rule = one.rule
        if rule.effect != "allow" or "basic.publish" not in one.operations:
            continue
        if rule.exchange is not None and not _means_default(rule):
            continue
        if rule.routing_key is not None or any(_selects_all(one.policy, other.policy) for other in closing):
            continue
        yield Finding(
            "problem",
            one.mark,
            f"rule '{one.name}' lets publish to every queue: the default exchange is among its exchanges",
            "name the exchanges, or say unless: '', and allow the default exchange with a routingKey",
        )


def _means_default(rule: Rule) -> bool:
    assert rule.exchange is not None
    if rule.exchange.variables:
        return False
    matcher = rule.exchange.compile({})
    return matcher is not None and matcher.matches("")


class _Shelf:
    """The rules of one operation and effect, filed by a name that they give literally, if they do."""

    def __init__(self) -> None:
        self.rules: list[_PlacedRule] = []
        self._filed: dict[tuple[str, str], list[_PlacedRule]] = {}
        self._rest: list[_PlacedRule] = []

    def add(self, placed: _PlacedRule, operation: str) -> None:
        self.rules.append(placed)
        literals = _literals(placed.rule) if "destination" not in OPERATIONS[operation].attributes else []
        if literals and placed.rule.bind_to is None:
            self._filed.setdefault(literals[0], []).append(placed)
        else:
            self._rest.append(placed)

    def wider(self, rule: Rule) -> Iterator[_PlacedRule]:
        """Those that may mean all that the rule means."""
        if rule.bind_to is not None:
            yield from self.rules
            return
        for literal in _literals(rule):
            yield from self._filed.get(literal, ())
        yield from self._rest


def _literals(rule: Rule) -> list[tuple[str, str]]:
    return [(name, match.literal) for name, match in rule.matches.items() if match.literal is not None]


def _pairs(rules: list[_PlacedRule]) -> Iterator[Finding]:
    shelves = {(name, effect): _Shelf() for name in OPERATIONS for effect in ("allow", "deny")}
    for one in rules:
        for name in one.operations:
            shelves[name, one.rule.effect].add(one, name)
    pairs = 0
    for one in rules:
        others: dict[str, list[_PlacedRule]] = {}
        for name in one.operations:
            others[name] = list(shelves[name, "deny"].wider(one.rule))
            if one.rule.effect == "allow":
                others[name] += shelves[name, "allow"].wider(one.rule)
            pairs += len(others[name])
        if pairs > MAX_PAIRS:
            yield Finding(
                "note",
                one.mark,
                "from here on, rules are not compared: there are too many",
                "check folders of fewer policies",
            )
            return
        yield from _covered(one, others)


def _overlaps(rules: list[_PlacedRule]) -> Iterator[Finding]:
    denies = [one for one in rules if one.rule.effect == "deny"]
    pairs = 0
    for one in rules:
        for deny in denies if one.rule.effect == "allow" else ():
            pairs += 1
            if pairs > MAX_OVERLAPS:
                yield Finding(
                    "note",
                    one.mark,
                    "from here on, overlaps are not looked for: there are too many rules",
                    "check folders of fewer policies",
                )
                return
            if not _selects_all(one.policy, deny.policy):
                continue
            for name in one.operations:
                both = common_request(one.rule, deny.rule, name) if name in deny.operations else None
                if both is not None and not _covers(deny, one, name):
                    yield Finding(
                        "note",
                        deny.mark,
                        f"rule '{deny.name}' denies a part of what {one.place} allows: {words_for(both)}",
                        "keep it if that is meant",
                    )
                    break


def _covered(one: _PlacedRule, others: dict[str, list[_PlacedRule]]) -> Iterator[Finding]:
    """What other rules leave of this one."""
    by: dict[str, _PlacedRule | None] = {}
    for name, candidates in others.items():
        wider = [other for other in candidates if _covers(other, one, name)]
        denying = [other for other in wider if other.rule.effect == "deny"]
        by[name] = next(iter(denying or wider), None)
    found = [other for other in by.values() if other is not None]
    if not found:
        return
    denied = [name for name, other in by.items() if other is not None and _overrules(other, one)]
    if denied and len(denied) == len(by):
        yield Finding(
            "problem",
            one.mark,
            f"rule '{one.name}' can never decide: {found[0].place} denies all that it allows",
            "remove it, or narrow the deny",
        )
    elif denied:
        first = by[denied[0]]
        assert first is not None
        yield Finding(
            "note",
            one.mark,
            f"rule '{one.name}' can never decide for {', '.join(denied)}: {first.place} denies that",
            "remove the operations, or narrow the deny",
        )
    elif len(found) == len(by):
        other = found[0]
        same = (
            set(other.operations) == set(by)
            and _selects_all(other.policy, one.policy)
            and all(rule_within(other.rule, one.rule, name) for name in by)
        )
        yield Finding(
            "problem" if same else "note",
            one.mark,
            f"rule '{one.name}' {'says the same as' if same else 'adds nothing to'} {other.place}",
            "remove one of them" if same else "remove it, or keep it for its id",
        )


def _overrules(other: _PlacedRule, one: _PlacedRule) -> bool:
    return other.rule.effect == "deny" and one.rule.effect == "allow"


def _covers(other: _PlacedRule, one: _PlacedRule, operation: str) -> bool:
    """Whether the other rule matches whatever this one does, and for everybody whom this one is about."""
    if other is one or not _selects_all(one.policy, other.policy):
        return False
    if not rule_within(one.rule, other.rule, operation):
        return False
    if one.rule.effect != other.rule.effect or not rule_within(other.rule, one.rule, operation):
        return True
    # Each covers the other: the later one is told, if their policies are about the same.
    return not _selects_all(other.policy, one.policy) or _order(other) < _order(one)


def _order(one: _PlacedRule) -> tuple[str, int, int]:
    return one.mark.file, one.mark.line, one.mark.column


def _selects_all(narrow: AccessPolicy, wide: AccessPolicy) -> bool:
    """Whether the wide policy holds whenever the narrow one does."""
    if narrow is wide:
        return True
    if wide.spec.mode != "enforce" and (narrow.spec.mode != "shadow" or narrow.spec.enforce_percent):
        return False
    return all(
        any(subject_within(inner, outer) for outer in wide.spec.subjects) for inner in narrow.spec.subjects
    )
