"""As where nothing was compiled: ``python -m pytest -p tests.support.plain_only``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from tests.support.compiled import MODULES


class _Refusing(MetaPathFinder):
    """It finds none of what is compiled."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in MODULES:
            raise ImportError(f"{fullname} is not compiled")
        return None


sys.meta_path.insert(0, _Refusing())
