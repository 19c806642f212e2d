"""A table of prices: what messages, bytes and connections cost, and which group pays for whom."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Final

import attrs

from amqpgate.errors import ConfigError
from amqpgate.policy.engine.subjects import NamePattern
from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, Node, compose, doc, not_empty, read, structure

#: What prices are for: so many messages, bytes, and seconds of connections.
MESSAGES: Final = 10**6
BYTES: Final = 10**9
SECONDS: Final = 3600


@frozen(kw_only=True)
class Prices:
    """Prices, without taxes, in one currency."""

    currency: str = attrs.field(validator=not_empty(), metadata=doc("what prices are in, as `EUR`"))
    per_million_messages: Decimal = attrs.field(
        default=Decimal(), metadata=doc("for 1,000,000 messages, published or delivered")
    )
    per_gigabyte: Decimal = attrs.field(
        default=Decimal(), metadata=doc("for 1,000,000,000 bytes of their bodies")
    )
    per_connection_hour: Decimal = attrs.field(
        default=Decimal(), metadata=doc("for an hour of one connection")
    )
    groups: Mapping[str, tuple[NamePattern, ...]] = attrs.field(
        factory=dict, metadata=doc("by the group's name, the users it pays for; the first that matches pays")
    )

    def __attrs_post_init__(self) -> None:
        if not (self.per_million_messages or self.per_gigabyte or self.per_connection_hour):
            raise Invalid("there is no price: perMillionMessages, perGigabyte or perConnectionHour")
        seen: dict[str, str] = {}
        for group, users in self.groups.items():
            for index, user in enumerate(users):
                if other := seen.get(str(user)):
                    raise Invalid(f"'{user}' is in {other} already", "groups", group, index)
                seen[str(user)] = group

    def group_of(self, user: str | None) -> str | None:
        """The group that pays for a user, if any does."""
        if user is None:
            return None
        return next(
            (group for group, users in self.groups.items() if any(one.matches(user) for one in users)), None
        )


def load(path: Path) -> Prices:
    """The table in a file; `ConfigError` cites the place."""
    return _prices(read(path), str(path))


def parse(text: str, file: str = "prices.yaml") -> Prices:
    """The table in ``text``; ``file`` is the name that errors cite."""
    return _prices(compose(text, file), file)


def _prices(documents: tuple[Node, ...], file: str) -> Prices:
    if len(documents) != 1:
        raise ConfigError("a table of prices is one document", file=file)
    return structure(documents[0], Prices)
