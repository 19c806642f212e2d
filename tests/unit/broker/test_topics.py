"""The tree of words finds what a plain reading of the rules finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amqpgate.broker.topics import TopicTree, words_of


def _matches(pattern: list[str], words: list[str]) -> bool:
    """AMQP 0-9-1, section 3.1.3.3, read word by word."""
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(_matches(pattern[1:], words[skipped:]) for skipped in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and _matches(pattern[1:], words[1:])


_patterns = st.lists(st.sampled_from(["a", "b", "", "*", "#"]), max_size=5).map(".".join)
_keys = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=6).map(".".join)


@given(st.lists(_patterns, max_size=8), _keys)
def test_finds_what_matches(patterns: list[str], key: str) -> None:
    tree: TopicTree[int] = TopicTree()
    for number, pattern in enumerate(patterns):
        tree.add(pattern, number)
    expected = [n for n, pattern in enumerate(patterns) if _matches(words_of(pattern), words_of(key))]
    assert sorted(tree.match(key)) == expected


@given(st.lists(_patterns, max_size=8, unique=True), st.data())
def test_forgets_what_is_removed(patterns: list[str], data: st.DataObject) -> None:
    tree: TopicTree[str] = TopicTree()
    for pattern in patterns:
        tree.add(pattern, pattern)
    gone = data.draw(st.sets(st.sampled_from(patterns))) if patterns else set()
    for pattern in gone:
        tree.remove(pattern, pattern)
    key = data.draw(_keys)
    left = [pattern for pattern in patterns if pattern not in gone]
    assert sorted(tree.match(key)) == sorted(p for p in left if _matches(words_of(p), words_of(key)))


def test_a_tree_without_items_is_empty() -> None:
    tree: TopicTree[int] = TopicTree()
    tree.add("a.#.b", 1)
    tree.add("a", 2)
    tree.remove("a.#.b", 1)
    tree.remove("a", 2)
    assert not tree._root.children


def test_many_wildcards_take_no_exponential_time() -> None:
    # Without a memory of where it has been, this would take longer than the universe has.
    tree: TopicTree[int] = TopicTree()
    tree.add(".".join(["#", "a"] * 40), 1)
    assert list(tree.match(".".join(["a"] * 100 + ["b"]))) == []
    assert list(tree.match(".".join(["a"] * 100))) == [1]
