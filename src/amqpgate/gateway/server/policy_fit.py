"""Whether policies fit the settings that they are to hold under."""

from __future__ import annotations

from collections.abc import Mapping

from amqpgate.config import Settings
from amqpgate.errors import ConfigError
from amqpgate.gateway.upstream.router import check_routes
from amqpgate.policy import PolicySet


def notes_on(settings: Settings, policies: PolicySet) -> tuple[str, ...]:
    """What an operator must know who relies on these policies."""
    if not policies.audits or settings.audit is not None:
        return ()
    names = ", ".join(policy.metadata.name for policy in policies.audits)
    return (f"AuditPolicy {names}: no audit records are written, for the settings have no `audit`",)


def check_policies(settings: Settings, policies: PolicySet, environ: Mapping[str, str]) -> None:
    """Raises ``ConfigError`` where they name what the settings do not have."""
    check_routes(settings, policies, environ)
    if settings.shared_limits is not None:
        return
    for policy in policies.rates:
        for limit in policy.spec.limits:
            if limit.shared:
                raise ConfigError(
                    f"limit {policy.metadata.name}/{limit.id} is shared, and nothing says with whom: "
                    "add sharedLimits to the configuration"
                )
