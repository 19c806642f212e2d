"""Which files of gateways were read, in little space: ranges of the numbers that a gateway counts them by.

Days that are more than `_OLDEST` before the newest are not looked at any more, which bounds it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Final, TypeAlias

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.places import LOCAL
from amqpgate.records import Sort

#: By what all names of a gateway's files begin: ranges of their numbers, as ``1-7,9-9``.
Offset: TypeAlias = dict[str, str]

_OLDEST: Final = timedelta(days=30)
_NAME: Final = re.compile(r"^(?P<start>.*/date=(?P<day>\d{4}-\d\d-\d\d)/.*-)(?P<number>\d{6,})\.parquet$")


def new_names(paths: Iterable[str], folder: str, sort: Sort, known: Mapping[str, str]) -> list[str]:
    """Of the paths below a folder those of a sort's files that are not known, by their names below it.

    Raises ``PipelineError`` for files that no gateway has written.
    """
    root = f"{LOCAL}{folder.removeprefix(LOCAL).rstrip('/')}/"
    found = []
    for path in paths:
        name = path.removeprefix(root)
        if name.startswith(f"{sort}/") and name.endswith(".parquet"):
            if (match := _NAME.match(name)) is None or "/records-" in name:
                raise PipelineError(f"{path} is none of a gateway's files: only those can be followed")
            found.append((name, date.fromisoformat(match["day"])))
    days = [day for _, day in found] + [_day_of(key) for key in known]
    oldest = max(days, default=date.min + _OLDEST) - _OLDEST
    return sorted({name for name, day in found if day >= oldest}.difference(names_of(known)))


def offset_of(names: Iterable[str]) -> Offset:
    """The offset of these files, without those of days that are too old."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for name in names:
        match = _NAME.match(name)
        assert match is not None
        numbers[f"{match['start']}{len(match['number'])}"].append(int(match["number"]))
    oldest = max(map(_day_of, numbers), default=date.min + _OLDEST) - _OLDEST
    return {key: _ranges(sorted(some)) for key, some in sorted(numbers.items()) if _day_of(key) >= oldest}


def names_of(offset: Mapping[str, str]) -> Iterator[str]:
    """The files of an offset."""
    for key, ranges in offset.items():
        start, _, width = key.rpartition("-")
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            for number in range(int(first), int(last) + 1):
                yield f"{start}-{number:0{width}}.parquet"


def _day_of(key: str) -> date:
    return date.fromisoformat(key.partition("/date=")[2].partition("/")[0])


def _ranges(numbers: Sequence[int]) -> str:
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(f"{first}-{last}" for first, last in found)
