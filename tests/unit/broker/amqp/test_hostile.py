"""Whatever a peer sends, the connection reports events or raises a violation, and nothing else."""

from __future__ import annotations

from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from amqpgate.broker.amqp.connection import Connection
from amqpgate.broker.amqp.limits import ConnectionLimits
from amqpgate.errors import REPLY_NAMES, ProtocolViolation
from amqpgate.protocol.frames import encode_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.broker.amqp.pair import with_channel
from tests.unit.broker.amqp.playbook import STAGES, PlaybookBroker, body, header

METHODS = sorted(amqp.METHODS)
CHANNELS = st.sampled_from([0, 1, 2, 65_535])

#: Frames that are more likely to get somewhere than random bytes.
FRAMES = st.one_of(
    st.builds(
        lambda index, channel: encode_frame(1, channel, amqp.METHODS[index]().encode()),
        st.sampled_from(METHODS),
        CHANNELS,
    ),
    st.builds(
        lambda index, channel, rest: encode_frame(1, channel, pack(">I", index) + rest),
        st.sampled_from(METHODS),
        CHANNELS,
        st.binary(max_size=30),
    ),
    st.builds(header, CHANNELS, st.sampled_from([0, 1, 2, 50, 2**64 - 1]), st.sampled_from([60, 60, 60, 50])),
    st.builds(body, CHANNELS, st.binary(max_size=30)),
    st.builds(encode_frame, st.integers(0, 255), CHANNELS, st.binary(max_size=30)),
    st.binary(max_size=30),
)


@given(st.sampled_from(list(STAGES)), st.lists(FRAMES, max_size=12))
def test_a_server_survives(stage: str, pieces: list[bytes]) -> None:
    broker = PlaybookBroker(ConnectionLimits(body=40, body_total=60)).hear(*STAGES[stage]).hear(*pieces)
    for said in broker.said:
        words = said.split()
        if words[0] == "silence" or words[1].endswith(".close"):
            code = int(words[1] if words[0] == "silence" else words[2])
            assert code in REPLY_NAMES


@given(st.lists(FRAMES, max_size=12))
def test_a_client_survives(pieces: list[bytes]) -> None:
    client: Connection = with_channel().client
    for piece in pieces:
        try:
            for _event in client.receive(piece):
                pass
        except ProtocolViolation as error:
            if error.scope == "connection":
                client.send(0, amqp.ConnectionClose())


@given(st.lists(FRAMES, max_size=20))
def test_unfinished_bodies_stay_within_their_limit(pieces: list[bytes]) -> None:
    limits = ConnectionLimits(body=40, body_total=60)
    broker = PlaybookBroker(limits).hear(*STAGES["channel"], *pieces)
    channels = broker.connection._channels
    held = sum(channel.content.held for channel in channels._open.values() if channel.content)
    assert held == channels._held <= limits.body_total
