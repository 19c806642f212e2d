"""Plays cases side by side against one peer, each on connections and with names of its own."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs
import trio

from amqpgate.conformance.case import CaseResult, CaseSection, ConformanceCase, ConformanceRule, RuleSection
from amqpgate.conformance.endings import Unexpected, Untestable
from amqpgate.conformance.peer import PeerLogin, TestedPeer
from amqpgate.conformance.talk import Talk
from amqpgate.conformance.versions import VERSIONS, Name
from amqpgate.errors import ProtocolViolation

#: How many at once. More is not quicker, and a broker in use has other guests.
AT_ONCE: Final = 8

#: Begins the names of all that is declared.
PREFIX: Final = "amqpgate-conformance"


@attrs.frozen(kw_only=True)
class Plan:
    """What is played, and how."""

    target: PeerLogin
    cases: Sequence[tuple[ConformanceCase, Name]]
    #: Seconds that a peer has for an answer; a rule whose answer is silence takes as long.
    patience: float = 2.0
    at_once: int = AT_ONCE


def selected(
    sections: Iterable[CaseSection], versions: Iterable[Name], wanted: Sequence[str]
) -> list[tuple[ConformanceCase, Name]]:
    """Cases by version. ``wanted`` are names of sections and beginnings of ids; none: all."""
    found = [case for section in sections for case in section.cases if is_wanted(section, case, wanted)]
    return [(case, version) for version in versions for case in found if version in case.versions]


def is_wanted(section: RuleSection, rule: ConformanceRule, wanted: Sequence[str]) -> bool:
    """Whether a rule of a section is chosen; ``wanted`` as above."""
    return not wanted or section.name in wanted or any(_is_below(rule.id, one) for one in wanted)


def _is_below(path: str, wanted: str) -> bool:
    return path == wanted or path.startswith(f"{wanted.rstrip('.')}.")


async def product(target: PeerLogin, patience: float) -> str:
    """Who answers, as it says of itself. Raises ``OSError`` and ``trio.TooSlowError``."""
    version = VERSIONS["0-9-1"]
    peer = await TestedPeer.dial(target, version, patience)
    try:
        await peer.send(version.header)
        start = await peer.expect(version.amqp.ConnectionStart)
        said = [start.server_properties.get(name) for name in ("product", "version")]
        return " ".join(one for one in said if isinstance(one, str))
    except Unexpected:
        # It may speak other versions only; then each case says so.
        return ""
    finally:
        await peer.aclose()


async def play(plan: Plan, told: Callable[[CaseResult], None]) -> tuple[list[CaseResult], float]:
    """What came of each, in the order of the plan, and seconds; ``told`` hears of each as it ends."""
    began = time.monotonic()
    results: dict[int, CaseResult] = {}
    limiter = trio.CapacityLimiter(plan.at_once)
    run = secrets.token_hex(3)

    lacks = {name for name in dict.fromkeys(name for _, name in plan.cases) if not await _speaks(plan, name)}

    async def one(number: int, case: ConformanceCase, version: Name) -> None:
        if version in lacks:
            results[number] = CaseResult(
                case=case,
                version=version,
                verdict="untestable",
                said=f"it does not speak AMQP {version}",
                seconds=0,
            )
            told(results[number])
            return
        async with limiter:
            talk = Talk(plan.target, VERSIONS[version], plan.patience, f"{PREFIX}-{run}-{number}-")
            results[number] = await _result(case, version, talk)
            told(results[number])

    async with trio.open_nursery() as nursery:
        for number, (case, version) in enumerate(plan.cases):
            nursery.start_soon(one, number, case, version)
    return [results[number] for number in sorted(results)], time.monotonic() - began


async def _speaks(plan: Plan, name: Name) -> bool:
    """Whether the version's header is answered with anything but another one."""
    version = VERSIONS[name]
    peer = await TestedPeer.dial(plan.target, version, plan.patience)
    try:
        await peer.send(version.header)
        return not (await peer.outcome()).startswith("header ")
    finally:
        await peer.aclose()


async def _result(case: ConformanceCase, version: Name, talk: Talk) -> CaseResult:
    began = time.monotonic()
    try:
        said = await _outcome(case, talk)
        verdict = case.verdict(said)
    except Untestable as why:
        said, verdict = str(why), "untestable"
    return CaseResult(
        case=case, version=version, verdict=verdict, said=said, seconds=time.monotonic() - began
    )


async def _outcome(case: ConformanceCase, talk: Talk) -> str:
    """What a peer does is never this program's failure: whatever it says ends in words."""
    try:
        with trio.fail_after(talk.patience * 10):
            try:
                return await case.talk(talk)
            finally:
                with trio.move_on_after(talk.patience * 2, shield=True):
                    await talk.aclose()
    except Unexpected as what:
        return str(what)
    except ProtocolViolation as violation:
        return f"malformed: {violation.text}"
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # What came was well-formed, and nothing that the conversation was made for.
        return f"unforeseen: {error}"
    except trio.TooSlowError:
        return "silence"
