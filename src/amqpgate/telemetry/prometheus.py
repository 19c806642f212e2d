"""prometheus-client without its servers and clients of HTTP: what it writes is asked for, and nothing else.

Python's own that these are made of take most of its 3 MiB (`python -m tests.bench.weight`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Final

#: Its servers and clients are classes of these, which nobody makes objects of.
LEFT_OUT: Final = (
    "http.server", "socketserver", "ssl", "urllib.error", "urllib.request", "wsgiref.simple_server",
)  # fmt: skip


class _Bare(ModuleType):
    """Each name in it is a class of its own, with nothing in it."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def import_prometheus() -> None:
    """Import it so, for a process that is nothing but a gateway. What is loaded already stays as it is."""
    if "prometheus_client" in sys.modules:
        return
    before = {name: sys.modules.get(name) for name in LEFT_OUT}
    sys.modules.update({name: _Bare(name) for name in LEFT_OUT})
    try:
        import_module("prometheus_client")
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name)
            else:
                sys.modules[name] = module
