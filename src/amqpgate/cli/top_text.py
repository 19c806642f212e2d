"""What `amqpgate top` shows besides tables: filters as they are typed, a session, an explanation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from amqpgate.cli.watching import FLOWS, JSON, Row, rows_of, text_of
from amqpgate.yamldoc import nearest

#: What sessions are found by; a word alone is the beginning of a user.
FILTERS: Final = ("user", "vhost", "client", "upstream", "version", "flow")
#: What they are sorted by, with what it is called.
COLUMNS: Final[Mapping[str, str]] = {
    "user": "user",
    "vhost": "vhost",
    "client": "client",
    "channels": "channels",
    "published_rate": "published/s",
    "delivered_rate": "delivered/s",
    "published": "published",
    "delivered": "delivered",
    "refused": "refused",
}
#: As a request has them, and as a decision does.
_ARGUMENTS: Final = {
    "exchange": "exchange",
    "destination": "destination",
    "queue": "queue",
    "routingKey": "routing_key",
}


def filters_of(text: str) -> dict[str, str]:
    """What was typed, such as ``app-* vhost=prod``. Raises ``ValueError`` with a sentence."""
    found: dict[str, str] = {}
    for word in text.split():
        name, sign, value = word.partition("=")
        if not sign:
            name, value = "user", word if word.endswith("*") else f"{word}*"
        if name not in FILTERS:
            meant = nearest(name, FILTERS) or f"; there are {', '.join(FILTERS)}"
            raise ValueError(f"no filter '{name}'{meant}")
        found[name] = value
    return found


def match_of(session: Row) -> str:
    """Whose operations a tap of it looks for: those of others who are called the same are left out later."""
    client = str(session["client"]).rpartition(":")[0].strip("[]")
    parts = {"user": session["user"], "vhost": session["vhost"], "client": client or None}
    said = (
        f"{name}={_quoted(str(value))}" for name, value in parts.items() if value is not None and value != "-"
    )
    return " and ".join(said)


def _quoted(text: str) -> str:
    """No pattern, and no word of the language."""
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def session_lines(session: Row) -> Iterator[str]:
    """One session, for people."""
    flow = str(session["flow"])
    yield f"{text_of(session['user'])} in {text_of(session['vhost'])} from {text_of(session['client'])}"
    yield f"session    {text_of(session['id'])}, {text_of(session['version'])}, {FLOWS.get(flow, flow)}"
    yield f"upstream   {text_of(session['upstream'])}"
    yield f"published  {text_of(session['published'])} ({text_of(session['published_rate'])}/s)"
    yield f"delivered  {text_of(session['delivered'])} ({text_of(session['delivered_rate'])}/s)"
    yield f"refused    {text_of(session['refused'])}"
    names = cast("list[JSON]", session["policies"])
    yield f"policies   {', '.join(map(text_of, names)) or '-'}"
    for limit in rows_of(session, "limits"):
        rates = cast("Row", limit["quantities"])
        words = ", ".join(f"{text_of(most)} {text_of(name)}/s" for name, most in rates.items())
        yield f"limit      {text_of(limit['policy'])}/{text_of(limit['limit'])}: {words}"
    yield ""
    for channel in rows_of(session, "open_channels"):
        counts = f"published {text_of(channel['published'])}, delivered {text_of(channel['delivered'])}"
        unacked = f", unacked {text_of(channel['unacked'])}"
        yield f"channel {text_of(channel['number'])} {text_of(channel['state'])}: {counts}{unacked}"
        for consumer in rows_of(channel, "consumers"):
            yield f"  consumer {text_of(consumer['tag'])} of {text_of(consumer['queue'])}"
    flows = cast("Row", session["flows"])
    for title in ("publish", "deliver"):
        for one in rows_of(flows, title):
            where = f"{text_of(one['exchange']) or '(default)'} {text_of(one['routing_key'])}"
            yield f"{title} {where}: {text_of(one['messages'])} messages, {text_of(one['bytes'])} bytes"


def request_of(decision: Row, operations: Row) -> dict[str, JSON]:
    """What is to be explained of a decision: as it was asked, with the arguments that its operation has."""
    has = cast("list[str]", operations[str(decision["operation"])])
    named = {key: decision[_ARGUMENTS[key]] for key in has if key in _ARGUMENTS}
    who: dict[str, JSON] = {"user": decision["user"], "vhost": decision["vhost"]}
    if decision["client"]:
        who["source"] = decision["client"]
    request = {"as": who, "op": decision["operation"], **named}
    return {"request": request, "shadow": decision["kind"] == "shadow"}


def explanation_lines(said: Row) -> Iterator[str]:
    """Why the policies in force answer so, for people."""
    yield text_of(said["request"])
    yield f"{'allowed' if said['verdict'] == 'allow' else 'DENIED'} by {text_of(said['reason'])}"
    yield ""
    steps = rows_of(said, "steps")
    for step in steps:
        if len(steps) > 1:
            yield f"{text_of(step['request'])}: {text_of(step['verdict'])}"
        for rule in rows_of(step, "rules"):
            why = (
                "decides"
                if rule["decides"]
                else "matches, too"
                if rule["matches"]
                else f"does not match: {text_of(rule['whyNot'])}"
            )
            yield f"  {text_of(rule['policy'])}/{text_of(rule['rule'])} ({text_of(rule['effect'])}) {why}"
    for policy in rows_of(said, "policies"):
        if policy["why"] is not None:
            yield f"policy {text_of(policy['policy'])}: {text_of(policy['why'])}"
