"""Files with the graph that the pipeline writes, in a real browser: nobody serves them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from amqpgate.pipeline.jobs.graph import Topology
from amqpgate.pipeline.jobs.picture_page import page
from amqpgate.pipeline.jobs.report_page import page as report_page
from amqpgate.pipeline.jobs.report_parts import Cell, Picture, Report, ReportTable, Section, Word
from amqpgate.pipeline.jobs.report_upgrade import HEADS
from tests.interop.clients.scripts import NODE_MODULES
from tests.support.browser import browser
from tests.support.missing import missing
from tests.unit.pipeline.jobs.test_picture_page import HOSTILE, NOW, denied, told

pytestmark = pytest.mark.interop

AXE = NODE_MODULES / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as running:
        yield running


def written(file: Path, text: str) -> str:
    file.write_text(text)
    return file.as_uri()


def opened(page: Page, address: str) -> list[str]:
    """What the browser says that it does not like, and what it asks for."""
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.context.on("request", lambda request: wrong.append(request.url) if request.url != address else None)
    page.goto(address)
    expect(page.locator("#picture svg").first).to_be_visible()
    return wrong


def report(topology: Topology) -> str:
    section = Section("Topology", "Who sends what.", (Picture(topology, denied("no")),))
    return report_page(Report(first=NOW, last=NOW, facts=(("Gateways", 1),), sections=(section,)), "Report")


def test_names_are_text_and_the_keyboard_is_enough(chromium: Browser, tmp_path: Path) -> None:
    tab = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
    address = written(tmp_path / "graph.html", page(told(*HOSTILE, "orders"), denied(*HOSTILE), HOSTILE[1]))
    wrong = opened(tab, address)
    picture = tab.locator("#picture")
    assert picture.locator("g.node").count() == 2 * (len(HOSTILE) + 1) + len(HOSTILE)
    assert picture.locator("path.denied").count() == len(HOSTILE)
    # A name ends with its box.
    for box in picture.locator("g.node > svg").all():
        assert float(box.get_attribute("width") or 0) < 190
    # One stop for the Tab key, arrows from box to box.
    tab.get_by_label("Containing").focus()
    for _ in range(6):
        tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.classList.contains('principal')")
    first = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.activeElement.classList.contains('exchange')")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("ArrowLeft")
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == first
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.tagName") == "SUMMARY"
    tab.keyboard.press("Enter")
    expect(tab.locator("#graph-table")).to_contain_text(HOSTILE[1])
    tab.get_by_label("Containing").fill("orders")
    expect(picture.locator("g.node")).to_have_count(2)
    expect(picture.locator(".total").first).to_have_text("2.0/s")
    tab.get_by_label("Vhost").select_option(HOSTILE[0])
    expect(picture).to_contain_text("Nothing has been seen yet.")
    assert tab.evaluate("window.ran") is None
    assert wrong == []
    # Nor would markup that somebody put in.
    with pytest.raises(Exception, match="TrustedHTML"):
        tab.evaluate("document.body.innerHTML = '<img src=x onerror=window.ran=1>'")
    tab.context.close()


def test_the_widest_table_of_a_report_fits_a_laptop(chromium: Browser, tmp_path: Path) -> None:
    """With a long name in it, and no word of usual length broken."""
    name = "exchange-of-the-orders-of-" + "x" * 54
    lost = "a queue that is neither durable nor exclusive: 541 where transient_nonexcl_queues is denied"
    row: tuple[Cell, ...] = (
        *(Word("may-be-lost"), "orders-service", "shop", "queue.declare", name, 1_234_567, NOW, NOW),
        *(Word(lost), Word("compatibility: transientQueues")),
    )
    table = ReportTable(title="What fails, or may fail", heads=HEADS, rows=(row,))
    section = Section("Before RabbitMQ 4.3", "What fails.", (table,))
    text = report_page(Report(first=NOW, last=NOW, facts=(), sections=(section,)), "Report")
    tab = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
    tab.goto(written(tmp_path / "report.html", text))
    wide = tab.locator(".wide")
    assert wide.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    kind = tab.get_by_text("queue.declare")
    assert kind.evaluate("(one) => one.getClientRects().length") == 1
    tab.context.close()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
@pytest.mark.parametrize("nodes", [3, 300, 3000])
def test_it_fits_and_axe_finds_nothing(
    chromium: Browser, tmp_path: Path, nodes: int, width: int, scheme: str
) -> None:
    if not AXE.is_file():
        missing("axe-core is not there (npm; tools/test-tools.sh)")
    topology = told(*(f"name-{number}" for number in range(max(1, nodes // 2 - 1))))
    for text in (page(topology, denied("no"), "Topology"), report(topology)):
        context = chromium.new_context(
            viewport={"width": width, "height": 740}, color_scheme="dark" if scheme == "dark" else "light"
        )
        tab = context.new_page()
        wrong = opened(tab, written(tmp_path / "graph.html", text))
        tab.locator("summary").click()
        expect(tab.locator("#graph-table tbody tr").first).to_be_visible()
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert tab.locator("g.node").count() <= 300
        assert ("left out" in tab.locator("#graph-count").inner_text()) is (nodes == 3000)
        # The browser's own tools are asked: the file allows no other script.
        tab.evaluate(AXE.read_text())
        found = tab.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then(({violations}) => "
            "violations.map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 120))]))"
        )
        assert found == []
        assert wrong == []
        context.close()
