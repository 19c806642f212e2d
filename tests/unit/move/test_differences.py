"""What the other broker lacks, and what it has otherwise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amqpgate.move.differences import differences
from amqpgate.move.objects import BrokerObject


def one(kind: str, name: str, **body: object) -> BrokerObject:
    return BrokerObject(kind, "v", name, body)  # type: ignore[arg-type]


def test_nothing_that_is_there_is_changed() -> None:
    wanted = [
        one("queue", "a"),
        one("queue", "b", durable=True),
        one("policy", "p", priority=1),
        one("user", "u"),
    ]
    there = [
        one("queue", "b", durable=False),
        one("policy", "p", priority=2),
        one("user", "u"),
        one("queue", "z"),
    ]
    found = differences(wanted, there)
    assert [str(one) for one in found.missing] == ["queue v a"]
    assert [str(wanted) for wanted, _ in found.conflicts] == ["queue v b"]
    assert found.kept == (there[1],)
    assert found.same == 1


OBJECTS = st.lists(
    st.builds(one, st.sampled_from(["queue", "policy"]), st.sampled_from("abc"), priority=st.integers(0, 1)),
    unique_by=lambda made: made.key,
)


@given(OBJECTS, OBJECTS)
def test_once_made_nothing_is_missing(wanted: list[BrokerObject], there: list[BrokerObject]) -> None:
    before = differences(wanted, there)
    after = differences(wanted, [*there, *before.missing])
    assert not after.missing
    assert after.conflicts == before.conflicts
    assert after.same == before.same + len(before.missing)
