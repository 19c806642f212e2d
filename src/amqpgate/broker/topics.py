"""Routing keys of topic exchanges: a tree of words."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

from attrs import define, field

Item = TypeVar("Item", bound=Hashable)

ONE_WORD: Final = "*"
ANY_WORDS: Final = "#"


def words_of(key: str) -> list[str]:
    """The words between the dots; an empty key has none."""
    return key.split(".") if key else []


@define(eq=False)
class _Node(Generic[Item]):
    children: dict[str, _Node[Item]] = field(factory=dict)
    items: dict[Item, None] = field(factory=dict)


@define(eq=False)
class TopicTree(Generic[Item]):
    """Items under patterns of words. Matching visits each node at most once per word of the key."""

    _root: _Node[Item] = field(factory=_Node)

    def add(self, pattern: str, item: Item) -> None:
        """Put an item under a pattern."""
        node = self._root
        for word in words_of(pattern):
            node = node.children.setdefault(word, _Node())
        node.items[item] = None

    def remove(self, pattern: str, item: Item) -> None:
        """Take an item away; :class:`KeyError` if it is not under that pattern."""
        node = self._root
        path: list[tuple[_Node[Item], str]] = []
        for word in words_of(pattern):
            path.append((node, word))
            node = node.children[word]
        del node.items[item]
        for parent, word in reversed(path):
            child = parent.children[word]
            if child.items or child.children:
                break
            del parent.children[word]

    def match(self, key: str) -> Iterator[Item]:
        """The items whose pattern matches ``key``, each once."""
        words = words_of(key)
        todo: list[tuple[_Node[Item], int]] = [(self._root, 0)]
        seen: set[tuple[int, int]] = set()
        found: dict[int, _Node[Item]] = {}
        while todo:
            node, at = todo.pop()
            if (id(node), at) in seen:
                continue
            seen.add((id(node), at))
            if at == len(words):
                found[id(node)] = node
            else:
                for word in (words[at], ONE_WORD):
                    child = node.children.get(word)
                    if child is not None:
                        todo.append((child, at + 1))
            rest = node.children.get(ANY_WORDS)
            if rest is not None:
                todo.extend((rest, skipped) for skipped in range(at, len(words) + 1))
        for node in found.values():
            yield from node.items
