"""pyarrow without numpy and pandas: a local job needs neither, and they take longer to load than to answer.

pyarrow looks for numpy when it is loaded, and for pandas when it makes its first array, and goes on without
them where there are none.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_LEFT_OUT: Final = ("numpy", "pandas")


def load_arrow() -> None:
    """Have pyarrow look now, and find none of those that are not loaded yet. Others may load them later."""
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        import pyarrow

        pyarrow.array([0])
        pyarrow.array([0], pyarrow.timestamp("us", tz="UTC")).to_pylist()
    finally:
        sys.meta_path.remove(hidden)


class _Hidden(MetaPathFinder):
    """Says that there are none."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _LEFT_OUT:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None
