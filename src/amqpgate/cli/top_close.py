"""The question before `amqpgate top` closes a session."""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import quote

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Static

from amqpgate.cli.failures import Failure
from amqpgate.cli.watching import WatchedGateway


class CloseScreen(ModalScreen[str]):
    """Asks for the reason, and then whether it is meant: what ends the reason does not answer that."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "end", "Close it"),
        Binding("escape,n,enter", "leave", "Do not close it", key_display="esc"),
    ]

    def __init__(self, gateway: WatchedGateway, session: str, who: str) -> None:
        super().__init__()
        self.gateway, self.session, self.who = gateway, session, who
        #: Once it is written.
        self.reason: str | None = None
        self.is_ending = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="question"):
            yield Static(Text(f"Close session {self.session}{self.who}? What is its client told?"))
            yield Input("closed by an operator", max_length=200)
            yield Static("Enter goes on; nothing is closed yet.", id="sure")
            yield Footer()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "end" or (self.reason is not None and not self.is_ending)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.reason = event.value
        event.input.disabled = True
        self.set_focus(None)
        self.query_one("#sure", Static).update(
            Text("Close it now? y closes it; Enter, n and Escape do not. [y/N]", "bold")
        )
        self.refresh_bindings()

    def action_leave(self) -> None:
        self.dismiss("" if self.is_ending else f"{self.session} is not closed")

    def action_end(self) -> None:
        self.is_ending = True
        self.end(self.reason or "")

    @work(thread=True)
    def end(self, reason: str) -> None:
        """Close it, with what the gateway says to that."""
        try:
            self.gateway.post(f"/sessions/{quote(self.session, safe='')}/close", {"reason": reason})
            said = f"{self.session} is being closed"
        except Failure as failure:
            said = failure.message
        self.app.call_from_thread(self.done, said)

    def done(self, said: str) -> None:
        """Back, if nobody has left it already."""
        if self.is_current:
            self.dismiss(said)
