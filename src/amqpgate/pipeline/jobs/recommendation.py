"""Access policies as people write them, with the evidence beside each rule.

One policy per user, for all vhosts in which the user did the same, else one per vhost.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

import attrs

from amqpgate.pipeline.jobs.bound_with import ProposedArguments
from amqpgate.pipeline.jobs.grant import Grant
from amqpgate.pipeline.jobs.grants import grants
from amqpgate.pipeline.jobs.names import ProposedPattern
from amqpgate.pipeline.jobs.templates import DEFAULT, TemplateBounds, Why
from amqpgate.pipeline.jobs.uses import Use
from amqpgate.policy import Source
from amqpgate.policy.engine.matching import MAX_BYTES
from amqpgate.policy.tools.writing import Value, access_policy, flow

#: Documents and bytes per file: a file may have 1000 documents and 1 MiB.
_PER_FILE = 100
_BYTES = 900_000

#: Rules of one policy; of a user who needs more there are several.
_RULES = 1_000

#: Letters of a name that is too long.
_SHOWN = 40

_WHY: Mapping[Why, str] = {
    "ids": "ids are folded",
    "values": "words with many values are folded",
    "keys": "more keys than templates: folded wide",
}


@attrs.frozen
class Recommendation:
    """Files of policies, and what they cannot say."""

    files: tuple[Source, ...]
    notes: tuple[str, ...]
    #: Per policy its rules, for tables.
    rules: tuple[tuple[str, Grant], ...]


def recommend_for(uses: Collection[Use], bounds: TemplateBounds = DEFAULT) -> Recommendation:
    """The least that would have allowed all of it."""
    notes: dict[str, None] = {}
    held: dict[str, dict[str, list[Use]]] = {}
    for use in uses:
        reason = _cannot_be_allowed(use)
        if reason is not None:
            notes[reason] = None
        else:
            held.setdefault(use.user, {}).setdefault(use.vhost, []).append(use)
    documents: list[str] = []
    rules: list[tuple[str, Grant]] = []
    taken: set[str] = set()
    for user, of_user in sorted(held.items()):
        for vhosts, found in _by_vhosts(of_user, bounds):
            base = user if len(vhosts) > 1 else f"{user}@{vhosts[0]}"
            for start in range(0, len(found), _RULES):
                part = found[start : start + _RULES]
                name = next(one for one in _numbered(base) if one not in taken)
                taken.add(name)
                documents.append(_document(name, user, vhosts, part))
                rules += [(name, grant) for grant in part]
    return Recommendation(tuple(_files(documents)), tuple(notes), tuple(rules))


def _cannot_be_allowed(use: Use) -> str | None:
    for what, name in (("user", use.user), ("vhost", use.vhost)):
        if not name or "*" in name or re.search(r"\{[A-Za-z_]", name):
            return f"{what} '{name[:MAX_BYTES]}' is left out: no subject can mean it"
        if len(name.encode()) > MAX_BYTES:
            return f"{what} '{name[:_SHOWN]}...' is left out: a name has {MAX_BYTES} bytes at most"
    names = [use.exchange, use.destination, *(part for part in use.queue or () if isinstance(part, str))]
    if any("\n" in name or "\r" in name for name in names if name is not None):
        return (
            f"user '{use.user}' used a name with CR or LF in it, which the gateway refuses whatever rules say"
        )
    if any(len(name.encode()) > MAX_BYTES for name in names if name is not None):
        return f"user '{use.user}' used a name of more than {MAX_BYTES} bytes, which AMQP does not have"
    return None


def _by_vhosts(
    of_user: Mapping[str, list[Use]], bounds: TemplateBounds
) -> Iterator[tuple[list[str], list[Grant]]]:
    """Vhosts in which a user needs the same rules, and these with the evidence of all."""
    alike: dict[tuple[object, ...], list[tuple[str, list[Grant]]]] = {}
    for vhost, uses in sorted(of_user.items()):
        found = grants(uses, bounds)
        alike.setdefault(tuple(map(_said, found)), []).append((vhost, found))
    for members in alike.values():
        together = members[0][1]
        for _, others in members[1:]:
            together = [
                attrs.evolve(one, evidence=one.evidence | other.evidence)
                for one, other in zip(together, others, strict=True)
            ]
        yield [vhost for vhost, _ in members], together


def _said(grant: Grant) -> tuple[object, ...]:
    """The rule without its evidence."""
    return tuple(
        getattr(grant, field.name)
        for field in attrs.fields(Grant)
        if field.name not in ("evidence", "because")
    )


def _numbered(base: str) -> Iterator[str]:
    yield base
    number = 2
    while True:
        yield f"{base}-{number}"
        number += 1


def _document(name: str, user: str, vhosts: list[str], found: list[Grant]) -> str:
    lines = access_policy(name, user, vhosts)
    for grant in found:
        lines += [f"  # {comment}" for comment in _comments(grant)]
        lines.append(f"  - {flow(rule_of(grant))}")
    return "\n".join(lines) + "\n"


def rule_of(grant: Grant) -> dict[str, Value]:
    """The rule as documents have it."""
    rule: dict[str, Value] = {"id": grant.id, "effect": "allow", "operations": list(grant.operations)}
    named = (
        ("destination", grant.destination),
        ("exchange", grant.exchange),
        ("queue", grant.queue),
        ("routingKey", grant.routing_key),
    )
    rule |= {key: _match(pattern) for key, pattern in named if pattern is not None}
    if grant.bind_to:
        rule["bindTo"] = [
            {"exchange": _match(exchange), "routingKey": _match(key)} for exchange, key in grant.bind_to
        ]
    if grant.arguments is not None:
        rule["arguments"] = _conditions(grant.arguments)
    if grant.passive:
        rule["passive"] = True
    return rule


def _conditions(arguments: ProposedArguments) -> Value:
    said: dict[str, Value] = {"allow": list(arguments.names)} if arguments.are_exact else {}
    said["require"] = list(arguments.names)
    return said | ({"values": dict(arguments.values)} if arguments.values else {})


def _match(pattern: ProposedPattern) -> Value:
    return pattern.text if pattern.form == "literal" else {pattern.form: pattern.text}


def _comments(grant: Grant) -> Iterator[str]:
    evidence = grant.evidence
    asked = _counted(evidence.requests, "request")
    if "basic.publish" in grant.operations:
        asked = _counted(evidence.messages, "message")
    if evidence.kinds > 1 and grant.why != "seen":
        asked += f", {evidence.kinds:,} different requests"
    first, last = (f"{time:%Y-%m-%d}" for time in (evidence.first, evidence.last))
    when = f"on {first}" if first == last else f"{first} to {last}"
    whys = [_WHY[grant.why]] if grant.why != "seen" else []
    whys += ["an id of which no other was seen"] if grant.has_lone_id else []
    why = f" ({', '.join(whys)})" if whys else ""
    yield f"{asked}, {when}; confidence {evidence.confidence(grant.why)}{why}"
    for because in grant.because:
        yield "needed for " + " ".join(because.split())


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)


def _files(documents: list[str]) -> Iterator[Source]:
    page: list[str] = []
    number = 1
    for document in documents:
        size = sum(len(one.encode()) for one in page) + len(document.encode())
        if page and (len(page) == _PER_FILE or size > _BYTES):
            yield _file(number, page)
            page, number = [], number + 1
        page.append(document)
    if page:
        yield _file(number, page)


def _file(number: int, documents: list[str]) -> Source:
    return Source(f"recommended-{number:03}.yaml", "---\n".join(documents).encode())
