"""What `amqpgate top` asks, as it is typed, and what it shows of a denial."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, cast

from amqpgate.cli.watching import JSON, Row, rows_of, text_of
from amqpgate.logs import on_one_line
from amqpgate.yamldoc import nearest

#: What sessions are found by; a word alone is the beginning of a user.
FILTERS: Final = ("user", "vhost", "client", "listener", "upstream", "route", "version", "flow", "name")
#: One word of a filter.
_WORD: Final = re.compile(r'(?:([^\s="]*)=)?(?:"((?:[^"]|"")*)"(\*?)|((?!(?:[^\s="]*=)?")\S*))(?:\s+|$)')
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
    """What was typed, such as ``app-* vhost=prod``. Raises ``ValueError`` with a sentence.

    In double quotes a text is one word, and meant as it stands; ``""`` in it is one of them.
    """
    found: dict[str, str] = {}
    for name, value in _words(text):
        if name not in FILTERS:
            meant = nearest(name, FILTERS) or f"; there are {', '.join(FILTERS)}"
            raise ValueError(f"no filter '{on_one_line(name)}'{meant}")
        if name in found:
            both = f"{on_one_line(found[name])} and {on_one_line(value)}"
            raise ValueError(
                f'{name} twice, {both}: one is looked for; a name with spaces is in quotes, "a b"'
            )
        found[name] = value
    return found


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Names and values; a word without a name is a user."""
    text, at = text.strip(), 0
    while at < len(text):
        word = _WORD.match(text, at)
        if word is None:
            raise ValueError('a quoted text ends in " with a space or * behind it; "" in it is one of them')
        at = word.end()
        name, quoted, star, plain = word.groups()
        value = plain if quoted is None else quoted.replace('""', '"') + star
        if name is None and quoted is None and not value.endswith("*"):
            value += "*"
        yield "user" if name is None else name, value


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


def request_of(decision: Row, operations: Row) -> dict[str, JSON]:
    """What is to be explained of a decision: as it was asked, with the arguments that its operation has."""
    has = cast("list[str]", operations[str(decision["operation"])])
    named = {key: decision[_ARGUMENTS[key]] for key in has if key in _ARGUMENTS}
    request = {"as": _who_of(decision), "op": decision["operation"], **named}
    return {"request": request, "shadow": decision["kind"] == "shadow"}


def _who_of(decision: Row) -> Row:
    """All that was known of who asked, as the gateway tells it; of one that does not, what there is."""
    if decision.get("as") is not None:
        return cast("Row", decision["as"])
    who = {"user": decision["user"], "vhost": decision["vhost"]}
    if decision["client"]:
        who["source"] = decision["client"]
    return who


def decision_lines(decision: Row) -> Iterator[str]:
    """What was decided, with all names whole."""
    from amqpgate.cli.decisions import cells_of

    at, what, operation, about, user, vhost, rule = cells_of(decision)
    yield f"{at} {what} {operation} {about}".rstrip()
    client = "" if decision["client"] is None else f" from {text_of(decision['client'])}"
    yield f"by user {user} in vhost {vhost}{client}, session {text_of(decision['session'])}"
    yield f"by {rule}: {text_of(decision['text'])}"
    yield ""


def explanation_lines(said: Row, decision: Row) -> Iterator[str]:
    """Why the policies in force answer so of what a decision was about, for people."""
    yield text_of(said["request"])
    allowed = said["verdict"] == "allow"
    yield f"{'allowed' if allowed else 'DENIED'} by {text_of(said['reason'])}"
    if allowed and decision["kind"] == "denied":
        yield "It was denied: other policies are in force now, or it was for a header, an argument, a"
        yield "property or the size, which are not kept."
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
