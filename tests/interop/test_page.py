"""The page in a real browser, of a real gateway: what it shows and does, and what does not run on it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import pika
import pytest
from pika.exceptions import AMQPConnectionError, ChannelClosedByBroker, ConnectionClosedByBroker
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.interop.clients.scripts import NODE_MODULES
from tests.interop.pair import parameters
from tests.support.browser import browser
from tests.support.gateway import Gateway, watched
from tests.support.missing import missing
from tests.support.rabbitmq import RabbitMQ

pytestmark = pytest.mark.interop

AXE = NODE_MODULES / "axe-core" / "axe.min.js"
#: As a name: what runs it, sets `ran`.
HOSTILE = "<img src=x onerror=window.ran=1>"

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: shop}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: no-refunds, effect: deny, operations: [basic.publish], routingKey: {prefix: refund}}
  - {id: rest, effect: allow, operations: ["*"]}
---
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: by-way}
spec:
  subjects: [{user: guest, listeners: ["*"]}]
  rules:
  - {id: no-bills, effect: deny, operations: [basic.publish], routingKey: {prefix: bill}}
  - {id: no-app, effect: deny, operations: [basic.publish], properties: {appId: secret}}
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: pace}
spec: {subjects: [{user: guest}], limits: [{id: each, per: [user], messages: 1k/s, action: delay}]}
"""


@pytest.fixture(scope="module")
def gateway(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "policies").mkdir()
    (folder / "policies" / "shop.yaml").write_text(POLICY)
    (folder / "token").write_text("s3cret\n")
    gateway = watched(rabbitmq.address, folder / "policies", admin=f"tokenFile: {folder / 'token'}")
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as running:
        yield running


@attrs.define
class Shown:
    """The page, opened, and what went wrong on it."""

    page: Page
    gateway: Gateway
    wrong: list[str] = attrs.field(factory=list)

    def view(self, name: str) -> None:
        self.page.get_by_role("navigation").get_by_role("link", name=name).click()


def opened(context: BrowserContext, gateway: Gateway, address: str | None = None) -> Shown:
    shown = Shown(context.new_page(), gateway)
    shown.page.on("pageerror", lambda error: shown.wrong.append(str(error)))
    # What asks for the token is refused first.
    shown.page.on(
        "console",
        lambda said: (
            shown.wrong.append(said.text) if said.type == "error" and "401" not in said.text else None
        ),
    )
    shown.page.goto(address or f"http://127.0.0.1:{gateway.admin_port}/")
    shown.page.get_by_label("Bearer token").fill("s3cret")
    shown.page.get_by_role("button", name="Enter").click()
    expect(shown.page.locator("#state")).to_have_text("ready")
    return shown


@pytest.fixture
def shown(chromium: Browser, gateway: Gateway) -> Iterator[Shown]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    shown = opened(context, gateway)
    yield shown
    assert shown.page.evaluate("window.ran") is None
    assert shown.wrong == []
    context.close()


@pytest.fixture
def connection(gateway: Gateway) -> Iterator[pika.BlockingConnection]:
    connection = pika.BlockingConnection(parameters(gateway.port))
    yield connection
    if connection.is_open:
        connection.close()


def test_without_the_token_nothing_is_shown(chromium: Browser, gateway: Gateway) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{gateway.admin_port}/")
    page.get_by_label("Bearer token").fill("wrong")
    page.get_by_role("button", name="Enter").click()
    expect(page.get_by_text("That is not the token.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Bearer token")).to_be_visible()
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert context.cookies() == []
    context.close()


def test_a_denied_publish_appears_within_two_seconds_and_is_explained(
    shown: Shown, connection: pika.BlockingConnection
) -> None:
    shown.view("Denials")
    key = f"refund.{time.monotonic_ns()}"
    channel = connection.channel()
    channel.basic_publish("amq.topic", key, b"x")
    found = shown.page.locator("#denials-list li").filter(has_text=key)
    expect(found).to_be_visible(timeout=2000)
    expect(found).to_contain_text("shop/no-refunds")
    found.get_by_role("button", name="Explain").click()
    answer = shown.page.locator("#explained")
    expect(answer).to_contain_text("Denied by shop/no-refunds")
    shown.page.get_by_label("Routing key").fill("order")
    shown.page.locator("#explain-form").get_by_role("button", name="Explain").click()
    expect(answer).to_contain_text("Allowed by shop/rest")
    expect(answer).to_contain_text("routing key 'order' is not")
    # It was refused, too.
    with pytest.raises(ChannelClosedByBroker):
        channel.queue_declare("", exclusive=True)


def test_a_denial_is_explained_by_all_that_policies_know_of_who_asked(shown: Shown, gateway: Gateway) -> None:
    shown.view("Denials")
    key = f"bill\n.{time.monotonic_ns()}"
    connection = pika.BlockingConnection(parameters(gateway.port))
    channel = connection.channel()
    channel.basic_publish("amq.topic", key, b"x")
    found = shown.page.locator("#denials-list li").filter(has_text=key.replace("\n", "\\n"))
    found.get_by_role("button", name="Explain").click()
    answer = shown.page.locator("#explained")
    expect(answer).to_contain_text("Denied by by-way/no-bills")
    # A field would have lost the end of the line.
    expect(answer).to_contain_text("routing key 'bill\\n.")
    # What is not kept may have decided, and then it is not said that all is well.
    connection.close()
    connection = pika.BlockingConnection(parameters(gateway.port))
    channel, key = connection.channel(), f"order.{time.monotonic_ns()}"
    channel.basic_publish("amq.topic", key, b"x", pika.BasicProperties(app_id="secret"))
    found = shown.page.locator("#denials-list li").filter(has_text=key)
    found.get_by_role("button", name="Explain").click()
    expect(answer).to_contain_text("by-way/no-app denied it at")
    expect(answer).to_contain_text("which are not kept")
    shown.page.get_by_label("Routing key").fill("order")
    shown.page.locator("#explain-form").get_by_role("button", name="Explain").click()
    expect(answer).to_contain_text("Allowed by shop/rest")
    expect(answer).not_to_contain_text("denied it at")
    connection.close()


def test_policies_are_found_by_what_they_say(shown: Shown) -> None:
    shown.view("Policies")
    shown.page.get_by_role("searchbox", name="Containing").fill("no-bills")
    cards = shown.page.locator("#policies-list details")
    expect(cards).to_have_count(1)
    expect(shown.page.locator("#policies-count")).to_have_text("1 of 3 policies")
    shown.page.get_by_role("searchbox", name="Containing").fill("pace")
    expect(cards).to_have_count(1)
    assert shown.page.url.endswith("#policies?text=pace")
    shown.page.get_by_role("searchbox", name="Containing").fill("")
    expect(cards).to_have_count(3)


def test_all_views_are_searched_at_once(shown: Shown, connection: pika.BlockingConnection) -> None:
    key = f"refund.find{time.monotonic_ns()}"
    channel = connection.channel()
    channel.basic_publish("amq.topic", "order", b"x")
    channel.basic_publish("amq.topic", key, b"x")
    shown.view("Overview")
    shown.page.keyboard.press("/")
    window = shown.page.get_by_role("dialog", name="Search in all views")
    expect(window.get_by_role("searchbox")).to_be_focused()
    window.get_by_role("searchbox").fill("gue")
    expect(window.get_by_role("link", name="sessions whose user begins so")).to_be_visible()
    window.get_by_role("searchbox").fill("no such thing")
    expect(window).to_contain_text("Nothing is called so.")
    window.get_by_role("searchbox").fill("NO-refunds")
    expect(window.get_by_role("link", name="policies")).to_be_visible()
    window.get_by_role("searchbox").fill(key)
    expect(window.locator("#found li").filter(has_text="denials")).to_contain_text("1")
    window.get_by_role("searchbox").fill("amq.top")
    window.get_by_role("link", name="edges of the graph").click()
    expect(shown.page.locator("#graph-form").get_by_label("Containing")).to_have_value("amq.top")
    shown.view("History")
    shown.page.keyboard.press("/")
    window.get_by_role("searchbox").fill(key)
    window.get_by_role("link", name="denials").press("Enter")
    expect(shown.page.locator("#denials-list li")).to_have_count(1)


def test_a_session_is_found_by_keyboard_and_closed(shown: Shown, gateway: Gateway) -> None:
    mine = parameters(gateway.port)
    mine.client_properties = {"connection_name": HOSTILE}
    connection = pika.BlockingConnection(mine)
    shown.view("Sessions")
    shown.page.locator("#sessions-form").get_by_role("textbox", name="User").fill("gue*")
    row = shown.page.locator("#sessions-table tbody tr").filter(has_text=HOSTILE)
    expect(row).to_have_count(1)
    row.get_by_role("button").focus()
    shown.page.keyboard.press("Enter")
    window = shown.page.get_by_role("dialog")
    expect(window).to_contain_text("guest in /")
    window.get_by_label("Reason").fill("make room")
    window.get_by_role("button", name="Close this session").focus()
    shown.page.keyboard.press("Enter")
    expect(window).to_contain_text("The client is told to go when")
    with pytest.raises(ConnectionClosedByBroker) as closed:
        connection.process_data_events(5)
    assert (closed.value.reply_code, closed.value.reply_text) == (320, "CONNECTION_FORCED - make room")
    expect(window).to_contain_text("This session is over.")
    # The page has asked for it once more, and the browser notes the answer.
    assert all("404" in one for one in shown.wrong), shown.wrong
    shown.wrong.clear()
    shown.page.keyboard.press("Escape")
    expect(row).to_have_count(0)


def asked(shown: Shown, button: str) -> Locator:
    """The question of an action, opened by the keyboard. The first key after it does nothing but close it."""
    shown.page.get_by_role("button", name=button, exact=True).focus()
    shown.page.keyboard.press("Enter")
    window = shown.page.get_by_role("dialog")
    expect(window).to_be_visible()
    expect(window.get_by_role("button", name="Close this window")).to_be_focused()
    return window


def test_actions_ask_before_they_do_anything(
    shown: Shown, gateway: Gateway, connection: pika.BlockingConnection
) -> None:
    state, said = shown.page.locator("#state"), shown.page.locator("#act-said")
    window = asked(shown, "Pause")
    expect(window).to_contain_text("Sessions that are open go on: 1.")
    shown.page.keyboard.press("Escape")
    expect(window).to_have_count(0)
    pika.BlockingConnection(parameters(gateway.port)).close()
    asked(shown, "Pause")
    shown.page.keyboard.press("Tab")
    shown.page.keyboard.press("Enter")
    expect(said).to_have_text("Paused: new connections are refused.")
    expect(state).to_have_text("not ready")
    with pytest.raises(AMQPConnectionError):
        pika.BlockingConnection(parameters(gateway.port))
    assert connection.is_open
    asked(shown, "Resume").get_by_role("button", name="Resume").click()
    expect(said).to_have_text("Resumed: new connections are taken.")
    expect(state).to_have_text("ready")
    pika.BlockingConnection(parameters(gateway.port)).close()
    window = asked(shown, "Log level")
    expect(window.get_by_label("Level")).to_have_value("info")
    window.get_by_label("Level").select_option("warning")
    window.get_by_role("button", name="Change").click()
    expect(said).to_have_text("The log's level is warning.")
    window = asked(shown, "Log level")
    expect(window.get_by_label("Level")).to_have_value("warning")
    window.get_by_label("Level").select_option("info")
    window.get_by_role("button", name="Change").click()
    expect(said).to_have_text("The log's level is info.")


ROUTE = """
---
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: move}
spec:
  routes: [{id: all, match: {user: "*"}, upstream: {cluster: rabbit}, pause: {most: 20, timeout: 30s}}]
"""


def test_a_route_is_paused_and_resumed(chromium: Browser, rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    """Whoever comes meanwhile waits, and is counted."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "shop.yaml").write_text(POLICY + ROUTE)
    (tmp_path / "token").write_text("s3cret\n")
    gateway = watched(rabbitmq.address, tmp_path / "policies", admin=f"tokenFile: {tmp_path / 'token'}")
    gateway.start()
    context = chromium.new_context()
    try:
        shown = opened(context, gateway)
        routes, said = shown.page.locator("#routes"), shown.page.locator("#routes-said")
        expect(routes).to_contain_text("to rabbit")
        window = asked(shown, "Pause route all")
        expect(window).to_contain_text("for 30 s at most and 20 connections at a time")
        window.get_by_role("button", name="Pause").click()
        expect(said).to_have_text("Route all is paused: new connections wait.")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(lambda: pika.BlockingConnection(parameters(gateway.port)))
            expect(routes).to_contain_text("1 of 20 wait")
            window = asked(shown, "Resume route all")
            expect(window).to_contain_text("and 1 connection that waits")
            window.get_by_role("button", name="Resume").click()
            waiting.result(20).close()
        expect(said).to_have_text("Route all goes on.")
        expect(routes).to_contain_text("open")
        assert shown.wrong == []
    finally:
        context.close()
        gateway.stop()


def test_a_tap_shows_what_passes_until_it_is_stopped(
    shown: Shown, connection: pika.BlockingConnection
) -> None:
    shown.view("Tap")
    shown.page.get_by_label("Operations that match").fill("exchange=amq.topic or")
    shown.page.get_by_role("button", name="Tap").click()
    window = shown.page.get_by_role("dialog")
    expect(window).to_contain_text("For 60 s, operations with exchange=amq.topic or of all sessions")
    window.get_by_role("button", name="Tap", exact=True).click()
    expect(shown.page.locator("#tap-wrong")).to_contain_text("match:")
    # What the gateway refuses, the browser notes.
    assert all("400" in one for one in shown.wrong), shown.wrong
    shown.wrong.clear()
    shown.page.get_by_label("Operations that match").fill("exchange=amq.topic")
    shown.page.get_by_role("button", name="Tap").click()
    window.get_by_role("button", name="Tap", exact=True).click()
    expect(shown.page.get_by_role("button", name="Stop")).to_be_enabled()
    channel = connection.channel()
    rows = shown.page.locator("#taps li")
    deadline = time.monotonic() + 20
    while not rows.count() and time.monotonic() < deadline:
        channel.basic_publish("amq.topic", f"order.{HOSTILE}", b"12345")
        connection.process_data_events(0.2)
    first = rows.first
    expect(first).to_contain_text("basic.publish")
    expect(first).to_contain_text("shop/rest")
    expect(first).to_contain_text(HOSTILE)
    expect(first).to_contain_text("5 B")
    expect(shown.page.locator("#taps")).not_to_contain_text("undefined")
    shown.page.get_by_role("button", name="Stop").click()
    expect(shown.page.locator("#tap-count")).to_contain_text("stopped")
    expect(shown.page.get_by_role("button", name="Tap")).to_be_enabled()


def test_a_reload_of_wrong_policies_says_what_to_mend(
    chromium: Browser, rabbitmq: RabbitMQ, tmp_path: Path
) -> None:
    """And a drain ends the gateway, after its question only."""
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "shop.yaml").write_text(POLICY)
    (tmp_path / "token").write_text("s3cret\n")
    gateway = watched(rabbitmq.address, folder, admin=f"tokenFile: {tmp_path / 'token'}")
    gateway.start()
    context = chromium.new_context()
    try:
        shown = opened(context, gateway)
        (folder / "shop.yaml").write_text(POLICY.replace("effect: deny", "effect: maybe"))
        window = asked(shown, "Reload policies")
        window.get_by_role("button", name="Reload").click()
        expect(window).to_contain_text("Those of before stay in force. Mend this and reload:")
        expect(window).to_contain_text("shop.yaml")
        (folder / "shop.yaml").write_text(POLICY)
        window.get_by_role("button", name="Reload").click()
        expect(shown.page.locator("#act-said")).to_have_text("The policies are read again and in force.")
        window = asked(shown, "Drain")
        expect(window).to_contain_text("Each of 0 open sessions ends when")
        window.get_by_role("button", name="Drain and end").click()
        expect(shown.page.locator("#act-said")).to_contain_text("It drains: 0 sessions")
        expect(shown.page.locator("#state")).to_have_text("no answer")
    finally:
        context.close()
        gateway.stop()


def test_names_are_text(shown: Shown, connection: pika.BlockingConnection) -> None:
    """Of a queue, an exchange, a key, a consumer; refused and not."""
    channel = connection.channel()
    channel.exchange_declare(HOSTILE, auto_delete=True)
    channel.queue_declare(HOSTILE, exclusive=True)
    channel.queue_bind(HOSTILE, HOSTILE, HOSTILE)
    channel.basic_consume(HOSTILE, lambda *_: None, consumer_tag=HOSTILE, auto_ack=True)
    channel.basic_publish(HOSTILE, HOSTILE, b"x")
    with contextlib.suppress(ChannelClosedByBroker):
        channel.basic_publish(HOSTILE, f"refund{HOSTILE}", b"x")
    expect(shown.page.locator("#last-denials")).to_contain_text(f"refund{HOSTILE}")
    shown.view("Denials")
    expect(shown.page.locator("#denials-list")).to_contain_text(f"refund{HOSTILE}")
    # As long as one may be, and nowhere to break it.
    long = f"refund{'a' * 240}"
    connection.channel().basic_publish("amq.topic", long, b"x")
    expect(shown.page.locator("#denials-list")).to_contain_text(long)
    assert shown.page.evaluate(
        "[document.documentElement, ...document.querySelectorAll('#denials-list li')]"
        ".every((one) => one.scrollWidth <= one.clientWidth)"
    )
    shown.view("Graph")
    expect(shown.page.locator("#picture g.exchange").filter(has_text=HOSTILE)).to_have_count(1)
    assert f"bound {HOSTILE}" in (
        shown.page.locator("#picture g.queue").first.get_attribute("aria-label") or ""
    )
    shown.page.locator("[data-view=graph] summary").click()
    expect(shown.page.locator("#graph-table")).to_contain_text(HOSTILE)
    assert shown.page.locator("main img, main script").count() == 0


def test_the_graph_has_rates_and_what_was_denied(
    shown: Shown, gateway: Gateway, connection: pika.BlockingConnection
) -> None:
    channel = connection.channel()
    channel.queue_declare("pictured", exclusive=True)
    channel.queue_bind("pictured", "amq.topic", "order.#")
    channel.basic_consume("pictured", lambda *_: None, auto_ack=True)
    channel.basic_publish("amq.topic", "order", b"x")
    with contextlib.suppress(ChannelClosedByBroker):
        other = connection.channel()
        other.basic_publish("amq.topic", "refund.pictured", b"x")
        connection.process_data_events(0.2)
    shown.view("Graph")
    page = shown.page
    picture = page.locator("#picture")
    red = picture.locator("path.denied")
    # A line that is level has no height, so it is not "visible".
    expect(red.first).to_be_attached()
    assert "denied, last by shop/no-refunds" in (red.first.locator("title").text_content() or "")
    expect(page.locator("#graph-brokers li").filter(has_text="rabbit")).to_contain_text("1 session")
    # Who comes, publishes and goes is counted, too.
    with contextlib.closing(pika.BlockingConnection(parameters(gateway.port))) as short:
        short.channel().basic_publish("amq.topic", "short.lived", b"x")
    page.get_by_text("As a table").locator("visible=true").click()
    expect(page.locator("#graph-table")).to_contain_text("short.lived", timeout=15000)
    expect(page.locator("#graph-honest")).to_contain_text(" that ended since ")
    # What was looked at keeps the focus while its numbers change.
    queue = picture.locator("g.queue").filter(has_text="pictured")
    queue.focus()
    for _ in range(120):
        channel.basic_publish("amq.topic", "order", b"x")
        connection.process_data_events(0.1)
        if (queue.locator(".total").text_content() or "").endswith("/s"):
            break
    expect(queue.locator(".total")).to_contain_text("/s")
    expect(queue).to_be_focused()
    assert "messages a second" in (queue.get_attribute("aria-label") or "")
    page.get_by_role("combobox", name="Messages").select_option("sums")
    expect(queue.locator(".total")).not_to_contain_text("/s")
    # Closer and farther, by keys and by the mouse, and then all of it.
    drawing = picture.locator("> svg")
    wide = float(drawing.get_attribute("width") or 0)
    picture.focus()
    page.keyboard.press("+")
    assert float(drawing.get_attribute("width") or 0) > wide
    for _ in range(3):
        page.keyboard.press("-")
    assert float(drawing.get_attribute("width") or 0) < wide
    for _ in range(12):
        page.get_by_role("button", name="Closer").click()
    before = page.evaluate("document.getElementById('picture').scrollLeft")
    over = picture.bounding_box()
    assert over is not None
    page.mouse.move(over["x"] + 300, over["y"] + 60)
    page.mouse.down()
    page.mouse.move(over["x"] + 100, over["y"] + 60, steps=4)
    page.mouse.up()
    assert page.evaluate("document.getElementById('picture').scrollLeft") == before + 200
    page.get_by_role("button", name="Whole").click()
    assert page.evaluate(
        "document.querySelector('#picture').scrollWidth <= document.querySelector('#picture').clientWidth"
    )
    # What a search finds can be read, however far one was from all of it.
    searched = page.get_by_label("Containing").locator("visible=true")
    for _ in range(12):
        page.get_by_role("button", name="Farther").click()
    far = float(drawing.get_attribute("width") or 0)
    searched.fill("pictured")
    expect(queue).to_be_in_viewport(ratio=1)
    view_box = (drawing.get_attribute("viewBox") or "").split()
    assert far < 0.3 * float(view_box[2])
    assert float(drawing.get_attribute("width") or 0) >= 0.8 * float(view_box[2])
    searched.fill("no such name")
    expect(picture).to_contain_text("Nothing has been seen yet.")


def test_each_limit_is_beside_its_rate(shown: Shown, connection: pika.BlockingConnection) -> None:
    connection.channel()
    row = shown.page.locator("#limits li").filter(has_text="pace/each")
    expect(row).to_contain_text("0 of 1,000 messages/s")
    expect(row.get_by_role("meter")).to_be_visible()
    expect(shown.page.locator("#tile-sessions")).to_contain_text("of 10K")
    expect(shown.page.locator("#upstreams li")).to_have_count(1)


def test_policies_count(shown: Shown, connection: pika.BlockingConnection) -> None:
    connection.channel()
    shown.view("Policies")
    rules = shown.page.locator(".rules li")
    expect(rules.filter(has_text="rest")).to_contain_text("decision")
    expect(rules.filter(has_text="no-refunds")).to_contain_text("line 8")
    expect(shown.page.locator("#policies-list")).to_contain_text("policies/shop.yaml:2")
    expect(shown.page.locator("#policies-list")).not_to_contain_text("\u2013 messages")


def test_a_session_and_a_denial_have_addresses(
    chromium: Browser, gateway: Gateway, connection: pika.BlockingConnection
) -> None:
    key = f"refund.{time.monotonic_ns()}"
    connection.channel().basic_publish("amq.topic", key, b"x")
    with pika.BlockingConnection(parameters(gateway.port)) as other:
        other.channel()
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        shown = opened(context, gateway)
        shown.view("Sessions")
        shown.page.locator("#sessions-form").get_by_role("textbox", name="User").fill("gue*")
        shown.page.locator("#sessions-form").get_by_label("Sort by").select_option("client")
        shown.page.locator("#sessions-table tbody button").first.click()
        title = shown.page.locator("#session-body .hint").first.inner_text()
        session = shown.page.url
        assert session.endswith(f"#sessions?user=gue*&sort=client&id={title}")
        shown.page.keyboard.press("Escape")
        expect(shown.page).to_have_url(session.removesuffix(f"&id={title}"))
        shown.view("Denials")
        shown.page.locator("#denials-form").get_by_label("Containing").fill(key)
        link = shown.page.locator("#denials-list li").filter(has_text=key).locator("a.side")
        denial = f"http://127.0.0.1:{gateway.admin_port}/{link.get_attribute('href')}"
        # Somebody else gets them.
        theirs = opened(context, gateway, session)
        expect(theirs.page.get_by_role("dialog")).to_contain_text(title)
        expect(theirs.page.locator("#sessions-form").get_by_label("Sort by")).to_have_value("client")
        theirs.page.goto(denial)
        expect(theirs.page.get_by_role("dialog")).to_have_count(0)
        expect(theirs.page.locator("#denials-list li").first).to_contain_text(key)
        expect(theirs.page.locator("#denials-list .chosen")).to_have_count(1)
        theirs.page.goto(f"{denial[:-3]}000")
        expect(theirs.page.locator("#denials-gone")).to_be_visible()
        assert shown.wrong == theirs.wrong == []
        context.close()


def test_keys(shown: Shown) -> None:
    def focused() -> object:
        return shown.page.evaluate("document.activeElement.name")

    press = shown.page.keyboard.press
    for letter, name in (("s", "Sessions"), ("d", "Denials"), ("g", "Graph"), ("t", "Tap"), ("h", "History")):
        press("g")
        press(letter)
        expect(shown.page.get_by_role("heading", level=2)).to_contain_text(name)
    press("g")
    press("d")
    press("/")
    expect(shown.page.locator("#denials-form").get_by_label("Containing")).to_be_focused()
    # Who types, types.
    shown.page.keyboard.type("gs?/")
    assert focused() == "text"
    expect(shown.page.locator("#denials-form").get_by_label("Containing")).to_have_value("gs?/")
    shown.page.locator("h1").click()
    press("?")
    expect(shown.page.get_by_role("dialog", name="Keys")).to_be_visible()
    shown.page.get_by_label("single keys do this").uncheck()
    press("Escape")
    press("?")
    expect(shown.page.get_by_role("dialog")).to_have_count(0)
    press("g")
    press("s")
    expect(shown.page.get_by_role("heading", level=2)).to_contain_text("Denials")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing(
    chromium: Browser, gateway: Gateway, connection: pika.BlockingConnection, width: int, scheme: str
) -> None:
    """The rules of axe-core (WCAG 2, and what it calls best practice) in each view and window."""
    if not AXE.is_file():
        missing("axe-core is not there (npm; tools/test-tools.sh)")
    channel = connection.channel()
    for key in ("order.axe", "refund.axe"):
        channel.basic_publish("amq.topic", key, b"x")
    context = chromium.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = opened(context, gateway).page
    page.evaluate(AXE.read_text())

    def found() -> object:
        return page.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then(({violations}) => "
            "violations.map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 120))]))"
        )

    there = {
        "overview": "#tile-published",
        "history": "#plot-messages .u-axis",
        "sessions": "#sessions-table tbody tr",
        "denials": "#denials-list li",
        "policies": ".rules li",
        "graph": "#picture svg",
        "tap": "#tap-form",
    }
    for name, what in there.items():
        page.evaluate(f"location.hash = '#{name}'")
        expect(page.locator(what).first).to_be_visible(timeout=30000)
        # Tables behind the pictures, too.
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert found() == [], name
    page.evaluate("location.hash = '#sessions'")
    page.locator("#sessions-table tbody button").first.click()
    expect(page.locator("#session-body dl").first).to_be_visible()
    assert found() == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert found() == []
    page.keyboard.press("Escape")
    page.evaluate("location.hash = '#overview'")
    page.get_by_role("button", name="Log level").click()
    expect(page.get_by_label("Level")).to_be_visible()
    assert found() == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(chromium: Browser, gateway: Gateway, connection: object, scheme: str) -> None:
    context = chromium.new_context(
        viewport={"width": 360, "height": 740}, color_scheme="dark" if scheme == "dark" else "light"
    )
    shown = opened(context, gateway)
    for name in ("Overview", "History", "Sessions", "Denials", "Policies", "Graph", "Tap"):
        shown.view(name)
        expect(shown.page.locator("[data-view]:visible")).to_have_count(1)
        assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    assert shown.page.locator("nav").evaluate("(nav) => nav.scrollWidth <= nav.clientWidth")
    ground = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(14, 20, 27)") is (scheme == "dark")
    assert shown.wrong == []
    context.close()


def test_only_our_own_files_and_scripts_run(shown: Shown) -> None:
    """Even where a text became markup, or a script were put in."""
    page = shown.page
    refused = page.evaluate(
        """() => {
            const image = document.createElement("img");
            const refused = [];
            for (const run of [
                () => { document.body.innerHTML = "<img src=x onerror=window.ran=1>" },
                () => image.setAttribute("onerror", "window.ran = 1"),
            ]) {
                try { run() } catch (error) { refused.push(error.name) }
            }
            return refused;
        }"""
    )
    assert refused == ["TypeError", "TypeError"]
    # That is told on the console.
    assert shown.wrong
    shown.wrong.clear()


def test_a_page_that_nobody_looks_at_leaves_its_stream(
    shown: Shown, connection: pika.BlockingConnection
) -> None:
    """A browser has six connections for all its pages of one host: a stream each, and others would wait."""
    hide = """(hidden) => {
        Object.defineProperty(document, "hidden", {get: () => hidden, configurable: true});
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    shown.view("Denials")
    with shown.page.expect_event("requestfailed", lambda request: request.url.endswith("/events")):
        shown.page.evaluate(hide, True)
    key = f"refund.{time.monotonic_ns()}"
    connection.channel().basic_publish("amq.topic", key, b"x")
    with shown.page.expect_request("**/events"):
        shown.page.evaluate(hide, False)
    # What happened meanwhile is there with who looks again.
    expect(shown.page.locator("#denials-list li").filter(has_text=key)).to_be_visible()
    expect(shown.page.locator("#state")).to_have_text("ready")


def rows(shown: Shown) -> int:
    """Of the hour, so many does the page have."""
    count = shown.page.evaluate("import('/page/hour.js').then((it) => it.hour()?.at.length ?? 0)")
    assert isinstance(count, int)
    return count


def test_a_reload_forgets_nothing(
    chromium: Browser, gateway: Gateway, connection: pika.BlockingConnection
) -> None:
    """Last of the module, when the gateway has been there for a while."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    channel = connection.channel()
    shown = opened(context, gateway)
    page = shown.page
    page.goto(f"http://127.0.0.1:{gateway.admin_port}/#history?minutes=15")
    plot = page.locator("#plot-messages")
    expect(plot.locator(".u-axis")).to_have_count(2, timeout=30000)
    channel.basic_publish("amq.topic", "order", b"x" * 1000)
    expect(page.locator("#plot-sessions .legend")).not_to_have_text("open 0", timeout=20000)
    for _ in range(80):
        if (before := rows(shown)) > 2:
            break
        page.wait_for_timeout(250)
    assert before > 2
    page.reload()
    page.get_by_label("Bearer token").fill("s3cret")
    page.get_by_role("button", name="Enter").click()
    expect(plot.locator(".u-axis")).to_have_count(2)
    assert rows(shown) >= before
    # The address said what was shown.
    expect(page.get_by_role("radio", name="15 min")).to_be_checked()
    # The keyboard reads one plot after the other, and all at the same time.
    plot.focus()
    page.keyboard.press("Home")
    first = plot.locator("time").inner_text()
    expect(page.locator("#plot-memory time")).to_have_text(first)
    expect(page.locator("#plot-memory .legend")).to_contain_text("MiB")
    page.keyboard.press("ArrowRight")
    expect(plot.locator("time")).not_to_have_text(first)
    page.keyboard.press("Escape")
    expect(plot.locator("time")).to_have_text("")
    # The mouse looks closer, in all plots and in the address.
    over = plot.locator(".u-over").bounding_box()
    assert over is not None
    page.mouse.move(over["x"] + over["width"] * 0.9, over["y"] + 20)
    expect(plot.locator("time")).not_to_have_text("")
    page.mouse.down()
    page.mouse.move(over["x"] + over["width"] - 2, over["y"] + 30, steps=4)
    page.mouse.up()
    assert "&from=" in page.url
    page.get_by_role("button", name="Up to now").click()
    assert "&from=" not in page.url
    page.locator("[data-view=history] summary").click()
    expect(page.locator("#history-table")).to_contain_text("Confirm latency: p99")
    # Nothing comes from elsewhere; how much it is, tests/unit/admin/test_page.py adds up.
    assert {url.partition("/")[2].partition("/")[2].partition("/")[0] for url in asked} == {
        f"127.0.0.1:{gateway.admin_port}"
    }
    assert shown.wrong == []
    context.close()
