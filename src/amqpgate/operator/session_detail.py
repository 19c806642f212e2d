"""All that operators see of one session: its channels on both hops, consumers, flows, policies."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from typing import Final

from amqpgate.datapath.scanner import Lane
from amqpgate.datapath.tables import DISCARD, OPEN, Side
from amqpgate.gateway.observers.stats.edges import names_of
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.session.channel_close import SessionChannel
from amqpgate.gateway.session.channel_consumers import SessionConsumer
from amqpgate.gateway.session.session import Session
from amqpgate.logs import without_passwords
from amqpgate.operator.sessions import row_of
from amqpgate.policy import PolicySet
from amqpgate.telemetry.answers import JSON, Args
from amqpgate.telemetry.time_slices import TimeSlices

#: Flows of each direction that are shown: those with most messages.
MOST_FLOWS: Final = 100


async def session(gateway: Gateway, args: Args) -> JSON:
    """The session of that ``id``; None: there is none."""
    found = gateway.sessions.get(str(args["id"]))
    if found is None:
        return None
    await gateway.observers.rates.look(list(gateway.sessions.values()))
    channels = []
    turns = TimeSlices()
    for number, channel in list(found.channels.states.items()):
        channels.append(_channel(found, number, channel))
        await turns.next()
    publish, more_publish = _flows(found.relay.up, Side.CLIENT)
    deliver, more_deliver = _flows(found.relay.down, Side.UPSTREAM)
    return {
        **row_of(found, gateway),
        **_connection(found),
        **_identity(found, gateway.policies),
        "open_channels": channels,
        "flows": {"publish": publish, "deliver": deliver, "more": more_publish + more_deliver},
    }


def _connection(session: Session) -> dict[str, JSON]:
    client, broker = session.relay.endpoints
    principal, access = session.principal, session.session_policies.access
    now = time.monotonic()
    ends = {"client": client} if session.upstream.is_pooled else {"client": client, "upstream": broker}
    enforced = access.enforced.policies
    return {
        "source": principal.source,
        "tls_name": None if principal.tls is None else principal.tls.common_name,
        "client_properties": {name: without_passwords(text) for name, text in principal.client.items()},
        "channel_max": session.facts.channel_max,
        "frame_max": {"client": client.lane.frame_max, "upstream": client.lane.out_frame_max},
        "heartbeat": {name: end.heartbeat for name, end in ends.items()},
        "silent": {name: round(now - end.last_received, 3) for name, end in ends.items()},
        "buffered": {"client": client.waiting, "upstream": broker.waiting},
        "policies": list(enforced),
        "shadow_policies": [
            name for name in (() if access.shadow is None else access.shadow.policies) if name not in enforced
        ],
        "limits": [
            {
                "policy": limit.policy,
                "limit": limit.limit,
                "quantities": dict(limit.rates),
                "action": limit.action,
                "enforced": limit.enforced,
            }
            for limit in session.limits.all
        ],
        "link": session.upstream.connection_id,
    }


def _identity(session: Session, policies: PolicySet) -> dict[str, JSON]:
    """What policies know of who it is, beside its user."""
    principal, token = policies.membership.applied(session.principal), session.token
    said = principal.token
    shown: JSON = None
    if token is not None and said is not None:
        shown = {
            "issuer": token.issuer.oauth.issuer,
            "scopes": sorted(said.scopes),
            "claims": {name: list(values) for name, values in said.claims},
            "ends": token.ends,
        }
    return {"groups": sorted(principal.groups), "token": shown}


def _state_of(channel: SessionChannel, state: int) -> str:
    # Of what shares a link all is dropped behind the client's own close and the broker's, too.
    close = channel.close
    if state == DISCARD and (close is None or (not close.answers_due and close.down is not Side.UPSTREAM)):
        return "refused"
    return "open" if close is None else "closing"


def _channel(session: Session, number: int, channel: SessionChannel) -> dict[str, JSON]:
    table = session.relay.channels
    state = table.state(number)
    is_known = bool(state)
    return {
        "number": number,
        "upstream_number": session.upstream.number_of(number),
        "state": _state_of(channel, state),
        "published": table.messages(Side.CLIENT, number) if is_known else 0,
        "delivered": table.messages(Side.UPSTREAM, number) if is_known else 0,
        # Once a close is under way the broker has it no more, or will not hear of acks.
        "unacked": table.unacked(number) if state == OPEN and channel.close is None else None,
        "confirms": channel.confirms_from is not None,
        "transaction": channel.transacts,
        "last_queue": channel.last_queue,
        "consumers": [] if channel.consuming is None else list(_consumers(channel)),
    }


def _consumers(channel: SessionChannel) -> Iterator[JSON]:
    assert channel.consuming is not None
    for tag, consumer in channel.consuming.tags.items():
        yield _consumer(tag, consumer)
    for consumer in (*channel.consuming.nameless, *channel.consuming.asked):
        yield _consumer(None, consumer)


def _consumer(tag: str | None, consumer: SessionConsumer) -> JSON:
    return {"tag": tag, "queue": consumer.operations[0].queue, "no_ack": consumer.no_ack}


def _flows(lane: Lane, side: Side) -> tuple[list[JSON], int]:
    """The flows with most messages, and how many more there are."""
    found = [(flow.messages, key, flow.body_bytes) for key, flow in lane.known_flows()]
    most = heapq.nlargest(MOST_FLOWS, found)
    shown: list[JSON] = [
        {**_named(key, side), "messages": messages, "bytes": byte_count} for messages, key, byte_count in most
    ]
    return shown, len(found) - len(most)


def _named(key: bytes, side: Side) -> dict[str, JSON]:
    names: dict[str, JSON] = {**names_of(key, side)}
    return names if side is Side.CLIENT else {"channel": int.from_bytes(key[:2], "big"), **names}
