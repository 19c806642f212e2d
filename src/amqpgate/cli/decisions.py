"""``amqpgate decisions``: what a running gateway has refused lately, and what it refuses from now on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import click

from amqpgate.cli.asking import admin_option, timeout_option
from amqpgate.cli.telling import echo
from amqpgate.cli.watching import JSON, Row, WatchedGateway, gateway_at, guarded_option, rows_of, text_of

_ABOUT = ("exchange", "destination", "queue", "routing_key")


@click.command(short_help="Show what a running gateway refuses.")
@admin_option
@guarded_option
@timeout_option(default=10.0)
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option("--kind", type=click.Choice(("denied", "shadow", "not_transformed")), help="Only of this kind.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, 500),
    default=20,
    show_default=True,
    help="At most so many.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def decisions(
    admin: str,
    token_file: Path | None,
    timeout: float,
    follow: bool,
    kind: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show what a running gateway has refused lately, and what policies in mode shadow would refuse
    (GET /decisions); the newest last.

    \b
    Exit codes:
      0  done
      1  no answer, or the gateway refused; it says why
    """
    gateway = gateway_at(admin, token_file, timeout)
    found = _followed(gateway, kind, limit) if follow else _last(gateway, kind, limit)
    for decision in found:
        echo(json.dumps(decision) if as_json else line_of(decision))


def _last(gateway: WatchedGateway, kind: str | None, limit: int) -> list[Row]:
    return rows_of(gateway.get("/decisions", kind=kind, limit=limit), "decisions")[::-1]


def _followed(gateway: WatchedGateway, kind: str | None, limit: int) -> Iterator[Row]:
    """Those that there are, and those to come: heard first, so that none is missed in between."""
    shown: set[tuple[JSON, ...]] = set()
    for name, event in gateway.events("decision"):
        if not name:
            for decision in _last(gateway, kind, limit):
                shown.add(_key(decision))
                yield decision
        elif name == "dropped":
            echo(f"{event['count']} are left out: there were too many at once", err=True)
        elif name == "decision" and kind in (None, event["kind"]) and _key(event) not in shown:
            yield event


def _key(decision: Row) -> tuple[JSON, ...]:
    """What no other one has, also over a worker's end."""
    return decision["worker"], decision["number"], decision["at"]


def cells_of(decision: Row) -> tuple[str, ...]:
    """Time, what became of it, operation, what it is about, user, virtual host and rule, for people."""
    at = time.strftime("%H:%M:%S", time.localtime(float(str(decision["at"]))))
    kind = str(decision["kind"])
    words = {"denied": "DENIED", "shadow": f"would {decision['effect']}", "not_transformed": "REFUSED"}
    about = [
        f"{name.replace('_', ' ')} '{text_of(decision[name])}'"
        for name in _ABOUT
        if decision[name] is not None
    ]
    rule = (
        f"{decision['policy']}/{decision['rule']}" if decision["policy"] is not None else "no rule allows it"
    )
    who = text_of(decision["user"]), text_of(decision["vhost"])
    return at, words.get(kind, kind), str(decision["operation"]), ", ".join(about), *who, rule


def line_of(decision: Row) -> str:
    """One decision for people."""
    at, word, operation, about, user, vhost, rule = cells_of(decision)
    return f"{at}  {word:<11}  {operation} {about} by user '{user}' in vhost '{vhost}': {rule}"
