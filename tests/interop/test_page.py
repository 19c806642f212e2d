"""The page in a real browser, of a real gateway: what it shows and does, and what does not run on it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import attrs
import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.interop.pair import parameters
from tests.support.browser import browser
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ

pytestmark = pytest.mark.interop

#: As a name: what runs it, sets `ran`.
HOSTILE = "<img src=x onerror=window.ran=1>"

CONFIG = """
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: rabbit, url: "amqp://%s"}]
admin: {bind: "127.0.0.1:{admin_port}", tokenFile: %s}
policies: %s
limits: {drainTimeout: 1s}
"""
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


@pytest.fixture(scope="module")
def gateway(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "policies").mkdir()
    (folder / "policies" / "shop.yaml").write_text(POLICY)
    (folder / "token").write_text("s3cret\n")
    gateway = Gateway(config=CONFIG % (rabbitmq.address, folder / "token", folder / "policies"))
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


def opened(context: BrowserContext, gateway: Gateway) -> Shown:
    shown = Shown(context.new_page(), gateway)
    shown.page.on("pageerror", lambda error: shown.wrong.append(str(error)))
    # What asks for the token is refused first.
    shown.page.on(
        "console",
        lambda said: (
            shown.wrong.append(said.text) if said.type == "error" and "401" not in said.text else None
        ),
    )
    shown.page.goto(f"http://127.0.0.1:{gateway.admin_port}/")
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
    found = shown.page.locator("#denials li").filter(has_text=key)
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
    expect(shown.page.locator("#denials")).to_contain_text(f"refund{HOSTILE}")
    shown.view("Graph")
    expect(shown.page.locator("#picture g.exchange").filter(has_text=HOSTILE)).to_have_count(1)
    assert f"bound {HOSTILE}" in (
        shown.page.locator("#picture g.queue").first.get_attribute("aria-label") or ""
    )
    shown.page.get_by_text("As a table").click()
    expect(shown.page.locator("#graph-table")).to_contain_text(HOSTILE)
    assert shown.page.locator("main img, main script").count() == 0


def test_policies_count(shown: Shown, connection: pika.BlockingConnection) -> None:
    connection.channel()
    shown.view("Policies")
    rules = shown.page.locator(".rules li")
    expect(rules.filter(has_text="rest")).to_contain_text("decision")
    expect(rules.filter(has_text="no-refunds")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(chromium: Browser, gateway: Gateway, connection: object, scheme: str) -> None:
    context = chromium.new_context(
        viewport={"width": 360, "height": 740}, color_scheme="dark" if scheme == "dark" else "light"
    )
    shown = opened(context, gateway)
    for name in ("Overview", "Sessions", "Denials", "Policies", "Graph"):
        shown.view(name)
        expect(shown.page.locator("[data-view]:visible")).to_have_count(1)
        assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
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
