"""``amqpgate check``: everything that `run` would refuse, found without serving."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amqpgate.cli.failures import WRONG, Failure, from_config_error, reported
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.config import Settings


@click.command(short_help="Validate settings and policies.")
@click.option(
    "--config", "-c", metavar="FILE", type=click.Path(path_type=Path), help="YAML file of settings to check."
)
@click.option(
    "--policies",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of policies to check: alone, or in the place of the file's.",
)
@click.option(
    "--values",
    "-f",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Values of the Helm chart to check; more than one as for Helm.",
)
def check(config: Path | None, policies: Path | None, values: tuple[Path, ...]) -> None:
    """Validate settings, the files that they name, and policies; or values of the Helm chart. Nothing is
    started or connected to.

    Prints what the gateway would do. Errors are FILE:LINE:COLUMN: text.

    \b
    Exit codes:
      0  all is well
      2  something is wrong
    """
    if values:
        if config is not None or policies is not None:
            raise click.UsageError("--values has the settings and the policies in it: check it alone")
        _check_values(values)
        return
    if config is None and policies is None:
        raise click.UsageError("say --config FILE, --policies DIR, or both; or --values FILE")
    from amqpgate.cli.show import lines_of, policies_line, policy_lines
    from amqpgate.gateway.server.policy_fit import check_policies, notes_on
    from amqpgate.policy import PolicySet, load_folder

    with reported():
        settings = checked_settings(config) if config is not None else None
        if policies is None and settings is not None:
            policies = settings.policies
        if policies is not None and not policies.is_dir():
            raise Failure(f"amqpgate: --policies: no such folder: {policies}", WRONG)
        found = load_folder(policies) if policies is not None else PolicySet.empty()
        if settings is not None:
            check_policies(settings, found, os.environ)
            told = policy_lines(settings, found, folder=policies, is_serving=False)
            lines = list(lines_of(settings, told))
            lines += [f"note: {note}" for note in notes_on(settings, found)]
        else:
            lines = [policies_line(found, policies)]
    for line in lines:
        echo(line)
    echo("ok")


def _check_values(files: tuple[Path, ...]) -> None:
    try:
        from amqpgate.chart.checking import errors_in, notes_on
    except ImportError as error:
        raise Failure(f"amqpgate: {error.name} is missing: pip install 'amqpgate[helm]'") from error
    from amqpgate.errors import ConfigError
    from amqpgate.yamldoc import Node, read

    errors: list[ConfigError] = []
    documents: list[Node] = []
    for file in files:
        try:
            found = read(file)
        except ConfigError as error:
            errors.append(error)
            continue
        documents += found[:1]
        errors += [more.mark.error("Helm reads the first document of a file only") for more in found[1:]]
    errors += errors_in(documents)
    if errors:
        raise from_config_error(ConfigError.together(errors))
    for note in notes_on(documents):
        echo(f"note: {note}")
    echo("ok")


def checked_settings(path: Path) -> Settings:
    """The settings, after a look into every file that they name."""
    from amqpgate.config import load
    from amqpgate.gateway.server.identities import check_identity

    if not path.exists():
        raise Failure(f"amqpgate: --config: no such file: {path}", WRONG)
    settings = load(path, os.environ)
    check_identity(settings)
    _check_tls(path, settings)
    for upstream in settings.upstreams:
        upstream.login()
    if settings.admin is not None:
        settings.admin.token()
    return settings


def _check_tls(path: Path, settings: Settings) -> None:
    """Raises `ConfigError` for all certificates and keys that cannot be used, where they are named."""
    from amqpgate.config import Settings as SettingsType
    from amqpgate.errors import ConfigError
    from amqpgate.gateway.transport.tls import TlsContexts
    from amqpgate.yamldoc import locate, only_document, read

    contexts = TlsContexts()
    errors: list[ConfigError] = []
    asked: list[tuple[str, int, Callable[[], object]]] = []
    for index, listener in enumerate(settings.listeners):
        if listener.tls is not None:
            asked.append(("listeners", index, partial(contexts.for_listener, listener.tls)))
    for index, upstream in enumerate(settings.upstreams):
        if upstream.tls is not None:
            asked.append(("upstreams", index, partial(contexts.for_upstream, upstream.tls)))
    for name, index, load_files in asked:
        try:
            load_files()
        except ConfigError as error:
            node = only_document(read(path), str(path), os.environ)
            errors.append(locate(node, SettingsType, (name, index, "tls")).error(error.message))
    if errors:
        raise ConfigError.together(errors)
