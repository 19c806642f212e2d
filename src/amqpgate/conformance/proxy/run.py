"""Plays the rules on proxies one after the other: where clients share a connection, one ends all."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial

import attrs
import trio

from amqpgate.conformance.case import CaseResult
from amqpgate.conformance.dialling import PeerLogin
from amqpgate.conformance.endings import Unexpected, Untestable
from amqpgate.conformance.proxy.between import ProxyCase, ProxyTalk
from amqpgate.conformance.proxy.inner import ProbeBroker
from amqpgate.conformance.run import PREFIX, lacking, not_spoken
from amqpgate.conformance.talk import Talk
from amqpgate.conformance.versions import VERSIONS, Name
from amqpgate.errors import ProtocolViolation


@attrs.frozen(kw_only=True)
class ProxyPlan:
    """What is played, and how."""

    target: PeerLogin
    #: Where the probing broker listens.
    host: str
    port: int
    cases: Sequence[tuple[ProxyCase, Name]]
    #: Seconds that the proxy has for what it passes on.
    patience: float
    #: Seconds that it has to find the broker.
    warm_up: float = 30


async def play_through(
    plan: ProxyPlan, listening: Callable[[int], None], told: Callable[[CaseResult], None]
) -> tuple[list[CaseResult], float]:
    """What came of each, and seconds; ``listening`` is told the broker's port.

    Raises ``OSError``, and `Unexpected` in a group where nothing passes at all.
    """
    inner = ProbeBroker(plan.patience)
    listeners = await trio.open_tcp_listeners(plan.port, host=plan.host)
    began = time.monotonic()
    run = secrets.token_hex(3)
    results: list[CaseResult] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.serve_listeners, inner.serve, listeners))
        try:
            listening(listeners[0].socket.getsockname()[1])
            await _passes_at_all(plan, inner, run)
            lacks = await lacking(plan.target, plan.patience, plan.cases)
            for number, (case, version) in enumerate(plan.cases):
                inner.forget()
                at = _talk(plan, inner, f"{run}-{number}", version)
                results.append(not_spoken(case, version) if version in lacks else await _result(case, at))
                told(results[-1])
        finally:
            nursery.cancel_scope.cancel()
    return results, time.monotonic() - began


def _talk(plan: ProxyPlan, inner: ProbeBroker, name: str, version: Name) -> ProxyTalk:
    # A user of its own each time, so that no connection of an earlier one is used.
    target = (
        attrs.evolve(plan.target, user=f"{plan.target.user}-{name}")
        if plan.target.user == "guest"
        else plan.target
    )
    return ProxyTalk(Talk(target, plan.patience, f"{PREFIX}-{name}-", VERSIONS[version]), inner)


async def _passes_at_all(plan: ProxyPlan, inner: ProbeBroker, run: str) -> None:
    """Returns once a channel can be opened through the proxy, whose health checks may take a while.

    In the first version that is asked for.
    """
    until = trio.current_time() + plan.warm_up
    while True:
        at = _talk(plan, inner, f"{run}-warm-up-{secrets.token_hex(2)}", plan.cases[0][1])
        try:
            await at.channel()
        except (Unexpected, trio.TooSlowError) as what:
            if trio.current_time() > until:
                raise Unexpected(f"no channel can be opened through it: {what}") from None
            await trio.sleep(0.3)
        else:
            return
        finally:
            await at.talk.aclose()


async def _result(case: ProxyCase, at: ProxyTalk) -> CaseResult:
    began = time.monotonic()
    try:
        said = await _outcome(case, at)
        verdict = case.verdict(said)
    except Untestable as why:
        said, verdict = str(why), "untestable"
    return CaseResult(
        case=case, version=at.talk.version.name, verdict=verdict, said=said, seconds=time.monotonic() - began
    )


async def _outcome(case: ProxyCase, at: ProxyTalk) -> str:
    try:
        with trio.fail_after(at.patience * 10):
            try:
                return await case.talk(at)
            finally:
                with trio.move_on_after(at.patience, shield=True):
                    await at.talk.aclose()
    except Unexpected as what:
        return str(what)
    except ProtocolViolation as violation:
        return f"malformed: {violation.text}"
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        return f"unforeseen: {error}"
    except trio.TooSlowError:
        return "silence"
