"""``amqpgate policy explain``: which rule decides a request, and why each other one does not."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from amqpgate.cli.failures import WRONG, Failure, reported
from amqpgate.cli.policy_files import default_access_option, read_policies
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.config import Settings
    from amqpgate.gateway.session.broker_side import BrokerSide
    from amqpgate.policy.engine.requests import Request
    from amqpgate.policy.kinds.common import DefaultAccess
    from amqpgate.policy.tools.explain import Explanation
    from amqpgate.yamldoc.nodes import Plain

_WHO = r"user|vhost|source|listener|group|scope|tls\.(?:subject|commonName|name)|claim\.[^=,]+|client\.[^=,]+"


@click.command(short_help="Say which rule decides a request, and why.")
@click.option(
    "--policies", required=True, metavar="DIR", type=click.Path(path_type=Path), help="Folder of policies."
)
@click.option(
    "--as",
    "who",
    multiple=True,
    required=True,
    metavar="KEY=VALUE,...",
    help="Who asks: user, vhost, source, listener, tls.subject, tls.commonName, tls.name, client.NAME; and "
    "of a verified token group, scope, claim.NAME.",
)
@click.option("--op", required=True, metavar="OPERATION", help="What for, such as basic.publish.")
@click.option("--exchange", metavar="NAME", help="The exchange; '' is the default exchange.")
@click.option("--queue", metavar="NAME", help="The queue.")
@click.option("--routing-key", metavar="KEY", help="Routing key or binding key.")
@click.option("--destination", metavar="NAME", help="The exchange that an exchange binding feeds.")
@click.option(
    "--argument", multiple=True, metavar="NAME=VALUE", help="An argument of a declare, bind or consume."
)
@click.option(
    "--property", "properties", multiple=True, metavar="NAME=VALUE", help="A property of the message."
)
@click.option(
    "--header", multiple=True, metavar="NAME=VALUE", help="A header; CC=KEY,KEY gives more routing keys."
)
@click.option("--body-bytes", type=click.IntRange(min=0), metavar="N", help="Size of the message's body.")
@click.option("--passive", is_flag=True, help="Of a declare: only ask whether the name exists.")
@click.option(
    "--flag",
    "flags",
    multiple=True,
    type=click.Choice(["durable", "exclusive", "auto-delete"]),
    help="Of queue.declare: what the queue is to be.",
)
@click.option("--shadow", is_flag=True, help="As if policies in mode shadow were enforced.")
@default_access_option
@click.option(
    "--config",
    "-c",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Settings, to say where an upstream logs in as another user, and for their `defaultAccess`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(
    policies: Path,
    who: tuple[str, ...],
    op: str,
    exchange: str | None,
    queue: str | None,
    routing_key: str | None,
    destination: str | None,
    argument: tuple[str, ...],
    properties: tuple[str, ...],
    header: tuple[str, ...],
    body_bytes: int | None,
    passive: bool,
    flags: tuple[str, ...],
    shadow: bool,
    default_access: DefaultAccess,
    config: Path | None,
    as_json: bool,
) -> None:
    """Say how the policies in DIR answer one request: which rule decides, and why each other one does not.

    \b
    amqpgate policy explain --policies policies --as user=bob,vhost=prod \\
      --op basic.publish --exchange orders --routing-key order.eu.created
    amqpgate policy explain --policies policies --as user=bob --as client.product=pika \\
      --op queue.declare --queue mine --argument x-dead-letter-exchange=theirs --json

    Values are text; whole numbers, true and false are read as such.

    \b
    Exit codes:
      0  the request is explained, allowed or denied
      2  the command line or the policies are wrong
    """
    from amqpgate.gateway.session.broker_side import broker_side
    from amqpgate.policy.engine.requests import Request
    from amqpgate.policy.tools.explain import explain as explained
    from amqpgate.policy.tools.explained import as_data
    from amqpgate.yamldoc import from_python, structure

    with reported():
        logins: dict[str, str | None] = {}
        if config is not None:
            settings = _settings(config)
            default_access = settings.default_access
            logins = {upstream.name: upstream.user for upstream in settings.upstreams}
        found, _ = read_policies(policies, default_access)
        asked: dict[str, Plain] = {
            "as": _who(who),
            "op": op,
            "passive": passive,
            "arguments": _pairs("--argument", argument),
            "properties": _pairs("--property", properties),
            "headers": _pairs("--header", header),
            "flags": [*flags],
        }
        optional: list[tuple[str, str | int | None]] = [
            ("exchange", exchange),
            ("queue", queue),
            ("routingKey", routing_key),
            ("destination", destination),
            ("bodyBytes", body_bytes),
        ]
        asked |= {key: value for key, value in optional if value is not None}
        request: Request = structure(from_python(asked, "command line"), Request)
        said = explained(found, request.operation(), shadow=shadow, logins=logins)
        side = broker_side(found, said.operation, flags) if said.verdict.allowed else None
    if as_json:
        broker = None if side is None else attrs.asdict(side)
        echo(json.dumps(as_data(said) | {"broker": broker}, indent=2))
        return
    for line in lines_of(said):
        echo(line)
    if side is not None:
        for line in broker_lines(side):
            echo(line)


def _settings(path: Path) -> Settings:
    from amqpgate.config import load

    if not path.exists():
        raise Failure(f"amqpgate: --config: no such file: {path}", WRONG)
    return load(path, os.environ)


def _who(given: tuple[str, ...]) -> dict[str, Plain]:
    """``user=bob,vhost=prod``: a comma divides only where another key follows."""
    who: dict[str, Plain] = {}
    client: dict[str, Plain] = {}
    tls: dict[str, Plain] = {}
    claims: dict[str, Plain] = {}
    lists: dict[str, list[Plain]] = {"tls.name": [], "group": [], "scope": []}
    for text in given:
        for part in re.split(rf",(?=(?:{_WHO})=)", text):
            key, sign, value = part.partition("=")
            if not sign or not re.fullmatch(_WHO, key):
                raise click.UsageError(
                    f"--as {part}: expected KEY=VALUE, with a KEY of user, vhost, source, listener, "
                    "tls.subject, tls.commonName, tls.name, client.NAME, group, scope or claim.NAME"
                )
            if key in lists:
                lists[key].append(value)
            elif key.startswith("claim."):
                claims[key[6:]] = value
            elif key.startswith("tls."):
                tls[key[4:]] = value
            elif key.startswith("client."):
                client[key[7:]] = value
            else:
                who[key] = value
    if lists["tls.name"]:
        tls["names"] = lists["tls.name"]
    who.setdefault("user", None)
    more: dict[str, Plain] = {
        "tls": tls,
        "client": client,
        "groups": lists["group"],
        "scopes": lists["scope"],
        "claims": claims,
    }
    return who | {key: value for key, value in more.items() if value}


def _pairs(option: str, given: tuple[str, ...]) -> dict[str, Plain]:
    found: dict[str, Plain] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.UsageError(f"{option} {text}: expected NAME=VALUE")
        if option == "--header" and name in ("CC", "BCC"):
            found[name] = [*value.split(",")]
        elif value in ("true", "false"):
            found[name] = value == "true"
        else:
            found[name] = int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else value
    return found


def broker_lines(side: BrokerSide) -> Iterator[str]:
    """What the broker gets, for people."""
    if side.refused:
        yield f"the broker gets nothing: {side.refused}"
        return
    yield f"the broker gets {side.request}"
    if side.policy:
        yield f"  by {side.policy}: {', '.join(side.items)}" + (f" ({side.left})" if side.left else "")


def lines_of(said: Explanation) -> Iterator[str]:
    """The explanation for people."""
    from amqpgate.policy.engine.requests import words_for

    principal = said.operation.principal
    user = "whose name is not known" if principal.user is None else f"'{principal.user}'"
    yield f"{words_for(said.operation)} as user {user} in vhost '{principal.vhost}'"
    if principal.groups:
        yield f"in groups {', '.join(sorted(principal.groups))}"
    yield f"{'allowed' if said.verdict.allowed else 'DENIED'} by {said.by}"
    for step in said.steps:
        if len(said.steps) > 1:
            answer = "allowed" if step.verdict.allowed else "DENIED"
            yield f"{words_for(step.operation)}: {answer}"
        for rule in step.rules:
            if rule.decides:
                answer = "decides"
            elif rule.matches:
                answer = "matches, too"
            else:
                answer = f"does not match: {rule.mismatch}"
            yield f"  {rule.policy}/{rule.rule} ({rule.effect}) {answer}"
    for policy in said.policies:
        if policy.why:
            how = "counts in part" if policy.counts else "does not count"
            yield f"policy {policy.policy} {how}: {policy.why}"
    if said.mirror is not None:
        yield f"mirrored by {said.mirror}"
    if said.login is not None:
        yield said.login
