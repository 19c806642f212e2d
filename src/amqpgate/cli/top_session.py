"""One session in `amqpgate top`, and what it does while one looks."""

from __future__ import annotations

import contextlib
from typing import ClassVar
from urllib.parse import quote

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, RichLog, Static
from textual.worker import get_current_worker

from amqpgate.cli.failures import Failure
from amqpgate.cli.tap import tapped
from amqpgate.cli.tap import text_of as tap_line
from amqpgate.cli.top_close import CloseScreen
from amqpgate.cli.top_denials import DenialsScreen
from amqpgate.cli.top_screen import BACK, TopScreen
from amqpgate.cli.top_session_text import session_lines, who_of
from amqpgate.cli.top_text import match_of
from amqpgate.cli.watching import JSON, Row, WatchedGateway


class SessionScreen(TopScreen):
    """One session."""

    BINDINGS: ClassVar[list[BindingType]] = [
        BACK,
        Binding("d", "denials", "Its denials"),
        Binding("c", "close", "Close it"),
        Binding("t", "tap", "Tap it"),
    ]

    def __init__(self, gateway: WatchedGateway, every: float, row: Row) -> None:
        """``row``: what the list says of it."""
        super().__init__(gateway, every)
        self.row = row
        self.session = str(row["id"])

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(id="text")
        yield Static(id="said")
        yield Footer()

    def ask(self) -> Row:
        return self.gateway.get(f"/sessions/{quote(self.session, safe='')}")

    def show(self, answer: Row) -> None:
        self.query_one("#text", Static).update(Text("\n".join(session_lines(answer))))

    def action_denials(self) -> None:
        whose: list[dict[str, JSON]] = [
            {"session": self.session},
            {"user": self.row["user"], "vhost": self.row["vhost"]},
            {},
        ]
        self.app.push_screen(DenialsScreen(self.gateway, self.every, whose))

    def action_close(self) -> None:
        screen = CloseScreen(self.gateway, self.session, who_of(self.row))
        self.app.push_screen(screen, lambda text: self.say(text or ""))

    def action_tap(self) -> None:
        self.app.push_screen(TapScreen(self.gateway, self.session))


class TapScreen(Screen[None]):
    """The operations of one session, while they pass."""

    BINDINGS: ClassVar[list[BindingType]] = [BACK]

    def __init__(self, gateway: WatchedGateway, session: str) -> None:
        super().__init__()
        self.gateway, self.session = gateway, session

    def compose(self) -> ComposeResult:
        yield RichLog(max_lines=2000, wrap=True)
        yield Static(f"tapping {self.session}", id="said")
        yield Footer()

    def on_mount(self) -> None:
        self.listen()

    @work(thread=True, exclusive=True)
    def listen(self) -> None:
        """Until this screen is left: each second the gateway says something."""
        worker, log = get_current_worker(), self.query_one(RichLog)
        try:
            session = self.gateway.get(f"/sessions/{quote(self.session, safe='')}")
            headers = {"X-Amqpgate": "1", **self.gateway.headers}
            query = {"match": match_of(session)}
            with contextlib.closing(
                tapped(self.gateway.address, query, headers, self.gateway.timeout)
            ) as lines:
                for line in lines:
                    if worker.is_cancelled:
                        return
                    if line["event"] == "operation" and line["session"] == self.session:
                        self.app.call_from_thread(log.write, Text(tap_line(line)))
        except Failure as failure:
            if not worker.is_cancelled:
                self.app.call_from_thread(log.write, Text(failure.message, "red"))
