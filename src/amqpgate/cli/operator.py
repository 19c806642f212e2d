"""``amqpgate operator``: policies that are custom resources of Kubernetes."""

from __future__ import annotations

import os
from pathlib import Path

import click

from amqpgate.cli.failures import WRONG, Failure, reported
from amqpgate.cli.telling import echo_document


@click.group(short_help="Bring policies from custom resources to gateways.", invoke_without_command=True)
@click.option(
    "--config",
    "-c",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="YAML file of the operator.",
)
@click.pass_context
def operator(context: click.Context, config: Path | None) -> None:
    """Watch policies that are custom resources, and keep what is valid in a ConfigMap that gateways mount,
    until SIGTERM or SIGINT.

    Each resource is told in its status whether it is accepted, or what is wrong with it. One that is not
    valid changes nothing: the last version of it that was valid stays in force.

    \b
    Exit codes:
      0  stopped by a signal
      1  the address cannot be listened on
      2  wrong command line or settings
    """
    if context.invoked_subcommand is not None:
        if config is not None:
            raise click.UsageError(f"options of `{context.invoked_subcommand}` stand behind it")
        return
    with reported():
        from amqpgate import logs
        from amqpgate.app.standard_error import standard_error
        from amqpgate.cli.failures import ensure_free
        from amqpgate.kubernetes.serving import OperatorProcess, run
        from amqpgate.resources.settings import load, parse

        if config is not None and not config.exists():
            raise Failure(f"amqpgate: --config: no such file: {config}", WRONG)
        settings = parse("", os.environ) if config is None else load(config, os.environ)
        process = OperatorProcess.of(settings, os.environ)
        binds = [("bind", settings.bind)]
        if settings.webhook is not None:
            binds.append(("webhook.bind", settings.webhook.bind))
        ensure_free([(name, address.host, address.port) for name, address in binds])
        with standard_error() as stream:
            logs.set_up(settings.log.format, settings.log.level, stream=stream)
            run(process)


@operator.command(short_help="Print the CustomResourceDefinitions.")
def crds() -> None:
    """Print the CustomResourceDefinitions of all kinds of policies, for `kubectl apply --server-side -f -`.

    \b
    Exit codes:
      0  printed
    """
    from amqpgate.resources.definitions import manifests

    echo_document("---\n".join(manifests().values()))
