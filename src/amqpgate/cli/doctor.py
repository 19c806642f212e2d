"""``amqpgate doctor``: what a gateway with these settings would meet on this machine, tried for real.

``doctor_machine`` looks at this machine, ``doctor_peers`` and ``doctor_issuers`` ask whom the gateway talks
to; a *diagnosis* is what one look saw, and what helps.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from amqpgate.cli.failures import FAILED, WRONG, Failure, reported
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amqpgate.cli.diagnosis import Diagnosis
    from amqpgate.config import Settings

#: How a finding is shown.
_SIGNS: Final = {"ok": "ok  ", "note": "note", "bad": "BAD "}


@click.command(short_help="Try all that a gateway with these settings needs.")
@click.option(
    "--config",
    "-c",
    metavar="FILE",
    type=click.Path(path_type=Path),
    required=True,
    help="YAML file of settings, as `run --config` has it.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(0.1, 300),
    default=5.0,
    show_default=True,
    help="How long to wait for each answer.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(config: Path, timeout: float, as_json: bool) -> None:
    """Try all that a gateway with these settings needs: files, ports, limits of the system, certificates,
    brokers, issuers of tokens, Redis, collectors, receivers of audit records.

    Brokers are greeted, and logged in to where the settings have a login. Nothing is changed or left behind.
    A gateway that runs already may go on.

    \b
    Exit codes:
      0  nothing is in the way
      1  something is; each says what helps
      2  the settings or policies are wrong
    """
    from amqpgate.cli.check import checked_settings
    from amqpgate.gateway.server.policy_fit import check_policies
    from amqpgate.policy import load_folder

    if not config.exists():
        raise Failure(f"amqpgate: --config: no such file: {config}", WRONG)
    with reported():
        settings = checked_settings(config)
        if settings.policies is not None:
            check_policies(settings, load_folder(settings.policies), os.environ)
    found: list[Diagnosis] = []
    for finding in _looked(settings, timeout):
        found.append(finding)
        if not as_json:
            show(finding)
    bad = sum(finding.state == "bad" for finding in found)
    if as_json:
        echo(json.dumps([finding.as_json() for finding in found], indent=2))
    else:
        echo(f"{len(found)} looked at, {bad or 'nothing'} in the way")
    if bad:
        raise SystemExit(FAILED)


def _looked(settings: Settings, timeout: float) -> Iterator[Diagnosis]:
    from amqpgate.cli.doctor_issuers import issuers_of
    from amqpgate.cli.doctor_machine import machine_of
    from amqpgate.cli.doctor_peers import peers_of

    yield from machine_of(settings)
    yield from issuers_of(settings, timeout)
    yield from peers_of(settings, timeout)


def show(finding: Diagnosis) -> None:
    """One look, in a line; and in a second one what helps."""
    from amqpgate.logs import on_one_line

    echo(f"{_SIGNS[finding.state]}  {finding.what}: {on_one_line(finding.text)}")
    if finding.remedy:
        echo(f"      {finding.remedy}")
