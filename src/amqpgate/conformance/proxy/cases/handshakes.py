"""What passes of handshakes: what the broker and the client say of themselves, logins, refusals, limits."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.endings import Unexpected, Untestable
from amqpgate.conformance.peer import TestedPeer
from amqpgate.conformance.proxy.between import ProxySection, ProxyTalk, changed
from amqpgate.conformance.proxy.inner import MECHANISMS, server_properties
from amqpgate.wire.generated import v0_9_1
from amqpgate.wire.tables import Table

HANDSHAKES: Final = ProxySection("proxy.handshake", "Handshakes")


async def _started(at: ProxyTalk) -> tuple[TestedPeer, v0_9_1.ConnectionStart]:
    peer = await at.talk.dial()
    await peer.send(peer.version.header)
    return peer, await peer.expect(at.amqp.ConnectionStart)


@HANDSHAKES.rule(
    "start.server-properties",
    "what the broker says of itself comes to the client, in all types",
    section="1.4.2.1.3",
    obeys="all are there",
)
async def _(at: ProxyTalk) -> str:
    _, start = await _started(at)
    wanted = server_properties(at.talk.version.name)
    other = [name for name, field in wanted if start.server_properties.field(name) != field]
    return f"without {', '.join(other)[:200]}" if other else "all are there"


@HANDSHAKES.rule(
    "start.mechanisms",
    "the client is offered the mechanisms of the broker, and no others",
    section="1.4.2.1.4",
    obeys="as it was",
    strength="should",
)
async def _(at: ProxyTalk) -> str:
    _, start = await _started(at)
    offered = start.mechanisms.decode("utf-8", "replace")
    return "as it was" if offered.split() == MECHANISMS.decode().split() else offered


@HANDSHAKES.rule(
    "start-ok.client-properties",
    "what the client says of itself comes to the broker",
    section="1.4.2.2.1",
    obeys="all are there",
    strength="should",
)
async def _(at: ProxyTalk) -> str:
    said = Table((*Table.of({"product": at.name()}).entries, *at.types.entries))
    peer, _ = await _started(at)
    await peer.say(0, at.talk.start_ok(client_properties=said))
    await _opened(at, peer)
    noted = at.inner.ends[-1].start_ok
    if noted is None:
        raise Unexpected("no login comes to the broker")
    other = [name for name, field in said if noted.client_properties.field(name) != field]
    return f"without {', '.join(other)[:200]}" if other else "all are there"


async def _offered(at: ProxyTalk, mechanism: str) -> TestedPeer:
    peer, start = await _started(at)
    if mechanism not in start.mechanisms.decode("utf-8", "replace").split():
        raise Untestable(f"the proxy does not offer {mechanism}, which the broker does")
    return peer


async def _opened(at: ProxyTalk, peer: TestedPeer) -> v0_9_1.ConnectionTune:
    tune: v0_9_1.ConnectionTune = await peer.expect(at.amqp.ConnectionTune)
    await at.talk.open(peer, tune)
    await peer.expect(at.amqp.ConnectionOpenOk)
    return tune


@HANDSHAKES.rule(
    "start-ok.response",
    "the login comes to the broker as the client has said it",
    section="1.4.2.2.3",
)
async def _(at: ProxyTalk) -> str:
    await at.talk.connected()
    wanted = f"\0{at.talk.target.user}\0{at.talk.target.password}".encode()
    if any(end.start_ok is not None and end.start_ok.response == wanted for end in at.inner.ends):
        return "as it was"
    return "another login comes to the broker"


@HANDSHAKES.rule(
    "start-ok.mechanism.external",
    "EXTERNAL passes to a broker that offers it, or the client is refused",
    section="1.4.2.2.2",
    obeys=("connection.tune", "connection.close *", "hangs up"),
)
async def _(at: ProxyTalk) -> str:
    peer = await _offered(at, "EXTERNAL")
    await peer.say(0, at.talk.start_ok(mechanism="EXTERNAL", response=b""))
    return await peer.outcome()


@HANDSHAKES.rule(
    "start-ok.mechanism.unknown",
    "a mechanism that nobody knows passes to a broker that offers it, or the client is refused",
    section="1.4.2.2.2",
    obeys=("connection.tune", "connection.close *", "hangs up"),
)
async def _(at: ProxyTalk) -> str:
    peer = await _offered(at, "X-PROBE")
    await peer.say(0, at.talk.start_ok(mechanism="X-PROBE", response=b"\0\xff"))
    return await peer.outcome()


@HANDSHAKES.rule(
    "secure.challenge",
    "the broker's challenge and the client's answer pass, or the client is refused",
    section="1.4.2.3",
    obeys=("as they were", "connection.close *"),
)
async def _(at: ProxyTalk) -> str:
    at.inner.script.instead_of_tune = at.amqp.ConnectionSecure(b"\0challenge\xff")
    peer = await _offered(at, "X-PROBE")
    await peer.say(0, at.talk.start_ok(mechanism="X-PROBE", response=b"first"))
    said = await peer.method()
    if not isinstance(said, at.amqp.ConnectionSecure):
        return await peer.told(0, said)
    await peer.say(0, at.amqp.ConnectionSecureOk(b"answer\0"))
    noted = await at.hears("connection.secure-ok")
    await peer.expect(at.amqp.ConnectionTune)
    is_same = said.challenge == b"\0challenge\xff" and noted.payload[8:] == b"answer\0"
    return "as they were" if is_same else "other bytes"


@HANDSHAKES.rule(
    "start-ok.refused",
    "the broker's refusal of a login comes to the client",
    section="1.4.2.9",
    obeys="as it was",
)
async def _(at: ProxyTalk) -> str:
    refusal = at.amqp.ConnectionClose(403, f"ACCESS_REFUSED - {at.name()}", 0, 0)
    at.inner.script.instead_of_tune = refusal
    peer, _ = await _started(at)
    await peer.say(0, at.talk.start_ok())
    # Who chooses a broker by the virtual host logs in there when that is known, after a tune of its own.
    said = await peer.method()
    if not isinstance(said, at.amqp.ConnectionTune):
        return "as it was" if said == refusal else changed(refusal, said)
    await at.talk.open(peer, said)
    return await at.returns(peer, 0, refusal)


@HANDSHAKES.rule(
    "open.refused",
    "the broker's refusal of a virtual host comes to the client",
    section="1.4.2.9",
    obeys="as it was",
)
async def _(at: ProxyTalk) -> str:
    refusal = at.amqp.ConnectionClose(530, f"NOT_ALLOWED - {at.name()}", 10, 40)
    at.inner.script.instead_of_open_ok = refusal
    peer, tune = await at.talk.tuned()
    await at.talk.open(peer, tune)
    return await at.returns(peer, 0, refusal)


@HANDSHAKES.rule(
    "open.virtual-host",
    "the virtual host comes to the broker as the client has said it",
    section="1.4.2.7.1",
)
async def _(at: ProxyTalk) -> str:
    wanted = f"{at.name()} / ä%2F"
    peer, tune = await at.talk.tuned()
    await at.talk.open(peer, tune, virtual_host=wanted)
    await at.hears("connection.open", virtual_host=wanted)
    await peer.expect(at.amqp.ConnectionOpenOk)
    return "as it was"


@HANDSHAKES.rule(
    "tune.limits",
    "what the proxy agrees to with the broker is within the broker's offer",
    section="1.4.2.6",
    obeys="within",
)
async def _(at: ProxyTalk) -> str:
    at.inner.script.channel_max, at.inner.script.frame_max = 100, 8192
    channel = await at.channel()
    said = channel.end.tune_ok
    if said is None:
        return "no tune-ok"
    is_within = 0 < said.channel_max <= 100 and 4096 <= said.frame_max <= 8192
    return "within" if is_within else f"channel-max {said.channel_max}, frame-max {said.frame_max}"


@HANDSHAKES.rule(
    "tune.offer",
    "what the client is offered can be had: as many channels as the broker allows, or fewer",
    section="1.4.2.5.1",
    obeys="within",
)
async def _(at: ProxyTalk) -> str:
    at.inner.script.channel_max = 100
    _, tune = await at.talk.tuned()
    return "within" if 0 < tune.channel_max <= 100 else f"channel-max {tune.channel_max}"
