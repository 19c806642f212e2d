"""``amqpgate top`` where one stays in it (Textual): sort, filter, look into a session, tap it, close it;
denials, and why. Keys alone; what is asked of the gateway is asked in threads."""

from __future__ import annotations

import contextlib
from typing import ClassVar, cast
from urllib.parse import quote

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import DataTable, Footer, Input, OptionList, RichLog, Static
from textual.worker import get_current_worker

from amqpgate.cli.failures import Failure
from amqpgate.cli.tap import tapped
from amqpgate.cli.tap import text_of as tap_line
from amqpgate.cli.top_text import (
    COLUMNS,
    explanation_lines,
    filters_of,
    match_of,
    request_of,
    session_lines,
)
from amqpgate.cli.watching import FLOWS, Row, WatchedGateway, rows_of, text_of

_BACK: BindingType = Binding("escape", "app.pop_screen", "Back")
_STYLES = {"running": "green", "throttled": "yellow", "blocked": "red"}
#: Rows that are asked for.
_MOST = 500
_SESSION = ("id", "user", "vhost", "client", "upstream", *list(COLUMNS)[3:], "flow")
_DENIAL = ("time", "what", "operation", "about", "user", "vhost", "rule")


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


class SessionsScreen(TopScreen):
    """The busiest sessions, or those that are looked for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter"),
        Binding("s", "sort", "Sort"),
        Binding("d", "denials", "Denials"),
        Binding("c", "close", "Close"),
        Binding("t", "tap", "Tap"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, gateway: WatchedGateway, every: float, sort: str) -> None:
        super().__init__(gateway, every)
        self.order = sort
        self.filters: dict[str, str] = {}
        #: What was done, or could not be, until the next key: a look says nothing over it.
        self.note = ""
        self.before: Row | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=True)
        for name in _SESSION:
            table.add_column(COLUMNS.get(name, name), key=name)
        yield table
        yield Input(placeholder="app-*  vhost=prod  flow=throttled", id="filter", classes="hidden")
        yield Static(id="said")
        yield Footer()

    def ask(self) -> Row:
        found = self.gateway.get("/sessions", sort=self.order, limit=_MOST, **self.filters)
        return {"overview": self.gateway.get("/overview"), **found}

    def show(self, answer: Row) -> None:
        from amqpgate.cli.top import head

        now = cast("Row", answer["overview"])
        self.query_one("#head", Static).update(head(now, self.before, str(self.gateway.address)))
        self.before = now
        sessions = rows_of(answer, "sessions")
        table = self.table
        chosen = self.chosen
        table.clear()
        for row in sessions:
            flow = str(row["flow"])
            cells = [Text(text_of(row[name])) for name in _SESSION[:-1]]
            table.add_row(
                *cells, Text(FLOWS.get(flow, flow), _STYLES.get(flow, "yellow")), key=str(row["id"])
            )
        if chosen is not None and chosen in table.rows:
            table.move_cursor(row=table.get_row_index(chosen))
        words = " ".join(f"{name}={value}" for name, value in self.filters.items()) or "all"
        if not self.note:
            self.say(f"{len(sessions)} of {answer['matched']}, {words}, by {self.order}")

    @property
    def table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    @property
    def chosen(self) -> str | None:
        """The id of the session that the cursor is at."""
        if not self.table.row_count:
            return None
        return self.table.coordinate_to_cell_key(self.table.cursor_coordinate).row_key.value

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.remove_class("hidden")
        field.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            self.filters = filters_of(event.value)
        except ValueError as error:
            self.note = str(error)
            self.say(self.note, is_bad=True)
            return
        event.input.add_class("hidden")
        self.table.focus()
        self.look()

    def action_sort(self) -> None:
        def chosen(column: str | None) -> None:
            if column is not None:
                # Once more turns it round; numbers begin with the most.
                self.order = column if self.order == f"-{column}" else f"-{column}"
                self.look()

        self.app.push_screen(SortScreen(), chosen)

    def action_denials(self) -> None:
        self.app.push_screen(DenialsScreen(self.gateway, self.every))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        self.app.push_screen(SessionScreen(self.gateway, self.every, str(event.row_key.value)))

    def action_close(self) -> None:
        if self.chosen is not None:
            self.app.push_screen(CloseScreen(self.gateway, self.chosen), self.said)

    def said(self, text: str | None) -> None:
        self.note = text or ""
        self.say(self.note)

    def on_key(self) -> None:
        self.note = ""

    def action_tap(self) -> None:
        if self.chosen is not None:
            self.app.push_screen(TapScreen(self.gateway, self.chosen))


class SessionScreen(TopScreen):
    """One session."""

    BINDINGS: ClassVar[list[BindingType]] = [
        _BACK,
        Binding("c", "close", "Close it"),
        Binding("t", "tap", "Tap it"),
    ]

    def __init__(self, gateway: WatchedGateway, every: float, session: str) -> None:
        super().__init__(gateway, every)
        self.session = session

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(id="text")
        yield Static(id="said")
        yield Footer()

    def ask(self) -> Row:
        return self.gateway.get(f"/sessions/{quote(self.session, safe='')}")

    def show(self, answer: Row) -> None:
        self.query_one("#text", Static).update(Text("\n".join(session_lines(answer))))

    def action_close(self) -> None:
        self.app.push_screen(CloseScreen(self.gateway, self.session), lambda text: self.say(text or ""))

    def action_tap(self) -> None:
        self.app.push_screen(TapScreen(self.gateway, self.session))


class DenialsScreen(TopScreen):
    """What was refused lately, the newest first."""

    BINDINGS: ClassVar[list[BindingType]] = [_BACK]

    def __init__(self, gateway: WatchedGateway, every: float) -> None:
        super().__init__(gateway, every)
        self.found: dict[str, Row] = {}

    def compose(self) -> ComposeResult:
        table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=True)
        for name in _DENIAL:
            table.add_column(name, key=name)
        yield table
        yield Static(id="said")
        yield Footer()

    def ask(self) -> Row:
        return self.gateway.get("/decisions", limit=_MOST)

    def show(self, answer: Row) -> None:
        from amqpgate.cli.decisions import cells_of

        table: DataTable[Text] = self.query_one(DataTable)
        found = {f"{one['worker']}/{one['number']}/{one['at']}": one for one in rows_of(answer, "decisions")}
        if list(found) == list(self.found):
            return
        self.found = found
        table.clear()
        for key, decision in found.items():
            table.add_row(*map(Text, cells_of(decision)), key=key)
        self.say("Enter explains one.")

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        self.app.push_screen(ExplainScreen(self.gateway, self.found[str(event.row_key.value)]))


class ExplainScreen(Screen[None]):
    """Why the policies in force answer so."""

    BINDINGS: ClassVar[list[BindingType]] = [_BACK]

    def __init__(self, gateway: WatchedGateway, decision: Row) -> None:
        super().__init__()
        self.gateway, self.decision = gateway, decision

    def compose(self) -> ComposeResult:
        with VerticalScroll():
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
            text = Text("\n".join(explanation_lines(said)))
        except Failure as failure:
            text = Text(failure.message, "red")
        self.app.call_from_thread(self.query_one("#text", Static).update, text)


class TapScreen(Screen[None]):
    """The operations of one session, while they pass."""

    BINDINGS: ClassVar[list[BindingType]] = [_BACK]

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


class CloseScreen(ModalScreen[str]):
    """Asks before it closes a session."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Do not close it")]

    def __init__(self, gateway: WatchedGateway, session: str) -> None:
        super().__init__()
        self.gateway, self.session = gateway, session

    def compose(self) -> ComposeResult:
        with Vertical(classes="question"):
            yield Static(Text(f"Close session {self.session}? Its client is told why. Enter does it."))
            yield Input("closed by an operator", max_length=200)
            yield Footer()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.end(event.value)

    @work(thread=True)
    def end(self, reason: str) -> None:
        """Close it, with what the gateway says to that."""
        try:
            self.gateway.post(f"/sessions/{quote(self.session, safe='')}/close", {"reason": reason})
            said = f"{self.session} is being closed"
        except Failure as failure:
            said = failure.message
        self.app.call_from_thread(self.dismiss, said)


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


class TopApp(App[None]):
    """All of it."""

    TITLE = "amqpgate top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: auto; max-height: 5; padding: 0 1 }
    #said { height: 1; padding: 0 1 }
    #text { padding: 0 1 }
    DataTable, RichLog, VerticalScroll { height: 1fr }
    .hidden { display: none }
    ModalScreen { align: center middle }
    .question { width: 70; max-width: 100%; height: 18; max-height: 100% }
    .question { padding: 1 2; border: round $accent; background: $surface }
    .question OptionList { height: 1fr }
    """

    def __init__(self, gateway: WatchedGateway, every: float, sort: str) -> None:
        super().__init__()
        self.gateway, self.every, self.order = gateway, every, sort

    def on_mount(self) -> None:
        self.push_screen(SessionsScreen(self.gateway, self.every, self.order))
