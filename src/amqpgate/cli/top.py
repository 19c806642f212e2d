"""``amqpgate top``: a running gateway in the terminal, busiest sessions first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from amqpgate.cli.asking import admin_option, timeout_option
from amqpgate.cli.watching import FLOWS, JSON, Row, gateway_at, guarded_option, rows_of, text_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

#: Lines that are no sessions.
_ELSE = 10
#: A width in which nothing is left out, and those from which on a column is shown.
_WIDE = 160
_SHOWN_FROM = {"vhost": 90, "client": 110, "channels": 120, "upstream": 132}
_STYLES = {"running": "green", "throttled": "yellow", "blocked": "red"}


@click.command(short_help="Watch a running gateway.")
@admin_option
@guarded_option
@timeout_option(default=10.0)
@click.option(
    "--every",
    metavar="SECONDS",
    type=click.FloatRange(0.5, 3600),
    default=2.0,
    show_default=True,
    help="How long between two looks.",
)
@click.option(
    "--sort", metavar="COLUMN", default="-published_rate", show_default=True, help="- is descending."
)
@click.option("--once", is_flag=True, help="Print it once.")
def top(admin: str, token_file: Path | None, timeout: float, every: float, sort: str, once: bool) -> None:
    """Watch a running gateway: how much passes, and the sessions that send most.

    With amqpgate[top] installed one can sort, filter, look into sessions, tap and close them, and have
    denials explained: the last line has the keys. Without it, it is shown again and again until Ctrl-C, and
    the last line says what to install. Where it is no terminal, it is printed once.

    \b
    Exit codes:
      0  done
      1  no answer, or the gateway refused; it says why
    """
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    gateway = gateway_at(admin, token_file, timeout)
    console = Console()
    has_keys = _is_installed("textual")
    if console.is_terminal and not once and has_keys:
        from amqpgate.cli.top_app import TopApp

        # Whoever is no gateway is told of without a screen.
        gateway.get("/overview")
        TopApp(gateway, every, sort).run(mouse=False)
        return
    if not console.is_terminal:
        console = Console(width=_WIDE)

    def look(before: Row | None) -> tuple[Row, RenderableType]:
        now = gateway.get("/overview")
        most = max(1, console.height - _ELSE) if console.is_terminal else 20
        found = rows_of(gateway.get("/sessions", sort=sort, limit=min(most, 1000)), "sessions")
        shown = screen(now, before, found, str(gateway.address), console.width)
        return now, shown if has_keys or once or not console.is_terminal else Group(
            shown, Text(), _to_install()
        )

    # Rates are the difference of two looks.
    before, shown = look(None)
    time.sleep(min(every, 1.0))
    before, shown = look(before)
    if once or not console.is_terminal:
        console.print(shown)
        return
    with Live(shown, console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(every)
            before, shown = look(before)
            live.update(shown, refresh=True)


def _to_install() -> Text:
    from rich.text import Text

    return Text.assemble(
        ("To sort, filter, look into sessions and close them: ", "dim"), "pip install 'amqpgate[top]'"
    )


def _is_installed(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def screen(
    now: Row, before: Row | None, sessions: Sequence[Row], address: str, width: int = _WIDE
) -> RenderableType:
    """All that is shown; ``before`` is the look before this. What ``width`` has no room for is left out."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    names, numbers = (
        [key for key in keys if width >= _SHOWN_FROM.get(key, 0)]
        for keys in (
            ("id", "user", "vhost", "client", "upstream"),
            ("channels", "published_rate", "delivered_rate", "refused"),
        )
    )
    for name in names:
        table.add_column(name, no_wrap=True, min_width=16 if name == "id" else 8)
    for number in numbers:
        title = number.replace("_rate", "/s")
        table.add_column(title, justify="right", no_wrap=True, min_width=len(title))
    table.add_column("flow", no_wrap=True, min_width=11)
    for row in sessions:
        flow = str(row["flow"])
        table.add_row(
            *(Text(text_of(row[name])) for name in names),
            *(text_of(row[number]) for number in numbers),
            Text(FLOWS.get(flow, flow), _STYLES.get(flow, "yellow")),
        )
    return Group(head(now, before, address), Text(), table)


def head(now: Row, before: Row | None, address: str) -> Text:
    """Two lines: which gateway it is, and how much passes."""
    from rich.text import Text

    passed = None if before is None else _number(now, "at") - _number(before, "at")

    def rate(of: Callable[[Row], float]) -> str:
        if before is None or not passed:
            return "-"
        return f"{max(0.0, of(now) - of(before)) / passed:,.0f}/s"

    state = Text("ready", "green") if now["ready"] else Text("not ready", "yellow")
    name = Text.assemble(("amqpgate ", "bold"), (f"{text_of(now['version'])} at {address}  ", "dim"), state)
    sums = Text(
        f"{_number(now, 'sessions'):,.0f} sessions, {_number(now, 'channels'):,.0f} channels"
        f"   published {rate(lambda one: _number(one, 'published', 'messages'))}"
        f"   delivered {rate(lambda one: _number(one, 'delivered', 'messages'))}"
        f"   refused {rate(lambda one: _number(one, 'refused'))}"
        f"   waiting {_number(now, 'buffered', 'client') + _number(now, 'buffered', 'upstream'):,.0f} B"
    )
    return Text("\n").join([name, sums])


def _number(row: Row, *keys: str) -> float:
    value: JSON = row
    for key in keys:
        value = cast("Row", value)[key]
    return float(cast("float", value))
