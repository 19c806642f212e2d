"""Columns that Python appends to frames: what may be in them."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

#: Of a column: text, a list of text, or an amount of money.
Kind: TypeAlias = Literal["string", "strings", "money"]
#: Of money, behind the point.
DIGITS: Final = 9
