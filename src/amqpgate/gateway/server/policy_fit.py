"""Whether policies fit the settings that they are to hold under."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.util import find_spec

from amqpgate.config import Settings
from amqpgate.errors import ConfigError
from amqpgate.gateway.session.claim_reference import ClaimKeys
from amqpgate.gateway.upstream.router import check_routes
from amqpgate.policy import PolicySet
from amqpgate.yamldoc import nearest


def notes_on(settings: Settings, policies: PolicySet) -> tuple[str, ...]:
    """What an operator must know who relies on these policies."""
    return (
        *_about_audit(settings, policies),
        *_about_tokens(settings, policies),
        *_about_limits(settings, policies),
    )


def _about_audit(settings: Settings, policies: PolicySet) -> Iterator[str]:
    if policies.audits and settings.audit is None:
        names = ", ".join(policy.metadata.name for policy in policies.audits)
        yield f"AuditPolicy {names}: no audit records are written, for the settings have no `audit`"


def _about_limits(settings: Settings, policies: PolicySet) -> Iterator[str]:
    """Shared limits that the workers of this gateway alone would exceed. Other limits they count together."""
    shared = settings.shared_limits
    if shared is None or shared.when_away != "local" or settings.workers <= shared.replicas:
        return
    names = [
        f"{one.metadata.name}/{limit.id}"
        for one in policies.rates
        for limit in one.spec.limits
        if limit.shared
    ]
    if names:
        yield (
            f"limit {', '.join(names)}: while Redis is away each of {settings.workers} workers takes it "
            f"divided by {shared.replicas}, all of them more; say replicas: gateways times workers"
        )


def _about_tokens(settings: Settings, policies: PolicySet) -> Iterator[str]:
    """Subjects that ask for what no verified token can say, and ways round the verifying."""
    issuers = [oauth for oauth in map(settings.oauth_of, settings.listeners) if oauth is not None]
    blind = [listener.name for listener in settings.listeners if settings.oauth_of(listener) is None]
    if issuers and blind:
        yield (
            f"listener {', '.join(blind)}: no tokens are verified there, and at others they are: who has a "
            "token may give any user name with it, and no subject with scopes, claims or a token's groups "
            "selects him"
        )
    kept = {name for oauth in issuers for name in oauth.claims}
    asking: dict[str, list[str]] = {}
    for kind, document, subject in policies.subjects():
        name = f"{kind} {document}"
        if (subject.scopes is not None or subject.claims) and not issuers:
            asking.setdefault("", []).append(name)
            continue
        for claim in subject.claims.keys() - kept:
            asking.setdefault(claim, []).append(name)
    for claim, names in asking.items():
        listed = ", ".join(dict.fromkeys(names))
        if claim:
            yield (
                f"{listed}: nobody is selected by claim '{claim}', which no identity.oauth.claims names"
                + nearest(claim, kept)
            )
        else:
            yield f"{listed}: nobody has scopes or claims, for the settings have no `identity.oauth`"


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
    """Raises ``ConfigError`` where they name what the settings do not have, with all that is missing."""
    missing: list[ConfigError] = []
    for check in (
        partial(check_routes, settings, policies, environ),
        partial(check_claims, policies, environ),
        partial(_check_shared, settings, policies),
    ):
        try:
            check()
        except ConfigError as error:
            missing += error.all
    if missing:
        raise ConfigError.together(missing)


def _check_shared(settings: Settings, policies: PolicySet) -> None:
    """Raises ``ConfigError`` for limits that are shared, and nothing says with whom."""
    if settings.shared_limits is not None:
        return
    errors = []
    for policy in policies.rates:
        written = policies.written.get((policy.kind, policy.metadata.name))
        for index, limit in enumerate(policy.spec.limits):
            if limit.shared:
                errors.append(
                    ConfigError(
                        f"limit {policy.metadata.name}/{limit.id} is shared, and nothing says with whom: "
                        "add sharedLimits to the configuration",
                        file=None if written is None else written.file,
                        line=None if written is None else written.rules[index],
                    )
                )
    if errors:
        raise ConfigError.together(errors)
