"""Policies that are wrong, or hostile, given to a gateway at work in all three ways.

Whichever way, the error names the file, the line and what to do; those from before stay in force, open
sessions go on, and memory is bounded.
"""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}"}}]
policies: {policies}
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
"""
GOOD = """\
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: good}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: publish, effect: allow, operations: [basic.publish], routingKey: {literal: allowed}}
"""
RULE = "  - {id: r%d, effect: allow, operations: [basic.publish], exchange: {literal: e%d}}\n"
#: Ten levels of nine: a parser that expands aliases would make 3,486,784,401 values of it.
BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 11)
)

#: What is written instead; the line that the error cites (None: the file as a whole); what it says.
BAD: dict[str, tuple[str | bytes, int | None, str]] = {
    "unknown key": (GOOD.replace("effect", "efect"), 7, "unknown key 'efect' (did you mean 'effect'?)"),
    "wrong type": (GOOD.replace("operations: [basic.publish]", "operations: {a: b}"), 7, "expected a list"),
    "missing key": (GOOD.replace("effect: allow, ", ""), 7, "key 'effect' is missing"),
    "unknown kind": (GOOD.replace("AccessPolicy", "AcessPolicy"), 2, "did you mean 'AccessPolicy'?"),
    "bad CIDR": (
        GOOD.replace("{user: guest}", "{user: guest, sourceCIDR: [10.0.0.1/8]}"),
        5,
        "bits are set beyond the prefix; did you mean 10.0.0.0/8?",
    ),
    "regex that looks back": (
        GOOD.replace("{literal: allowed}", r"{regex: '(a+)+\1$'}"),
        7,
        "not a regular expression of RE2, which has no back-references",
    ),
    "regex that is huge": (
        GOOD.replace("{literal: allowed}", "{regex: '((a{1000}){1000}){1000}'}"),
        7,
        "not a regular expression of RE2",
    ),
    "YAML bomb": (BOMB, 1, "anchors and aliases (& and *) are not supported; write the value out"),
    "alias": (GOOD.replace("[{user: guest}]", "[&me {user: guest}, *me]"), 5, "anchors and aliases"),
    "tag": (
        GOOD.replace("{name: good}", "!!python/object/apply:os.system ['true']"),
        3,
        "tags (!) are not supported; remove it",
    ),
    "deep nesting": ("a: " + "[" * 100_000, 1, "nested deeper than 32 levels"),
    "10 MB file": (GOOD + "# padding\n" * 1_000_000, None, "the file is larger than 1048576 bytes; split it"),
    "one wrong rule in many": (
        GOOD + "".join(RULE % (number, number) for number in range(11_000)) + RULE % (7, 7),
        11_008,
        "two rules of this policy have the id 'r7'",
    ),
    "more values than a file may have": (
        GOOD + "x: [" + "1," * 250_000 + "]\n",
        8,
        "more than 200000 values",
    ),
    "no UTF-8": (GOOD.encode() + b"# \xff\n", 8, "the file is not UTF-8 text"),
    "no YAML": (GOOD + "  - {id: [}\n", 8, "not valid YAML"),
}


@attrs.define
class Live:
    """A gateway at work, and the one policy file that it reads."""

    gateway: Gateway
    file: Path
    client: Talker

    def ask(self) -> tuple[int, dict[str, object]]:
        """`POST /reload`."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.gateway.admin_port}/reload",
            method="POST",
            data=b"",
            headers={"X-Amqpgate": "1"},
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def still_works(self) -> None:
        """The open session may do what it might before, and no more."""
        self.client.publish(b"x", "allowed")
        self.client.expect(amqp.BasicAck, 1)
        self.client.publish(b"x", "else", channel=2)
        assert self.client.expect(amqp.ChannelClose, 2).reply_code == 403
        self.client.say(amqp.ChannelCloseOk(), 2)
        self.client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 2)

    def most_memory(self) -> int:
        """The most that the process ever had in memory, in KiB."""
        status = Path(f"/proc/{self.gateway.child.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0])


@pytest.fixture(scope="module")
def live(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("policies")
    file = folder / "policy.yaml"
    file.write_text(GOOD)
    gateway = Gateway(config=CONFIG.format(address=rabbitmq.address, policies=folder))
    gateway.start()
    with Talker.dial(gateway.port) as client:
        client.open(channels=2)
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        running = Live(gateway, file, client)
        running.still_works()
        yield running
        client.bye()
    ended = gateway.stop()
    assert ended.code == 0
    assert "Traceback" not in ended.log


@pytest.mark.parametrize("name", BAD)
def test_bad_policies_change_nothing(live: Live, name: str) -> None:
    data, line, said = BAD[name]
    live.file.write_text(GOOD)
    status, good = live.ask()
    assert (status, good["status"]) == (200, "done")
    before = live.most_memory()

    # The file changes.
    live.file.write_bytes(data if isinstance(data, bytes) else data.encode())
    place = f"policies: {live.file}:" + (f"{line}:" if line else " ")
    # The largest take some seconds of CPU, of which a busy machine has few.
    eventually(lambda: place in live.gateway.get("/readyz")[1], timeout=60)
    status_code, text = live.gateway.get("/readyz")
    assert status_code == 200
    assert f"digest sha256:{str(good['digest'])[:16]}" in text
    assert said in text
    # An operator asks.
    status, answer = live.ask()
    assert (status, answer["status"]) == (422, "refused")
    assert (answer["file"], answer["line"], answer["digest"]) == (str(live.file), line, good["digest"])
    assert said in str(answer["error"])
    # A signal comes.
    told = live.gateway.child.output().count("policies not reloaded")
    live.gateway.child.signal(signal.SIGHUP)
    eventually(lambda: live.gateway.child.output().count("policies not reloaded") == told + 1)
    live.still_works()
    # Reading a file of that size takes some MiB; what it would expand to, far more.
    assert live.most_memory() - before < 100 * 1024


@pytest.mark.parametrize("how", ["pipe", "empty", "gone"])
def test_a_folder_that_cannot_be_read_changes_nothing(live: Live, how: str) -> None:
    live.file.write_text(GOOD)
    assert live.ask()[0] == 200
    folder = live.file.parent
    away = folder.with_name("away")
    if how == "pipe":
        os.mkfifo(folder / "pipe.yaml")
    elif how == "empty":
        live.file.unlink()
    else:
        folder.rename(away)
    said = {"pipe": "not a file", "empty": "no .yaml or .yml file in this folder", "gone": "cannot be read"}
    try:
        eventually(lambda: said[how] in live.gateway.get("/readyz")[1])
        status, answer = live.ask()
        assert (status, answer["line"]) == (422, None)
        assert str(answer["file"]).startswith(str(folder))
        live.still_works()
    finally:
        if how == "pipe":
            (folder / "pipe.yaml").unlink()
        elif how == "gone":
            away.rename(folder)
        live.file.write_text(GOOD)
    eventually(lambda: said[how] not in live.gateway.get("/readyz")[1])


def test_a_regex_that_would_never_end_elsewhere_is_quick(live: Live) -> None:
    live.file.write_text(GOOD.replace("{literal: allowed}", "{regex: '(allowed|(a+)+)'}"))
    assert live.ask()[0] == 200
    live.still_works()
    live.client.publish(b"x", "a" * 254 + "!", channel=2)
    assert live.client.expect(amqp.ChannelClose, 2).reply_code == 403
    live.client.say(amqp.ChannelCloseOk(), 2)
    live.client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 2)
