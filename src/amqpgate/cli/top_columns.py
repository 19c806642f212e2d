"""The columns of `amqpgate top`: which come first, and how wide each is, so that what matters is in view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size

ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"


class Column(NamedTuple):
    """One column of a table."""

    key: str
    title: str
    #: Of text: as narrow as it may get, and as wide. Numbers have neither, and are never cut.
    least: int | None = None
    most: int = 0


#: Of sessions: those in view come first, what one needs least comes last.
SESSION: Final = (
    Column("user", "user", 8, 40),
    Column("vhost", "vhost", 5, 24),
    Column("client", "client", 9, 47),
    Column("published_rate", "published/s"),
    Column("delivered_rate", "delivered/s"),
    Column("refused", "refused"),
    Column("flow", "flow", 11, 11),
    Column("channels", "channels"),
    Column("published", "published"),
    Column("delivered", "delivered"),
    Column("upstream", "upstream", 8, 24),
    Column("listener", "listener", 8, 24),
    Column("id", "id", 16, 16),
)
#: As many of them are in view in a terminal of 80 columns.
FIRST: Final = 7
#: Of denials: what may be long and many words comes last.
DENIAL: Final = (
    Column("time", "time", 8, 8),
    Column("what", "what", 7, 12),
    Column("operation", "operation", 9, 16),
    Column("user", "user", 8, 40),
    Column("vhost", "vhost", 5, 24),
    Column("rule", "rule", 10, 48),
    Column("about", "about", 12, 255),
)


def sorted_by(order: str) -> tuple[list[Column], int]:
    """The columns of sessions in that order, and how many of them are to be in view: what they are sorted by
    is among these, with an arrow."""
    name = order.removeprefix("-")
    arrow = "\N{UPWARDS ARROW}" if name == order else "\N{DOWNWARDS ARROW}"
    columns = {column.key: column for column in SESSION}
    by = columns.get(name, Column(name, name, 8, 24))
    columns[name] = by._replace(title=by.title + arrow)
    found = list(columns.values())
    if found.index(columns[name]) < FIRST:
        return found, FIRST
    found.remove(columns[name])
    # Beside those who they are: before other numbers.
    found.insert(3, columns[name])
    return found, FIRST + 1


def widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int, first: int) -> list[int]:
    """How wide each column is, with rows of as many cells.

    At least the ``first`` columns share ``room`` with a space behind each, and as many more as leave the text
    of others twice what it needs; those behind them have the width that they want.
    """
    wanted = []
    for at, column in enumerate(columns):
        longest = max([cell_len(column.title), *(cell_len(row[at]) for row in rows)])
        wanted.append(longest if column.least is None else min(longest, column.most))
    least = [
        most if column.least is None else min(most, max(column.least, cell_len(column.title)))
        for column, most in zip(columns, wanted, strict=True)
    ]
    easy = [min(most, 2 * some) for most, some in zip(wanted, least, strict=True)]
    count = first
    while count < len(columns) and sum(easy[: count + 1]) + count + 1 <= room:
        count += 1
    found = list(wanted)
    while sum(found[:count]) + count > room:
        # Who has most gives, if it may.
        givers = [at for at in range(count) if found[at] > least[at]]
        if not givers:
            break
        found[max(givers, key=found.__getitem__)] -= 1
    return found


def cell(text: str, column: Column, width: int) -> str:
    """Exactly so wide, and a space; what is cut ends in an ellipsis."""
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1) + ELLIPSIS
    padding = " " * (width - cell_len(text))
    return f"{padding}{text} " if column.least is None else f"{text}{padding} "
