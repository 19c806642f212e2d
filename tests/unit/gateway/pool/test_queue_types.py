"""Of what type queues are, as far as a pool knows."""

from __future__ import annotations

from amqpgate.gateway.pool.queue_types import ROOM, QueueTypes


def test_types_of_queues_are_known_as_long_as_the_queues_are_there() -> None:
    types = QueueTypes()
    assert not types.knows("q")
    assert types.knows("amq.gen-1")
    types.declared("q", "stream")
    assert (types.at("q"), types.knows("q")) == ("stream", True)
    types.declared("q", None)
    assert (types.at("q"), types.knows("q")) == (None, True)
    types.declared("q", "quorum")
    types.deleted("q")
    assert (types.at("q"), types.knows("q")) == (None, False)
    types.declared("q", None)
    types.deleted("q")
    assert not types.knows("q")
    for number in range(ROOM + 1):
        types.declared(f"q{number}", "quorum")
        types.declared(f"plain{number}", None)
    assert types.at("q0") is None
    assert types.at("q1") == "quorum"
    assert not types.knows("plain0")
    assert types.knows("plain1")
