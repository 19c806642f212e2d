"""What screens of `amqpgate top` have in common: they look at the gateway again and again."""

from __future__ import annotations

import contextlib

from rich.text import Text
from textual import work
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from amqpgate.cli.failures import Failure
from amqpgate.cli.watching import Row, WatchedGateway

BACK: BindingType = Binding("escape", "app.pop_screen", "Back")
#: Rows that are asked for.
MOST = 500


class TopScreen(Screen[None]):
    """What looks at the gateway again and again: ``ask`` in a thread, and ``show`` with the answer."""

    def __init__(self, gateway: WatchedGateway, every: float) -> None:
        super().__init__()
        self.gateway, self.every = gateway, every

    def on_mount(self) -> None:
        self.set_interval(self.every, self.look)
        self.look()

    @work(thread=True, exclusive=True)
    def look(self) -> None:
        """Ask once more. Where that fails the screen says why, and goes on."""
        try:
            answer = self.ask()
        except Failure as failure:
            self.app.call_from_thread(self.say, failure.message, is_bad=True)
        else:
            self.app.call_from_thread(self.show, answer)

    def ask(self) -> Row:
        raise NotImplementedError

    def show(self, answer: Row) -> None:
        raise NotImplementedError

    def say(self, text: str, *, is_bad: bool = False) -> None:
        """A line above the keys."""
        with contextlib.suppress(LookupError):
            self.query_one("#said", Static).update(Text(text, "red" if is_bad else "dim"))
