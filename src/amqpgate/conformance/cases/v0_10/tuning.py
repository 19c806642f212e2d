"""What is agreed on: channels, sizes of frames, heartbeats (AMQP 0-10, connection.tune and tune-ok)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import Conversation
from amqpgate.conformance.endings import Untestable
from amqpgate.conformance.v0_10.talk import SessionTalk, section, tune_ok
from amqpgate.wire.generated import v0_10 as amqp

TUNING: Final = section("tuning", "Limits of a connection")

_REFUSED: Final = ("connection.close *", "hangs up")
_TAKEN: Final = "connection.open-ok"


@TUNING.rule(
    "connection.tune.max-frame-size.minimum",
    "a max-frame-size that is offered is 4096 at least",
    section="connection.tune.max-frame-size, minimum",
    obeys="within",
)
async def _(talk: SessionTalk) -> str:
    _, tune = await talk.tuned()
    offered = tune.max_frame_size
    return "within" if offered is None or offered >= amqp.MIN_MAX_FRAME_SIZE else f"{offered}"


@TUNING.rule(
    "connection.tune.heartbeat-max.permitted-range",
    "heartbeat-max is not below heartbeat-min",
    section="connection.tune.heartbeat-max, permitted-range",
    obeys="within",
)
async def _(talk: SessionTalk) -> str:
    _, tune = await talk.tuned()
    least, most = tune.heartbeat_min, tune.heartbeat_max
    # Absent: not supported.
    return "within" if most is None or most >= (least or 0) else f"{least} to {most}"


def _tuned(**said: int | None) -> Conversation[SessionTalk]:
    """Say this in tune-ok."""

    async def conversation(talk: SessionTalk) -> str:
        peer, tune = await talk.tuned()
        await peer.say(tune_ok(tune, **said), talk.open())
        return await peer.outcome()

    return conversation


for _name, _title, _said in (
    ("channel-max.one", "a channel-max of 1 is taken", {"channel_max": 1}),
    ("channel-max.absent", "a channel-max may be left out", {"channel_max": None}),
    ("max-frame-size.smallest", "a max-frame-size of 4096 is taken", {"max_frame_size": 4096}),
    ("max-frame-size.absent", "a max-frame-size may be left out", {"max_frame_size": None}),
    ("heartbeat.absent", "a heartbeat may be left out", {"heartbeat": None}),
    ("heartbeat.zero", "no heartbeats are taken where that was offered", {"heartbeat": 0}),
):
    TUNING.rule(
        f"connection.tune-ok.{_name}",
        _title,
        section=f"connection.tune-ok.{_name.partition('.')[0]}",
        obeys=_TAKEN,
    )(_tuned(**_said))

TUNING.rule(
    "connection.tune-ok.max-frame-size.minimum",
    "a max-frame-size below 4096 ends the connection",
    section="connection.tune-ok.max-frame-size, minimum",
    obeys=_REFUSED,
    qpid=_TAKEN,
)(_tuned(max_frame_size=100))


@TUNING.rule(
    "connection.tune-ok.max-frame-size.upper-limit",
    "a max-frame-size above what was offered ends the connection",
    section="connection.tune-ok.max-frame-size, upper-limit",
    obeys=_REFUSED,
)
async def _(talk: SessionTalk) -> str:
    _, tune = await talk.tuned()
    offered = tune.max_frame_size
    if offered in (None, 0xFFFF):
        raise Untestable("max-frame-size has no limit")
    return await _tuned(max_frame_size=offered + 1)(talk)


@TUNING.rule(
    "connection.tune-ok.channel-max.upper-limit",
    "a channel-max above what was offered ends the connection",
    section="connection.tune-ok.channel-max, upper-limit",
    obeys=_REFUSED,
    qpid=_TAKEN,
)
async def _(talk: SessionTalk) -> str:
    _, tune = await talk.tuned()
    offered = tune.channel_max
    if offered in (None, 0xFFFF):
        raise Untestable("channel-max has no limit")
    return await _tuned(channel_max=offered + 1)(talk)


@TUNING.rule(
    "connection.tune-ok.heartbeat.permitted-range",
    "a heartbeat above what was offered ends the connection",
    section="connection.tune-ok.heartbeat, permitted-range",
    obeys=_REFUSED,
    qpid=_TAKEN,
)
async def _(talk: SessionTalk) -> str:
    _, tune = await talk.tuned()
    most = tune.heartbeat_max
    if most in (None, 0xFFFF):
        raise Untestable("heartbeat-max has no limit")
    return await _tuned(heartbeat=most + 1)(talk)


@TUNING.rule(
    "connection.tune-ok.channel-max.available-channels",
    "channels below channel-max may be used",
    section="connection.tune-ok.channel-max, available-channels",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    peer = await talk.connected(channel_max=3)
    for channel in range(3):
        session = await talk.session(peer, channel)
    return await session.outcome()


@TUNING.rule(
    "connection.tune-ok.channel-max.beyond",
    "a channel at channel-max or beyond it ends the connection",
    section="connection.tune-ok.channel-max, available-channels",
    obeys=_REFUSED,
    # Whatever was agreed, it takes any channel.
    qpid="goes on",
)
async def _(talk: SessionTalk) -> str:
    peer = await talk.connected(channel_max=3)
    return await (await talk.session(peer, 3)).outcome()


@TUNING.rule(
    "connection.tune-ok.channel-max.highest",
    "the highest channel that was offered may be used",
    section="connection.tune-ok.channel-max, available-channels",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    peer, tune = await talk.tuned()
    await peer.say(tune_ok(tune), talk.open())
    await peer.control(amqp.ConnectionOpenOk)
    most = 0xFFFF if tune.channel_max is None else tune.channel_max
    return await (await talk.session(peer, most - 1)).outcome()


@TUNING.rule(
    "connection.tune-ok.heartbeat.kept",
    "a peer sends heartbeats as agreed",
    section="connection.heartbeat",
    obeys="beats",
)
async def _(talk: SessionTalk) -> str:
    peer, tune = await talk.tuned()
    if not tune.heartbeat_max:
        raise Untestable("it offers no heartbeats")
    await peer.say(tune_ok(tune, heartbeat=1), talk.open())
    await peer.control(amqp.ConnectionOpenOk)
    # It may hang up on who says nothing before it has said more itself.
    await peer.ends()
    return "beats" if peer.beats else "silence"


@TUNING.rule(
    "connection.tune-ok.heartbeat.missed",
    "who sends nothing for longer than agreed is hung up on",
    section="connection.heartbeat",
    obeys=("hangs up", "connection.close 320"),
)
async def _(talk: SessionTalk) -> str:
    peer, tune = await talk.tuned()
    if not tune.heartbeat_max:
        raise Untestable("it offers no heartbeats")
    await peer.say(tune_ok(tune, heartbeat=1), talk.open())
    await peer.control(amqp.ConnectionOpenOk)
    peer.be_patient(8)
    return await peer.ends()


@TUNING.rule(
    "connection.heartbeat.sent",
    "who sends heartbeats is not hung up on",
    section="connection.heartbeat",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    peer, tune = await talk.tuned()
    if not tune.heartbeat_max:
        raise Untestable("it offers no heartbeats")
    await peer.say(tune_ok(tune, heartbeat=1), talk.open())
    await peer.control(amqp.ConnectionOpenOk)
    session = await talk.session(peer)
    for _ in range(8):
        await peer.say(amqp.ConnectionHeartbeat())
        await talk.pause(0.5)
    return await session.outcome()
