"""Whether policies fit the settings that they are to hold under."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib.util import find_spec

from amqpgate.config import Settings
from amqpgate.errors import ConfigError
from amqpgate.gateway.session.claim_reference import ClaimKeys
from amqpgate.gateway.upstream.router import check_routes
from amqpgate.policy import PolicySet


def notes_on(settings: Settings, policies: PolicySet) -> tuple[str, ...]:
    """What an operator must know who relies on these policies."""
    if not policies.audits or settings.audit is not None:
        return ()
    names = ", ".join(policy.metadata.name for policy in policies.audits)
    return (f"AuditPolicy {names}: no audit records are written, for the settings have no `audit`",)


def check_claims(policies: PolicySet, environ: Mapping[str, str]) -> None:
    """Raises ``ConfigError`` where bodies are to go to an object store, and something for that is missing."""
    if all(policy.spec.claim_check is None for policy in policies.compatibilities):
        return
    ClaimKeys.of(environ)
    if find_spec("boto3") is None:
        raise ConfigError("claimCheck needs boto3: pip install 'amqpgate[claims]'")
    try:
        tempfile.gettempdir()
    except OSError:
        raise ConfigError("claimCheck needs a folder that can be written: name one in TMPDIR") from None


def check_policies(settings: Settings, policies: PolicySet, environ: Mapping[str, str]) -> None:
    """Raises ``ConfigError`` where they name what the settings do not have."""
    check_routes(settings, policies, environ)
    check_claims(policies, environ)
    if settings.shared_limits is not None:
        return
    for policy in policies.rates:
        for limit in policy.spec.limits:
            if limit.shared:
                raise ConfigError(
                    f"limit {policy.metadata.name}/{limit.id} is shared, and nothing says with whom: "
                    "add sharedLimits to the configuration"
                )
