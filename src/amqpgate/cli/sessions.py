"""``amqpgate sessions`` and ``amqpgate close``: who is connected to a running gateway, and to end it."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import click

from amqpgate.cli.asking import admin_option, timeout_option
from amqpgate.cli.failures import FAILED, Failure
from amqpgate.cli.telling import echo
from amqpgate.cli.watching import FLOWS, Row, gateway_at, guarded_option, lines_of, rows_of, text_of

_COLUMNS = (
    ("id", "id"),
    ("user", "user"),
    ("vhost", "vhost"),
    ("client", "client"),
    ("version", "version"),
    ("upstream", "upstream"),
    ("channels", "channels"),
    ("published", "published"),
    ("delivered", "delivered"),
    ("refused", "refused"),
)


@click.command(short_help="List the sessions of a running gateway.")
@admin_option
@guarded_option
@timeout_option(default=10.0)
@click.option("--user", metavar="NAME", help="Of this user; app-* are all whose name begins so.")
@click.option("--vhost", metavar="NAME", help="Of this virtual host.")
@click.option("--client", metavar="ADDRESS", help="From this address; 10.0.* is what begins so.")
@click.option("--upstream", metavar="NAME", help="Whose messages go there.")
@click.option("--version", metavar="VERSION", help="Whose client speaks it: 0-8, 0-9, 0-9-1 or 0-10.")
@click.option("--flow", metavar="STATE", help="In this state, such as running or throttled.")
@click.option("--sort", metavar="COLUMN", default="-published", show_default=True, help="- is descending.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    help="At most so many.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sessions(
    admin: str,
    token_file: Path | None,
    timeout: float,
    user: str | None,
    vhost: str | None,
    client: str | None,
    upstream: str | None,
    version: str | None,
    flow: str | None,
    sort: str,
    limit: int,
    as_json: bool,
) -> None:
    """List the sessions of a running gateway (GET /sessions): those that fit, sorted.

    \b
    Exit codes:
      0  done
      1  no answer, or the gateway refused; it says why
    """
    gateway = gateway_at(admin, token_file, timeout)
    answer = gateway.get(
        "/sessions",
        user=user,
        vhost=vhost,
        client=client,
        upstream=upstream,
        version=version,
        flow=flow,
        sort=sort,
        limit=limit,
    )
    if as_json:
        echo(json.dumps(answer, indent=2))
        return
    found = rows_of(answer, "sessions")
    titles = [title for title, _ in _COLUMNS] + ["flow"]
    for line in lines_of(titles, [cells_of(row) for row in found]):
        echo(line)
    if len(found) < int(str(answer["matched"])):
        echo(f"{len(found)} of {answer['matched']}", err=True)


def cells_of(row: Row) -> list[str]:
    """One line of the table."""
    flow, user, known = str(row["flow"]), row["user"], row.get("upstream_user")
    if known not in (None, user):
        row = {**row, "user": f"{text_of(user)} as {known}"}
    return [*(text_of(row[key]) for _, key in _COLUMNS), FLOWS.get(flow, flow)]


@click.command(short_help="Close sessions of a running gateway.")
@click.argument("sessions", metavar="ID...", nargs=-1, required=True)
@admin_option
@guarded_option
@timeout_option(default=10.0)
@click.option("--reason", metavar="TEXT", help="What the client is told.")
@click.option("--now", is_flag=True, help="Whatever it is owed: for a client or a broker that is stuck.")
def close(
    sessions: tuple[str, ...],
    admin: str,
    token_file: Path | None,
    timeout: float,
    reason: str | None,
    now: bool,
) -> None:
    """Close the sessions ID of a running gateway (POST /sessions/ID/close): their clients get 320.

    Each is read no more, and told when its confirms and commits are answered, as in a drain; within
    limits.drainTimeout. This does not wait for it.

    \b
    Exit codes:
      0  they are being closed
      1  of some there is none of that id, no answer, or the gateway refused; it says why
    """
    gateway = gateway_at(admin, token_file, timeout)
    body: dict[str, str | bool] = {} if reason is None else {"reason": reason}
    if now:
        body["now"] = True
    closing = 0
    for session in sessions:
        path = f"/sessions/{quote(session, safe='')}/close"
        try:
            gateway.post(path, body)
        except Failure as failure:
            # The others are asked for as well: one may have left by itself.
            failure.show()
        else:
            closing += 1
    if closing:
        echo("closing" if len(sessions) == 1 else f"{closing} closing")
    if closing < len(sessions):
        raise SystemExit(FAILED)
