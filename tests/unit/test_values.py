"""Values: the type checker holds that nobody writes to them."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from amqpgate.values import define, frozen


@frozen
class _Point:
    x: int
    y: int = 0


@frozen(eq=False)
class _Place:
    x: int


@frozen
class _Odd:
    x: int

    def __hash__(self) -> int:
        return 7


@frozen
class _Login:
    user: str
    password: str = attrs.field(repr=False)
    key: str = attrs.field(repr=lambda key: f"{key[:3]}...")


@frozen(repr=False)
class _Silent:
    x: int


@define
class _Counter:
    name: str
    hits: int = attrs.field(default=0, eq=False)
    tags: list[str] = attrs.field(factory=list, hash=False)


@frozen
class _Tagged(_Point):
    """A value with fields of another one's, and one that its hash leaves out."""

    tags: list[str] = attrs.field(factory=list, hash=False)


@frozen
class _Nothing:
    pass


class _Own(_Point):
    """Of a value, a class that attrs knows nothing of."""


@attrs.frozen
class _Strict(_Point):
    """Of a value, a class that holds it when it runs."""


def test_values_are_equal_and_have_one_hash_where_their_fields_are_equal() -> None:
    assert _Point(1) == _Point(1, 0) != _Point(2)
    assert len({_Point(1), _Point(1, 0), _Point(2)}) == 2
    assert attrs.evolve(_Point(1), y=3) == _Point(1, 3)
    assert hash(_Odd(1)) == 7


def test_what_is_compared_and_hashed_is_as_attrs_has_it() -> None:
    for _ in range(2):
        # The first comparison writes the methods.
        assert _Counter("a", 1) == _Counter("a", 2) != _Counter("a", 1, ["x"])
        assert _Counter("a") != _Tagged(1)
        assert _Tagged(1, 2, ["x"]) != _Tagged(1, 2, ["y"])
        assert hash(_Tagged(1, 2, ["x"])) == hash(_Tagged(1, 2, ["y"]))
        assert _Nothing() == _Nothing()
        assert len({_Nothing(), _Nothing()}) == 1
        assert _Own(1) == _Own(1) != _Point(1)
        assert len({_Own(1), _Own(1), _Point(1)}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(_Counter("a"))


def test_an_object_that_holds_itself_has_an_end() -> None:
    counter = _Counter("a")
    counter.tags.append(counter)  # type: ignore[arg-type]
    assert repr(counter) == "_Counter(name='a', hits=0, tags=[...])"


def test_two_threads_may_compare_at_once() -> None:
    @frozen
    class New:
        x: int

    # Both have come upon the method that writes, and one was quicker.
    compare, digest = New.__eq__, New.__hash__
    assert New(1) == New(1)
    assert hash(New(1)) == hash(New(1))
    assert New.__eq__ is not compare
    assert compare(New(1), New(1))
    assert digest(New(1)) == hash(New(1))


def test_a_field_that_is_compared_by_a_key_is_left_to_attrs() -> None:
    with pytest.raises(TypeError, match="by a key"):

        @define
        class _Keyed:
            name: str = attrs.field(eq=str.lower)


def test_they_are_compared_by_identity_where_that_is_said() -> None:
    assert _Place(1) != _Place(1)


def test_they_share_a_repr_that_hides_what_is_secret() -> None:
    assert repr(_Point(1)) == "_Point(x=1, y=0)"
    assert repr(_Login("bob", "hunter2", "deadbeef")) == "_Login(user='bob', key=dea...)"
    assert "x=1" not in repr(_Silent(1))


def test_they_have_slots_and_no_hook_that_looks_at_what_is_written() -> None:
    assert not hasattr(_Point(1), "__dict__")
    assert _Point.__setattr__ is object.__setattr__
    assert _Strict(1).y == 0


def write(point: _Point) -> None:
    """The type checker rejects it: were it not for the comment, ``make lint`` would fail; and it fails, too,
    where the comment is not needed any more."""
    point.x = 2  # type: ignore[misc]


#: Somebody must use it.
_: Callable[[_Point], None] = write
