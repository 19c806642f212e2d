"""``amqpgate top`` of a real gateway, by Textual's pilot and in a real terminal: keys alone."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Self

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import DataTable, RichLog, Static

from amqpgate.cli.top_app import TopApp
from amqpgate.cli.watching import gateway_at
from tests.interop.pair import parameters
from tests.support.gateway import Gateway, watched
from tests.support.missing import missing
from tests.support.rabbitmq import RabbitMQ

pytestmark = pytest.mark.interop

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: shop}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: no-refunds, effect: deny, operations: [basic.publish], routingKey: {prefix: refund}}
  - {id: rest, effect: allow, operations: ["*"]}
"""
#: As a name of a queue: a terminal would turn red.
HOSTILE = "\x1b[31m[bold]red\u202e"


@pytest.fixture(scope="module")
def gateway(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("top")
    (folder / "shop.yaml").write_text(POLICY)
    gateway = watched(rabbitmq.address, folder)
    with gateway.serving():
        yield gateway


def played(gateway: Gateway, play: Callable[[App[None], Pilot[None]], Awaitable[None]]) -> None:
    app = TopApp(gateway_at(f"127.0.0.1:{gateway.admin_port}", None, 5.0), 0.3, "-published_rate")

    async def run() -> None:
        async with app.run_test(size=(150, 40)) as pilot:
            await play(app, pilot)

    asyncio.run(run())


async def until(pilot: Pilot[None], done: Callable[[], object]) -> None:
    for _ in range(200):
        if done():
            return
        await pilot.pause(0.05)
    raise AssertionError(f"not in time; shown is {shown(pilot.app)}")


def shown(app: App[None]) -> str:
    """All texts of the screen."""
    parts = [str(one.render()) for one in app.screen.query(Static)]
    for table in app.screen.query(DataTable):
        parts += [" ".join(map(str, table.get_row_at(row))) for row in range(table.row_count)]
    for log in app.screen.query(RichLog):
        parts += [line.text for line in log.lines]
    return "\n".join(parts)


def test_a_session_is_found_tapped_and_closed(gateway: Gateway) -> None:
    mine = pika.BlockingConnection(parameters(gateway.port))
    channel = mine.channel()
    channel.queue_declare(HOSTILE, exclusive=True)
    channel.basic_consume(HOSTILE, lambda *_: None)

    async def play(app: App[None], pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "guest" in shown(app))
        # Nobody is called so; what is no filter is told with what was meant.
        await pilot.press("slash", *"usr=x", "enter")
        await until(pilot, lambda: "did you mean 'user'?" in shown(app))
        await pilot.press(*["backspace"] * 5, *"nobody", "enter")
        await until(pilot, lambda: "0 of 0, user=nobody*" in shown(app))
        await pilot.press("slash", *["backspace"] * 6, *"gue vhost=/", "enter")
        await until(pilot, lambda: "1 of 1, user=gue* vhost=/" in shown(app))
        await pilot.press("s")
        await pilot.press(*["down"] * 3, "enter")
        await until(pilot, lambda: "by -channels" in shown(app))
        await pilot.press("s")
        await pilot.press(*["down"] * 3, "enter")
        await until(pilot, lambda: "by channels" in shown(app))
        # Into it; what its client has named is text.
        await pilot.press("enter")
        await until(pilot, lambda: "consumer" in shown(app))
        assert "of \\x1b[31m[bold]red\\u202e" in shown(app)
        await pilot.press("t")
        await until(pilot, lambda: "tapping" in shown(app))
        for _ in range(200):
            channel.basic_publish("amq.topic", "tapped", b"x")
            if "routing_key=tapped" in shown(app):
                break
            await pilot.pause(0.05)
        assert "routing_key=tapped" in shown(app)
        await pilot.press("escape", "c")
        await until(pilot, lambda: "Close session" in shown(app))
        # Not yet.
        await pilot.press("escape")
        mine.process_data_events()
        await pilot.press("c")
        await pilot.press(*["backspace"] * 30, *"make room", "enter")
        await until(pilot, lambda: "y closes it" in shown(app))
        await pilot.press("y")
        await until(pilot, lambda: "is being closed" in shown(app))
        await pilot.press("escape", "q")

    played(gateway, play)
    with pytest.raises(ConnectionClosedByBroker) as closed:
        mine.process_data_events(5)
    assert (closed.value.reply_code, closed.value.reply_text) == (320, "CONNECTION_FORCED - make room")


def test_a_denial_is_explained(gateway: Gateway) -> None:
    with pika.BlockingConnection(parameters(gateway.port)) as connection:
        channel = connection.channel()
        channel.basic_publish("amq.topic", "refund.1", b"x")
        with pytest.raises(ChannelClosedByBroker):
            channel.queue_declare("", exclusive=True)

        async def play(app: App[None], pilot: Pilot[None]) -> None:
            await until(pilot, lambda: "guest" in shown(app))
            await pilot.press("d")
            await until(pilot, lambda: "shop/no-refunds" in shown(app))
            await pilot.press("enter")
            await until(pilot, lambda: "DENIED by" in shown(app))
            assert "shop/no-refunds (deny) decides" in shown(app)
            assert "shop/rest (allow) matches, too" in shown(app)

        played(gateway, play)


def test_a_gateway_that_goes_is_said_and_comes_again(gateway: Gateway) -> None:
    async def play(app: App[None], pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "ready" in shown(app))
        app.screen.gateway = gateway_at("127.0.0.1:1", None, 1.0)  # type: ignore[attr-defined]
        await until(pilot, lambda: "no answer from http://127.0.0.1:1" in shown(app))
        app.screen.gateway = gateway_at(f"127.0.0.1:{gateway.admin_port}", None, 5.0)  # type: ignore[attr-defined]
        await until(pilot, lambda: "by -published_rate" in shown(app))

    played(gateway, play)


class Terminal:
    """One of tmux, in which a command runs."""

    def __init__(self, folder: Path, command: str, columns: int = 140) -> None:
        tmux = shutil.which("tmux")
        if tmux is None:
            missing("tmux is not there (Debian: apt-get install tmux)")
        self._command = [tmux, "-S", str(folder / "tmux")]
        self.run("new-session", "-d", "-x", str(columns), "-y", "30", f"{command}; echo over; sleep 60")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.run("kill-server")

    def run(self, *words: str) -> str:
        return subprocess.run([*self._command, *words], check=True, capture_output=True, text=True).stdout

    def wait_for(self, text: str) -> str:
        for _ in range(300):
            if text in (screen := self.run("capture-pane", "-p")):
                return screen
            time.sleep(0.1)
        raise AssertionError(screen)


def test_in_a_terminal(gateway: Gateway, tmp_path: Path) -> None:
    top = f"{sys.executable} -m amqpgate top --admin 127.0.0.1:{gateway.admin_port} --every 0.5"
    with pika.BlockingConnection(parameters(gateway.port)), Terminal(tmp_path, top) as terminal:
        terminal.wait_for("1 of 1, all, by -published_rate")
        terminal.wait_for("guest")
        terminal.run("send-keys", "Enter")
        assert "upstream   rabbit" in terminal.wait_for("guest in / from")
        terminal.run("send-keys", "Escape")
        terminal.wait_for("Filter")
        terminal.run("send-keys", "q")
        terminal.wait_for("over")


def test_what_is_pasted_behind_a_slash_is_a_filter(gateway: Gateway, tmp_path: Path) -> None:
    top = f"{sys.executable} -m amqpgate top --admin 127.0.0.1:{gateway.admin_port} --every 0.5"
    with (
        pika.BlockingConnection(parameters(gateway.port)) as mine,
        Terminal(tmp_path, f"env -u COLUMNS {top}", 80) as terminal,
    ):
        screen = terminal.wait_for("1 of 1, all")
        for title in ("user", "vhost", "client", "published/s", "delivered/s", "refused", "flow"):
            assert title in screen
        terminal.run("send-keys", "/", "c*", "Enter")
        terminal.wait_for("0 of 0, user=c*")
        # Enter twice is no: y alone closes.
        terminal.run("send-keys", "/", "guest", "Enter")
        terminal.wait_for("1 of 1, user=guest*")
        terminal.run("send-keys", "c", "Enter", "Enter")
        terminal.wait_for("is not closed")
        mine.process_data_events()
        terminal.run("send-keys", "q")
        terminal.wait_for("over")


def test_in_a_narrow_terminal(gateway: Gateway, tmp_path: Path) -> None:
    """What does not fit beside is below."""
    # COLUMNS would be believed before the terminal.
    top = f"{sys.executable} -m amqpgate top --admin 127.0.0.1:{gateway.admin_port} --every 0.5"
    with (
        pika.BlockingConnection(parameters(gateway.port)),
        Terminal(tmp_path, f"env -u COLUMNS {top}", 40) as terminal,
    ):
        assert "1 sessions, 0 channels" in terminal.wait_for("waiting")
        terminal.run("send-keys", "q")
        terminal.wait_for("over")


def test_without_textual_it_says_what_to_install(gateway: Gateway, tmp_path: Path) -> None:
    script = "import sys; sys.modules['textual'] = None; from amqpgate.cli import main; main()"
    top = f'{sys.executable} -c "{script}" top --admin 127.0.0.1:{gateway.admin_port} --every 0.5'
    with pika.BlockingConnection(parameters(gateway.port)), Terminal(tmp_path, top) as terminal:
        screen = terminal.wait_for("pip install 'amqpgate[top]'")
        assert "guest" in screen
        assert "ready" in screen
        terminal.run("send-keys", "C-c")
        terminal.wait_for("over")
