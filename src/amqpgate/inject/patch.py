"""The difference of two JSON values as a JSON Patch (RFC 6902)."""

from __future__ import annotations

from collections.abc import Iterator

from amqpgate.yamldoc.schema import Json


def difference(old: Json, new: Json, path: str = "") -> Iterator[dict[str, Json]]:
    """Operations that make ``new`` of ``old``, in order. ``path`` is where both are (RFC 6901)."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _of_mappings(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _of_lists(old, new, path)
    elif old != new or type(old) is not type(new):
        yield {"op": "replace", "path": path, "value": new}


def _of_mappings(old: dict[str, Json], new: dict[str, Json], path: str) -> Iterator[dict[str, Json]]:
    for key in old:
        if key not in new:
            yield {"op": "remove", "path": _below(path, key)}
    for key, value in new.items():
        if key in old:
            yield from difference(old[key], value, _below(path, key))
        else:
            yield {"op": "add", "path": _below(path, key), "value": value}


def _of_lists(old: list[Json], new: list[Json], path: str) -> Iterator[dict[str, Json]]:
    """What was put in before or after all others is added; a list that lost something is replaced."""
    more = len(new) - len(old)
    if more < 0:
        yield {"op": "replace", "path": path, "value": list(new)}
        return
    in_front = more > 0 and [_name(item) for item in new[more:]] == [_name(item) for item in old]
    kept = new[more:] if in_front else new[: len(old)]
    for index, (before, after) in enumerate(zip(old, kept, strict=True)):
        yield from difference(before, after, f"{path}/{index}")
    if in_front:
        for index, value in enumerate(new[:more]):
            yield {"op": "add", "path": f"{path}/{index}", "value": value}
    else:
        for value in new[len(old) :]:
            yield {"op": "add", "path": f"{path}/-", "value": value}


def _name(item: Json) -> Json:
    """By what items of lists are told apart in Kubernetes."""
    return item.get("name") if isinstance(item, dict) else item


def _below(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
