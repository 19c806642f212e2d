"""``/lifecycle``, and drain, pause and resume over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest
import trio

from .test_http import Window, open_window

__all__ = ["open_window"]


async def ask(window: Window, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
    """POST, or GET where there is no body."""
    request = urllib.request.Request(f"{window.address}{path}", data=body, headers=headers)

    def go() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    return await trio.to_thread.run_sync(go)


OWN = {"X-Amqpgate": "1"}


async def test_a_pause_its_end_and_a_drain(open_window) -> None:  # type: ignore[no-untyped-def]
    window = await open_window()
    for verb, state in (("pause", "paused"), ("resume", "starting")):
        status, text = await ask(window, f"/{verb}", b"", **OWN)
        assert (status, json.loads(text)["state"]) == (200, state)
        assert json.loads((await ask(window, "/lifecycle"))[1])["state"] == state
        assert (await ask(window, "/readyz"))[1].startswith(f"not ready: {state}\n")
    status, text = await ask(window, "/drain", b'{"window": 12.5}', **OWN)
    assert status == 202
    said = json.loads(text)
    assert said.keys() == {"state", "sessions", "connections", "seconds_left", "workers"}
    assert said["state"] == "draining"
    assert 0 < said["seconds_left"] <= 12.5


@pytest.mark.parametrize(
    "body",
    [
        "nonsense",
        "[]",
        '{"window": -1}',
        '{"window": "5"}',
        '{"window": true}',
        '{"window": NaN}',
        '{"window": null}',
        '{"successors": 0}',
        '{"successors": 1.5}',
        '{"other": 1}',
    ],
)
async def test_a_wrong_body_drains_nothing(open_window, body: str) -> None:  # type: ignore[no-untyped-def]
    window = await open_window()
    assert (await ask(window, "/drain", body.encode(), **OWN))[0] == 400
    assert window.gateway.phase == "starting"


async def test_no_page_of_others_can_do_it(open_window) -> None:  # type: ignore[no-untyped-def]
    window = await open_window()
    for path in ("/drain", "/pause", "/resume"):
        assert (await ask(window, path, b""))[0] == 403
        assert (await ask(window, path, b"", Origin="http://evil.example", **OWN))[0] == 403
        assert (await ask(window, path))[0] == 405
    assert window.gateway.phase == "starting"


async def test_who_takes_over_is_answered_when_nothing_is_listened_on(open_window) -> None:  # type: ignore[no-untyped-def]
    window = await open_window()
    gateway = window.gateway
    async with trio.open_nursery() as nursery:
        answers: list[tuple[int, str]] = []

        async def go() -> None:
            answers.append(await ask(window, "/drain", b'{"successors": 1}', **OWN))

        nursery.start_soon(go)
        await gateway.lifecycle.drained.wait()
        assert not answers
        assert not gateway.lifecycle.handed_over.is_set()
        status, text = await ask(window, "/drain", b'{"successors": 1}', **OWN)
        assert (status, "another process" in text) == (409, True), "a second one has no place to take"
        gateway.lifecycle.closed.set()
        with trio.fail_after(20):
            await gateway.lifecycle.handed_over.wait()
    assert [status for status, _ in answers] == [202]
