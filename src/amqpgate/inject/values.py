"""Parts of a JSON value, whose shape is not known until it is looked at."""

from __future__ import annotations

from amqpgate.errors import AmqpgateError
from amqpgate.yamldoc.schema import Json


class NotInjectedError(AmqpgateError):
    """A pod that cannot get a sidecar as it is: says where, why, and what to do."""


def mapping_at(owner: dict[str, Json], key: str, where: str) -> dict[str, Json]:
    """``owner[key]``; an empty one, which is not in ``owner``, where there is none."""
    value = owner.get(key)
    return {} if value is None else as_mapping(value, f"{where}.{key}")


def mappings_at(owner: dict[str, Json], key: str, where: str) -> list[dict[str, Json]]:
    """The mappings in the list ``owner[key]``; none where there is no list."""
    value = owner.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotInjectedError(f"{where}.{key} is not a list")
    return [as_mapping(item, f"{where}.{key}[{index}]") for index, item in enumerate(value)]


def as_mapping(value: Json, where: str) -> dict[str, Json]:
    """The same, which is a mapping."""
    if not isinstance(value, dict):
        raise NotInjectedError(f"{where} is not a mapping")
    return value


def text_at(owner: dict[str, Json], key: str, where: str) -> str:
    """``owner[key]``; empty where there is none."""
    value = owner.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise NotInjectedError(f"{where}.{key} is not text")
    return value
