"""What records say of an operation: columns of `amqpgate.records` from what a policy judges.

Names are those that the client uses, which is what policies judge, also where a transform policy gives the
broker others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from amqpgate.policy import Operation, Principal, Verdict
from amqpgate.records import Origin
from amqpgate.telemetry.audit.rows import Deed

#: Messages; all other operations are requests.
MESSAGES: Final = frozenset({"basic.publish", "basic.deliver", "basic.get-ok", "basic.return"})

#: Further routing keys of one message that are recorded, and their bytes.
MOST_KEYS: Final = 16
MOST_KEY_BYTES: Final = 1024


@attrs.frozen(kw_only=True)
class OperationKind(Deed):
    """What is alike of it: compared by its columns."""

    @property
    def is_message(self) -> bool:
        """Whether it carries one."""
        return self.operation in MESSAGES


def kind_of(operation: Operation, verdict: Verdict | None) -> OperationKind:
    """The columns of an operation. ``verdict`` None: nothing is decided."""
    return OperationKind(
        operation=operation.name,
        exchange=operation.exchange,
        routing_key=operation.routing_key,
        queue=operation.queue,
        destination=operation.destination,
        arguments=json_of(operation.arguments) if operation.arguments else None,
        passive=operation.passive,
        foreign=operation.foreign,
        any_key=operation.any_key,
        verdict=None if verdict is None else verdict.effect,
        policy=None if verdict is None else verdict.policy,
        rule=None if verdict is None else verdict.rule,
        more_keys=None if operation.content is None else keys_of(operation.content.more_keys),
    )


def keys_of(more: Sequence[str]) -> str | None:
    """The further routing keys of a message as a JSON list: sorted, each once, with null at the end if there
    were more. None: it has none."""
    if not more:
        return None
    keys, size = [], 0
    # Names that are no UTF-8 are written like those of other columns.
    found = sorted(
        {key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for key in more}
    )
    for key in found[:MOST_KEYS]:
        size += len(key.encode())
        if size > MOST_KEY_BYTES:
            break
        keys.append(key)
    rest = [None] * (len(keys) < len(found))
    return json.dumps([*keys, *rest], separators=(",", ":"))


def origin_of(session: str, principal: Principal, version: str | None = None) -> Origin:
    """Whose the records of a session are; ``version`` is its client's, None where there is no session."""
    tls = principal.tls
    certificate = None
    if tls is not None:
        certificate = json_of({"subject": tls.subject, "common_name": tls.common_name, "names": tls.names})
    return Origin(
        session=session,
        user=principal.user,
        vhost=principal.vhost,
        source=principal.source,
        listener=principal.listener,
        tls=certificate,
        client=json_of(principal.client) if principal.client else None,
        upstream_user=principal.upstream_user,
        amqp_version=version,
        token=token_of(principal),
    )


def token_of(principal: Principal) -> str | None:
    """What the verified token of a principal says; None: it has shown none."""
    token = principal.token
    if token is None:
        return None
    said = {
        "scopes": sorted(token.scopes),
        "groups": sorted(principal.groups),
        "claims": {name: list(values) for name, values in token.claims},
    }
    return json_of(said)


def json_of(value: Mapping[str, object]) -> str:
    """As JSON, keys sorted. What JSON does not have is text."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)
