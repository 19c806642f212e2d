"""Rules on content headers as the data path asks them: what policies have compiled, as bytes and numbers.

A pattern that is no literal and no prefix is a function that it calls. Where the rules of a flow are too many
for it, or a bound has more than 64 bits, it asks none, and the messages that their peek means are shown.
"""

from __future__ import annotations

import functools
from functools import reduce
from operator import or_
from typing import Final

import attrs

from amqpgate.datapath.content_tests import (
    ContentTests,
    HeaderPeek,
    NameTest,
    RuleGroup,
    TextForm,
    TextTest,
    ValueTest,
)
from amqpgate.datapath.scanner import HeaderRules
from amqpgate.policy import Peek
from amqpgate.policy.engine.conditions import CompiledConditions, ContentRules, property_of
from amqpgate.policy.engine.matching import LiteralMatcher, Matcher, PrefixMatcher, compile_pattern
from amqpgate.policy.engine.operations import PROPERTY_FLAGS
from amqpgate.policy.engine.scalars import ValueMatch
from amqpgate.policy.engine.subjects import NamePattern

_INT64: Final = range(-(1 << 63), 1 << 63)
#: Rules of one set of names are few, and sets too; each has some hundred bytes.
_KEPT: Final = 4096
#: Of a group that has no rule on headers: whatever passes the others.
_ANY: Final = RuleGroup((), (None,))


def header_rules(rules: ContentRules | None, shadow: ContentRules | None, peek: Peek) -> HeaderRules | None:
    """The rules of those policies that are enforced, and of those in mode shadow: messages must pass both.

    ``peek`` says which messages are asked about. None: there is no such rule, or the data path cannot ask.
    """
    if rules is None and shadow is None:
        return None
    return _made(rules, shadow, peek)


@functools.lru_cache(_KEPT)
def _made(rules: ContentRules | None, shadow: ContentRules | None, peek: Peek) -> HeaderRules | None:
    try:
        return HeaderRules(*as_told(rules, shadow, peek))
    except ValueError:
        return None


def as_told(
    rules: ContentRules | None, shadow: ContentRules | None, peek: Peek
) -> tuple[tuple[RuleGroup, ...], int, HeaderPeek]:
    """What the data path is told of them. Raises `ValueError` for what it cannot be told."""
    groups = (_group(rules),) if shadow is None else (_group(rules), _group(shadow))
    asked = HeaderPeek(
        always=peek.always,
        flags=peek.flags,
        headers=tuple(sorted(name.encode() for name in peek.headers)),
        body=-1 if peek.max_body is None else _fitting(peek.max_body),
    )
    return groups, 0 if rules is None else rules.admitted, asked


def _group(rules: ContentRules | None) -> RuleGroup:
    if rules is None:
        return _ANY
    allows = tuple([None if one is None else _tests(one) for one in rules.allows])
    return RuleGroup(tuple([_tests(one) for one in rules.denies]), allows)


@functools.lru_cache(_KEPT)
def _tests(conditions: CompiledConditions) -> ContentTests:
    """Raises `ValueError` for what the data path cannot be told."""
    said, denies = conditions.said, conditions.effect == "deny"
    headers = said.headers
    tests = ContentTests(
        denies=denies,
        properties=tuple([(_place(name), _text(matcher, denies)) for name, matcher in conditions.texts]),
        required=reduce(or_, (PROPERTY_FLAGS[property_of(name)] for name in said.require), 0),
        delivery_mode=-1 if said.delivery_mode is None else int(said.delivery_mode),
        most_body=-1 if said.max_body_bytes is None else _fitting(said.max_body_bytes),
    )
    if headers is None:
        return tests
    return attrs.evolve(
        tests,
        required_headers=tuple([name.encode() for name in headers.require]),
        denied_headers=tuple([_name(one) for one in headers.deny]),
        allowed_headers=None if headers.allow is None else tuple([_name(one) for one in headers.allow]),
        values=tuple([_value(name, match) for name, match in headers.values.items()]),
    )


def _place(name: str) -> int:
    """Of a property's flag: 0 is the highest."""
    return 16 - PROPERTY_FLAGS[name].bit_length()


def _name(pattern: NamePattern) -> NameTest:
    return NameTest(pattern.text.encode(), pattern.is_prefix)


def _text(matcher: Matcher | None, denies: bool) -> TextTest:
    """None: the pattern holds a variable that is not known. Such a one allows nothing, and denies all."""
    if matcher is None:
        return TextTest(TextForm.ANY if denies else TextForm.NONE)
    # What is no UTF-8 (in the value of a variable) is compared as text: not all of it is what bytes become.
    if isinstance(matcher, LiteralMatcher) and matcher.literal is not None and _is_utf8(matcher.literal):
        return TextTest(TextForm.LITERAL, matcher.literal.encode())
    if isinstance(matcher, PrefixMatcher) and _is_utf8(matcher.prefix):
        return TextTest(TextForm.PREFIX, matcher.prefix.encode())
    return TextTest(TextForm.CALL, call=matcher.matches)


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _value(name: str, match: ValueMatch) -> ValueTest:
    if match.pattern is not None:
        return ValueTest(name.encode(), _text(compile_pattern(*match.pattern, {}), False))
    bounds = [None if bound is None else _fitting(bound) for bound in (match.min, match.max)]
    return ValueTest(name.encode(), None, *bounds)


def _fitting(bound: int) -> int:
    if bound not in _INT64:
        raise ValueError("a bound of more than 64 bits")
    return int(bound)
