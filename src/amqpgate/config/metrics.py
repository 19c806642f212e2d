"""Metrics by virtual host, listener and user, for who asks for them."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, between, doc, not_empty

SessionLabel: TypeAlias = Literal["vhost", "listener", "user"]


@frozen(kw_only=True)
class MetricLabels:
    """The labels of the metrics `amqpgate_labelled_...`, and how many values they have."""

    by: tuple[SessionLabel, ...] = attrs.field(
        validator=not_empty(),
        metadata=doc("labels: the session's virtual host at the broker, its listener, its user"),
    )
    users: tuple[str, ...] = attrs.field(
        default=(),
        metadata=doc("users whose names are values of `user`; all others are `other`", default="none"),
    )
    most: int = attrs.field(
        default=100,
        validator=between(1, 500),
        metadata=doc(
            "combinations of values in each process, the first that come; sessions with others count as "
            "`other` in every label"
        ),
    )

    def __attrs_post_init__(self) -> None:
        for index, label in enumerate(self.by):
            if label in self.by[:index]:
                raise Invalid(f"'{label}' is there already", "by", index)
        if "user" in self.by and not self.users:
            raise Invalid("user needs users: the names that it may have", "by", self.by.index("user"))
        if self.users and "user" not in self.by:
            raise Invalid("is for `by: [user]` only", "users")
