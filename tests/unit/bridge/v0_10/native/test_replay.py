"""Real conversations through both ends: each side hears what it heard, however reads are cut."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from amqpgate.protocol.methods import Role
from tests.support.said_0_10 import NAMES, SHORT, Read, conversations
from tests.unit.bridge.v0_10.native.lab import Lab, behind_open


def reads_of(conversation: tuple[Read, ...]) -> list[Read]:
    """What comes behind the handshake. Those who did not get there have said nothing else."""
    skip = {
        side: behind_open(b"".join(read.data for read in conversation if read.sender is side))
        for side in Role
    }
    found = []
    for read in conversation:
        skipped = min(len(read.data), skip[read.sender])
        skip[read.sender] -= skipped
        if len(read.data) > skipped:
            found.append(Read(read.sender, read.data[skipped:]))
    return found


def by_channel(data: bytes) -> dict[int, bytes]:
    """Frames as they are, in the order of each channel; sessions do not wait for each other."""
    found: dict[int, bytes] = defaultdict(bytes)
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        found[int.from_bytes(data[at + 6 : at + 8], "big")] += data[at : at + size]
        at += size
    return dict(found)


def replay(name: str, cut: int) -> Counter[str]:
    """All of a recording in pieces of ``cut`` bytes; the methods that were judged."""
    judged: Counter[str] = Counter()
    for conversation in conversations(name):
        lab = Lab()
        said = {Role.CLIENT: b"", Role.SERVER: b""}
        for read in reads_of(conversation):
            said[read.sender] += read.data
            give = lab.from_client if read.sender is Role.CLIENT else lab.from_broker
            for at in range(0, len(read.data), cut):
                give(read.data[at : at + cut])
        assert by_channel(lab.to_broker) == by_channel(said[Role.CLIENT])
        assert by_channel(lab.to_client) == by_channel(said[Role.SERVER])
        judged.update(method.NAME for _, method in lab.up)
    return judged


@pytest.mark.parametrize("name", NAMES)
def test_all_that_was_said_is_heard(name: str) -> None:
    assert replay(name, 1 << 20)


@pytest.mark.parametrize("cut", [1, 7, 13, 250])
@pytest.mark.parametrize("name", SHORT)
def test_however_reads_are_cut(name: str, cut: int) -> None:
    assert replay(name, cut) == replay(name, 1 << 20)
