"""The patch makes the one of the other, by another program's reading of RFC 6902."""

from __future__ import annotations

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.inject.patch import difference
from amqpgate.yamldoc.schema import Json

KEYS = st.sampled_from(["a", "b", "name", "a/b", "~", "~1", ""])
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.sampled_from(["x", "y", ""])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_two_values(old: dict[str, Json], new: dict[str, Json]) -> None:
    assert jsonpatch.apply_patch(old, list(difference(old, new))) == new


@given(VALUES)
def test_nothing_for_the_same(value: Json) -> None:
    assert list(difference(value, value)) == []


def test_what_is_put_in_front_is_added_there() -> None:
    old: Json = {"list": [{"name": "a", "x": "1"}, {"name": "b"}]}
    new: Json = {"list": [{"name": "new"}, {"name": "a", "x": "2"}, {"name": "b"}]}
    assert list(difference(old, new)) == [
        {"op": "replace", "path": "/list/0/x", "value": "2"},
        {"op": "add", "path": "/list/0", "value": {"name": "new"}},
    ]


def test_what_is_put_behind_is_added_there() -> None:
    assert list(difference(["a"], ["a", "b"])) == [{"op": "add", "path": "/-", "value": "b"}]


def test_true_is_not_one() -> None:
    assert list(difference({"a": True}, {"a": 1})) == [{"op": "replace", "path": "/a", "value": 1}]
