"""A broker's management interface, as a move asks it: here one that says what it is told to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from amqpgate.cli.failures import Failure
from amqpgate.cli.move_management import Management, NotThere
from amqpgate.config.address import AmqpUrl
from amqpgate.move.document import ManagementUrl, MoveEnd
from amqpgate.move.objects import BrokerObject
from tests.support.answering import QuietHandler, answering
from tests.support.ports import free_port
from tests.support.raw_answers import http, saying

#: "guest:secret".
LOGIN = "Basic Z3Vlc3Q6c2VjcmV0"


@contextmanager
def broker(answers: dict[str, object]) -> Iterator[tuple[Management, list[tuple[str, str, object]]]]:
    """One that answers GETs so, by path, and what it was asked otherwise. An answer that is a number
    is a status."""
    asked: list[tuple[str, str, object]] = []

    class Handler(QuietHandler):
        def _say(self, status: int, body: object) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_GET(self) -> None:
            assert self.headers.get("Authorization") == LOGIN
            found = answers.get(self.path.removeprefix("/api").partition("?")[0], 404)
            if isinstance(found, int):
                self._say(found, {"error": "x", "reason": "not\nnow"})
            else:
                self._say(200, found)

        def do_PUT(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append((self.command, self.path, body))
            self._say(400 if "no" in self.path else 201, {"reason": "it is\x1b[0m not taken"})

        do_POST = do_PUT

    with answering(Handler) as address:
        yield Management(end(address), "secret", 5), asked


def end(address: str) -> MoveEnd:
    return MoveEnd(
        upstream="blue",
        management=ManagementUrl.parse(f"http://{address}"),
        amqp=AmqpUrl.parse("amqp://127.0.0.1"),
        user="guest",
        password_env="NONE",
    )


def test_what_is_made_is_put_where_it_belongs() -> None:
    with broker({}) as (management, asked):
        management.create(
            BrokerObject("queue", "/", "q 1", {"durable": True, "arguments": {}, "type": "classic"})
        )
        assert asked == [("PUT", "/api/queues/%2F/q%201", {"durable": True, "arguments": {}})]
        with pytest.raises(
            Failure, match=r"queue / no: .*blue says 400 to PUT /queues/%2F/no: it is"
        ) as caught:
            management.create(BrokerObject("queue", "/", "no", {}))
        assert "\x1b" not in str(caught.value.message)


def test_what_a_queue_is_said_to_be() -> None:
    row = {
        "name": "q",
        "type": "quorum",
        "auto_delete": True,
        "messages": 5,
        "consumers": 2,
        "arguments": {"x-message-ttl": 1},
        "effective_policy_definition": {"max-length": 1},
        "message_stats": {"ack_details": {"rate": 2.0}, "deliver_no_ack_details": {"rate": 0.5}},
    }
    with broker({"/queues/v": [row, {"name": "new"}]}) as (management, _):
        first, second = management.queue_facts(["v", "not there"])
    assert (first.type, first.messages, first.consumers, first.acked_rate) == ("quorum", 5, 2, 2.5)
    assert (first.auto_delete, first.drains_by_time, first.policy) == (True, True, {"max-length": 1})
    assert (second.messages, second.consumers, second.acked_rate) == (0, 0, 0)


def test_names_are_those_that_others_can_look_at() -> None:
    rows = [{"name": "a"}, {"name": "b", "exclusive": True}, {"name": "c", "type": "stream"}]
    with broker({"/queues/v": rows}) as (management, _):
        assert management.queue_names("v") == ["a"]
        assert management.queue_names("none") == []


def test_strangers_are_those_that_no_gateway_brought() -> None:
    rows = [
        {"user": "a", "peer_host": "10.0.0.1", "peer_port": 5, "client_properties": {"product": "pika"}},
        {"user": "b", "peer_host": "10.0.0.2", "peer_port": 6, "client_properties": {"amqpgate": {}}},
        {"user": "c\x1b", "peer_host": "10.0.0.3", "peer_port": 7, "protocol": "MQTT"},
    ]
    with broker({"/vhosts/v/connections": rows, "/vhosts/off/connections": 400}) as (management, _):
        assert [one.partition("'")[2][0] for one in management.strangers(["v"]) or ()] == ["a", "c"]
        assert not any("\x1b" in one for one in management.strangers(["v"]) or ())
        assert management.strangers(["none"]) == ()
        assert management.strangers(["off"]) is None, "its statistics are off"


def test_a_broker_that_does_not_answer_is_no_broker_without_strangers() -> None:
    management = Management(end(f"127.0.0.1:{free_port()}"), "secret", 1)
    with pytest.raises(Failure, match="no answer from blue"):
        management.strangers(["v"])


def test_alarms_and_delayed_messages() -> None:
    nodes = [{"name": "n", "mem_alarm": True, "disk_free_alarm": True}, {"name": "m", "running": False}]
    exchanges = [{"name": "later", "messages_delayed": 4}, {"name": "now"}]
    with broker({"/nodes": nodes, "/exchanges/v": exchanges}) as (management, _):
        assert management.alarms() == (
            "node n is short of memory",
            "node n is short of disk space",
            "node m does not run",
        )
        assert management.delayed(["v", "none"]) == {"v later": 4}


def test_virtual_hosts_that_its_user_may_not_use() -> None:
    with broker({"/users/guest/permissions": [{"vhost": "v"}]}) as (management, _):
        assert management.unknown_vhosts(["v", "w"]) == ("w",)


def test_a_virtual_host_that_is_not_there_yet_has_nothing() -> None:
    said = {"/definitions": {"users": []}, "/queues/v": [], "/exchanges/v": [], "/bindings/v": []}
    with broker(said) as (management, _):
        assert set(management.lists(["v", "new"]).queues) == {"v"}


def test_what_it_refuses_is_told() -> None:
    with (
        broker({"/overview": 401}) as (management, _),
        pytest.raises(Failure, match="401 to GET /overview: not"),
    ):
        management.overview()
    with broker({}) as (management, _), pytest.raises(NotThere):
        management.get("/nothing")


#: What a peer says that is no broker's management interface, and what is told of it.
_OTHERS = {
    "no JSON": (http(b"<html>"), r"answers GET /overview with no JSON: is that the management port\?"),
    "deep JSON": (http(b"[" * 200_000), "with no JSON"),
    "nothing": (http(b""), "with no JSON"),
    "a list": (http(b"[1]"), "with no object of JSON"),
    "elsewhere": (
        http(b"", status=b"302 Found", headers=b"location: http://x/\x1b[2J\r\n"),
        r"answers GET /overview with 302 to http://x/\\x1b\[2J, which is not followed",
    ),
    "no change": (http(b"", status=b"304 Not Modified"), "with 304, which is not followed"),
    "no HTTP": (b"\x1b[2JHello\r\n", r"no HTTP is spoken there: it says '\\x1b\[2JHello'"),
    "no with deep JSON": (http(b"[" * 60_000, status=b"401 No"), r"says 401 to GET /overview: \[\["),
}


@pytest.mark.parametrize("said", _OTHERS)
def test_who_is_no_management_interface_is_told_so(said: str) -> None:
    bytes_, told = _OTHERS[said]
    with saying(bytes_) as address, pytest.raises(Failure, match=told) as caught:
        Management(end(address), "secret", 60).overview()
    assert "\x1b" not in caught.value.message


def test_an_answer_has_an_end_in_bytes_and_in_time() -> None:
    begin = b"HTTP/1.1 200 OK\r\n\r\n["
    with (
        saying(begin, b'{"name":"a"},' * 1000, again=True) as address,
        pytest.raises(Failure, match="its answer has more than 50000 bytes"),
    ):
        Management(end(address), "secret", 60, most=50_000).rows("/queues/v")
    with saying(begin) as address, pytest.raises(Failure, match=r"its answer takes longer than 0\.05 s"):
        Management(end(address), "secret", 60, within=0.05).rows("/queues/v")


def test_a_list_is_of_objects() -> None:
    with broker({"/nodes": [1]}) as (management, _), pytest.raises(Failure, match="no list of objects"):
        management.alarms()
