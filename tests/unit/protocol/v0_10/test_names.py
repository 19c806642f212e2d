"""Names of sessions."""

from __future__ import annotations

from amqpgate.protocol.v0_10.names import SessionNames


def test_a_name_is_held_until_it_is_released_by_who_holds_it() -> None:
    names = SessionNames()
    evicted: list[str] = []

    def first() -> None:
        evicted.append("first")

    def second() -> None:
        evicted.append("second")

    assert names.claim(b"user", b"name", first, force=False)
    assert not names.claim(b"user", b"name", second, force=False)
    assert names.claim(b"other", b"name", second, force=False)
    assert names.claim(b"user", b"other", second, force=False)
    assert len(names) == 3
    names.release(b"user", b"name", second)
    assert not names.claim(b"user", b"name", second, force=False)
    names.release(b"user", b"name", first)
    assert names.claim(b"user", b"name", second, force=True)
    assert evicted == []
    assert names.claim(b"user", b"name", first, force=True)
    assert evicted == ["second"]
    names.release(b"user", b"name", second)
    assert len(names) == 3
