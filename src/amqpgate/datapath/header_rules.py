"""Whether a message surely passes the rules about its content header, from the header's bytes.

::

    header ── has nothing that rules ask for ──▶ passes, by the rule that admits messages like it
           ── no deny rule holds, an allow rule does ──▶ passes, by that one
           ── a deny rule holds, none allows it, or it cannot be told here ──▶ the control plane decides

What a value is to a rule is said in `policy.engine.scalars`. Not told here are: text that is a number, but
not one of plain digits, as a number; floats and decimals that are not whole, as text; whatever is malformed.
A header that asks for more than `STEPS` is not told either: its entries are the client's choice.

This is the plain twin. The compiled one (``_header_rules.pxi``) has the same names with the same meaning.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import Enum
from typing import Final

from amqpgate.datapath.content_tests import (
    ContentTests,
    HeaderPeek,
    NameTest,
    RuleGroup,
    TextForm,
    TextTest,
    ValueTest,
)
from amqpgate.datapath.framing import CONTENT, CONTENT_MIN
from amqpgate.datapath.properties import PROPERTIES, VALUES, are_properties

#: Entries times conditions, and values within others, that one message may cost.
STEPS: Final = 4096
#: What one scan may spend on rules: messages, and `CALL` for each function that one may call.
PATIENCE: Final = 512
CALL: Final = 4

_CLASS_BASIC: Final = 60
_HEADERS: Final = 2
_DELIVERY_MODE: Final = 3
#: Floats below this hold each whole number.
_EXACT: Final = float(1 << 53)
_MOST_PLACES: Final = 18
_DIGITS: Final = 18


class RuleAnswer(Enum):
    """Of one condition, or of all of a rule's."""

    NO = 0
    YES = 1
    UNSURE = 2


NO, YES, UNSURE = RuleAnswer.NO, RuleAnswer.YES, RuleAnswer.UNSURE


class _TooMuchError(Exception):
    """The header asks for more than `STEPS`."""


class _Steps:
    """What is left of them."""

    def __init__(self) -> None:
        self._left = STEPS

    def take(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TooMuchError


class HeaderRules:
    """The rules that speak of messages of one flow, or of many."""

    __slots__ = ("_admitted", "_groups", "_peek", "weight")

    def __init__(self, groups: tuple[RuleGroup, ...], admitted: int, peek: HeaderPeek) -> None:
        """``admitted`` is the place of the allow rule of the first group by which messages pass that ``peek``
        does not mean. Raises `ValueError` for what the compiled ones have no room for."""
        if not groups or not 0 <= admitted < len(groups[0].allows):
            raise ValueError("no rule admits the messages")
        for group in groups:
            if len(group.allows) > 64:
                raise ValueError("more than 64 rules that allow")
            for tests in (*group.denies, *group.allows):
                if tests is not None and len(tests.required_headers) + len(tests.values) > 64:
                    raise ValueError("more than 64 headers in a rule")
        self._groups = groups
        self._admitted = admitted
        self._peek = peek
        rules = [tests for group in groups for tests in (*group.denies, *group.allows) if tests is not None]
        #: What asking them of a message takes of `PATIENCE`.
        self.weight = 1 + CALL * sum(tests.calls for tests in rules)

    @property
    def admitted(self) -> int:
        return self._admitted

    def passes(self, header: bytes) -> int:
        """By which allow rule of the first group the message passes with this content header, as payload of
        its frame; -1: the control plane decides."""
        if len(header) < CONTENT_MIN:
            return -1
        if not self.asks(header):
            return self._admitted
        message = message_of(header)
        if message is None:
            return -1
        try:
            passed = [_passed(group, message) for group in self._groups]
        except _TooMuchError:
            return -1
        return passed[0] if min(passed) >= 0 else -1

    def asks(self, header: bytes) -> bool:
        """Whether the rules must be asked about a message with this content header."""
        peek = self._peek
        flags = int.from_bytes(header[CONTENT.size : CONTENT_MIN], "big")
        body = CONTENT.unpack_from(header)[2]
        if peek.always or flags & peek.flags or 0 <= peek.body < body:
            return True
        return bool(flags & 0x8000 >> _HEADERS) and any(
            bytes([len(name)]) + name in header[CONTENT_MIN:] for name in peek.headers
        )


def message_of(header: bytes) -> AskedHeader | None:
    """None: it is no content header, or its properties cannot be found."""
    if len(header) < CONTENT_MIN:
        return None
    class_id, weight, body = CONTENT.unpack_from(header)
    if class_id != _CLASS_BASIC or weight or not are_properties(header, CONTENT.size, len(header)):
        return None
    return AskedHeader(header, int.from_bytes(header[CONTENT.size : CONTENT_MIN], "big"), body)


class AskedHeader:
    """A content header: where its properties are."""

    def __init__(self, header: bytes, flags: int, body: int) -> None:
        self.header, self.flags, self.body = header, flags, body
        self.delivery_mode = 1
        #: By the place of its flag: where it begins and ends.
        self.texts: dict[int, tuple[int, int]] = {}
        self.table = 0, 0
        self.steps = _Steps()
        at = CONTENT_MIN
        for place, size in enumerate(PROPERTIES):
            if not flags & 0x8000 >> place:
                continue
            if place == _HEADERS:
                size = 4 + int.from_bytes(header[at : at + 4], "big")
                self.table = at + 4, at + size
            elif size < 0:
                size = 1 + header[at]
                self.texts[place] = at + 1, at + size
            elif place == _DELIVERY_MODE:
                self.delivery_mode = header[at]
            at += size

    def entries(self, width: int) -> Iterator[tuple[bytes, int, int, int]]:
        """Of each header its name, the letter of its value, and where that begins and ends; it is asked about
        ``width`` things."""
        at, stop = self.table
        while at < stop:
            self.steps.take(width)
            name = self.header[at + 1 : at + 1 + self.header[at]]
            at += 1 + len(name)
            letter = self.header[at]
            begin, end = _value(self.header, at)
            yield name, letter, begin, end
            at = end


def _value(header: bytes, at: int) -> tuple[int, int]:
    """Where the value with this letter begins, behind its length if it has one, and where it ends."""
    size, _ = VALUES[header[at]]
    if size >= 0:
        return at + 1, at + 1 + size
    return at + 5, at + 5 + int.from_bytes(header[at + 1 : at + 5], "big")


def _passed(group: RuleGroup, message: AskedHeader) -> int:
    """By which of its rules; -1: none, or it is denied, or cannot be told."""
    for tests in group.denies:
        if _holds(tests, message) is not NO:
            return -1
    for index, allowed in enumerate(group.allows):
        if allowed is None:
            return index
        answer = _holds(allowed, message)
        if answer is not NO:
            return index if answer is YES else -1
    return -1


def _holds(tests: ContentTests, message: AskedHeader) -> RuleAnswer:
    answer = YES
    for place, test in tests.properties:
        span = message.texts.get(place)
        if span is None:
            if tests.denies:
                return NO
            continue
        found = _text_holds(test, message.header[span[0] : span[1]])
        if found is NO:
            return NO
        if found is UNSURE:
            answer = UNSURE
    if tests.delivery_mode >= 0 and message.delivery_mode != tests.delivery_mode:
        return NO
    if tests.required & ~message.flags:
        return NO
    if 0 <= tests.most_body < message.body:
        return NO
    found = _headers_hold(tests, message)
    return answer if found is YES else found


def _headers_hold(tests: ContentTests, message: AskedHeader) -> RuleAnswer:
    allowed = tests.allowed_headers
    required, values = tests.required_headers, tests.values
    width = len(required) + len(tests.denied_headers) + len(values) + (0 if allowed is None else len(allowed))
    if not width and allowed is None:
        return YES
    there: set[bytes] = set()
    found: dict[int, RuleAnswer] = {}
    answer = YES
    for name, letter, begin, end in message.entries(width):
        if any(_is_named(test, name) for test in tests.denied_headers):
            return NO
        if allowed is not None and not any(_is_named(test, name) for test in allowed):
            return NO
        if name in required:
            there.add(name)
        for index, test in enumerate(values):
            if test.name != name:
                continue
            if tests.denies:
                if found.get(index) is not YES:
                    one = _within_holds(test, message, letter, begin, end)
                    found[index] = one if one is not NO else found.get(index, NO)
            else:
                one = _value_holds(test, message.header, letter, begin, end)
                if one is NO:
                    return NO
                if one is UNSURE:
                    answer = UNSURE
    if len(there) < len(set(required)):
        return NO
    if tests.denies:
        for index in range(len(values)):
            one = found.get(index, NO)
            if one is NO:
                return NO
            if one is UNSURE:
                answer = UNSURE
    return answer


def _is_named(test: NameTest, name: bytes) -> bool:
    return name.startswith(test.text) if test.is_prefix else name == test.text


def _within_holds(test: ValueTest, message: AskedHeader, letter: int, begin: int, end: int) -> RuleAnswer:
    """Whether the value is meant, or any within it."""
    if letter not in b"FA":
        return _value_holds(test, message.header, letter, begin, end)
    answer = NO
    #: Of what is open: where it ends, and whether its values have names.
    opened = [(end, letter == ord("F"))]
    at = begin
    while opened:
        stop, named = opened[-1]
        if at == stop:
            opened.pop()
            continue
        message.steps.take(1)
        if named:
            at += 1 + message.header[at]
        letter = message.header[at]
        at, end = _value(message.header, at)
        if letter in b"FA":
            opened.append((end, letter == ord("F")))
            continue
        one = _value_holds(test, message.header, letter, at, end)
        if one is YES:
            return YES
        if one is UNSURE:
            answer = UNSURE
        at = end
    return answer


def _value_holds(test: ValueTest, header: bytes, letter: int, begin: int, end: int) -> RuleAnswer:
    """Whether a value is meant. An array, a table and void never are."""
    data = header[begin:end]
    if letter in b"Sx":
        return _text_holds(test.text, data) if test.text is not None else _digits_hold(test, data)
    if letter == ord("t"):
        return NO if test.text is None else _text_holds(test.text, b"true" if data[0] else b"false")
    if letter in b"fd":
        number: float = struct.unpack(">f" if letter == ord("f") else ">d", data)[0]
        if not abs(number) < _EXACT:
            return UNSURE
        if test.text is None:
            return _number_holds(test, number)
        return _text_holds(test.text, b"%d" % int(number)) if number.is_integer() else UNSURE
    if letter == ord("D"):
        places, whole = data[0], int.from_bytes(data[1:], "big")
        if places > _MOST_PLACES:
            return UNSURE
        if test.text is None:
            # Of what is not whole, what lies above its whole part lies above it.
            return _decimal_holds(test, whole, 10**places)
        return _text_holds(test.text, b"%d" % whole) if not places else UNSURE
    if letter in b"bsIlL":
        integer = int.from_bytes(data, "big", signed=True)
    elif letter in b"BuiT":
        integer = int.from_bytes(data, "big")
    else:
        return NO
    return _number_holds(test, integer) if test.text is None else _text_holds(test.text, b"%d" % integer)


def _number_holds(test: ValueTest, number: float) -> RuleAnswer:
    is_meant = (test.least is None or number >= test.least) and (test.most is None or number <= test.most)
    return YES if is_meant else NO


def _decimal_holds(test: ValueTest, whole: int, over: int) -> RuleAnswer:
    is_meant = (test.least is None or whole >= test.least * over) and (
        test.most is None or whole <= test.most * over
    )
    return YES if is_meant else NO


def _digits_hold(test: ValueTest, text: bytes) -> RuleAnswer:
    """Of the number that a text says."""
    digits = text[1:] if text[:1] == b"-" else text
    if 0 < len(digits) <= _DIGITS and digits.isdigit():
        return _number_holds(test, int(text))
    # What starts with another letter than infinity is none.
    return NO if text[:1].isalpha() and text[:1] not in b"iI" else UNSURE


def _text_holds(test: TextTest, text: bytes) -> RuleAnswer:
    match test.form:
        case TextForm.LITERAL:
            is_meant = text == test.text
        case TextForm.PREFIX:
            is_meant = text.startswith(test.text)
        case TextForm.CALL:
            assert test.call is not None, "it is the form of a function"
            try:
                is_meant = test.call(text.decode("utf-8", "surrogateescape"))
            except Exception:
                # The control plane finds out, and says it where it is heard.
                return UNSURE
        case _:
            is_meant = test.form is TextForm.ANY
    return YES if is_meant else NO
