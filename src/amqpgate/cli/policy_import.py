"""``amqpgate policy import``: RabbitMQ's permissions to access policies."""

from __future__ import annotations

from pathlib import Path

import click

from amqpgate.cli.failures import WRONG, Failure, reported
from amqpgate.cli.policy_files import tell_gaps, write_new
from amqpgate.cli.telling import echo, echo_document
from amqpgate.logs import on_one_line


@click.command("import", short_help="Make policies of RabbitMQ's definitions.json.")
@click.argument("definitions", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write files into this folder, not to stdout.",
)
def import_(definitions: Path, out: Path | None) -> None:
    """Make access policies of the permissions and topic permissions in a RabbitMQ definitions FILE.

    They answer as RabbitMQ does; where they do not, a note on standard error says so. A permission that they
    cannot say, such as one with look-around, becomes a policy that denies all there.
    Files in DIR are not overwritten.

    \b
    rabbitmqctl export_definitions definitions.json
    amqpgate policy import definitions.json --out my-policies

    \b
    Exit codes:
      0  the policies are made
      2  the file is wrong, or holds nothing that policies can say; nothing is written
      3  they are made, but for permissions that policies cannot say; each is told
    """
    from amqpgate.policy.tools.definitions import parse
    from amqpgate.policy.tools.rabbitmq_import import import_permissions

    with reported():
        try:
            data = definitions.read_bytes()
        except OSError as error:
            raise Failure(f"amqpgate: {definitions}: {error.strerror}", WRONG) from None
        imported = import_permissions(parse(data, str(definitions)), str(definitions))
        if out is None:
            echo_document("---\n".join(source.data.decode() for source in imported.files))
        else:
            write_new(out, imported.files)
        for note in imported.notes:
            echo(f"note: {on_one_line(note)}", err=True)
        tell_gaps(imported)
