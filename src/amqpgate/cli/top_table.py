"""A table of `amqpgate top` that is read while it changes: the chosen row and the view stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from rich.text import Text
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from amqpgate.cli.top_columns import Column, cell, widths

#: The key of a row, and its cells.
Line: TypeAlias = tuple[str, Sequence[Text]]

#: Columns of the terminal that an arrow key scrolls by.
_STEP = 8


class KeptTable(DataTable[Text]):
    """Its rows and columns are places that are filled anew, never cleared: so nothing scrolls by itself."""

    DEFAULT_CSS = """
    KeptTable { scrollbar-gutter: stable; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0 }
    """

    def __init__(self, columns: int, *, fixed: int = 0) -> None:
        """``fixed``: so many columns stay where they are when it is scrolled to the right."""
        super().__init__(cursor_type="row", zebra_stripes=True, cell_padding=0, fixed_columns=fixed)
        self._shown_columns: Sequence[Column] = ()
        self._shown_lines: Sequence[Line] = ()
        self._shown_first = 0
        #: Whether there are more columns to the right than there is room for.
        self.hides_columns = False
        self.add_columns(*[""] * columns)

    @property
    def chosen(self) -> str | None:
        """The key of the row that the cursor is at."""
        return self._shown_lines[self.cursor_row][0] if self.cursor_row < len(self._shown_lines) else None

    def fill(self, columns: Sequence[Column], lines: Sequence[Line], first: int) -> None:
        """Show these. The ``first`` columns are in view where there is any room for them."""
        chosen = self.chosen
        self._shown_columns, self._shown_lines, self._shown_first = columns, lines, first
        self._lay_out()
        keys = [key for key, _ in lines]
        if chosen in keys and (row := keys.index(chosen)) != self.cursor_row:
            self.move_cursor(row=row)

    def on_resize(self) -> None:
        """The same, with another width."""
        self._lay_out()

    def action_cursor_right(self) -> None:
        """Columns that are to the right come into view."""
        self.scroll_relative(x=_STEP, animate=False)

    def action_cursor_left(self) -> None:
        """And go again."""
        self.scroll_relative(x=-_STEP, animate=False)

    def action_scroll_home(self) -> None:
        """To the first row, which is the newest or has most."""
        self.action_scroll_top()

    def action_scroll_end(self) -> None:
        """To the last."""
        self.action_scroll_bottom()

    @property
    def _room(self) -> int:
        return (self.outer_size.width or self.app.size.width) - self.scrollbar_size_vertical

    def _lay_out(self) -> None:
        if not self._shown_columns:
            return
        texts = [[text.plain for text in cells] for _, cells in self._shown_lines]
        found = widths(self._shown_columns, texts, self._room, self._shown_first)
        self.hides_columns = sum(found) + len(found) > self._room
        for place, column, width in zip(self.ordered_columns, self._shown_columns, found, strict=True):
            place.label = Text(cell(column.title, column, width))
        while self.row_count > len(self._shown_lines):
            last = Coordinate(self.row_count - 1, 0)
            self.remove_row(self.coordinate_to_cell_key(last).row_key)
        for row, (_, cells) in enumerate(self._shown_lines):
            shown = [
                Text(cell(text.plain, column, width), text.style)
                for text, column, width in zip(cells, self._shown_columns, found, strict=True)
            ]
            is_new = row == self.row_count
            before = shown if is_new else self.get_row_at(row)
            if is_new:
                self.add_row(*shown)
            for at, (old, new) in enumerate(zip(before, shown, strict=True)):
                # All cells of a column are of the same width: that of one is looked at.
                if row == 0 or old.plain != new.plain or old.style != new.style:
                    self.update_cell_at(Coordinate(row, at), new, update_width=row == 0)
