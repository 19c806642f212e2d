"""The versions of AMQP that the gateway speaks, as their modules register them, and who speaks which.

A client gets its interpreter by its protocol header, and by its product in start-ok; a broker by its version
and its start.

Each module or package ``v*`` of this room is one version: ``v0_9_1`` registers "0-9-1". Its name alone is
known until somebody meets the version, since its methods take a tenth of a second to import.

A version whose frames are those of 0-9-1 is a `Version`, which has interpreters. Any other one is a
`TranslatedVersion`: there a translator stands before each peer, and makes a peer of 0-9-1 of it.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, TypeAlias, TypeVar

import attrs

from amqpgate.bridge.interpreter import Interpreter
from amqpgate.bridge.translator import Relayed, Translator
from amqpgate.bridge.undecided import UndecidedInterpreter
from amqpgate.errors import UnsupportedVersionError
from amqpgate.protocol.header import HEADER_MAGIC
from amqpgate.values import frozen
from amqpgate.wire.dialects import Dialect, VersionNumbers, version_name
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

#: Characters of a product of which it is remembered what it speaks: peers choose them.
_LONGEST_KNOWN: Final = 64


@frozen(kw_only=True, eq=False)
class Version:
    """One version of AMQP. Raises ``ValueError`` where its parts do not belong together."""

    #: As settings name it: "0-9-1".
    name: str
    #: Major, minor, revision.
    numbers: VersionNumbers
    #: The eight bytes with which a client asks for it.
    header: bytes
    #: version-major and version-minor of its connection.start.
    start: tuple[int, int]
    #: Its generated module: methods, properties, reply codes.
    wire: ModuleType
    #: Makes the interpreter of one peer of a dialect.
    interpreter: Callable[[Dialect], Interpreter]
    #: Makes the interpreter of a client of which its header alone is known.
    client: Callable[[], Interpreter]
    #: The dialect of a broker of which no more is known.
    broker: Dialect
    #: Dialects of clients and of brokers, by words that their product has, in small letters; the first that
    #: fits counts.
    client_products: Mapping[str, Dialect]
    broker_products: Mapping[str, Dialect]
    #: Other headers with which clients ask for it.
    client_headers: frozenset[bytes] = frozenset()
    #: Other headers with which brokers ask for it.
    broker_headers: frozenset[bytes] = frozenset()

    def __attrs_post_init__(self) -> None:
        if self.name != version_name(self.numbers):
            raise ValueError(f"AMQP {self.name} has the numbers {self.numbers}")
        missing = [part for part in ("METHODS", "PROPERTIES", "REPLY_CODES") if not hasattr(self.wire, part)]
        if missing:
            raise ValueError(f"AMQP {self.name}: {self.wire.__name__} has no {', '.join(missing)}")
        if getattr(self.wire, "PROTOCOL_HEADER", None) != self.header:
            raise ValueError(f"AMQP {self.name}: the header is not the one of {self.wire.__name__}")

    def client_dialect(self, product: str) -> Dialect | None:
        """The dialect of a client that says so of itself; None: there is nothing special about it."""
        return _of_product(self.client_products, product)

    def broker_dialect(self, product: str) -> Dialect:
        """The dialect of a broker that says so of itself."""
        return _of_product(self.broker_products, product) or self.broker


@frozen(kw_only=True, eq=False)
class TranslatedVersion:
    """One version whose frames are not 0-9-1's. Its translators are imported when the first one is made: that
    takes a tenth of a second."""

    #: As settings name it: "0-10".
    name: str
    #: The eight bytes with which either peer asks for it.
    header: bytes
    #: A peer as it is seen through its translator.
    interpreter: Interpreter
    #: Makes the translator of a client that has sent ``header``, which it answers.
    client: Callable[[], Translator]
    #: Makes the translator of a broker that has answered ``header`` with the same, given a name that no other
    #: connection to the broker has.
    broker: Callable[[str], Translator]
    #: What takes the place of both, where the client's peer and the broker's both speak the version; None
    #: where they have to be translated.
    relayed: Callable[[Translator, Translator], Relayed | None]
    #: Other headers: none.
    client_headers: frozenset[bytes] = attrs.field(default=frozenset(), init=False)
    broker_headers: frozenset[bytes] = attrs.field(default=frozenset(), init=False)


AnyVersion: TypeAlias = Version | TranslatedVersion
V = TypeVar("V", Version, TranslatedVersion)


def _of_product(products: Mapping[str, Dialect], product: str) -> Dialect | None:
    product = product.lower()
    return next(
        (dialect for words, dialect in products.items() if all(word in product for word in words.split())),
        None,
    )


class VersionRegistry:
    """Versions by name, by protocol header and by connection.start; an unknown one raises.

    ``names`` are those that modules of this room register when they are imported.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(names, key=_numbers_in, reverse=True)
        self._known: dict[str, AnyVersion] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """As settings have them, the newest first."""
        return tuple(self._names)

    def register(self, version: V) -> V:
        """Add a version. Raises ``ValueError`` where another one has its name or its header."""
        headers = {version.header} | version.client_headers
        for known in self._known.values():
            if known.name == version.name or headers & ({known.header} | known.client_headers):
                raise ValueError(f"AMQP {version.name} has the name or a header of AMQP {known.name}")
        self._known[version.name] = version
        if version.name not in self._names:
            self._names = sorted([*self._names, version.name], key=_numbers_in, reverse=True)
        return version

    def named(self, name: str) -> AnyVersion:
        """The version of that name. Raises `UnsupportedVersionError`."""
        if name not in self._known and name in self._names:
            import_module(f"{__package__}.v{name.replace('-', '_')}")
        if name not in self._known:
            raise UnsupportedVersionError(f"AMQP {name} is not spoken here: {', '.join(self._names)} are")
        return self._known[name]

    def numbered(self, numbers: VersionNumbers) -> Version:
        """The version of these numbers, which has dialects. Raises `UnsupportedVersionError`."""
        for known in self._known.values():
            if isinstance(known, Version) and known.numbers == numbers:
                return known
        found = self.named(version_name(numbers))
        if isinstance(found, TranslatedVersion):
            raise UnsupportedVersionError(f"AMQP {found.name} has no dialects: it is translated")
        return found

    def of_client(self, header: bytes) -> AnyVersion | None:
        """The version that a client asks for with this protocol header; None: no version has it."""
        if not header.startswith(HEADER_MAGIC):
            return None
        for known in self._known.values():
            if header == known.header or header in known.client_headers:
                return known
        return next((each for each in self._all() if header in {each.header} | each.client_headers), None)

    def of_broker(self, header: bytes) -> AnyVersion | None:
        """The version that a broker asks for with this protocol header."""
        return next((each for each in self._all() if header in {each.header} | each.broker_headers), None)

    def started(self, numbers: tuple[int, int], asked: AnyVersion) -> AnyVersion | None:
        """The version that a broker starts that was asked for ``asked``: that one, or else the newest that
        has these numbers in its connection.start. The start of a translator's is always its own."""
        if isinstance(asked, TranslatedVersion) or asked.start == numbers:
            return asked
        return next(
            (each for each in self._all() if isinstance(each, Version) and each.start == numbers), None
        )

    def _all(self) -> Iterable[AnyVersion]:
        return map(self.named, self._names)


def _numbers_in(name: str) -> tuple[int, ...]:
    return tuple([int(part) for part in name.split("-")])


#: Every version of this room.
VERSIONS: Final = VersionRegistry(
    module.name.removeprefix("v").replace("_", "-")
    for module in pkgutil.iter_modules([str(Path(__file__).parent)])
    if re.fullmatch(r"v[0-9]+(_[0-9]+)+", module.name)
)


def interpreter_for(dialect: Dialect) -> Interpreter:
    """The interpreter of one peer that speaks this dialect: its own, where there is something to remember.

    Raises `UnsupportedVersionError` for a dialect of an unknown version.
    """
    return VERSIONS.numbered(dialect.version).interpreter(dialect)


def relayed(client: Translator, broker: Translator, interpreter: Interpreter) -> Relayed | None:
    """What takes the place of the translators of two peers that are both seen through ``interpreter``.

    None where they have to be translated.
    """
    for name in VERSIONS.names:
        version = VERSIONS.named(name)
        if isinstance(version, TranslatedVersion) and version.interpreter is interpreter:
            return version.relayed(client, broker)
    return None


def for_product(interpreter: Interpreter, properties: Table) -> Interpreter:
    """The interpreter for the client that says so of itself, in the place of the one by its header."""
    product = str(properties.get("product", ""))
    if isinstance(interpreter, UndecidedInterpreter) and interpreter.decided is None:
        old, new = (_for_product(each, product) for each in (interpreter.old, interpreter.new))
        is_same = old is interpreter.old and new is interpreter.new
        return interpreter if is_same else UndecidedInterpreter(old, new)
    return _for_product(interpreter, product)


def _for_product(interpreter: Interpreter, product: str) -> Interpreter:
    find = _client_dialect if len(product) <= _LONGEST_KNOWN else _client_dialect.__wrapped__
    dialect = find(interpreter.dialect.version, product)
    return interpreter if dialect is None else interpreter_for(dialect)


@lru_cache(maxsize=64)
def _client_dialect(version: VersionNumbers, product: str) -> Dialect | None:
    return VERSIONS.numbered(version).client_dialect(product)


def for_broker(version: AnyVersion, start: amqp.ConnectionStart) -> Interpreter:
    """The interpreter for the broker that has answered the header of ``version`` with ``start``.

    Up to start all versions are the same on the wire, or are translated. Raises `UnsupportedVersionError`.
    """
    if isinstance(version, TranslatedVersion):
        return version.interpreter
    product = str(start.server_properties.get("product", ""))
    dialect = version.broker_dialect(product)
    # RabbitMQ speaks 0-9-1 to who asks for 0-9.
    return version.interpreter(dialect) if dialect.version == version.numbers else interpreter_for(dialect)
