"""The page's files and what it asks for; the page itself, in a browser, is in tests/interop/test_page.py."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from amqpgate.admin import limits, page
from amqpgate.buckets import ADDED, CONFIRMS
from amqpgate.telemetry.answers import Answers
from amqpgate.telemetry.history import SERIES, SLOTS, slot_at

from .test_http import open_window  # noqa: F401

FOLDER = Path(page.__file__).parent / "page"
#: Not our own.
VENDOR = FOLDER / "vendor"
#: Bytes of all that the page loads.
MOST = 200 * 1024


def served(folder: Path = FOLDER) -> list[Path]:
    """The files that browsers ask for."""
    return [file for file in folder.iterdir() if file.suffix in (".html", ".css", ".js", ".svg")]


async def test_the_page_needs_no_token_and_its_questions_do(open_window: Callable[..., object]) -> None:  # noqa: F811
    window = await open_window("s3cret")  # type: ignore[misc]
    for file in served() + served(VENDOR):
        path = "/" if file.name == "index.html" else f"/page/{file.relative_to(FOLDER)}"
        status, text, headers = await window.get(path)
        assert (status, text) == (200, file.read_text())
        assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert (await window.get(path, if_none_match=headers["etag"]))[:2] == (304, "")
    assert (await window.get("/page/vendor/SHA256SUMS"))[0] == 401
    for path in ("/overview", "/graph", "/explain"):
        assert (await window.get(path))[0] == 401
        assert (await window.get(path, token="Bearer s3cret"))[0] == 200


def test_nothing_is_loaded_from_elsewhere_and_nothing_stands_in_the_markup() -> None:
    for file in served():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(|localStorage", text)
    markup = (FOLDER / "index.html").read_text()
    assert not re.search(r"<style|style=|\son[a-z]+=", markup)
    assert re.findall(r"<script[^>]*>", markup) == [
        '<script defer src="/page/vendor/uPlot.iife.min.js">',
        '<script type="module" src="/page/main.js">',
    ]


def test_what_is_vendored_is_as_it_was_published_and_has_its_licence() -> None:
    sums = dict(
        reversed(line.split(maxsplit=1))
        for line in (VENDOR / "SHA256SUMS").read_text().splitlines()
        if not line.startswith("#")
    )
    assert {file.name for file in VENDOR.iterdir()} == {*sums, "SHA256SUMS"}
    for name, digest in sums.items():
        content = (VENDOR / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest, name
        assert not re.search(rb"innerHTML|insertAdjacentHTML|document\.write|\beval\(|localStorage", content)
    assert "Permission is hereby granted" in (VENDOR / "uPlot.LICENSE").read_text()
    assert "(v1.6.32)" in (VENDOR / "uPlot.iife.min.js").read_text()[:100]


def test_all_that_is_loaded_is_small() -> None:
    assert sum(file.stat().st_size for file in served() + served(VENDOR)) < MOST


async def test_it_is_small_with_an_hour_of_numbers_too(open_window: Callable[..., object]) -> None:  # noqa: F811
    window = await open_window()  # type: ignore[misc]
    loaded = 0
    for file in served() + served(VENDOR):
        path = "" if file.name == "index.html" else f"page/{file.relative_to(FOLDER)}"
        loaded += len(await packed(f"{window.address}/{path}", file.read_bytes()))
    numbers = random.Random(7)
    now = slot_at(time.time())
    for slot in range(now - SLOTS, now + 1):
        took = [numbers.randrange(9) for _ in range(len(CONFIRMS) + 1)]
        window.gateway.history.rings[0].write(
            slot, [numbers.random() * 1e6 for _ in SERIES], took, took[:1] * (len(ADDED) + 1)
        )
    hour = (await window.get("/history"))[1]
    assert len(json.loads(hour)["at"]) > SLOTS - 3
    assert loaded + len(hour) < MOST


async def packed(address: str, content: bytes) -> bytes:
    """What is sent to a browser, which unpacks it to this."""

    def ask() -> bytes:
        request = urllib.request.Request(address, headers={"accept-encoding": "gzip, br"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert (answer.headers["content-encoding"], answer.headers["vary"]) == ("gzip", "accept-encoding")
            sent: bytes = answer.read()
        assert gzip.decompress(sent) == content
        return sent

    return await trio.to_thread.run_sync(ask)


def test_no_element_has_the_address_of_a_view() -> None:
    """A browser would scroll to it, past the view's head and below the page's."""
    markup = (FOLDER / "index.html").read_text()
    views = set(re.findall(r'<a href="#([a-z]+)"', markup))
    assert {"denials", "policies"} <= views
    assert not views & set(re.findall(r' id="([^"]+)"', markup))


def test_every_element_that_a_script_looks_for_is_there() -> None:
    markup = (FOLDER / "index.html").read_text()
    there = set(re.findall(r'\bid="([^"]+)"', markup))
    for file in FOLDER.glob("*.js"):
        assert set(re.findall(r'byId\("([^"]+)"\)', file.read_text())) <= there, file.name


async def explained(address: str, body: object) -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        request = urllib.request.Request(f"{address}/explain", json.dumps(body).encode(), method="POST")
        request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    return await trio.to_thread.run_sync(ask)


async def test_explain(open_window: Callable[..., object]) -> None:  # noqa: F811
    window = await open_window()  # type: ignore[misc]
    request = {"as": {"user": "alice"}, "op": "basic.publish", "exchange": "x", "routingKey": "k"}
    status, text = await explained(window.address, {"request": request})
    said = json.loads(text)
    assert (status, said["verdict"], said["reason"]) == (200, "allow", "defaultAccess: no policy selects")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "expected"),
        ({"request": []}, "expected"),
        ({"request": {"as": {"user": "a"}, "op": "basic.pub"}}, "did you mean 'basic.publish'?"),
        ({"request": {"as": {"user": "a"}, "op": "basic.get"}}, "basic.get needs queue"),
        ({"request": {"as": {"user": "a"}, "op": "basic.get", "queue": "q"}, "more": 1}, "no such key"),
    ],
)
async def test_what_cannot_be_explained(
    open_window: Callable[..., object],  # noqa: F811
    body: object,
    words: str,
) -> None:
    window = await open_window()  # type: ignore[misc]
    status, text = await explained(window.address, body)
    assert status == 400
    assert words in text


async def test_the_answers_of_workers_are_one() -> None:
    edge = {"kind": "bound", "vhost": "/", "bytes": 0}
    node = {"source": {"kind": "exchange", "name": "x"}, "target": {"kind": "queue", "name": "q"}}
    told = [
        {
            "edges": [{**edge, **node, "messages": count, "keys": [key], "upstream_users": [key]}],
            "left_out": 1,
            "unseen": {"sessions": 2},
            "over": {"sessions": 5, "since": 1700000000.0 + count},
            "brokers": [{"upstream": "b", "vhost": vhost, "sessions": count, "published": 1, "delivered": 2}],
            "pools": [{"upstream": "b", "vhost": "/", "user": "u", "sessions": 2, "connections": 1}],
            "mirrors": [{"route": "r", "upstreams": ["b"], "mirror": "c"}],
        }
        for count, key, vhost in ((3, "a", "/"), (4, "b", "/"), (1, "b", "other"))
    ]
    combined = await page._graph(Answers(dict(enumerate(told))))  # type: ignore[arg-type]
    assert combined == {
        "edges": [{**edge, **node, "messages": 8, "keys": ["a", "b"], "upstream_users": ["a", "b"]}],
        "left_out": 3,
        "unseen": {"sessions": 6},
        "over": {"sessions": 15, "since": 1700000001.0},
        "brokers": [
            {"upstream": "b", "vhost": "/", "sessions": 7, "published": 2, "delivered": 4},
            {"upstream": "b", "vhost": "other", "sessions": 1, "published": 1, "delivered": 2},
        ],
        "pools": [{"upstream": "b", "vhost": "/", "user": "u", "sessions": 6, "connections": 3}],
        "mirrors": [{"route": "r", "upstreams": ["b"], "mirror": "c"}],
    }


async def test_many_rows_leave_others_their_turn() -> None:
    """A thousand edges, or limits, take milliseconds: what is relayed does not wait for them."""
    node = {"kind": "queue", "name": "q"}
    edges = [
        {"kind": "bound", "vhost": str(number), "source": node, "target": node}
        | {"messages": 1, "bytes": 0, "keys": [], "upstream_users": []}
        for number in range(1000)
    ]
    row = {"policy": "p", "limit": "l", "quantity": "messages", "action": "delay", "enforced": True}
    rows = [
        row | {"key": [str(number)], "most": 1.0, "rate": 1.0, "sessions": 1, "waiting": 0}
        for number in range(1000)
    ]
    told = {"edges": edges, "limits": rows, "left_out": 0, "unseen": {"sessions": 0, "messages": 0}}
    told |= {"over": {"sessions": 0, "since": 0.0}, "brokers": [], "pools": [], "mirrors": []}
    for combine in (page._graph, partial(limits.combine, most=1000)):
        turns = 0
        async with trio.open_nursery() as nursery:

            async def others() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await trio.lowlevel.checkpoint()

            nursery.start_soon(others)
            await combine(Answers({0: told}))  # type: ignore[operator]
            nursery.cancel_scope.cancel()
        assert turns > 5
