"""What is in view in terminals of several widths, whatever names are called."""

from __future__ import annotations

import pytest
from rich.cells import cell_len, set_cell_size

from amqpgate.cli.top_columns import DENIAL, FIRST, SESSION, Column, cell, sorted_by, widths

LONG = "x" * 200


def line_of(columns: list[Column], row: dict[str, str], room: int, first: int) -> str:
    texts = [row.get(column.key, "7") for column in columns]
    found = widths(columns, [texts], room, first)
    return "".join(cell(*one) for one in zip(texts, columns, found, strict=True))


@pytest.mark.parametrize("name", ["u", LONG, "\u65e5" * 100])
def test_at_80_columns_names_are_cut_and_numbers_are_not(name: str) -> None:
    row = {"published_rate": "12,345.6", "delivered_rate": "1,234.5", "refused": "4711"}
    row |= {"flow": "slow broker"}
    row |= {"user": f"a{name}", "vhost": f"b{name}", "client": f"c{name}", "upstream": name}
    columns, first = sorted_by("-published_rate")
    seen = set_cell_size(line_of(columns, row, 79, first), 79)
    for text in ("a", "b", "c", "12,345.6 ", "1,234.5 ", "4711 ", "slow broker "):
        assert text in seen


def test_one_long_name_of_many_leaves_the_other_columns_in_view() -> None:
    columns, first = sorted_by("-published_rate")
    texts = [["-"] * len(columns), [LONG] + ["-"] * (len(columns) - 1)]
    assert sum(widths(columns, texts, 79, first)[:first]) + first <= 79
    # Where there is room for all of them it has what it may have.
    found = widths(columns, texts, 180, first)
    assert found[0] == 40
    assert sum(found) + len(found) <= 180


def test_the_id_goes_first() -> None:
    assert [column.key for column in SESSION][-1] == "id"


@pytest.mark.parametrize(("order", "title"), [("-channels", "channels\u2193"), ("name", "name\u2191")])
def test_what_they_are_sorted_by_is_in_view(order: str, title: str) -> None:
    columns, first = sorted_by(order)
    assert title in [column.title for column in columns[:first]]
    assert first == FIRST + 1
    assert len({column.key for column in columns}) == len(columns)


def test_in_view_already_it_stays_where_it_is() -> None:
    columns, first = sorted_by("refused")
    assert ([column.key for column in columns], first) == ([column.key for column in SESSION], FIRST)


def test_a_long_queue_leaves_user_virtual_host_and_rule_in_view() -> None:
    row = {"about": LONG, "user": "alice", "vhost": "shop", "rule": "policy/rule"}
    row |= {"time": "12:34:56", "what": "DENIED", "operation": "exchange.declare"}
    line = line_of(list(DENIAL), row, 79, len(DENIAL))
    assert cell_len(line) == 79
    for text in ("alice ", "shop ", "policy/rule ", "exchange.declare "):
        assert text in line
    assert line.endswith("x\N{HORIZONTAL ELLIPSIS} ")


def test_a_terminal_without_room_cuts_no_number() -> None:
    columns, first = sorted_by("-published_rate")
    found = widths(columns, [["9"] * len(columns)], 10, first)
    numbers = [at for at, column in enumerate(columns) if column.least is None]
    assert all(found[at] >= len(columns[at].title) for at in numbers)
