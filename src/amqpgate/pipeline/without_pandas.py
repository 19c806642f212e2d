"""pyarrow without pandas: a local job needs none, and loading it takes longer than most answers.

pyarrow looks for pandas once, when it makes its first array, and goes on without it where there is none.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Final

import pyarrow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_LEFT_OUT: Final = "pandas"


def leave_out_pandas() -> None:
    """Have pyarrow look now, and find none; for a process that has not loaded pandas, and will not."""
    if _LEFT_OUT in sys.modules:
        return
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pyarrow.array([0])
    finally:
        sys.meta_path.remove(hidden)


class _Hidden(MetaPathFinder):
    """Says that there is no pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == _LEFT_OUT:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None
