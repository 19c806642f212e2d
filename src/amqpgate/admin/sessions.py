"""``/sessions``: who is connected, all of one, and to close one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate.admin.answering import answer, number_of, object_of
from amqpgate.admin.asking import signed
from amqpgate.admin.paths import Parameter, Path, ResponseDoc, json_answer
from amqpgate.admin.schemas import COUNT, DETAIL, ROW, TEXT, listed, of
from amqpgate.admin.subject import AdminSubject, Refused
from amqpgate.bridge import VERSIONS
from amqpgate.operator.sessions import COLUMNS, FILTERS, FLOWS, key_of
from amqpgate.telemetry.answers import JSON
from amqpgate.yamldoc import nearest

#: Rows of one answer; and how far one may leaf through them, since each worker gives all before as well.
MOST: Final = 1000
FARTHEST: Final = 20_000
#: What the client is told where the operator says nothing.
_REASON: Final = "closed by an operator"
_LONGEST_REASON: Final = 200
#: Of these all that they may say is known.
_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {"version": VERSIONS.names, "flow": FLOWS}
#: No control characters.
_ON_ONE_LINE: Final = r"^[^\x00-\x1f\x7f-\x9f]*$"


def _ensure_among(known: Collection[str], said: str, what: str) -> None:
    """Refuse what is not known, and name what is."""
    if said not in known:
        said = said[:_LONGEST_REASON]
        raise Refused(400, f"{what}: {said!a}{nearest(said, known)}; there are {', '.join(known)}")


def session_handlers(subject: AdminSubject) -> list[Route]:
    """The paths."""

    async def listing(request: Request) -> Response:
        query = request.query_params
        sort = query.get("sort", "id")
        _ensure_among(COLUMNS, sort.removeprefix("-"), "sort: no such column")
        for name in query:
            _ensure_among((*FILTERS, "sort", "limit", "offset"), name, "no such parameter")
        for name, known in _KNOWN.items():
            if name in query:
                _ensure_among(known, query[name], f"{name}: no such one")
        limit, offset = number_of(query, "limit", 100, 1, MOST), number_of(query, "offset", 0, 0, FARTHEST)
        where = {name: query[name] for name in FILTERS if name in query}
        wanted: dict[str, JSON] = {"where": where, "sort": sort, "most": offset + limit}
        answers = (await subject.call("sessions", wanted)).complete()
        told = [(number, cast("Mapping[str, JSON]", one)) for number, one in answers.items()]
        rows: list[dict[str, JSON]] = []
        for number, one in told:
            for row in cast("list[dict[str, JSON]]", one["sessions"]):
                row["worker"] = number
                rows.append(row)
        if len(told) > 1:
            is_descending, column = sort.startswith("-"), sort.removeprefix("-")
            rows.sort(
                key=lambda row: key_of(row[column], str(row["id"]), is_descending=is_descending),
                reverse=is_descending,
            )
        return await answer(
            {
                "total": sum(cast("int", one["total"]) for _, one in told),
                "matched": sum(cast("int", one["matched"]) for _, one in told),
                "offset": offset,
                "limit": limit,
                "sessions": rows[offset : offset + limit],
            }
        )

    async def detail(request: Request) -> Response:
        answers = await subject.call("session", {"id": request.path_params["id"]})
        for number, told in answers.items():
            if told is not None:
                return await answer({"worker": number, **cast("Mapping[str, JSON]", told)})
        answers.complete()
        raise Refused(404, "there is no session of that id")

    async def close(request: Request) -> Response:
        said = await object_of(request, "reason", "now")
        reason = said.get("reason", _REASON)
        if not isinstance(reason, str) or not _is_reason(reason):
            raise Refused(400, f"reason: text on one line, of at most {_LONGEST_REASON} characters")
        now = said.get("now", False)
        if not isinstance(now, bool):
            raise Refused(400, "now: true or false")
        session = request.path_params["id"]
        wanted = {"id": session, "reason": reason or _REASON, "now": now}
        answers = await subject.call("close_session", signed(wanted))
        if not any(answers.values()):
            answers.complete()
            raise Refused(404, "there is no session of that id")
        return await answer({"closing": session}, 202)

    absent = {
        404: ResponseDoc("There is no session of that id."),
        503: ResponseDoc("Not every worker has answered."),
    }
    return [
        Path(
            "/sessions",
            listing,
            "Sessions: chosen, sorted, a page of them.",
            parameters=[
                *(
                    Parameter(name, f"What `{name}` is.", {"type": "string", "enum": list(_KNOWN[name])})
                    if name in _KNOWN
                    else Parameter(name, f"What `{name}` is, or begins with if `*` is behind it.")
                    for name in FILTERS
                ),
                Parameter(
                    "sort",
                    "A column, with `-` in front of it for descending.",
                    {"type": "string", "enum": [f"{sign}{name}" for name in COLUMNS for sign in ("", "-")]},
                ),
                Parameter("limit", "Most rows.", {"type": "integer", "minimum": 1, "maximum": MOST}),
                Parameter("offset", "Rows to skip.", {"type": "integer", "minimum": 0, "maximum": FARTHEST}),
            ],
            answers={
                200: json_answer(
                    "A page of the sessions.",
                    of(
                        total=COUNT,
                        matched=COUNT,
                        offset=COUNT,
                        limit=COUNT,
                        sessions=listed(ROW),
                    ),
                ),
                400: ResponseDoc("A parameter is wrong."),
                503: ResponseDoc("Not every worker has answered."),
            },
        ),
        Path(
            "/sessions/{id}",
            detail,
            "One session: its channels on both hops, consumers, flows, policies.",
            answers={200: json_answer("The session.", {"allOf": [ROW, DETAIL]}), **absent},
        ),
        Path(
            "/sessions/{id}/close",
            close,
            "Close one, with 320 CONNECTION_FORCED and this reason: when its confirms and commits "
            "are answered, as in a drain, or now.",
            method="POST",
            body={
                "type": "object",
                "properties": {
                    "reason": {**TEXT, "pattern": _ON_ONE_LINE, "maxLength": _LONGEST_REASON},
                    "now": {"type": "boolean", "default": False},
                },
            },
            answers={
                202: json_answer("It is being closed.", of(closing=TEXT)),
                400: ResponseDoc("The body is not that."),
                **absent,
            },
        ),
    ]


def _is_reason(text: str) -> bool:
    """Whether the client can be told so. What is no character (a lone surrogate) has no bytes either."""
    is_text = not any("\ud800" <= character <= "\udfff" for character in text)
    return is_text and len(text) <= _LONGEST_REASON and re.fullmatch(_ON_ONE_LINE[1:-1], text) is not None
