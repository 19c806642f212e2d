"""The names under which the supervisor passes on what its workers answer."""

from __future__ import annotations

from amqpgate.operator import names, queries


def test_every_name_is_answered_and_no_other() -> None:
    assert queries.CALLS.keys() == names.CALLS
    assert queries.STREAMS.keys() == names.STREAMS
