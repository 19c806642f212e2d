"""Which operations a tap shows: an expression over what policies know of them.

::

    expression = conjunction { "or" conjunction }
    conjunction = factor { "and" factor }
    factor = "not" factor | "(" expression ")" | attribute ( "=" | "!=" | "~" ) value
    value = word | "text" | 'text'

Attributes are in `ATTRIBUTES`. What ``=`` means depends on them and on how the value is written: in quotes it
is meant as it stands, a quote within being written twice. A word may end in ``*`` (a name that starts so); of
``routing_key`` it is a topic pattern, of ``operation`` it may have ``*`` anywhere, and of ``client`` it is an
address or a range of them. ``~`` is a regular expression (RE2) that is found anywhere in the value. An
operation that does not have an attribute fits no comparison with it; ``!=`` is ``not`` with ``=``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.errors import AmqpgateError
from amqpgate.policy.engine.matching import SearchMatcher, check_pattern, compile_pattern, variables_in
from amqpgate.policy.engine.operations import OPERATIONS
from amqpgate.policy.engine.subjects import Cidr, NamePattern
from amqpgate.values import define, frozen
from amqpgate.yamldoc import Invalid, nearest

#: What messages to a client are called, which are nobody's requests.
DELIVER: Final = "basic.deliver"
GOT: Final = "basic.get-ok"
RETURNED: Final = "basic.return"
SENT: Final = (DELIVER, GOT, RETURNED)

#: With what each of them is.
ATTRIBUTES: Final[Mapping[str, str]] = {
    "operation": "`basic.publish`, `queue.*`, ...; messages to the client are `basic.deliver`, "
    "`basic.get-ok` and `basic.return`",
    "vhost": "the virtual host",
    "user": "the user's name",
    "client": "the client's address, or a range such as 10.0.0.0/8",
    "exchange": "the exchange published to, also of messages to the client; declared, bound from",
    "routing_key": "the routing key; of a binding, as it is written",
    "queue": "the queue; of a delivery its consumer's, of a message that was got the one it was got from",
    "destination": "the exchange that an exchange binding feeds",
    "verdict": "allow or deny",
}
_NAMES: Final = (*OPERATIONS, *SENT)
_VERDICTS: Final = ("allow", "deny")
_WORDS: Final = frozenset({"and", "or", "not"})

#: Characters of an expression, and parentheses and ``not`` within each other.
LONGEST: Final = 4096
DEEPEST: Final = 64

#: What there is, and what is not known yet. None: the operation does not have it.
Values: TypeAlias = "Mapping[str, str | None]"
Sign: TypeAlias = Literal["=", "~"]

_SPACE: Final = re.compile(r"\s*")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SIGN: Final = re.compile(r"!=|=|~")
_QUOTED: Final = re.compile(r'"((?:[^"]|"")*)"' + r"|'((?:[^']|'')*)'")
_WORD: Final = re.compile(r"[^\s()\"'=~!][^\s()\"']*")
#: What errors name.
_SOMETHING: Final = re.compile(r"[^\s()\"']+")


class MatchError(AmqpgateError):
    """An expression that means nothing. ``column`` counts characters from 1."""

    def __init__(self, message: str, column: int) -> None:
        self.message, self.column = message, column
        super().__init__(f"column {column}: {message}")


@frozen
class Compare:
    """One attribute and one value."""

    attribute: str
    sign: Sign
    value: str
    #: Whether the value stood in quotes.
    is_quoted: bool
    _test: Callable[[str], bool] = attrs.field(eq=False, repr=False)

    @classmethod
    def of(cls, attribute: str, sign: Sign, value: str, *, is_quoted: bool = False) -> Compare:
        """Raises ``ValueError`` where the attribute cannot have such a value."""
        return cls(attribute, sign, value, is_quoted, _test_of(attribute, sign, value, is_quoted))

    def holds(self, values: Values) -> bool | None:
        """Whether it does; None: that cannot be told from what is known."""
        if self.attribute not in values:
            return None
        value = values[self.attribute]
        return value is not None and self._test(value)

    def __str__(self) -> str:
        quoted = '"' + self.value.replace('"', '""') + '"'
        return f"{self.attribute} {self.sign} {quoted if self.is_quoted else self.value}"


@frozen
class Not:
    """The opposite."""

    of: Expression

    def holds(self, values: Values) -> bool | None:
        """As ``Compare.holds``."""
        told = self.of.holds(values)
        return None if told is None else not told

    def __str__(self) -> str:
        return f"not {_grouped(self.of)}"


@frozen
class Both:
    """All of them: ``and``."""

    parts: tuple[Expression, ...]

    def holds(self, values: Values) -> bool | None:
        """As ``Compare.holds``."""
        told = [part.holds(values) for part in self.parts]
        return False if False in told else None if None in told else True

    def __str__(self) -> str:
        return " and ".join(map(_grouped, self.parts))


@frozen
class Either:
    """Any of them: ``or``."""

    parts: tuple[Expression, ...]

    def holds(self, values: Values) -> bool | None:
        """As ``Compare.holds``."""
        told = [part.holds(values) for part in self.parts]
        return True if True in told else None if None in told else False

    def __str__(self) -> str:
        return " or ".join(map(_grouped, self.parts))


Expression: TypeAlias = "Compare | Not | Both | Either"

#: Everything.
ALL: Final = Both(())


def parse(text: str) -> Expression:
    """Read an expression; the empty one is about everything. Raises `MatchError`."""
    if len(text) > LONGEST:
        raise MatchError(f"longer than {LONGEST} characters", LONGEST + 1)
    reader = _Reader(text)
    if reader.is_done():
        return ALL
    expression = reader.either(0)
    if not reader.is_done():
        what = reader.shown()
        if what == ")":
            raise reader.wrong("this ) closes nothing")
        raise reader.wrong(f"expected 'and' or 'or' before {what}")
    return expression


def _grouped(expression: Expression) -> str:
    return f"({expression})" if isinstance(expression, Both | Either) else str(expression)


@define
class _Reader:
    """Where it is in a text."""

    text: str
    at: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.at = 0
        self._take(_SPACE)

    def is_done(self) -> bool:
        return self.at == len(self.text)

    def either(self, depth: int) -> Expression:
        """What stands between ``or``."""
        parts = [self._both(depth)]
        while self._has("or"):
            parts.append(self._both(depth))
        return Either(tuple(parts)) if len(parts) > 1 else parts[0]

    def _both(self, depth: int) -> Expression:
        parts = [self._factor(depth)]
        while self._has("and"):
            parts.append(self._factor(depth))
        return Both(tuple(parts)) if len(parts) > 1 else parts[0]

    def _factor(self, depth: int) -> Expression:
        if depth >= DEEPEST:
            raise self.wrong(f"more than {DEEPEST} within each other")
        if self._has("not"):
            return Not(self._factor(depth + 1))
        start = self.at
        if not self.text.startswith("(", start):
            return self._comparison()
        self._skip(1)
        inner = self.either(depth + 1)
        if self.is_done():
            raise MatchError("this ( is never closed", start + 1)
        if self.text[self.at] != ")":
            raise self.wrong(f"expected 'and', 'or' or ) before {self.shown()}")
        self._skip(1)
        return inner

    def _comparison(self) -> Expression:
        start = self.at
        found = self._take(_ATTRIBUTE)
        if found is None or found[0] in _WORDS:
            self.at = start
            raise self.wrong(f"expected an attribute, 'not' or (, not {self.shown()}")
        attribute = found[0]
        if attribute not in ATTRIBUTES:
            self.at = start
            hint = nearest(attribute, ATTRIBUTES)
            raise self.wrong(f"there is no '{attribute}'{hint}; there are {', '.join(ATTRIBUTES)}")
        sign = self._take(_SIGN)
        if sign is None:
            raise self.wrong(f"expected =, != or ~ after '{attribute}', not {self.shown()}")
        start = self.at
        value, is_quoted = self._value(sign[0])
        try:
            compare = Compare.of(attribute, "~" if sign[0] == "~" else "=", value, is_quoted=is_quoted)
        except ValueError as error:
            raise MatchError(str(error), start + 1) from None
        return Not(compare) if sign[0] == "!=" else compare

    def _value(self, sign: str) -> tuple[str, bool]:
        if self.text.startswith(("'", '"'), self.at):
            quote, found = self.text[self.at], self._take(_QUOTED)
            if found is None:
                raise self.wrong(f"the text after {quote} does not end")
            return (found[1] if found[1] is not None else found[2]).replace(quote * 2, quote), True
        found = self._take(_WORD)
        if found is None:
            raise self.wrong(f"expected a value after {sign}, not {self.shown()}; texts stand in quotes")
        return found[0], False

    def _has(self, word: str) -> bool:
        found = _ATTRIBUTE.match(self.text, self.at)
        if found is None or found[0] != word:
            return False
        self._skip(len(word))
        return True

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What stands here, with the space behind it."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self._skip(found.end() - self.at)
        return found

    def _skip(self, count: int) -> None:
        found = _SPACE.match(self.text, self.at + count)
        assert found is not None, "no space is some, too"
        self.at = found.end()

    def shown(self) -> str:
        """What stands here, for people."""
        found = _SOMETHING.match(self.text, self.at)
        if self.is_done():
            return "the end"
        return f"'{found[0]}'" if found is not None else self.text[self.at]

    def wrong(self, message: str) -> MatchError:
        return MatchError(message, self.at + 1)


# -- what a comparison asks ------------------------------------------------------------------


def _test_of(attribute: str, sign: Sign, value: str, is_quoted: bool) -> Callable[[str], bool]:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("this is no text") from None
    if sign == "~":
        return SearchMatcher(value).matches
    if attribute == "operation":
        return _operation(value)
    if attribute == "verdict":
        if value not in _VERDICTS:
            raise ValueError(f"a verdict is allow or deny, not '{value}'{nearest(value, _VERDICTS)}")
        return value.__eq__
    if attribute == "client":
        return Cidr.parse(value).contains
    if is_quoted:
        return value.__eq__
    return _topic(value) if attribute == "routing_key" else _name(value)


def _operation(value: str) -> Callable[[str], bool]:
    pattern = re.compile(".*".join(map(re.escape, re.split(r"\*+", value))))
    names = frozenset(name for name in _NAMES if pattern.fullmatch(name))
    if not names:
        raise ValueError(f"no operation is named '{value}'{nearest(value, _NAMES)}")
    return names.__contains__


def _topic(value: str) -> Callable[[str], bool]:
    if variables_in(value):
        raise ValueError("variables are not filled in here; in quotes the text is meant as it stands")
    try:
        check_pattern("topic", value)
    except Invalid as error:
        raise ValueError(f"{error}; in quotes the text is meant as it stands") from None
    matcher = compile_pattern("topic", value, {})
    assert matcher is not None, "there are no variables"
    return matcher.matches


def _name(value: str) -> Callable[[str], bool]:
    try:
        return NamePattern.parse(value).matches
    except ValueError as error:
        raise ValueError(f"{error}; in quotes the text is meant as it stands") from None
