"""One session in `amqpgate top`, as text: who it is, what it may, and what it does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, cast

from amqpgate.cli.watching import FLOWS, JSON, Row, rows_of, text_of

#: Characters of a name in a question.
_LONGEST: Final = 40


def who_of(row: Row) -> str:
    """Whose session it is, for a question about it."""
    user, vhost, client = (_cut(text_of(row[name])) for name in ("user", "vhost", "client"))
    return f" of {user} in {vhost} from {client}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def session_lines(session: Row, now: float | None = None) -> Iterator[str]:
    """One session, for people."""
    flow = str(session["flow"])
    yield f"{text_of(session['user'])} in {text_of(session['vhost'])} from {text_of(session['client'])}"
    yield f"session    {text_of(session['id'])}, {text_of(session['version'])}, {FLOWS.get(flow, flow)}"
    yield from _origin_lines(session)
    yield from _identity_lines(session, time.time() if now is None else now)
    yield f"published  {text_of(session['published'])} ({text_of(session['published_rate'])}/s)"
    yield f"delivered  {text_of(session['delivered'])} ({text_of(session['delivered_rate'])}/s)"
    yield f"refused    {text_of(session['refused'])}"
    yield f"policies   {_listed(session['policies'])}"
    if session["shadow_policies"]:
        yield f"in shadow  {_listed(session['shadow_policies'])}"
    for limit in rows_of(session, "limits"):
        rates = cast("Row", limit["quantities"])
        words = ", ".join(f"{text_of(most)} {text_of(name)}/s" for name, most in rates.items())
        yield f"limit      {text_of(limit['policy'])}/{text_of(limit['limit'])}: {words}"
    yield ""
    yield from _channel_lines(session)


def _origin_lines(session: Row) -> Iterator[str]:
    """Where it comes in, and where it goes."""
    tls = ""
    if session["tls"]:
        tls = ", TLS" if session["tls_name"] is None else f", TLS as {text_of(session['tls_name'])}"
    yield f"listener   {text_of(session['listener'])}{tls}"
    said = [text_of(session[name]) for name in ("name", "product") if session[name] is not None]
    if said:
        yield f"client     {', '.join(said)}"
    endpoint = "" if session["endpoint"] is None else f" at {text_of(session['endpoint'])}"
    route = "" if session["route"] is None else f", by route {text_of(session['route'])}"
    user = "" if session["upstream_user"] is None else f" as user {text_of(session['upstream_user'])}"
    yield f"upstream   {text_of(session['upstream'])}{endpoint}{user}{route}"


def _identity_lines(session: Row, now: float) -> Iterator[str]:
    """What policies know of who it is, beside its user."""
    yield f"groups     {_listed(session['groups'])}"
    if session["token"] is None:
        return
    token = cast("Row", session["token"])
    yield f"token      of {text_of(token['issuer'])}, {_end(token['ends'], now)}"
    yield f"scopes     {_listed(token['scopes'])}"
    for name, values in cast("Row", token["claims"]).items():
        yield f"claim      {text_of(name)}: {_listed(values)}"


def _end(at: JSON, now: float) -> str:
    """Until when a token holds. What is beyond all calendars has no date."""
    if at is None:
        return "without an end"
    seconds = float(cast("float", at))
    try:
        date = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "without an end to live to see"
    left = int(seconds - now)
    if left < 0:
        return f"ended at {date}"
    return f"ends at {date}, in {left // 3600}:{left // 60 % 60:02}:{left % 60:02}"


def _listed(values: JSON) -> str:
    return ", ".join(map(text_of, cast("list[JSON]", values))) or "-"


def _channel_lines(session: Row) -> Iterator[str]:
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
