"""The denials of `amqpgate top`: of all, of a user or of one session; and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from amqpgate.cli.failures import Failure
from amqpgate.cli.top_columns import DENIAL
from amqpgate.cli.top_screen import BACK, MOST, TopScreen
from amqpgate.cli.top_table import KeptTable
from amqpgate.cli.top_text import decision_lines, explanation_lines, request_of
from amqpgate.cli.watching import JSON, Row, WatchedGateway, rows_of, text_of


class DenialsScreen(TopScreen):
    """What was refused lately, the newest first."""

    BINDINGS: ClassVar[list[BindingType]] = [BACK, Binding("u", "whose", "Whose")]

    def __init__(
        self, gateway: WatchedGateway, every: float, whose: Sequence[Mapping[str, JSON]] = ({},)
    ) -> None:
        """``whose``: what decisions have to say to be shown; a key goes to the next."""
        super().__init__(gateway, every)
        self.whose = whose
        self.at = 0
        self.answer: Row = {"decisions": []}
        self.found: dict[str, Row] = {}

    def compose(self) -> ComposeResult:
        yield KeptTable(len(DENIAL))
        yield Static(id="said")
        yield Footer()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "whose" or len(self.whose) > 1

    def ask(self) -> Row:
        return self.gateway.get("/decisions", limit=MOST)

    def show(self, answer: Row) -> None:
        from amqpgate.cli.decisions import cells_of

        self.answer = answer
        wanted = self.whose[self.at]
        decisions = rows_of(answer, "decisions")
        self.found = {
            f"{one['worker']}/{one['number']}/{one['at']}": one
            for one in decisions
            if all(one[name] == value for name, value in wanted.items())
        }
        lines = []
        for key, decision in self.found.items():
            at, what, operation, about, *rest = map(Text, cells_of(decision))
            lines.append((key, [at, what, operation, *rest, about]))
        table = self.query_one(KeptTable)
        table.fill(DENIAL, lines, len(DENIAL))
        words = ", ".join(f"{name} {text_of(value)}" for name, value in wanted.items()) or "all"
        count = f"{len(lines)} of the last {len(decisions)}"
        self.say(f"{count}, {words}. Enter explains one, Home is the newest.")

    def action_whose(self) -> None:
        self.at = (self.at + 1) % len(self.whose)
        self.show(self.answer)

    def on_data_table_row_selected(self) -> None:
        chosen = self.query_one(KeptTable).chosen
        if chosen is not None:
            self.app.push_screen(ExplainScreen(self.gateway, self.found[chosen]))


class ExplainScreen(Screen[None]):
    """Why the policies in force answer so."""

    BINDINGS: ClassVar[list[BindingType]] = [BACK]

    def __init__(self, gateway: WatchedGateway, decision: Row) -> None:
        super().__init__()
        self.gateway, self.decision = gateway, decision

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(Text("\n".join(decision_lines(self.decision))), id="what")
            yield Static("...", id="text")
        yield Footer()

    def on_mount(self) -> None:
        self.ask()

    @work(thread=True)
    def ask(self) -> None:
        """Once: the answer holds for the policies of that moment."""
        try:
            operations = cast("Row", self.gateway.get("/explain")["operations"])
            said = self.gateway.post("/explain", request_of(self.decision, operations))
            text = Text("\n".join(explanation_lines(said, self.decision)))
        except Failure as failure:
            text = Text(failure.message, "red")
        self.app.call_from_thread(self.query_one("#text", Static).update, text)
