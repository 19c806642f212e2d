"""What the demonstration shows: one line per sight, and below them, on a terminal, where to connect.

On a terminal the lines scroll and the panel stays. Elsewhere the panel's lines come once, first, and
every sight is one line of plain text.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from amqpgate.cli.demo_client import Sight
from amqpgate.logs import on_one_line

#: (label, value) of the panel.
Facts = list[tuple[str, str]]

_HEADINGS = ("time", "operation", "exchange", "routing key", "verdict", "the client got")
_WIDTHS = (8, 13, 11, 17, 7)
#: Where the client's answer begins when it has lines of its own, since the terminal is too narrow.
_INDENT = 10


class Screen:
    """Use as a context; ``tell`` shows a sight and counts it."""

    def __init__(self, console: Console, facts: Facts) -> None:
        self._console = console
        self._facts = facts
        self._allowed = self._denied = self._consumed = 0
        self._live = (
            Live(
                self._panel(),
                console=console,
                auto_refresh=False,
                transient=True,
                # An exotic terminal that is lower than the panel shows its beginning.
                vertical_overflow="crop",
            )
            if console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start(refresh=True)
        else:
            for label, value in self._facts:
                self._print(Text(f"{label:<13}{value}"))
        self._print(Text(_columns(_HEADINGS), style="bold"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def tell(self, sight: Sight) -> None:
        """Show one sight, now."""
        if sight.operation == "basic.deliver":
            self._consumed += 1
        elif sight.allowed is True:
            self._allowed += 1
        elif sight.allowed is False:
            self._denied += 1
        self._print(self._picture_of(sight))
        if self._live is not None:
            self._live.update(self._panel(), refresh=True)

    def note(self, text: str) -> None:
        """Show one line of text."""
        self._print(Text(on_one_line(text)))

    @property
    def summary(self) -> str:
        """What was seen in all."""
        return f"{self._allowed} allowed, {self._denied} denied, {self._consumed} consumed"

    def _picture_of(self, sight: Sight) -> Text | Group:
        verdict = {True: "allowed", False: "DENIED", None: ""}[sight.allowed]
        style = {True: "green", False: "red", None: "cyan"}[sight.allowed]
        is_publish = sight.operation in ("basic.publish", "basic.deliver")
        cells = (
            time.strftime("%H:%M:%S"),
            sight.operation,
            (sight.exchange or "(default)") if is_publish else "",
            sight.routing_key,
            verdict,
            on_one_line(sight.answer),
        )
        line = Text(_columns(cells), style=style)
        if not self._console.is_terminal or line.cell_len <= self._console.width:
            return line
        head = Text(_columns((*cells[:-1], "")), style=style)
        return Group(head, Padding(Text(cells[-1], style=style), (0, 0, 0, _INDENT)))

    def _print(self, line: Text | Group) -> None:
        # Text for a file or a pipe is never wrapped; what is too long for a terminal has been split.
        self._console.print(line, soft_wrap=isinstance(line, Text), highlight=False)

    def _panel(self) -> Group:
        """No frame at the sides, so that what is copied from it is only what it says."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for label, value in self._facts:
            grid.add_row(label, Text(value))
        # The last line must not fill the terminal: the "^C" that it echoes would begin a new one.
        return Group(Rule(Text(f"amqpgate demo: {self.summary}", style="bold"), style="dim"), grid)


def _columns(cells: tuple[str, ...]) -> str:
    """Cells in columns; one that is too long pushes the rest of its line to the right."""
    padded = [f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=False)]
    return "  ".join([*padded, *cells[len(_WIDTHS) :]]).rstrip()
