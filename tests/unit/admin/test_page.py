"""The page's files and what it asks for; the page itself, in a browser, is in tests/interop/test_page.py."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from amqpgate.admin import page
from amqpgate.telemetry.answers import Answers

from .test_http import open_window  # noqa: F401

FOLDER = Path(page.__file__).parent / "page"


async def test_the_page_needs_no_token_and_its_questions_do(open_window: Callable[..., object]) -> None:  # noqa: F811
    window = await open_window("s3cret")  # type: ignore[misc]
    for file in FOLDER.iterdir():
        path = "/" if file.name == "index.html" else f"/page/{file.name}"
        status, text, headers = await window.get(path)
        assert (status, text) == (200, file.read_text())
        assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert (await window.get(path, if_none_match=headers["etag"]))[:2] == (304, "")
    for path in ("/overview", "/graph", "/explain"):
        assert (await window.get(path))[0] == 401
        assert (await window.get(path, token="Bearer s3cret"))[0] == 200


def test_nothing_is_loaded_from_elsewhere_and_nothing_stands_in_the_markup() -> None:
    for file in FOLDER.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(|localStorage", text)
    markup = (FOLDER / "index.html").read_text()
    assert not re.search(r"<style|style=|\son[a-z]+=", markup)
    assert re.findall(r"<script[^>]*>", markup) == ['<script type="module" src="/page/main.js">']


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


def test_the_answers_of_workers_are_one() -> None:
    edge = {"kind": "bound", "vhost": "/", "bytes": 0}
    node = {"source": {"kind": "exchange", "name": "x"}, "target": {"kind": "queue", "name": "q"}}
    told = [
        {
            "edges": [{**edge, **node, "messages": count, "keys": [key], "upstream_users": [key]}],
            "left_out": 1,
            "unseen": {"sessions": 2},
        }
        for count, key in ((3, "a"), (4, "b"))
    ]
    combined = page._graph(Answers({0: told[0], 1: told[1]}))  # type: ignore[dict-item]
    assert combined == {
        "edges": [{**edge, **node, "messages": 7, "keys": ["a", "b"], "upstream_users": ["a", "b"]}],
        "left_out": 2,
        "unseen": {"sessions": 4},
    }
