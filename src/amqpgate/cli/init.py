"""``amqpgate init``: settings and policies to begin with, made of answers and of what the broker has."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from amqpgate.cli.failures import WRONG, Failure, reported
from amqpgate.cli.policy_files import tell_gaps, write_new
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.config import Settings
    from amqpgate.policy.tools.rabbitmq_import import Imported

SETTINGS: Final = """\
# Settings of a gateway. All that there is: amqpgate schema settings
listeners:
- {{name: clients, bind: {listen}}}
upstreams:
- {{name: broker, url: {upstream}}}
{policies}# The page, metrics and health, on this machine alone.
admin: {{bind: {admin}}}
"""

POLICIES: Final = """\
# A change there takes effect at once.
policies: policies
"""

#: Where the broker's own permissions are not known: something to see.
STARTER: Final = """\
# Everybody may do everything, but publish with the key "secret".
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: first}
spec:
  subjects: [{user: "*"}]
  onDeny: {disclose: rule-id}
  rules:
  - {id: all, effect: allow, operations: ["*"]}
  - {id: no-secrets, effect: deny, operations: [basic.publish], routingKey: {literal: secret}}
"""

_BROKER: Final = "amqp://127.0.0.1:5672"
#: Who is asked nothing says it there.
_VARIABLE: Final = "AMQPGATE_MANAGEMENT_PASSWORD"
#: Seconds for all of the broker's definitions, and bytes of them: at 200 for a queue or a binding, those of
#: 300,000.
_WITHIN: Final = 60.0
_MOST: Final = 64 << 20


@click.command(short_help="Write settings and policies for a first gateway.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default="amqpgate")
@click.option("--upstream", metavar="URL", help=f"The broker.  [default: {_BROKER}]")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:5673",
    show_default=True,
    help="Where clients will connect.",
)
@click.option(
    "--admin",
    metavar="HOST:PORT",
    default="127.0.0.1:15680",
    show_default=True,
    help="Where the page, metrics and health will be.",
)
@click.option(
    "--management",
    metavar="URL",
    help="The broker's management interface, http[s]://HOST:PORT: policies are made of its permissions.",
)
@click.option("--user", default="guest", show_default=True, help="An administrator there.")
@click.option(
    "--definitions",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What `rabbitmqctl export_definitions` wrote, in the place of --management.",
)
@click.option("--enforce", is_flag=True, help="Have imported policies decide at once, not only count.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing; take the defaults.")
def init(
    folder: Path,
    upstream: str | None,
    listen: str,
    admin: str,
    management: str | None,
    user: str,
    definitions: Path | None,
    enforce: bool,
    yes: bool,
) -> None:
    """Write settings and policies for a first gateway into FOLDER (amqpgate): amqpgate.yaml, and policies/.

    Asks for what is not said. With --management or --definitions there is a file of policies for each user of
    the broker, which answer as its permissions do; they are in shadow at first: they count, and decide
    nothing (`mode: shadow`). The password of --user is asked for, or read from AMQPGATE_MANAGEMENT_PASSWORD;
    it is written nowhere. Nothing that is there is overwritten.

    \b
    amqpgate init
    amqpgate init gate --upstream amqp://rabbit:5672 --management http://rabbit:15672

    \b
    Exit codes:
      0  they are written, and right
      1  the management interface does not answer, or refuses, or that is none
      2  an answer is wrong, or there are such files already; nothing is written
      3  they are written, but for permissions that policies cannot say; each is told, and denied
    """
    from amqpgate.config import Address, AmqpUrl
    from amqpgate.policy.loader import Source

    asks = not yes
    if upstream is None:
        upstream = _asked("The broker", _BROKER) if asks else _BROKER
    if management is None and definitions is None and asks:
        management = (
            _asked("Its management interface, to make policies of its permissions (empty: none)", "") or None
        )
    with reported():
        said = {"listen": listen, "upstream": upstream, "admin": admin}
        for option, value, parse in (
            ("upstream", upstream, AmqpUrl.parse),
            ("listen", listen, Address.parse),
            ("admin", admin, Address.parse),
        ):
            try:
                parse(value)
            except ValueError as error:
                raise Failure(f"amqpgate: --{option}: {error}", WRONG) from None
        values = {name: json.dumps(value) for name, value in said.items()}
        # The folder of policies is not there yet.
        settings = _parsed(SETTINGS.format(policies="", **values), folder)
        imported = _imported(upstream, management, user, definitions, asks=asks, enforce=enforce)
        made = (Source("first.yaml", STARTER.encode()),) if imported is None else imported.files
        text = SETTINGS.format(policies=POLICIES, **values)
        files = [Source("amqpgate.yaml", text.encode())]
        write_new(folder, files + [Source(f"policies/{one.name}", one.data) for one in made])
        for note in imported.notes if imported is not None else ():
            echo(f"note: {note}")
        _greet(settings)
    config = folder / "amqpgate.yaml"
    echo(f"""
Next:
  amqpgate doctor --config {config}
  amqpgate run --config {config}
Clients connect to amqp://{listen}, with the logins that they have; look at http://{admin}/.""")
    if imported is None:
        echo(f"""\
A first denial: publish with the routing key "secret", to any exchange, and look at http://{admin}/#denials.""")
    else:
        tell_gaps(imported)


def _asked(what: str, default: str) -> str:
    """What somebody answers."""
    try:
        answer: str = click.prompt(what, default=default, show_default=bool(default))
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError("nobody is there to answer: say --yes to take the defaults") from None
    return answer


def _parsed(text: str, folder: Path) -> Settings:
    from amqpgate.config import parse

    settings = parse(text, {}, file=str(folder / "amqpgate.yaml"))
    (upstream,) = settings.upstreams
    if upstream.has_login:
        raise Failure(
            "amqpgate: --upstream: leave the login out, clients have their own; for one of the gateway's, "
            "write user and passwordFile into the settings afterwards",
            WRONG,
        )
    return settings


def _imported(
    upstream: str,
    management: str | None,
    user: str,
    definitions: Path | None,
    *,
    asks: bool,
    enforce: bool,
) -> Imported | None:
    """Policies that answer as the broker's permissions do; None where nobody says where these are."""
    from amqpgate.policy.tools.definitions import of_json, parse
    from amqpgate.policy.tools.rabbitmq_import import import_permissions

    if definitions is not None:
        name = str(definitions)
        found = parse(definitions.read_bytes(), name)
    elif management is not None:
        name = management
        found = of_json(_exported(upstream, management, user, asks=asks), name)
    else:
        return None
    return import_permissions(found, name, mode="enforce" if enforce else "shadow")


def _exported(upstream: str, management: str, user: str, *, asks: bool) -> object:
    """The broker's definitions, as its management interface exports them."""
    from amqpgate.cli.move_management import Management
    from amqpgate.config import AmqpUrl
    from amqpgate.move.document import ManagementUrl, MoveEnd

    try:
        end = MoveEnd(
            upstream="the broker",
            management=ManagementUrl.parse(management),
            amqp=AmqpUrl.parse(upstream),
            user=user,
            password_env=_VARIABLE,
        )
    except ValueError as error:
        raise Failure(f"amqpgate: --management: {error}", WRONG) from None
    password = os.environ.get(_VARIABLE)
    if password is None and asks:
        password = click.prompt(f"Password of {user}", hide_input=True)
    if password is None:
        raise Failure(f"amqpgate: say the password of {user} in {_VARIABLE}", WRONG)
    broker = Management(end, password, timeout=10, within=_WITHIN, most=_MOST)
    return broker.get("/definitions")


def _greet(settings: Settings) -> None:
    """Say who answers. That nobody does is no error: the broker may be started later."""
    from amqpgate.cli.doctor import show
    from amqpgate.cli.doctor_peers import peers_of

    for finding in peers_of(settings, timeout=3.0):
        if finding.what.endswith(": broker") or finding.state == "bad":
            show(finding)
