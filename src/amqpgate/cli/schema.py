"""``amqpgate schema``: the JSON Schemas that editors complete and check by."""

from __future__ import annotations

import json
from typing import Final

import click

from amqpgate.cli.failures import WRONG, Failure
from amqpgate.cli.telling import echo

#: What names the settings, beside the kinds of policies.
SETTINGS: Final = "settings"
#: How most kinds end; who looks for one may leave it out.
_POLICY: Final = "Policy"


@click.command(short_help="Show the JSON Schema of settings or policies.")
@click.argument("kind", metavar="KIND", default="")
def schema(kind: str) -> None:
    """Print the JSON Schema of KIND, which is `settings` or a kind of policy such as AccessPolicy.

    Without KIND they are listed.

    An editor takes it from the first line of a file:

    \b
      amqpgate schema AccessPolicy > access-policy.json
      # yaml-language-server: $schema=access-policy.json

    \b
    Exit codes:
      0  printed
      2  there is no such kind
    """
    from amqpgate.config.load import schema as schema_of_settings
    from amqpgate.policy.kinds.registry import DOCUMENT_KINDS
    from amqpgate.policy.kinds.schema import schema as schema_of
    from amqpgate.yamldoc import nearest

    kinds = {found.name: found for found in DOCUMENT_KINDS}
    by_name = {name.lower(): name for name in (SETTINGS, *kinds)}
    if not kind:
        echo("\n".join((SETTINGS, *kinds)))
        return
    name = by_name.get(kind.lower())
    if name is None:
        known = by_name.values()
        stems = [name.removesuffix(_POLICY) for name in known if name.endswith(_POLICY)]
        near = nearest(kind, known) or nearest(kind, stems).replace("'?)", f"{_POLICY}'?)")
        raise Failure(f"amqpgate: there is no kind {kind!r}{near}; there are {', '.join(known)}", WRONG)
    echo(json.dumps(schema_of_settings() if name == SETTINGS else schema_of(kinds[name]), indent=2))
