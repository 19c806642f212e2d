"""``/policies``: the set in force, how often each rule has decided, and what the last reading found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, cast

import attrs
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate.admin.answering import answer
from amqpgate.admin.asking import signed
from amqpgate.admin.paths import Path, ResponseDoc, json_answer
from amqpgate.admin.policy_states import combined, policy_state
from amqpgate.admin.schemas import POLICIES, POLICY_STATE
from amqpgate.admin.subject import AdminSubject
from amqpgate.gateway.server.policy_state import Status
from amqpgate.policy.engine.access_rule import DEFAULT_ACCESS
from amqpgate.policy.kinds.access import ACCESS
from amqpgate.telemetry.answers import JSON, Answers

#: What the answer to a reload says by its status.
_STATUS: Final[dict[Status, int]] = {"done": 200, "nothing": 409, "refused": 422, "unknown": 503}
#: Seconds that the workers may take to read the policies again.
_RELOAD_PATIENCE: Final = 30.0


def policy_handlers(subject: AdminSubject) -> list[Route]:
    """The paths."""

    async def listing(_request: Request) -> Response:
        state = await policy_state(subject)
        answers = (await subject.call("policies")).complete()
        return await answer({**attrs.asdict(state), **combine(answers)})

    async def reload(_request: Request) -> Response:
        state = combined(await subject.call("reload", signed(), patience=_RELOAD_PATIENCE))
        return Response(state.as_json() + "\n", _STATUS[state.status], media_type="application/json")

    return [
        Path(
            "/policies",
            listing,
            "The policies in force, with what each rule has done.",
            answers={
                200: json_answer("The set.", POLICIES),
                503: ResponseDoc("Not every worker has answered."),
            },
        ),
        Path(
            "/reload",
            reload,
            "Read the policies again.",
            method="POST",
            answers={
                200: json_answer("They are in force.", POLICY_STATE),
                409: json_answer("The settings name no folder of policies.", POLICY_STATE),
                422: json_answer("They are wrong; those from before stay in force.", POLICY_STATE),
                503: json_answer("Not every worker has answered.", POLICY_STATE),
            },
        ),
    ]


def combine(answers: Answers) -> dict[str, JSON]:
    """The hits of all workers, summed. The documents are those of the first: a digest that differs is told by
    the state."""
    told = [cast("Mapping[str, JSON]", one) for one in answers.values()]
    hits = _summed(told, "hits", "kind", "policy", "rule")
    nothing: dict[str, JSON] = {"hits": 0, "messages": 0, "last_hit": None}
    whom = [cast("Mapping[str, JSON]", one["selected"]) for one in told]
    selected: Counter[tuple[JSON, JSON]] = Counter()
    for one in whom:
        for policy in cast("list[dict[str, JSON]]", one["sessions"]):
            selected[policy["kind"], policy["policy"]] += cast("int", policy["sessions"])
    documents: list[JSON] = []
    for document in cast("list[dict[str, JSON]]", told[0]["policies"]):
        of = document["kind"], document["name"]
        rules = [
            {**rule, **_counted(hits.pop((*of, rule["id"]), nothing))}
            for rule in cast("list[dict[str, JSON]]", document["rules"])
        ]
        # What a kind without rules has done, by what it is called there.
        rules += [
            {"id": key[2], "effect": "change", "operations": [], "line": None, **_counted(hits[key])}
            for key in sorted(hits, key=str)
            if key[:2] == of
        ]
        sessions = selected[document["kind"], document["name"]]
        documents.append({**document, "rules": rules, "sessions": sessions})
    default = nothing
    for one in told:
        default = _add(default, cast("Mapping[str, JSON]", one["default"]))
    return {
        "since": min(cast("float", one["since"]) for one in told),
        "policies": documents,
        "default": default,
        "default_access": whom[0]["default_access"],
        "unselected": {
            "sessions": sum(cast("int", one["unselected_sessions"]) for one in whom),
            **_counted(hits.get((ACCESS.name, None, DEFAULT_ACCESS), nothing)),
        },
        "shadow": list(_summed(told, "shadow", "policy", "rule", "effect").values()),
    }


def _summed(
    told: list[Mapping[str, JSON]], what: str, *names: str
) -> dict[tuple[JSON, ...], dict[str, JSON]]:
    found: dict[tuple[JSON, ...], dict[str, JSON]] = {}
    for one in told:
        for hit in cast("list[dict[str, JSON]]", one[what]):
            key = tuple(hit[name] for name in names)
            found[key] = {**hit, **_add(found.get(key, {"hits": 0, "messages": 0, "last_hit": None}), hit)}
    return found


def _counted(hit: Mapping[str, JSON]) -> dict[str, JSON]:
    return {"hits": hit["hits"], "messages": hit["messages"], "last_hit": hit["last_hit"]}


def _add(one: Mapping[str, JSON], other: Mapping[str, JSON]) -> dict[str, JSON]:
    times = [cast("float", hit["last_hit"]) for hit in (one, other) if hit["last_hit"] is not None]
    return {
        "hits": cast("int", one["hits"]) + cast("int", other["hits"]),
        "messages": cast("int", one["messages"]) + cast("int", other["messages"]),
        "last_hit": max(times, default=None),
    }
