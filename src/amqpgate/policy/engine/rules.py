"""Rules as they apply to one operation, and the index that finds the few which may match.

A rule is filed once, under the most selective thing that it says: a literal name, a prefix, or a word at a
fixed place of its topic pattern. A decision looks under each thing that its operation's names have, so it
costs the same whether the policies have ten rules or ten thousand; rules that say none of these (regular
expressions, patterns that start and end with ``#``) are looked at one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import attrgetter
from typing import TypeAlias

import attrs

from amqpgate.policy.engine.access_rule import OnDenied, Rule
from amqpgate.policy.engine.conditions import CompiledConditions, Effect, Match, TableConditions
from amqpgate.policy.engine.matching import Matcher, Values
from amqpgate.policy.engine.operations import Attribute, Operation, OperationType
from amqpgate.policy.engine.words import split
from amqpgate.values import frozen


@frozen
class Verdict:
    """The answer, and who gave it."""

    effect: Effect
    #: The policy whose rule decided; None for the default.
    policy: str | None
    #: The rule's id, or ``default``.
    rule: str
    #: Of a denial: the attribute whose value was denied, which is what the client is told.
    attribute: Attribute | None = None
    #: Of a denial: the request that was denied, where it is one that the operation only leads to.
    about: Operation | None = None
    #: Of a denial: what happens to a publish.
    on_denied: OnDenied = "channel-close"
    #: Of a denial: whether the client is told the rule.
    disclosed: bool = False
    #: Whether the operation may go on.
    allowed: bool = attrs.field(init=False, eq=False, repr=False)

    @allowed.default
    def _allowed(self) -> bool:
        return self.effect == "allow"

    @property
    def name(self) -> str:
        """``policy/rule``."""
        return f"{self.policy or '-'}/{self.rule}"


@frozen
class Check:
    """One attribute of one rule. A matcher that is not there has a variable which nobody knows, or which does
    not tell the session from others."""

    attribute: Attribute
    matcher: Matcher | None
    #: Whether binding keys must be covered (allow) or only overlap (deny).
    allows: bool
    #: The matcher as the document writes it.
    said: Match

    def accepts(self, operation: Operation, binds: bool) -> bool:
        """Whether the operation's value is meant. What is not known fails an allow, not a deny."""
        value = _GETTERS[self.attribute](operation)
        if value is None or self.matcher is None:
            return not self.allows
        if self.attribute == "routing_key" and (binds or operation.any_key):
            return self.matcher.covers(value) if self.allows else self.matcher.overlaps(value)
        return self.matcher.matches(value)

    @property
    def key(self) -> Hashable:
        """Checks with the same key ask the same."""
        return self.attribute, id(self.matcher)


_GETTERS: dict[Attribute, Callable[[Operation], str | None]] = {
    "exchange": attrgetter("exchange"),
    "queue": attrgetter("queue"),
    "destination": attrgetter("destination"),
    "routing_key": attrgetter("routing_key"),
}


@frozen(eq=False)
class CompiledRule:
    """One rule as it applies to one operation."""

    verdict: Verdict
    checks: tuple[Check, ...]
    #: Whether routing keys of the operation are binding keys.
    binds: bool
    arguments: TableConditions | None = None
    content: CompiledConditions | None = None
    #: Of declares: whether only passive ones are meant, or only others.
    passive: bool | None = None

    def names_match(self, operation: Operation) -> bool:
        """Whether all that is known before the content header holds."""
        if self.passive is not None and self.passive is not operation.passive:
            return False
        for check in self.checks:
            if not check.accepts(operation, self.binds):
                return False
        return self.arguments is None or self.arguments.hold(operation.arguments, self.verdict.effect)

    def matches(self, operation: Operation) -> bool:
        """Whether everything holds. Without a content header, nothing is known of it."""
        if not self.names_match(operation):
            return False
        if self.content is None:
            return True
        if operation.any_content:
            # Some message may hold it. What is denied whatever its exchange and key has been judged already,
            # when it was published.
            return self.verdict.allowed or bool(self.checks)
        return operation.content is not None and self.content.hold(operation.content)


def compile_rule(
    policy: str, rule: Rule, kind: OperationType, values: Values, *, on_denied: OnDenied, disclosed: bool
) -> list[CompiledRule]:
    """The rule as it applies to one operation: one, or as many as it has alternatives."""
    given = dict(rule.matches)
    variants: list[dict[Attribute, Match]] = [given]
    if kind.binds and rule.bind_to is not None:
        variants = [
            given
            | ({"exchange": target.exchange} if target.exchange is not None else {})
            | ({"routing_key": target.routing_key} if target.routing_key is not None else {})
            for target in rule.bind_to
        ]
    if "destination" in kind.attributes:
        variants = [one for variant in variants for one in _both_exchanges(rule.effect, variant)]
    content = None
    if rule.properties is not None:
        content = rule.properties.compile(rule.effect, values)
    compiled = []
    allows = rule.effect == "allow"
    for variant in variants:
        checks = tuple(
            [
                Check(name, variant[name].compile(values, grants=allows), allows, variant[name])
                for name in kind.attributes
                if name in variant
            ]
        )
        blamed: Attribute | None = None
        if rule.effect == "deny" and kind.attributes:
            blamed = checks[-1].attribute if checks else kind.attributes[0]
        verdict = Verdict(
            rule.effect, policy, rule.id, blamed, None, on_denied, disclosed and rule.effect == "deny"
        )
        compiled.append(CompiledRule(verdict, checks, kind.binds, rule.arguments, content, rule.passive))
    return compiled


def _both_exchanges(effect: Effect, given: dict[Attribute, Match]) -> list[dict[Attribute, Match]]:
    """An exchange binding joins two exchanges. A rule that names one means both: they must both fit to be
    allowed, and either one is enough to be denied."""
    if "exchange" not in given or "destination" in given:
        return [given]
    both = given["exchange"]
    if effect == "allow":
        return [{**given, "destination": both}]
    other = {**given, "destination": both}
    del other["exchange"]
    return [given, other]


#: What a rule is filed under: attribute; ``literal``, ``prefix`` or a place among the words; text.
_File: TypeAlias = "tuple[Attribute, str | int, str]"


class RuleIndex:
    """The rules for one operation and one effect."""

    def __init__(self, rules: Iterable[CompiledRule], effect: Effect) -> None:
        self.rules = list(rules)
        self._denies = effect == "deny"
        self._filed: dict[_File, list[CompiledRule]] = {}
        self._rest: list[CompiledRule] = []
        files = [list(_files(rule)) for rule in self.rules]
        crowd = Counter(file for of_rule in files for file in of_rule)
        for rule, of_rule in zip(self.rules, files, strict=True):
            if of_rule:
                self._filed.setdefault(min(of_rule, key=crowd.__getitem__), []).append(rule)
            else:
                self._rest.append(rule)
        # What must be looked under, of each attribute.
        self._attributes = sorted({attribute for attribute, _, _ in self._filed})
        self._literals = sorted({attribute for attribute, how, _ in self._filed if how == "literal"})
        self._prefixes = sorted({(at, len(text)) for at, how, text in self._filed if how == "prefix"})
        self._places = sorted({(at, how) for at, how, _ in self._filed if isinstance(how, int)})

    def candidates(self, operation: Operation) -> Iterator[CompiledRule]:
        """The rules that may match: all that do, and few that do not."""
        if not self.rules:
            return
        values = {attribute: _GETTERS[attribute](operation) for attribute in self._attributes}
        if self._denies and (operation.any_key or None in values.values()):
            # A key with wildcards may overlap patterns that it shares no word with; and what is not known
            # of a request meets every deny rule that names it.
            yield from self.rules
            return
        filed = self._filed
        for attribute in self._literals:
            yield from filed.get((attribute, "literal", values[attribute] or ""), ())
        for attribute, length in self._prefixes:
            yield from filed.get((attribute, "prefix", (values[attribute] or "")[:length]), ())
        words = {attribute: split(values[attribute] or "") for attribute, _ in self._places}
        for attribute, place in self._places:
            of_value = words[attribute]
            if -len(of_value) <= place < len(of_value):
                yield from filed.get((attribute, place, of_value[place]), ())
        yield from self._rest


def _files(rule: CompiledRule) -> Iterator[_File]:
    """Under what a rule may be filed: whatever each text that it means has in common.

    A binding key that an allow rule covers has it, too; one that a deny rule overlaps need not.
    """
    for check in rule.checks:
        matcher = check.matcher
        if matcher is None or (check.attribute == "routing_key" and rule.binds and not check.allows):
            continue
        if matcher.literal is not None:
            yield check.attribute, "literal", matcher.literal
        elif matcher.prefix:
            yield check.attribute, "prefix", matcher.prefix
        else:
            for place, word in matcher.words():
                yield check.attribute, place, word
