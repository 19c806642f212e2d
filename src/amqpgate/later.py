"""Modules that a process loads when it first asks something of them, and not when others import them.

For what libraries import in any case, and few processes use: OpenSSL takes 4.5 MiB, and who speaks no TLS
asks nothing of it (spec/decisions/0069-what-nobody-asks-is-not-loaded.md). Whoever imports such a module
gets a stand-in, which becomes the module with the first name that is looked up in it.
"""

from __future__ import annotations

import gc
import sys
import threading
from _operator import _compare_digest
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Final

#: What speaks TLS, or computes with keys.
OF_OPENSSL: Final = ("ssl", "hmac", "hashlib")
#: What libraries and SCRAM ask of few: names that are not ASCII, files for a while, answers that are packed.
OF_FEW: Final = ("idna", "unicodedata", "stringprep", "shutil", "tempfile", "gzip")

#: What some ask of them that needs no OpenSSL: Python's ``secrets`` asks for this.
_WITHOUT: Final[Mapping[str, Mapping[str, object]]] = {"hmac": {"compare_digest": _compare_digest}}

#: More collections of younger objects than there will be.
NEVER: Final = 1 << 30

#: Held while a stand-in leaves, never while something is imported.
_leaving: Final = threading.Lock()


def later(*names: str) -> None:
    """Who imports these modules from now on does not load them. Of those that are loaded nothing changes."""
    for name in names:
        if name not in sys.modules:
            sys.modules[name] = _StandIn(name)


@contextmanager
def loading() -> Iterator[None]:
    """What is made meanwhile stays, most of it modules: no full collection looks at it."""
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)


class _StandIn(ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = find_spec(name)
        self.__dict__.update(_WITHOUT.get(name, {}))

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            # Whoever imports it looks for these.
            raise AttributeError(name)
        own = self.__name__
        with _leaving:
            if sys.modules.get(own) is self:
                del sys.modules[own]
        module = import_module(own)
        # Some have it for good: they ask it no more.
        self.__dict__.update((key, value) for key, value in vars(module).items() if key[:2] != "__")
        return getattr(module, name)
