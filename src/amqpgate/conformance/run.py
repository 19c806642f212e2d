"""Plays cases side by side against one peer, each on connections and with names of its own."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

import attrs
import trio

from amqpgate.conformance.case import BrokerSection, CaseResult, ConformanceCase, ConformanceRule, RuleSection
from amqpgate.conformance.dialling import PeerLogin, dialled
from amqpgate.conformance.endings import PeerGone, Unexpected, Untestable
from amqpgate.conformance.peer import TestedPeer
from amqpgate.conformance.talk import Talk
from amqpgate.conformance.v0_10.talk import SessionTalk
from amqpgate.conformance.v0_10.talk import product as product_0_10
from amqpgate.conformance.versions import HEADERS, VERSIONS, Name
from amqpgate.errors import ProtocolViolation

#: How many at once. More is not quicker, and a broker in use has other guests.
AT_ONCE: Final = 8

#: How a peer answers the header of 0-9-1 that speaks 0-10.
_HEADER_0_10: Final = "header AMQP 1 1 0 10"

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
    sections: Iterable[BrokerSection], versions: Iterable[Name], wanted: Sequence[str]
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
    """Who answers, as it says of itself. Raises `PeerGone`, ``OSError`` and ``trio.TooSlowError``."""
    version = VERSIONS["0-9-1"]
    peer = await TestedPeer.dial(target, version, patience)
    try:
        await peer.send(version.header)
        start = await peer.expect(version.amqp.ConnectionStart)
        said = [start.server_properties.get(name) for name in ("product", "version")]
        return " ".join(one for one in said if isinstance(one, str))
    except Unexpected as what:
        heard = str(what)
        if heard == "silence":
            raise PeerGone(f"it says nothing for {patience:g} s") from None
        if heard.startswith(("malformed", "a frame")):
            raise PeerGone("who answers there speaks no AMQP") from None
        # It may speak other versions only; then each case says so.
        return await product_0_10(target, patience) if heard == _HEADER_0_10 else ""
    except ProtocolViolation:
        raise PeerGone("who answers there speaks no AMQP") from None
    finally:
        await peer.aclose()


async def play(plan: Plan, told: Callable[[CaseResult], None]) -> tuple[list[CaseResult], float]:
    """What came of each, in the order of the plan, and seconds; ``told`` hears of each as it ends.

    Raises `PeerGone` where nobody can log in, now or later: then it is not the rules that are at fault.
    """
    began = time.monotonic()
    results: dict[int, CaseResult] = {}
    limiter = trio.CapacityLimiter(plan.at_once)
    run = secrets.token_hex(3)

    lacks = await lacking(plan.target, plan.patience, plan.cases)
    spoken = [version for _, version in plan.cases if version not in lacks]
    if not spoken:
        raise PeerGone(f"it speaks none of AMQP {', '.join(sorted(lacks))}; --versions names others")
    await _log_in(plan, spoken[0])
    mute, gone = 0, ""

    async def one(number: int, case: ConformanceCase, version: Name) -> None:
        nonlocal mute, gone
        if version in lacks:
            results[number] = not_spoken(case, version)
            told(results[number])
            return
        async with limiter:
            talk = _talk(plan, version, f"{PREFIX}-{run}-{number}-")
            result = results[number] = await _result(case, version, talk)
            told(result)
            mute = mute + 1 if _is_mute(result) else 0
            if mute == plan.at_once:
                mute = 0
                try:
                    await _log_in(plan, version)
                except PeerGone as why:
                    gone = f"after {len(results)} of {len(plan.cases)} cases {why}"
                    nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for number, (case, version) in enumerate(plan.cases):
            nursery.start_soon(one, number, case, version)
    if gone:
        raise PeerGone(gone)
    return [results[number] for number in sorted(results)], time.monotonic() - began


def _is_mute(result: CaseResult) -> bool:
    """Whether a peer that is gone might have said so, too."""
    return result.verdict == "deviates" and result.said.startswith(("silence", "hangs up", "nobody answers"))


async def _log_in(plan: Plan, version: Name) -> None:
    """One login as all cases have it. Raises `PeerGone`."""
    target = plan.target
    talk = _talk(plan, version, "")
    try:
        with trio.fail_after(3 * plan.patience):
            await talk.connected()
    except (Unexpected, ProtocolViolation, trio.TooSlowError) as what:
        said = what.text if isinstance(what, ProtocolViolation) else str(what) or "silence"
        raise PeerGone(
            f"{target.user} cannot log in to the virtual host {target.vhost}: {said}"
            + ("; amqp://USER:PASSWORD@HOST:PORT/VHOST names others" if "close" in said else "")
        ) from None
    finally:
        with trio.CancelScope(shield=True):
            await talk.aclose()


def _talk(plan: Plan, version: Name, prefix: str) -> Talk | SessionTalk:
    if version in VERSIONS:
        return Talk(plan.target, plan.patience, prefix, VERSIONS[version])
    return SessionTalk(plan.target, plan.patience, prefix)


async def lacking(
    target: PeerLogin, patience: float, cases: Iterable[tuple[ConformanceRule, Name]]
) -> set[Name]:
    """The versions of these cases that the peer does not speak."""
    names = dict.fromkeys(name for _, name in cases)
    return {name for name in names if not await _speaks(target, patience, name)}


def not_spoken(case: ConformanceRule, version: Name) -> CaseResult:
    """What comes of a case in a version that the peer does not speak."""
    said = f"it does not speak AMQP {version}"
    return CaseResult(case=case, version=version, verdict="untestable", said=said, seconds=0)


async def _speaks(target: PeerLogin, patience: float, name: Name) -> bool:
    """Whether the version's header is answered with anything but another one."""
    stream = await dialled(target, patience)
    said = b""
    try:
        with trio.move_on_after(patience), suppress(trio.BrokenResourceError):
            await stream.send_all(HEADERS[name])
            while len(said) < len(HEADERS[name]) and (data := await stream.receive_some(len(HEADERS[name]))):
                said += data
    finally:
        await trio.aclose_forcefully(stream)
    return not said.startswith(b"AMQP") or said[: len(HEADERS[name])] == HEADERS[name]


async def _result(case: ConformanceCase, version: Name, talk: Talk | SessionTalk) -> CaseResult:
    began = time.monotonic()
    try:
        said = await _outcome(case, talk)
        verdict = case.verdict(said)
    except Untestable as why:
        said, verdict = str(why), "untestable"
    return CaseResult(
        case=case, version=version, verdict=verdict, said=said, seconds=time.monotonic() - began
    )


async def _outcome(case: ConformanceCase, talk: Talk | SessionTalk) -> str:
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
