"""Settings and policies as lines for people. No line shows a secret."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqpgate.config import Address, Admin, Audit, Listener, Settings, Upstream
    from amqpgate.policy import PolicySet


def lines_of(
    settings: Settings,
    policies: Iterable[str],
    *,
    bound: Mapping[str, tuple[str, int]] | None = None,
) -> Iterator[str]:
    """One line each: where it listens, where it forwards, policies, audit, admin.

    ``policies`` are their `policy_lines`; ``bound`` gives the addresses that listeners really have, by name.
    """
    from amqpgate.config import Address

    for listener in settings.listeners:
        address = Address(*bound[listener.name]) if bound is not None else listener.bind
        yield listener_line(listener, address)
    for upstream in settings.upstreams:
        yield upstream_line(upstream)
    yield from policies
    if settings.audit is not None:
        yield audit_line(settings.audit)
    yield admin_line(settings.admin)


def policy_lines(
    settings: Settings, policies: PolicySet, *, folder: Path | None, is_serving: bool
) -> Iterator[str]:
    """One line each; ``folder`` is where the policies come from."""
    yield policies_line(policies, folder)
    if folder is not None:
        yield default_access_line(policies, is_serving=is_serving)
    logins = {upstream.name: upstream.user for upstream in settings.upstreams}
    for policy in policies.routes:
        for route in policy.spec.routes if policy.spec.mode != "off" else ():
            if (words := route.lent(logins)) is not None:
                yield words
            if route.upstream.mirror is not None:
                yield f"mirroring by route {route.id}: {route.upstream.mirror.shown}"


def listener_line(listener: Listener, address: Address) -> str:
    scheme = "amqp" if listener.tls is None else "amqps"
    extras = []
    if listener.tls is not None and listener.tls.client_ca is not None:
        need = "required" if listener.tls.require_client_cert else "optional"
        extras.append(f"client certificates {need}")
    if listener.proxy_protocol != "none":
        extras.append(f"PROXY protocol {listener.proxy_protocol}")
    note = f" ({', '.join(extras)})" if extras else ""
    return f"listening on {scheme}://{address}{note}"


def upstream_line(upstream: Upstream) -> str:
    login = f"as user {upstream.user}" if upstream.has_login else "with the client's own login"
    return f"forwarding to {upstream.shown} {login}"


def policies_line(policies: PolicySet, folder: Path | None) -> str:
    if folder is None:
        return "policies: none, everything is allowed"
    count = len(policies.policies)
    return f"policies: {count} from {folder}, digest sha256:{policies.digest[:16]}"


def default_access_line(policies: PolicySet, *, is_serving: bool) -> str:
    """What those may do whom no access policy selects; of a gateway that starts, also who has been seen."""
    from amqpgate.policy.kinds.access import default_access_words

    words, count = default_access_words(policies.default_access), len(policies.policies)
    return f"{words}; of {count} policies {count} select nobody seen so far" if is_serving else words


def audit_line(audit: Audit) -> str:
    where = "standard output" if audit.folder is None else audit.folder
    places = [] if audit.format is None else [f"{audit.format} to {where}"]
    places += [f"{sink.NAME} to {sink.shown}" for sink in audit.sinks]
    return f"audit: {', '.join(places)}, as gateway {audit.name}"


def admin_line(admin: Admin | None) -> str:
    if admin is None:
        return "admin: off"
    guard = "; /metrics needs the bearer token" if admin.token_file is not None else ""
    if admin.probes is not None:
        guard += f"; probes and metrics for all at http://{admin.probes}/"
    if not admin.bind.port:
        return f"admin: a free port of {admin.bind.host}{guard}"
    scheme = "http" if admin.tls is None else "https"
    return f"admin: {scheme}://{admin.bind}/ with /livez, /readyz, /metrics{guard}"
