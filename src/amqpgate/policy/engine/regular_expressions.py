"""Regular expressions of policies, by RE2: in time linear in the text, and in bounded memory.

RE2 is imported with the first of them. Most policies have none, and it takes 2.5 MiB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from re2 import _Regexp as Regex

#: Bytes of memory for one compiled regular expression.
_MEMORY: Final = 1 << 20


class RegexError(ValueError):
    """A text that is no regular expression of RE2; it says why, for people."""


def of_text(text: str) -> Regex[str]:
    """One for text. Raises ``RegexError``."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    # A dot is any character. Without this, a line break in a routing key walks past a rule about `secret.*`.
    options.dot_nl = True
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise _why(error) from None


def of_bytes(text: str) -> Regex[bytes]:
    """One for bytes, whatever text they are or are not. Raises ``RegexError``."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.encoding = re2.Options.Encoding.LATIN1
    try:
        return re2.compile(text.encode(), options)
    except re2.error as error:
        raise _why(error) from None


def escaped(text: str) -> str:
    """A regular expression that means this text alone."""
    import re2

    result: str = re2.escape(text)
    return result


def _why(error: Exception) -> RegexError:
    why = error.args[0]
    said = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
    return RegexError(
        f"not a regular expression of RE2, which has no back-references and no look-around: {said}"
    )
