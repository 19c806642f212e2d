"""``amqpgate inject``: sidecars for pods, off line or as a webhook."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amqpgate.cli.failures import WRONG, Failure, reported
from amqpgate.cli.telling import echo, echo_document
from amqpgate.logs import on_one_line

if TYPE_CHECKING:
    from amqpgate.inject import Injector, ManifestOutcome

#: Bytes of manifests that are read at once.
MAX_INPUT = 16 << 20


@click.group(short_help="Put amqpgate into pods as a sidecar.", invoke_without_command=True)
@click.option(
    "--config",
    "-c",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="YAML file of the injector.",
)
@click.option(
    "--image", metavar="IMAGE", help="Image of the sidecar.  [default: the file's, or this version]"
)
@click.pass_context
def inject(context: click.Context, config: Path | None, image: str | None) -> None:
    """Put amqpgate into pods: read manifests on standard input, write them with sidecars on standard output.

    Pods, and what makes pods (Deployment, StatefulSet, DaemonSet, Job, CronJob ...), get a sidecar if an
    environment variable of theirs holds an AMQP URL, or if their annotations ask for one. The variable then
    leads to the sidecar, and the sidecar to the broker. All else is written as it was read. Standard error
    says which of them got one, and which did not and why.

    \b
    Exit codes:
      0  done
      2  wrong command line, settings or manifests, or a pod that cannot have a sidecar
    """
    if context.invoked_subcommand is not None:
        if config is not None or image is not None:
            raise click.UsageError(f"options of `{context.invoked_subcommand}` stand behind it")
        return
    import attrs

    from amqpgate.inject import inject_manifests

    with reported():
        settings = _settings(config)
        if image is not None:
            settings = attrs.evolve(settings, image=image)
        data = sys.stdin.buffer.read(MAX_INPUT + 1)
        if len(data) > MAX_INPUT:
            raise Failure(f"amqpgate: standard input is larger than {MAX_INPUT} bytes", WRONG)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Failure("amqpgate: standard input is not UTF-8 text", WRONG) from None
        rewritten = inject_manifests(text, settings, file="<stdin>")
        echo_document(rewritten.text)
        _tell(rewritten.outcomes)


def _tell(outcomes: Iterable[ManifestOutcome]) -> None:
    """Say on standard error who got a sidecar and who did not; kinds that make no pods are only counted."""
    many: Counter[str] = Counter()
    podless: Counter[str] = Counter()
    for one in outcomes:
        if one.is_injected is None:
            podless[one.kind] += 1
            continue
        done = "injected" if one.is_injected else "skipped"
        many[done] += 1
        _say(f"<stdin>:{one.line}: {one.kind} {one.name}: {done}: {one.words}")
    kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(podless.items()))
    end = f"; these make no pods: {kinds}" if kinds else ""
    _say(f"amqpgate: {many['injected']} injected, {many['skipped']} skipped{end}")


def _say(line: str) -> None:
    # Names are of whoever wrote the manifests: none of them steers the terminal.
    echo(on_one_line(line), err=True)


@inject.command(short_help="Serve the mutating admission webhook.")
@click.option(
    "--config",
    "-c",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="YAML file of the injector's settings, with tls.",
)
def serve(config: Path) -> None:
    """Serve the mutating admission webhook (POST /inject, by HTTPS) until SIGTERM or SIGINT.

    \b
    Exit codes:
      0  stopped by a signal
      1  the address cannot be listened on
      2  wrong command line or settings
    """
    with reported():
        settings = _settings(config)
        from amqpgate import logs
        from amqpgate.app import webhook
        from amqpgate.app.standard_error import standard_error
        from amqpgate.cli.failures import ensure_free

        ensure_free([("bind", settings.bind.host, settings.bind.port)])
        with standard_error() as stream:
            logs.set_up(settings.log.format, settings.log.level, stream=stream)
            webhook.run(settings)


def _settings(config: Path | None) -> Injector:
    from amqpgate.inject import Injector, load

    if config is None:
        return Injector()
    if not config.exists():
        raise Failure(f"amqpgate: --config: no such file: {config}", WRONG)
    return load(config, os.environ)
