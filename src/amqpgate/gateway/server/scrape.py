"""What is read of a gateway at a scrape: sessions, the data path's counters, certificates."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from amqpgate.bridge.versions import VERSIONS
from amqpgate.config import Listener
from amqpgate.datapath.engine import Counters
from amqpgate.datapath.tables import LAST_HARMLESS, ScanResult, Side
from amqpgate.errors import ConfigError
from amqpgate.gateway.observers.stats.labelled import LabelledTotals
from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.session_end import CloseState
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.telemetry.readings import PoolUse, Totals
from amqpgate.telemetry.time_slices import TimeSlices

#: Labels of upcalls. What stops a frame that is in order, and one for all that break the protocol.
_REASONS: Final = {
    result: "violation" if result > LAST_HARMLESS else result.name.lower()
    for result in ScanResult
    if result not in (ScanResult.MORE, ScanResult.REFRAME, ScanResult.THROTTLED, ScanResult.JUDGED)
}


async def totals(
    live: Iterable[Session],
    ended: SessionTotals,
    counters: Counters,
    *,
    connections: int,
    handshakes: int,
    routes: Iterable[str],
    pools: Mapping[str, PoolUse],
    unsent: int,
    certificates: Iterable[tuple[str, str, float]],
    labelled: LabelledTotals | None,
) -> Totals:
    """``connections`` are all that there are, ``handshakes`` those of them that are not established yet;
    ``unsent`` bytes wait for shared connections to brokers.

    Sessions that end meanwhile are counted, those that begin are not.
    """
    tally = ended.copy()
    look = None if labelled is None else labelled.look()
    # What is not there now is 0, and not unknown.
    sessions = Counter(dict.fromkeys(("", *routes), 0))
    versions = Counter(dict.fromkeys(itertools.product(VERSIONS.names, VERSIONS.names), 0))
    channels = closing = to_clients = 0
    to_brokers = unsent
    live = list(live)
    established = sum(session.relay.active and session.closing is CloseState.NO for session in live)
    turns = TimeSlices()
    for session in live:
        tally.add(session)
        if look is not None:
            look.add(session)
        sessions["" if session.facts.choice is None else session.facts.choice.route.id] += 1
        versions[session.facts.version(Side.CLIENT), session.facts.version(Side.UPSTREAM)] += 1
        channels += len(session.channels.states)
        for _, channel in session.channels.states.made():
            closing += channel.close is not None
        client, broker = session.relay.endpoints
        to_clients += client.waiting
        to_brokers += broker.waiting
        await turns.next()
    upcalls = dict.fromkeys(_REASONS.values(), 0)
    for result, reason in _REASONS.items():
        upcalls[reason] += counters.called[result]
    return Totals(
        traffic=tally.traffic(),
        hits={"publish": tally.frames_up, "deliver": tally.frames_down},
        upcalls=upcalls,
        connections={
            "handshake": handshakes,
            "open": established,
            "closing": connections - handshakes - established,
        },
        sessions=sessions,
        versions=versions,
        channels={"open": channels - closing, "closing": closing},
        buffered={"client": to_clients, "upstream": to_brokers},
        pauses=counters.paused,
        throttled=counters.throttled,
        failures=counters.failures,
        latency=(tuple(counters.latency.counts), counters.latency.seconds),
        pools=dict(pools),
        certificates=tuple(certificates),
        labelled={} if look is None else look.told(),
    )


def certificates(listeners: Iterable[Listener], contexts: TlsContexts) -> Iterator[tuple[str, str, float]]:
    """Listener, file and expiry of each certificate in use."""
    for listener in listeners:
        if listener.tls is None:
            continue
        try:
            expiries = contexts.expiries(listener.tls)
        except ConfigError:
            # There never was one: the gateway does not start then, and says why.
            continue
        for file, when in expiries.items():
            yield listener.name, str(file), when
