"""Where one user's names end: what stands next to a variable in a pattern.

`prefix: "{user}."` gives the user `a` all that starts with `a.`, and so all that the user `a.b` has. Nobody
can tell these apart by their names. So a pattern that grants something means nothing to a session that would
share it: the value of a variable must not hold the character that separates it from what follows. What a
pattern takes away, it takes from everybody whom it may mean.

Whether a value may go on is a question of the pattern. In ``{user}.in`` as a literal it may not, and so no
user name is doubtful there; in a topic pattern it may where there is a ``#``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from amqpgate.policy.engine.matching import PLACEHOLDER, Form, Values

#: Regular expressions that mean one text, but for where they begin and end.
_PLAIN = r"(?:[^\\.\[\](){}|*+?^$]|\\[^A-Za-z0-9])"
_ONE_TEXT = re.compile(rf"{_PLAIN}*\Z")
_FIRST = re.compile(_PLAIN)
#: Not the letter of a class such as ``\d``.
_LAST = re.compile(r"(?:\\[^A-Za-z0-9]|(?<!\\)[^\\.\[\](){}|*+?^$])\Z")


def shared_by(form: Form, text: str, values: Values) -> tuple[str, str] | None:
    """A variable whose value holds the character that ends it in the pattern, and that character; None: the
    session shares with nobody what the pattern means, as far as that can be told."""
    for variable, separator in separators(form, text):
        if separator is not None and separator in (values.get(variable) or ""):
            return variable, separator
    return None


def separators(form: Form, text: str) -> Iterator[tuple[str, str | None]]:
    """The variables whose values could be mistaken for others in a pattern, each with the character that must
    not be in it. None: there is none, so a value is not told from another that begins, or ends, like it."""
    pieces = PLACEHOLDER.split(text)
    for place in range(1, len(pieces), 2):
        for separator in _around(form, pieces, place):
            # No address goes on behind a dot.
            if (pieces[place], separator) != ("sourceIP", "."):
                yield pieces[place], separator


def _around(form: Form, pieces: list[str], place: int) -> Iterator[str | None]:
    before, behind = pieces[place - 1], pieces[place + 1]
    is_last = place + 2 == len(pieces)
    if form in ("regex", "search"):
        if not (is_last and _ends(form, behind)):
            yield _first_of(behind)
        if not (_begins(form, pieces[0]) and all(map(_ONE_TEXT.match, pieces[2:place:2]))):
            yield _last_of(before)
    elif form in ("topic", "within"):
        if "#" in "".join(pieces[::2]).split("."):
            yield "."
        if not is_last:
            yield behind[:1] or None
    elif form == "prefix" or not is_last:
        yield behind[:1] or None


def _ends(form: Form, behind: str) -> bool:
    """Whether the pattern means one text from here on."""
    closed = behind.removesuffix("$").removesuffix(r"\z")
    return (form == "regex" or closed != behind) and _ONE_TEXT.match(closed) is not None


def _begins(form: Form, before: str) -> bool:
    """Whether the pattern means one text up to here."""
    closed = before.removeprefix("^").removeprefix(r"\A")
    return (form == "regex" or closed != before) and _ONE_TEXT.match(closed) is not None


def _first_of(behind: str) -> str | None:
    found = _FIRST.match(behind)
    # A character that may be left out, or come again, ends nothing.
    if found is None or behind[found.end() : found.end() + 1] in set("*?{"):
        return None
    return found[0][-1]


def _last_of(before: str) -> str | None:
    found = _LAST.search(before)
    return found[0][-1] if found is not None else None
