"""Exchanges: which bindings a message matches.

==========  ==========================================================================================
direct      the binding's key is one of the message's
fanout      always
topic       words between dots; ``*`` is one word, ``#`` any number of them
headers     ``x-match`` all (default) or any of the binding's arguments are among the message's headers;
            a void argument asks for presence only; names with ``x-`` count only under ``all-with-x`` and
            ``any-with-x``
==========  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple, Protocol

from attrs import define, field, frozen

from amqpgate.broker.messages import BrokerMessage
from amqpgate.broker.terms import comparable, printed, type_name
from amqpgate.broker.topics import TopicTree
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.tables import EMPTY_TABLE, Table

Kind = Literal["queue", "exchange"]


class BindingDestination(NamedTuple):
    """Where a binding leads to."""

    kind: Kind
    name: str


@frozen
class ExchangeBinding:
    """One binding of an exchange; two with the same destination, key and arguments are the same one."""

    destination: BindingDestination
    routing_key: str
    arguments: Table = EMPTY_TABLE

    @classmethod
    def of(cls, destination: BindingDestination, routing_key: str, arguments: Table) -> ExchangeBinding:
        """With the arguments in the order in which they are compared."""
        entries = sorted(arguments.entries, key=lambda entry: entry[0])
        return cls(destination, routing_key, Table(tuple(entries)))


class ExchangeRouter(Protocol):
    """The part of an exchange that depends on its type."""

    def add(self, binding: ExchangeBinding) -> None:
        """Take a new binding into account."""

    def remove(self, binding: ExchangeBinding) -> None:
        """Forget a binding."""

    def match(self, message: BrokerMessage) -> Iterable[BindingDestination]:
        """Where a message goes; the same destination may come up more than once."""


@define(eq=False)
class DirectRouter:
    """Bindings by routing key."""

    _by_key: dict[str, dict[ExchangeBinding, None]] = field(factory=dict)

    def add(self, binding: ExchangeBinding) -> None:
        self._by_key.setdefault(binding.routing_key, {})[binding] = None

    def remove(self, binding: ExchangeBinding) -> None:
        bound = self._by_key[binding.routing_key]
        del bound[binding]
        if not bound:
            del self._by_key[binding.routing_key]

    def match(self, message: BrokerMessage) -> Iterable[BindingDestination]:
        for key in message.routing_keys:
            for binding in self._by_key.get(key, ()):
                yield binding.destination


@define(eq=False)
class FanoutRouter:
    """All bindings."""

    _bound: dict[ExchangeBinding, None] = field(factory=dict)

    def add(self, binding: ExchangeBinding) -> None:
        self._bound[binding] = None

    def remove(self, binding: ExchangeBinding) -> None:
        del self._bound[binding]

    def match(self, message: BrokerMessage) -> Iterable[BindingDestination]:
        return [binding.destination for binding in self._bound]


@define(eq=False)
class TopicRouter:
    """Bindings in a tree of words."""

    _tree: TopicTree[ExchangeBinding] = field(factory=TopicTree)

    def add(self, binding: ExchangeBinding) -> None:
        self._tree.add(binding.routing_key, binding)

    def remove(self, binding: ExchangeBinding) -> None:
        self._tree.remove(binding.routing_key, binding)

    def match(self, message: BrokerMessage) -> Iterable[BindingDestination]:
        for key in message.routing_keys:
            for binding in self._tree.match(key):
                yield binding.destination


@define(eq=False)
class HeadersRouter:
    """Bindings with what each asks for."""

    _rules: dict[ExchangeBinding, _HeadersRule] = field(factory=dict)

    def add(self, binding: ExchangeBinding) -> None:
        self._rules[binding] = _HeadersRule.of(binding.arguments)

    def remove(self, binding: ExchangeBinding) -> None:
        del self._rules[binding]

    def match(self, message: BrokerMessage) -> Iterable[BindingDestination]:
        headers = message.properties.headers or EMPTY_TABLE
        return [binding.destination for binding, rule in self._rules.items() if rule.matches(headers)]


_X_MATCH: Final = "x-match"
_X_MATCHES: Final = ("all", "any", "all-with-x", "any-with-x")


@frozen
class _HeadersRule:
    """A binding's arguments, less what only says how to match."""

    wants_all: bool
    wanted: Table

    @classmethod
    def of(cls, arguments: Table) -> _HeadersRule:
        match = arguments.get(_X_MATCH, "all")
        with_x = match in ("all-with-x", "any-with-x")
        wanted = tuple(
            (name, value)
            for name, value in arguments
            if name != _X_MATCH and (with_x or not name.startswith("x-"))
        )
        return cls(match in ("all", "all-with-x"), Table(wanted))

    def matches(self, headers: Table) -> bool:
        hits = (self._is_among(headers, name) for name, _value in self.wanted)
        return all(hits) if self.wants_all else any(hits)

    def _is_among(self, headers: Table, name: str) -> bool:
        wanted, found = self.wanted.field(name), headers.field(name)
        if found is None or wanted is None:
            return False
        return wanted.tag == "V" or comparable(wanted) == comparable(found)


def check_headers_binding(arguments: Table) -> None:
    """Raise 406 for an ``x-match`` that means nothing."""
    match = arguments.field(_X_MATCH)
    if match is None or (match.tag == "S" and match.value in _X_MATCHES):
        return
    if match.tag == "S":
        raise ProtocolViolation(
            406,
            f'Invalid x-match field value <<"{printed(match)}">>;'
            " expected all, any, all-with-x, or any-with-x",
        )
    raise ProtocolViolation(
        406,
        f"Invalid x-match field type {type_name(match)} (value {printed(match)}); expected longstr",
    )


ROUTERS: Final[dict[str, Callable[[], ExchangeRouter]]] = {
    "direct": DirectRouter,
    "fanout": FanoutRouter,
    "topic": TopicRouter,
    "headers": HeadersRouter,
}


@define(eq=False)
class Exchange:
    """An exchange and its bindings."""

    name: str
    type: str
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Table = EMPTY_TABLE
    bindings: dict[ExchangeBinding, None] = field(factory=dict)
    router: ExchangeRouter = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.router = ROUTERS[self.type]()

    @property
    def alternate(self) -> str | None:
        """The name of the exchange that gets what this one has no place for."""
        name = self.arguments.get("alternate-exchange")
        return name if isinstance(name, str) else None

    def bind(self, binding: ExchangeBinding) -> bool:
        """Add a binding; False if it was there. Raises 406 for a headers binding that makes no sense."""
        if binding in self.bindings:
            return False
        self.bindings[binding] = None
        self.router.add(binding)
        return True

    def unbind(self, binding: ExchangeBinding) -> bool:
        """Remove a binding; False if there was none."""
        if binding not in self.bindings:
            return False
        del self.bindings[binding]
        self.router.remove(binding)
        return True
