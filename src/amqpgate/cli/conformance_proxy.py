"""``amqpgate conformance --upstream-probe``: what a proxy does to what passes through it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from amqpgate.cli.conformance_client import bound
from amqpgate.cli.failures import Failure
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.conformance.case import CaseResult
    from amqpgate.conformance.dialling import PeerLogin
    from amqpgate.conformance.report.summary import ConformanceRun
    from amqpgate.conformance.versions import Name


def probed(
    target: PeerLogin,
    bind: str,
    versions: Sequence[Name],
    wanted: tuple[str, ...],
    patience: float,
    told: Callable[[CaseResult], None],
) -> ConformanceRun:
    """Listen as the proxy's broker, and play the rules through the proxy."""
    import trio

    from amqpgate.conformance.endings import Unexpected
    from amqpgate.conformance.proxy.cases import PROXY_SECTIONS
    from amqpgate.conformance.proxy.run import ProxyPlan, play_through
    from amqpgate.conformance.report.summary import ConformanceRun
    from amqpgate.conformance.run import is_wanted

    cases = [
        (case, version)
        for version in versions
        for section in PROXY_SECTIONS
        for case in section.cases
        if version in case.versions and is_wanted(section, case, wanted)
    ]
    if not cases:
        raise click.BadParameter("no such rule; --list shows all", param_hint="--section")
    host, port = bound(bind, "--upstream-probe")
    plan = ProxyPlan(target=target, host=host, port=port, cases=cases, patience=patience)
    address = f"{target.host}:{target.port}"

    def listening(port: int) -> None:
        echo(f"the broker behind the proxy listens at {host}:{port}", err=True)

    began = time.monotonic()
    try:
        results, _ = trio.run(play_through, plan, listening, told)
    except OSError as error:
        raise Failure(f"amqpgate: {host}:{port}: {error.strerror or error}") from None
    except BaseExceptionGroup as group:
        matched = group.subgroup(Unexpected)
        if matched is None:
            raise
        raise Failure(f"amqpgate: {address}: {matched.exceptions[0]}") from None
    return ConformanceRun(address, "as a proxy", results, time.monotonic() - began)
