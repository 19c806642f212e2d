"""Whether all that one pattern, rule or subject means is meant by another one, too.

The answer yes is certain; no may mean that it could not be found out.
"""

from __future__ import annotations

from amqpgate.policy.engine.access_rule import Rule
from amqpgate.policy.engine.conditions import Match
from amqpgate.policy.engine.operations import OPERATIONS
from amqpgate.policy.engine.rules import CompiledRule, compile_rule
from amqpgate.policy.engine.subjects import NamePattern, Subject

#: Patterns that mean every text.
_EVERYTHING = {
    ("prefix", ""),
    ("topic", "#"),
    ("within", "#"),
    ("regex", ".*"),
    ("search", ""),
    ("search", ".*"),
}


def pattern_within(inner: Match, outer: Match) -> bool:
    """Whether ``outer`` means every text that ``inner`` means."""
    form, text = inner.given
    wide_form, wide_text = outer.given
    if form == wide_form and outer.unless is None and (text == wide_text or form == "literal"):
        return text == wide_text
    if inner == outer:
        return True
    if outer.unless is not None:
        return False
    if outer.given in _EVERYTHING:
        return True
    if "{" in text + wide_text and (outer.variables or inner.variables):
        return False
    if form == wide_form == "prefix":
        return text.startswith(wide_text)
    if form == "prefix" and wide_form == "literal":
        return False
    matcher = outer.compile({})
    assert matcher is not None
    if form == "literal":
        return matcher.covers(text) if outer.given[0] != "literal" else matcher.matches(text)
    if form in ("topic", "within"):
        return outer.given[0] in ("prefix", "topic", "within") and matcher.covers(text)
    if form != "prefix":
        return False
    words = text.split(".")
    return (
        outer.given[0] in ("topic", "within")
        and words[-1] == ""
        and {"*", "#"}.isdisjoint(words)
        and matcher.covers(".".join([*words[:-1], "*", "#"]))
    )


def rule_within(inner: Rule, outer: Rule, operation: str) -> bool:
    """Whether ``outer`` matches every request of this operation that ``inner`` matches."""
    if not outer.applies_to(operation) or not any(operation in p.names for p in outer.operations):
        return False
    if outer.passive is not None and outer.passive is not inner.passive:
        return False
    same_effect = outer.effect == inner.effect
    if inner.effect == "deny" and not same_effect and OPERATIONS[operation].binds:
        return (
            False  # a deny means bindings that catch any of its keys, an allow only those that catch no other
        )
    for mine, theirs in ((outer.arguments, inner.arguments), (outer.properties, inner.properties)):
        if mine is not None and not (same_effect and mine == theirs):
            return False
    if not outer.bind_to and "destination" not in OPERATIONS[operation].attributes:
        # Most pairs end here, without being compiled.
        mine_named = inner.matches
        for attribute, theirs_named in outer.matches.items():
            own = mine_named.get(attribute)
            if own is None and inner.bind_to is None and theirs_named.given not in _EVERYTHING:
                return False
            if own is not None and not pattern_within(own, theirs_named):
                return False
    wide = _variants(outer, operation)
    return all(
        any(_variant_within(one, other, same_effect) for other in wide) for one in _variants(inner, operation)
    )


def _variants(rule: Rule, operation: str) -> list[CompiledRule]:
    nothing = dict.fromkeys(("user", "vhost", "listener", "sourceIP"), None)
    return compile_rule("", rule, OPERATIONS[operation], nothing, on_denied="channel-close", disclosed=False)


def _variant_within(inner: CompiledRule, outer: CompiledRule, same_effect: bool) -> bool:
    mine = {check.attribute: check.said for check in inner.checks}
    for check in outer.checks:
        said = mine.get(check.attribute)
        if said is None:
            if check.said.unless is not None or check.said.given not in _EVERYTHING:
                return False
        elif not pattern_within(said, check.said):
            return False
        elif (
            outer.binds
            and check.attribute == "routing_key"
            and said != check.said
            and same_effect
            and outer.verdict.effect == "deny"
            and check.said.given[0] in ("within", "search")
        ):
            return False  # these deny what lies within or is so written, not what overlaps
    return True


def subject_within(inner: Subject, outer: Subject) -> bool:
    """Whether ``outer`` fits everybody whom ``inner`` fits."""
    return (
        _name_within(inner.user, outer.user)
        and _names_within(inner.vhosts, outer.vhosts)
        and _names_within(inner.listeners, outer.listeners)
        and (outer.tls is None or outer.tls == inner.tls)
        and _names_within(inner.groups, outer.groups)
        and _names_within(inner.scopes, outer.scopes)
        and all(
            key in inner.claims and _name_within(inner.claims[key], pattern)
            for key, pattern in outer.claims.items()
        )
        and _ranges_within(inner, outer)
        and all(
            key in inner.client and _name_within(inner.client[key], pattern)
            for key, pattern in outer.client.items()
        )
    )


def _name_within(inner: NamePattern, outer: NamePattern) -> bool:
    return inner.text.startswith(outer.text) if outer.is_prefix else inner == outer


def _names_within(inner: tuple[NamePattern, ...] | None, outer: tuple[NamePattern, ...] | None) -> bool:
    if outer is None:
        return True
    return inner is not None and all(any(_name_within(one, other) for other in outer) for one in inner)


def _ranges_within(inner: Subject, outer: Subject) -> bool:
    if outer.source_cidr is None:
        return True
    return inner.source_cidr is not None and all(
        any(
            one.network.version == other.network.version
            and one.network.network_address in other.network
            and one.network.prefixlen >= other.network.prefixlen
            for other in outer.source_cidr
        )
        for one in inner.source_cidr
    )
