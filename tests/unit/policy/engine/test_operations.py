"""What requests are made of: tables with one name twice, and routing keys in headers."""

from __future__ import annotations

from amqpgate.policy.engine.operations import Entries, MessageContent, every, every_value, text_of


def test_all_values_of_a_name_are_there() -> None:
    table = Entries([("a", 1), ("b", 2), ("a", 3)])
    assert table["a"] == 1
    assert [*every(table, "a")] == [1, 3]
    assert [*every(table, "c")] == []
    assert sorted(map(str, every_value(table))) == ["1", "2", "3"]


def test_more_routing_keys_are_those_that_rabbitmq_takes() -> None:
    headers = Entries([("CC", ["a", b"b", 3]), ("BCC", "c"), ("CC", ["d"]), ("cc", ["e"])])
    assert MessageContent(headers=headers).more_keys == ["a", "b", "d"]


def test_bytes_that_are_no_text_stay_apart() -> None:
    assert text_of(b"\xff") == "\udcff" != text_of(b"\xfe")
    assert text_of(5) is None
