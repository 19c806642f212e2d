"""Where inputs are: the corpus and the crashes that are kept in the repository, and what grows in `build`."""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, cast

from tests.fuzz import targets

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
CRASHES = HERE / "crashes"
#: Of one target, bytes of the corpus that is kept.
KEPT_BYTES = 24 * 1024


class Target(Protocol):
    """What a module of ``targets`` has."""

    #: Bytes of the largest input.
    MOST: int
    #: Words of the format, for the mutation.
    TOKENS: tuple[bytes, ...]

    def seeds(self) -> Iterable[bytes]:
        """Inputs to begin with."""

    def check(self, data: bytes) -> None:
        """Raise whatever is wrong. The same bytes must always do the same."""


#: Targets that run with either engine. `NAME@plain` is one with the plain engine: in a process of its own.
BOTH_ENGINES = ("brokers", "compatible", "pooled", "sessions")
PLAIN = "@plain"


def names() -> list[str]:
    """Of all targets."""
    return sorted(module.name for module in pkgutil.iter_modules(targets.__path__))


def runs() -> list[str]:
    """Of all targets, those that run with the plain engine, too, twice."""
    return [*names(), *(name + PLAIN for name in BOTH_ENGINES)]


def use_plain_engine() -> None:
    """As on a machine without a compiler; before anything of the gateway is imported."""
    for module in ("_pump", "_scan"):
        sys.modules[f"amqpgate.datapath.{module}"] = None  # type: ignore[assignment]


def load(name: str) -> Target:
    """The target of that name."""
    return cast(Target, importlib.import_module(f"tests.fuzz.targets.{name}"))


def inputs(folder: Path) -> list[bytes]:
    """What lies in a folder, which need not be there; the shortest first."""
    if not folder.is_dir():
        return []
    found = [path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix != ".txt"]
    return sorted(found, key=len)


def name_of(data: bytes) -> str:
    """What an input's file is called."""
    return hashlib.sha256(data).hexdigest()[:16]


def put(folder: Path, data: bytes, name: str = "") -> Path:
    """Keep an input."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (name or name_of(data))
    path.write_bytes(data)
    return path
