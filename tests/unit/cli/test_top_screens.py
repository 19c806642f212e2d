"""The screens of `amqpgate top` before a gateway of the test's own: keys, what is chosen, what is in view."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from textual.app import App
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input, Static

from amqpgate.cli.failures import Failure
from amqpgate.cli.top_app import TopApp
from amqpgate.cli.top_close import CloseScreen
from amqpgate.cli.top_denials import DenialsScreen, ExplainScreen
from amqpgate.cli.top_session import SessionScreen
from amqpgate.cli.top_sessions import SessionsScreen
from amqpgate.cli.top_table import KeptTable
from amqpgate.cli.watching import WatchedGateway
from tests.unit.cli.test_top_session_text import SESSION

Play = Callable[[App[None], Pilot[None]], Awaitable[None]]

OVERVIEW = {
    "at": 0.0,
    "ready": True,
    "version": "0",
    "sessions": 0,
    "channels": 0,
    "refused": 0,
    "published": {"messages": 0},
    "delivered": {"messages": 0},
    "buffered": {"client": 0, "upstream": 0},
}


class FakeGateway:
    """What it answers is what a test says."""

    address = "gateway"

    def __init__(self) -> None:
        self.sessions = [{**SESSION, "id": f"s{at}", "user": f"u{at}", "channels": 1} for at in range(60)]
        self.decisions: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.posted: list[tuple[str, Any]] = []
        self.is_posted = threading.Event()

    def get(self, path: str, **parameters: Any) -> Any:
        self.asked.append({"path": path, **parameters})
        if path == "/overview":
            return OVERVIEW
        if path == "/sessions":
            return {"matched": len(self.sessions), "sessions": self.sessions}
        if path == "/decisions":
            return {"decisions": self.decisions}
        if path == "/explain":
            return {"operations": {"basic.get": ["queue"]}}
        return next(one for one in self.sessions if path == f"/sessions/{one['id']}")

    def post(self, path: str, body: Any) -> Any:
        self.posted.append((path, body))
        self.is_posted.set()
        if path == "/explain":
            raise Failure("not today")
        return {}

    def deny(self, number: int, **other: Any) -> None:
        """One more, the newest."""
        nothing = dict.fromkeys(("exchange", "destination", "routing_key", "client"))
        decision = {
            **nothing,
            "at": float(number),
            "number": number,
            "worker": 0,
            "kind": "denied",
            "text": "",
        }
        decision |= {
            "session": "s0",
            "user": "u0",
            "vhost": "/",
            "operation": "basic.get",
            "queue": f"q{number}",
        }
        self.decisions.insert(0, {**decision, "policy": "p", "rule": "r", "effect": "deny", **other})


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


def played(gateway: FakeGateway, play: Play, width: int = 80) -> None:
    app = TopApp(cast("WatchedGateway", gateway), 1000.0, "-published_rate")

    async def run() -> None:
        async with app.run_test(size=(width, 24)) as pilot:
            await until(pilot, lambda: app.screen.query_one(KeptTable).row_count)
            await play(app, pilot)

    asyncio.run(run())


async def until(pilot: Pilot[None], done: Callable[[], object]) -> None:
    for _ in range(400):
        if done():
            return
        await pilot.pause(0.02)
    raise AssertionError(f"not in time: {pilot.app.screen}")


async def at_once(app: App[None], keys: str, *then: str) -> None:
    """All of them before the first is looked at, as a terminal sends what is pasted."""
    for key in (*keys, *then):
        app.post_message(Key(key, key if len(key) == 1 else None))


def said(app: App[None]) -> str:
    return str(app.screen.query_one("#said", Static).render())


def sessions_of(app: App[None]) -> SessionsScreen:
    assert isinstance(app.screen, SessionsScreen)
    return app.screen


@pytest.mark.parametrize("typed", ["c*", "svc-*", "q", "dtsq/"])
def test_what_comes_at_once_with_the_slash_is_the_filter(gateway: FakeGateway, typed: str) -> None:
    async def play(app: App[None], pilot: Pilot[None]) -> None:
        app.post_message(Key("slash", "/"))
        await at_once(app, typed, "enter")
        await until(pilot, lambda: sessions_of(app).typed)
        assert sessions_of(app).typed == typed
        assert sessions_of(app).order == "-published_rate"
        assert not gateway.posted
        await until(pilot, lambda: not sessions_of(app).field.has_focus)

    played(gateway, play)


def test_keys_at_once_go_to_the_screen_that_the_first_opens(gateway: FakeGateway) -> None:
    async def play(app: App[None], pilot: Pilot[None]) -> None:
        await at_once(app, "c", "ctrl+a", "ctrl+k", *"why y", "enter")
        await until(pilot, lambda: isinstance(app.screen, CloseScreen) and app.screen.reason is not None)
        assert cast("CloseScreen", app.screen).reason == "why y"
        assert not gateway.posted

    played(gateway, play)


@pytest.mark.parametrize("key", ["enter", "n", "escape"])
def test_what_ends_the_reason_closes_nothing(gateway: FakeGateway, key: str) -> None:
    async def play(app: App[None], pilot: Pilot[None]) -> None:
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, CloseScreen))
        await pilot.press("enter", key)
        await until(pilot, lambda: "s0 is not closed" in said(app))
        assert not gateway.posted

    played(gateway, play)


def test_y_closes_it_with_the_reason(gateway: FakeGateway) -> None:
    async def play(app: App[None], pilot: Pilot[None]) -> None:
        await pilot.press("down", "c")
        await until(pilot, lambda: isinstance(app.screen, CloseScreen))
        await pilot.press("ctrl+a", "ctrl+k", *"ok", "enter", "x", "y")
        await until(pilot, lambda: "s1 is being closed" in said(app))
        assert gateway.posted == [("/sessions/s1/close", {"reason": "ok"})]

    played(gateway, play)


def test_a_wrong_filter_is_said_until_the_text_changes(gateway: FakeGateway) -> None:
    async def play(app: App[None], pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"a b", "enter")
        await until(pilot, lambda: "user twice" in said(app))
        screen = sessions_of(app)
        screen.show(screen.ask())
        assert "user twice" in said(app)
        await pilot.press("x")
        await until(pilot, lambda: "user twice" not in said(app))
        # Left, it is as it was: keys are keys again.
        await pilot.press("escape")
        await until(pilot, lambda: screen.table.has_focus)
        assert (screen.filters, screen.field.value) == ({}, "")
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, DenialsScreen))

    played(gateway, play)


def test_the_chosen_session_and_the_view_stay_while_others_move(gateway: FakeGateway) -> None:
    async def play(app: App[None], pilot: Pilot[None]) -> None:
        table = sessions_of(app).table
        await pilot.press(*["down"] * 30, "right", "right")
        await until(pilot, lambda: table.chosen == "s30" and table.scroll_x > 0 and table.scroll_y > 0)
        x, y = table.scroll_x, table.scroll_y
        # The others change places, and one goes.
        gateway.sessions[:20] = gateway.sessions[18::-1]
        gateway.sessions[40:] = gateway.sessions[:39:-1]
        screen = sessions_of(app)
        screen.show(screen.ask())
        await pilot.pause(0.1)
        assert table.chosen == "s30"
        assert (table.scroll_x, table.scroll_y) == (x, y)

    played(gateway, play, 60)


def test_a_new_denial_leaves_the_chosen_one_chosen(gateway: FakeGateway) -> None:
    for number in range(1, 4):
        gateway.deny(number)

    async def play(app: App[None], pilot: Pilot[None]) -> None:
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, DenialsScreen) and len(app.screen.found) == 3)
        await pilot.press("down")
        screen = cast("DenialsScreen", app.screen)
        gateway.deny(4)
        screen.show(screen.ask())
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ExplainScreen))
        assert cast("ExplainScreen", app.screen).decision["queue"] == "q2"
        await until(pilot, lambda: "not today" in str(app.screen.query_one("#text", Static).render()))
        assert "queue 'q2'" in str(app.screen.query_one("#what", Static).render())
        # And the first key is the newest one.
        await pilot.press("escape", "home", "enter")
        await until(pilot, lambda: isinstance(app.screen, ExplainScreen))
        assert cast("ExplainScreen", app.screen).decision["queue"] == "q4"

    played(gateway, play)


def test_from_a_session_to_its_denials_to_its_user_s_to_all(gateway: FakeGateway) -> None:
    gateway.deny(1)
    gateway.deny(2, session="other")
    gateway.deny(3, session="third", user="u3")

    async def play(app: App[None], pilot: Pilot[None]) -> None:
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, DenialsScreen))
        await until(pilot, lambda: "1 of the last 3, session s0." in said(app))
        await pilot.press("u")
        await until(pilot, lambda: "2 of the last 3, user u0, vhost /." in said(app))
        await pilot.press("u")
        await until(pilot, lambda: "3 of the last 3, all." in said(app))

    played(gateway, play)


def test_at_80_columns_a_name_of_200_letters_hides_nothing(gateway: FakeGateway) -> None:
    gateway.sessions[3]["user"] = "x" * 200

    async def play(app: App[None], pilot: Pilot[None]) -> None:
        screen = sessions_of(app)
        screen.show(screen.ask())
        await pilot.pause(0.1)
        table = screen.table
        shown = "".join(segment.text for segment in table.render_line(0))
        for title in ("user", "vhost", "client", "published/s", "delivered/s", "refused", "flow"):
            assert title in shown
        assert "right arrow" in said(app)
        assert app.screen.query_one(Input).value == ""

    played(gateway, play)
