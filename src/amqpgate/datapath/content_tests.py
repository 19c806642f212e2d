"""What rules ask of a content header, as the data path is told it: bytes and numbers; for `header_rules`."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from amqpgate.values import frozen


class TextForm(IntEnum):
    """How a text is compared."""

    #: No text is meant.
    NONE = 0
    #: Any is.
    ANY = 1
    #: This one.
    LITERAL = 2
    #: All that start so.
    PREFIX = 3
    #: Those for which a function says so.
    CALL = 4


@frozen
class TextTest:
    """Which texts are meant."""

    form: TextForm
    #: UTF-8, of ``LITERAL`` and ``PREFIX``.
    text: bytes = b""
    #: Of ``CALL``. It gets bytes that are no UTF-8 as lone surrogates (PEP 383).
    call: Callable[[str], bool] | None = None


@frozen
class NameTest:
    """Which names of headers are meant: one, or all that start so. UTF-8."""

    text: bytes
    is_prefix: bool = False


@frozen
class ValueTest:
    """Which values of a header are meant: by their text, or by their number."""

    #: UTF-8.
    name: bytes
    #: None: by their number.
    text: TextTest | None = None
    #: Bounds that are included, of 64 bits with a sign; None: there is none.
    least: int | None = None
    most: int | None = None


@frozen(kw_only=True)
class ContentTests:
    """What one rule asks of a content header. All of it must hold."""

    #: Whether values are looked for, at any depth, as a deny rule does. Else all that there are must be.
    denies: bool
    #: Of each property that is a text: the place of its flag (0 is the highest), and what it must be. A deny
    #: rule's must be there.
    properties: tuple[tuple[int, TextTest], ...] = ()
    #: Flags of properties that must be there.
    required: int = 0
    #: Without the property it is 1; below zero: any.
    delivery_mode: int = -1
    #: Bytes of body; below zero: however many.
    most_body: int = -1
    required_headers: tuple[bytes, ...] = ()
    denied_headers: tuple[NameTest, ...] = ()
    #: None: any.
    allowed_headers: tuple[NameTest, ...] | None = None
    values: tuple[ValueTest, ...] = ()

    @property
    def calls(self) -> int:
        """How many functions it may call."""
        texts = [test for _, test in self.properties] + [
            one.text for one in self.values if one.text is not None
        ]
        return sum(test.form is TextForm.CALL for test in texts)


@frozen
class RuleGroup:
    """Rules of which none that denies may hold, and one that allows must."""

    denies: tuple[ContentTests, ...]
    #: In the order in which they are asked; None allows whatever there is. At most 64.
    allows: tuple[ContentTests | None, ...]


@frozen(kw_only=True)
class HeaderPeek:
    """Which messages must be asked about; the others pass by the rule that admits them all."""

    always: bool = False
    flags: int = 0
    headers: tuple[bytes, ...] = ()
    #: Below zero: however large.
    body: int = -1
