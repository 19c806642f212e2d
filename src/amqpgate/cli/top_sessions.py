"""The sessions of `amqpgate top`: the busiest, or those that are looked for."""

from __future__ import annotations

from typing import ClassVar, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, OptionList, Static

from amqpgate.cli.top_close import CloseScreen
from amqpgate.cli.top_columns import sorted_by
from amqpgate.cli.top_denials import DenialsScreen
from amqpgate.cli.top_screen import MOST, TopScreen
from amqpgate.cli.top_session import SessionScreen, TapScreen
from amqpgate.cli.top_session_text import who_of
from amqpgate.cli.top_table import KeptTable
from amqpgate.cli.top_text import COLUMNS, filters_of
from amqpgate.cli.watching import FLOWS, Row, WatchedGateway, rows_of, text_of

_STYLES = {"running": "green", "throttled": "yellow", "blocked": "red"}


class SessionsScreen(TopScreen):
    """The busiest sessions, or those that are looked for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter"),
        Binding("s", "sort", "Sort"),
        Binding("d", "denials", "Denials"),
        Binding("c", "close", "Close"),
        Binding("t", "tap", "Tap"),
        Binding("q", "app.quit", "Quit"),
        Binding("escape", "leave_filter", "Leave it as it was"),
    ]

    def __init__(self, gateway: WatchedGateway, every: float, sort: str) -> None:
        super().__init__(gateway, every)
        self.order = sort
        #: The filter in force, as it was typed and as it is asked for.
        self.typed = ""
        self.filters: dict[str, str] = {}
        #: What was done, or could not be, until the next key: a look says nothing over it.
        self.note = ""
        self.before: Row | None = None
        self.rows: dict[str, Row] = {}

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        # Sorted by what has no column, it has one more.
        yield KeptTable(len(sorted_by(self.order)[0]), fixed=1)
        yield Input(placeholder='app-*  vhost="my vhost"  flow=throttled', id="filter", classes="hidden")
        yield Static(id="said")
        yield Footer()

    def ask(self) -> Row:
        found = self.gateway.get("/sessions", sort=self.order, limit=MOST, **self.filters)
        return {"overview": self.gateway.get("/overview"), **found}

    def show(self, answer: Row) -> None:
        from amqpgate.cli.top import head

        now = cast("Row", answer["overview"])
        self.query_one("#head", Static).update(head(now, self.before, str(self.gateway.address)))
        self.before = now
        self.rows = {str(row["id"]): row for row in rows_of(answer, "sessions")}
        columns, first = sorted_by(self.order)
        names = [column.key for column in columns]
        self.table.fill(columns, [(key, _cells(row, names)) for key, row in self.rows.items()], first)
        words = " ".join(f"{name}={text_of(value)}" for name, value in self.filters.items()) or "all"
        if not self.note:
            more = "; the right arrow shows more columns" if self.table.hides_columns else ""
            self.say(f"{len(self.rows)} of {answer['matched']}, {words}, by {self.order}{more}")

    @property
    def table(self) -> KeptTable:
        return self.query_one(KeptTable)

    @property
    def field(self) -> Input:
        return self.query_one("#filter", Input)

    @property
    def chosen(self) -> Row | None:
        """The session that the cursor is at."""
        return self.rows.get(self.table.chosen or "")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "leave_filter" or self.field.has_focus

    def action_filter(self) -> None:
        self.field.value = self.typed
        self.field.remove_class("hidden")
        self.field.focus()

    def action_leave_filter(self) -> None:
        self._leave_field()

    def _leave_field(self) -> None:
        self.note = ""
        self.field.value = self.typed
        self.field.add_class("hidden")
        self.table.focus()
        self.look()

    def on_input_changed(self) -> None:
        """What was wrong is being mended."""
        if self.field.value != self.typed:
            self.said("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            self.filters = filters_of(event.value)
        except ValueError as error:
            self.said(str(error), is_bad=True)
            return
        self.typed = event.value
        self._leave_field()

    def action_sort(self) -> None:
        def chosen(column: str | None) -> None:
            if column is not None:
                # Once more turns it round; numbers begin with the most.
                self.order = column if self.order == f"-{column}" else f"-{column}"
                self.look()

        self.app.push_screen(SortScreen(), chosen)

    def action_denials(self) -> None:
        self.app.push_screen(DenialsScreen(self.gateway, self.every))

    def on_data_table_row_selected(self) -> None:
        if self.chosen is not None:
            self.app.push_screen(SessionScreen(self.gateway, self.every, self.chosen))

    def action_close(self) -> None:
        if self.chosen is not None:
            screen = CloseScreen(self.gateway, str(self.chosen["id"]), who_of(self.chosen))
            self.app.push_screen(screen, lambda text: self.said(text or ""))

    def said(self, text: str, *, is_bad: bool = False) -> None:
        self.note = text
        self.say(text, is_bad=is_bad)

    def on_key(self) -> None:
        if not self.field.has_focus:
            self.note = ""

    def action_tap(self) -> None:
        if self.chosen is not None:
            self.app.push_screen(TapScreen(self.gateway, str(self.chosen["id"])))


def _cells(row: Row, names: list[str]) -> list[Text]:
    flow = str(row["flow"])
    shown = Text(FLOWS.get(flow, flow), _STYLES.get(flow, "yellow"))
    return [shown if name == "flow" else Text(text_of(row[name])) for name in names]


class SortScreen(ModalScreen[str]):
    """The columns that sessions are sorted by."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "As it was")]

    def compose(self) -> ComposeResult:
        with Vertical(classes="question"):
            yield Static("Sort by; the same once more turns it round.")
            yield OptionList(*COLUMNS.values())
            yield Footer()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(list(COLUMNS)[event.option_index])
