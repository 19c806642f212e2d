"""Log lines: fixed fields, no credentials, nothing that a peer could forge."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Iterator

import pytest

from amqpgate import logs


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    chatty = {name: logging.getLogger(name).level for name in logs._CHATTY}
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, was in chatty.items():
        logging.getLogger(name).setLevel(was)


def written(format_: logs.Format, level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    logs.set_up(format_, level, stream=stream)
    return stream


def test_a_json_line_has_exactly_these_fields_in_this_order() -> None:
    stream = written("json")
    logging.getLogger("amqpgate.some.room").warning("seen %d", 3)
    record = json.loads(stream.getvalue())
    assert list(record) == ["time", "level", "logger", "message", "exception"]
    assert record["level"] == "warning"
    assert record["logger"] == "amqpgate.some.room"
    assert record["message"] == "seen 3"
    assert record["exception"] is None


def test_what_a_line_is_about_comes_behind() -> None:
    stream = written("json")
    how = logs.about(session="s-1", user="a\nb", routing_key="amqp://me:pass@x/", reply_code=403)
    logging.getLogger("amqpgate.some.room").info("denied", extra=how)
    record = json.loads(stream.getvalue())
    assert list(record)[5:] == ["session", "user", "routing_key", "reply_code"]
    assert record["user"] == "a\nb"
    assert record["routing_key"] == "amqp://me:***@x/"
    assert record["reply_code"] == 403
    assert stream.getvalue().count("\n") == 1


def test_what_recurs_may_be_about_something() -> None:
    stream = written("json")
    for _ in range(3):
        how = logs.about(upstream="rabbit", recurring=True)
        logging.getLogger("amqpgate.some.room").info("away", extra=how)
    assert [json.loads(line)["upstream"] for line in stream.getvalue().splitlines()] == ["rabbit"]


def test_a_failure_need_not_be_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There may be no memory for that, and whoever holds what others raise must raise nothing."""
    log = logging.getLogger("amqpgate.some")

    def fail(*_: object, **__: object) -> logging.LogRecord:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(log, "makeRecord", fail)
        logs.log_failure(log, "%s failed", "it")
    assert caplog.records == []
    logs.log_failure(log, "%s failed", "it")
    assert [record.getMessage() for record in caplog.records] == ["it failed"]


def test_json_time_is_utc_with_milliseconds() -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, "m", (), None)
    record.created, record.msecs = 1_000_000_000.007, 7.0
    line = logs.JsonHandler(io.StringIO()).format(record)
    assert json.loads(line)["time"] == "2001-09-09T01:46:40.007Z"


def test_an_exception_is_a_field_of_the_same_line() -> None:
    stream = written("json")
    try:
        raise ValueError("broken\nhere")
    except ValueError:
        logging.getLogger("x").exception("it failed")
    (line,) = stream.getvalue().splitlines()
    record = json.loads(line)
    assert record["message"] == "it failed"
    assert "ValueError: broken\nhere" in record["exception"]


@pytest.mark.parametrize("format_", logs.FORMATS)
@pytest.mark.parametrize(
    "url",
    [
        "amqp://guest:hunter2@broker:5672/",
        "amqps://guest:hunter2@[::1]:5671/%2f",
        "amqp://guest:hunter2@x@broker",
        "amqp://:hunter2@broker",
        "http://someone:hunter2@proxy/",
        "amqp://guest:pa/hunter2@broker/",
        "amqp://guest:12/hunter2?x=#y@broker:5672/vhost",
        "amqp://guest:s'hunter2@broker/",
        'amqp://guest:s"hunter2@broker/',
        "'amqp://guest:'hunter2\"@broker/'",
        "amqp://guest:x://hunter2@broker/",
    ],
)
def test_passwords_in_urls_are_blanked(format_: logs.Format, url: str) -> None:
    stream = written(format_)
    logging.getLogger("x").info("dialling %s now", url)
    try:
        raise RuntimeError(f"no route to {url}")
    except RuntimeError:
        logging.getLogger("x").exception("oh")
    text = stream.getvalue()
    assert "hunter2" not in text
    assert text.count(":***@") >= 2


@pytest.mark.parametrize(
    "text",
    [
        "amqp://broker:5672/home",
        "amqp://broker",
        "see http://x.y/z: a@b",
        '{"a":"amqp://broker:5672","b":"x@y"}',
        "['amqp://broker:5672','x@y']",
        "a" * 1000,
    ],
)
def test_urls_without_passwords_stay_as_they_are(text: str) -> None:
    assert logs.without_passwords(text) == text


def test_passwords_of_several_urls_are_blanked_each() -> None:
    text = '{"a":"amqp://u:p@h","b":["amqp://v:q\\"r@i","x"]} (\'amqp://w:s@j\')'
    said = '{"a":"amqp://u:***@h","b":["amqp://v:***@i","x"]} (\'amqp://w:***@j\')'
    assert logs.without_passwords(text) == said


@pytest.mark.parametrize("piece", ["a://:", "a://u:p'", "@a://:", "a.", "://@", "'\""])
def test_a_long_text_is_looked_at_once(piece: str) -> None:
    """By looking at the rest again for each piece, this would take hours."""
    logs.without_passwords(f"a://{piece * 500_000} @")


@pytest.mark.parametrize("format_", logs.FORMATS)
def test_a_peer_cannot_forge_a_line_or_drive_the_terminal(format_: logs.Format) -> None:
    stream = written(format_)
    logging.getLogger("x").info("user %s", "eve\n12:00:00 INFO all is well\x1b[2J\u2028\x9b")
    text = stream.getvalue()
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "eve\\n12" in text


@pytest.mark.parametrize("letter", ["\u202e", "\u2066", "\u200b", "\ufeff", "\x7f", "\udcff", "\u2029"])
def test_what_nobody_sees_or_what_turns_the_line_round_is_an_escape(letter: str) -> None:
    assert logs.on_one_line(f"a{letter}b") == f"a\\{'x7f' if letter == chr(127) else f'u{ord(letter):04x}'}b"
    assert logs.on_one_line("caf\u00e9 \u4e2d") == "caf\u00e9 \u4e2d"


def test_what_comes_again_and_again_is_written_once_and_then_counted() -> None:
    stream = written("json")
    now = [1000.0]
    logging.getLogger().handlers[0].filters = [logs.Recurring(lambda: now[0])]
    library, ours = logging.getLogger("opentelemetry.exporter"), logging.getLogger("amqpgate.x")
    for _ in range(50):
        library.error("cannot reach %s", "the collector")
        ours.error("cannot accept: %s", "no room", extra=logs.RECURRING)
        ours.error("something else")
        now[0] += 1
    messages = [json.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert messages.count("something else") == 50
    assert messages.count("cannot reach the collector") == messages.count("cannot accept: no room") == 1
    now[0] += 20
    library.error("cannot reach %s", "the collector")
    assert "cannot reach the collector (and 49 times more in 70 s)" in stream.getvalue()


def test_an_exception_on_the_console_is_indented() -> None:
    stream = written("console")
    try:
        raise ValueError("broken\n12:00:00 INFO    all is well\x1b[2J")
    except ValueError:
        logging.getLogger("x").exception("it failed")
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("ERROR   it failed")
    assert rest
    assert all(line.startswith("  ") for line in rest)
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("format_", logs.FORMATS)
def test_bytes_that_are_no_text_can_be_written(format_: logs.Format) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    logs.set_up(format_, stream=stream)
    logging.getLogger("x").info("key %s", "caf\u00e9 \udcff")
    stream.flush()
    written_bytes = stream.buffer.getvalue()  # type: ignore[attr-defined]
    assert written_bytes.isascii()
    assert b"udcff" in written_bytes


def test_console_markup_is_text_and_long_lines_stay_whole() -> None:
    stream = written("console")
    logging.getLogger("x").info("[bold]%s[/bold] :smile:", "y" * 500)
    (line,) = stream.getvalue().splitlines()
    assert line.endswith("[bold]" + "y" * 500 + "[/bold] :smile:")


def test_the_level_is_kept_and_chatty_libraries_are_not_heard_at_info() -> None:
    stream = written("json", "warning")
    logging.getLogger("amqpgate.x").info("no")
    assert stream.getvalue() == ""
    stream = written("json", "info")
    logging.getLogger("hypercorn.error").info("no")
    logging.getLogger("amqpgate.x").info("yes")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["yes"]


def test_setting_up_again_replaces_the_first_set_up() -> None:
    first, second = written("json"), written("json")
    logging.getLogger("x").info("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1


def test_warnings_become_records() -> None:
    stream = written("json")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn("old ways", UserWarning, stacklevel=1)
        logging.captureWarnings(False)
    assert json.loads(stream.getvalue())["logger"] == "py.warnings"


def test_json_needs_no_rich() -> None:
    code = "import sys; from amqpgate import logs; logs.set_up('json'); sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
