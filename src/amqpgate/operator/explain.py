"""What the policies in force say of a request that nobody has made: for operators."""

from __future__ import annotations

import attrs

from amqpgate.gateway.server.gateway import Gateway
from amqpgate.policy.engine.requests import Request
from amqpgate.telemetry.answers import JSON, Args
from amqpgate.yamldoc import from_python, structure


def request_of(given: JSON) -> Request:
    """As people write it in policy tests. Raises ``ConfigError``."""
    request: Request = structure(from_python(given, "request"), Request)
    return request


def explain(gateway: Gateway, args: Args) -> JSON:
    """Explain ``request``; with ``shadow``, as if policies in mode shadow were enforced.

    Raises ``ConfigError``.
    """
    # Few gateways are ever asked.
    from amqpgate.gateway.session.broker_side import broker_side
    from amqpgate.policy.tools.explain import explain as explained
    from amqpgate.policy.tools.explained import as_data

    request = request_of(args["request"])
    operation = request.operation()
    logins = {upstream.name: upstream.user for upstream in gateway.settings.upstreams}
    said = explained(gateway.policies, operation, shadow=bool(args.get("shadow")), logins=logins)
    side = broker_side(gateway.policies, operation, request.flags) if said.verdict.allowed else None
    broker = None if side is None else attrs.asdict(side) | {"items": [*side.items]}
    return {"digest": gateway.policies.digest, **as_data(said), "broker": broker}
