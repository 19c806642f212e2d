"""``amqpgate tap``: watch operations while they pass a running gateway."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypedDict, cast

import click

from amqpgate.cli.asking import (
    admin_address,
    admin_option,
    connection_to,
    timeout_option,
    token_option,
    url_of,
)
from amqpgate.cli.failures import WRONG, Failure, reported
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.cli.pcap import Capture
    from amqpgate.config import Address


class TapLine(TypedDict, total=False):
    """What the gateway says: of an operation (``gateway.tapping_lines``), or how many matched."""

    event: str
    worker: int
    matched: int
    time: float
    session: str
    channel: int
    user: str | None
    upstream_user: str | None
    vhost: str
    client: str | None
    amqp_version: str
    operation: str
    exchange: str
    routing_key: str
    queue: str
    destination: str
    verdict: str
    policy: str
    rule: str
    #: JSON.
    arguments: str
    properties: str
    headers: str
    body_size: int
    #: Base64.
    body: str
    frames: str


#: Characters of headers and of a body in a line for people.
_LONGEST = 200


@click.command(short_help="Watch operations while they pass a running gateway.")
@click.option(
    "--match",
    metavar="EXPRESSION",
    default="",
    help="What is shown, such as 'vhost=prod and exchange=orders'; everything unless given.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Lines for people, or JSON.",
)
@click.option(
    "--pcap",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write a capture for Wireshark as well; with - to standard output, and no lines.",
)
@click.option("--every", metavar="N", type=click.IntRange(1, 1_000_000), help="Show one message in N.")
@click.option("--seconds", metavar="N", type=click.FloatRange(0.001, 86400), help="End after so long.")
@click.option("--count", metavar="N", type=click.IntRange(1), help="End after so many operations.")
@admin_option
@token_option(help="File with the bearer token, as admin.tokenFile has it.")
@timeout_option(default=10.0)
def tap(
    match: str,
    form: str,
    pcap: Path | None,
    every: int | None,
    seconds: float | None,
    count: int | None,
    admin: str,
    token_file: Path | None,
    timeout: float,
) -> None:
    """Watch operations that match while they pass a running gateway (GET /tap).

    An EXPRESSION has comparisons with and, or, not and parentheses. Attributes are operation, vhost, user,
    client, exchange, routing_key, queue, destination and verdict; = and != compare (a name may end in *, a
    routing key may be a topic pattern, a client a range of addresses), ~ looks for a regular expression.

    Of messages there is what an audit policy lets into records: without one, no properties and no bodies. At
    most 1000 operations are shown in a second; how many matched besides is said at the end, which Ctrl-C
    brings about, too.

    \b
    Exit codes:
      0  it has ended as it was asked to
      1  no answer, or the gateway has gone
      2  the expression or an option is wrong
    """
    frames = None if pcap is None else 1
    query = {"match": _checked(match), "every": every, "seconds": seconds, "count": count, "frames": frames}
    address = admin_address(admin)
    headers = {"X-Amqpgate": "1"}
    if token_file is not None:
        from amqpgate.config.upstream import read_secret
        from amqpgate.yamldoc import FilePath

        with reported():
            headers["Authorization"] = f"Bearer {read_secret(FilePath(token_file))}"
    with contextlib.ExitStack() as stack:
        capture = None if pcap is None else _capture(stack, pcap)
        form = "none" if pcap is not None and str(pcap) == "-" else form
        lines = tapped(address, {key: value for key, value in query.items() if value}, headers, timeout)
        shown = matched = 0
        by_worker: dict[int, int] = {}
        try:
            for line in stack.enter_context(contextlib.closing(lines)):
                if line["event"] == "operation":
                    shown += 1
                    _show(line, form)
                    if capture is not None:
                        _add(capture, line)
                elif line["event"] == "begun" and not by_worker:
                    echo(f"tapping {match or 'everything'}; Ctrl-C ends it", err=True)
                    by_worker[line["worker"]] = 0
                elif line["event"] == "counts":
                    by_worker[line["worker"]] = line["matched"]
                elif line["event"] == "end":
                    echo(_of(shown, line["matched"]), err=True)
                    return
                matched = sum(by_worker.values())
        except KeyboardInterrupt:
            echo(f"{_of(shown, max(shown, matched))}, as of its last word", err=True)
            return
        except BrokenPipeError:
            # Who reads has seen enough, such as head.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
    raise Failure(f"amqpgate: {url_of(address)}/tap has ended early; {_of(shown, max(shown, matched))}")


def _of(shown: int, matched: int) -> str:
    return f"{shown} shown of {matched} that matched"


def _checked(match: str) -> str:
    """The expression; ``Failure`` points at what is wrong with it."""
    from amqpgate.policy.engine.taps import MatchError, parse

    try:
        parse(match)
    except MatchError as error:
        mark = f"\n  {match}\n  {'^':>{error.column}}" if match.isprintable() else ""
        raise Failure(f"amqpgate: --match, {error}{mark}", WRONG) from None
    return match


def _capture(stack: contextlib.ExitStack, path: Path) -> Capture:
    from amqpgate.cli.pcap import Capture

    file: BinaryIO
    if str(path) == "-":
        file = sys.stdout.buffer
    else:
        try:
            # There may be bodies in it.
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as error:
            raise Failure(f"amqpgate: --pcap: {path}: {error.strerror}", WRONG) from None
        file = stack.enter_context(os.fdopen(opened, "wb"))
    return Capture(file)


def tapped(
    address: Address, query: Mapping[str, object], headers: Mapping[str, str], timeout: float
) -> Generator[TapLine]:
    """What the gateway says; it ends when the gateway does. ``Failure`` where it says nothing at all."""
    import http.client
    import json
    from http import HTTPStatus
    from urllib.parse import urlencode

    connection = connection_to(address, timeout)
    try:
        connection.request("GET", f"/tap?{urlencode(query)}", headers=dict(headers))
        with connection.getresponse() as answer:
            if answer.status != HTTPStatus.OK:
                text = answer.read(4096).decode("utf-8", "replace").strip()
                wrong = answer.status == HTTPStatus.BAD_REQUEST
                raise Failure(f"amqpgate: {url_of(address)}/tap: {text}", WRONG if wrong else 1)
            # Each second it says something.
            while line := answer.readline():
                yield cast("TapLine", json.loads(line))
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Failure(
            f"amqpgate: no answer from {url_of(address)}/tap: {why}; is the gateway running with --admin?"
        ) from error
    finally:
        connection.close()


def _show(line: TapLine, form: str) -> None:
    if form == "none":
        return
    if form == "json":
        import json

        shown = {key: value for key, value in line.items() if key not in ("event", "frames")}
        echo(json.dumps(shown))
        return
    echo(text_of(line))


def text_of(line: TapLine) -> str:
    """One operation as one line for people. What clients have named can do nothing to a terminal."""
    import base64
    from datetime import datetime

    at = datetime.fromtimestamp(line["time"]).astimezone().strftime("%H:%M:%S.%f")[:-3]
    parts = [at, f"{line['verdict']:5}", f"{line['operation']:14}"]
    known = line.get("upstream_user")
    login = "" if known in (None, line["user"]) else f" as {_word(known)}"
    parts.append(f"{_word(line['user'])}@{_word(line['vhost'])}{login} {line['client']}")
    names = {name: line.get(name) for name in ("exchange", "routing_key", "queue", "destination")}
    parts += [f"{name}={_word(str(value))}" for name, value in names.items() if value is not None]
    if line.get("arguments"):
        parts.append(_cut(line["arguments"]))
    if line.get("body_size") is not None:
        parts.append(f"{line['body_size']} B")
    if line["verdict"] != "allow" or line.get("policy"):
        parts.append(f"by {_word(line.get('policy') or '-')}/{_word(line['rule'])}")
    tables = {name: str(line.get(name, "{}")) for name in ("properties", "headers")}
    parts += [f"{name} {_cut(table)}" for name, table in tables.items() if table != "{}"]
    if "body" in line:
        parts.append(f"body {_cut(base64.b64decode(line['body']).decode('utf-8', 'backslashreplace'))}")
    return " ".join(parts)


def _word(text: str | None) -> str:
    """A name, in quotes where it would not be one word."""
    import json

    if text is None:
        return "-"
    plain = text and text.isprintable() and not any(letter in " ()\"'" for letter in text)
    return text if plain else json.dumps(text)


def _cut(text: str) -> str:
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


def _add(capture: Capture, line: TapLine) -> None:
    import base64

    from amqpgate.cli.pcap import CANONICAL, DIALECTS
    from amqpgate.policy.engine.taps import SENT

    frames = base64.b64decode(line["frames"])
    if not frames:
        return
    try:
        capture.add(
            line["session"],
            line["client"] or "",
            line["time"],
            frames,
            line["channel"],
            base64.b64decode(line.get("body", "")),
            # What was refused before its header had come has none.
            line.get("body_size") or 0,
            is_sent=line["operation"] in SENT,
            dialect=DIALECTS.get(line.get("amqp_version", ""), CANONICAL),
        )
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"amqpgate: --pcap: {error.strerror}") from None
