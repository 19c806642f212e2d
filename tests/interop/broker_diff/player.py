"""Plays a scenario against one broker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from amqpgate.protocol.sasl import amqplain_response, plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

from .line import PATIENCE, Line, Stuck
from .steps import (
    Close,
    Confirmed,
    Connect,
    Dial,
    Ended,
    Eventually,
    HangUp,
    Publish,
    Quiet,
    Raw,
    Receive,
    Scenario,
    Send,
    Step,
)
from .transcript import Transcript

_CAPABILITIES: Final = {
    "authentication_failure_close": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "publisher_confirms": True,
}

#: RabbitMQ's queue processes answer a passive declare before publishes that came first, but not twice.
_ROUNDS: Final = 3

_Made = Method | Callable[[dict[str, str]], Method]


class Player:
    """One performance of one scenario in one virtual host, which it leaves empty."""

    def __init__(self, address: tuple[str, int], vhost: str) -> None:
        self._address = address
        self._vhost = vhost
        self._lines: dict[str, Line] = {}
        self._open: set[tuple[str, int]] = set()
        self._expected: Counter[tuple[str, int]] = Counter()
        self._unasked: Counter[tuple[str, int]] = Counter()
        self._kept: dict[str, str] = {}
        self._queues: set[str] = set()
        self._exchanges: set[str] = set()

    def play(self, scenario: Scenario) -> list[str]:
        """The transcript. It says so where something that was waited for did not come."""
        problems = []
        try:
            for number, step in enumerate(scenario.steps, 1):
                try:
                    self._do(step)
                except Stuck as stuck:
                    problems.append(f"step {number}: {stuck}")
                    break
            for client, line in self._lines.items():
                try:
                    self._close(line)
                except Stuck as stuck:
                    problems.append(f"closing {client}: {stuck}")
            transcript = Transcript(confirms_in_place=scenario.confirms_in_place)
            lines = [
                text
                for client, line in sorted(self._lines.items())
                for text in transcript.lines(client, line)
            ]
            return lines + problems
        finally:
            for line in self._lines.values():
                line.hang_up()
            self._clean()

    def _do(self, step: Step) -> None:
        match step:
            case Connect():
                self._connect(step, is_shown=True)
            case Dial():
                self._lines[step.client] = Line(self._address)
            case Send():
                self._send(step)
            case Publish():
                line = self._line(step.client, step.channel)
                line.send_content(step.channel, self._made(step.method), step.properties, step.body)
                self._await(line, step, step.answers)
            case Raw():
                line = self._line(step.client, step.channel)
                line.send(step.data)
                self._await(line, step, step.answers)
            case Receive():
                line = self._line(step.client, step.channel)
                self._unasked[step.client, step.channel] += step.count
                line.wait_for_unasked(step.channel, self._unasked[step.client, step.channel])
                self._keep(line, step)
            case Confirmed():
                self._line(step.client, step.channel).wait_for_confirms(step.channel, step.count)
            case Quiet():
                self._quieten(step)
            case Eventually():
                self._repeat(step)
            case Close():
                self._close(self._lines[step.client])
            case HangUp():
                self._lines[step.client].hang_up()
            case Ended():
                self._lines[step.client].wait_for_end()
            case _:
                raise AssertionError(step)

    def _send(self, step: Send) -> None:
        method = self._made(step.method)
        opens = isinstance(method, amqp.ChannelOpen)
        line = self._line(step.client, 0 if opens else step.channel)
        if opens:
            self._open.add((step.client, step.channel))
        self._remember(method)
        line.send_method(step.channel, method)
        answers = step.answers
        if answers is None:
            answers = int(bool(method.REPLIES) and not getattr(method, "no_wait", False))
        self._await(line, step, answers)
        self._keep(line, step)

    def _await(self, line: Line, step: Send | Publish | Raw, answers: int) -> None:
        if answers:
            self._expected[step.client, step.channel] += answers
            line.wait_for_answers(step.channel, self._expected[step.client, step.channel])

    def _keep(self, line: Line, step: Send | Receive) -> None:
        if step.keep is not None:
            attribute, name = step.keep
            source: object = line.last_answer.get(step.channel)
            if isinstance(step, Receive):
                source = line.last_properties[step.channel]
            self._kept[name] = getattr(source, attribute)
            if attribute == "queue":
                self._queues.add(self._kept[name])

    def _repeat(self, step: Eventually) -> None:
        line = self._line(step.client, step.channel)
        deadline = time.monotonic() + PATIENCE
        while True:
            line.send_method(step.channel, step.method)
            self._expected[step.client, step.channel] += 1
            line.wait_for_answers(step.channel, self._expected[step.client, step.channel])
            if getattr(line.last_answer[step.channel], step.name, None) == step.value:
                return
            if time.monotonic() > deadline:
                raise Stuck(f"{step.name} is never {step.value}")
            line.hide_last_answer(step.channel)
            time.sleep(0.005)

    def _quieten(self, step: Quiet) -> None:
        line = self._line(step.client, step.channel)
        for _ in range(_ROUNDS):
            for probe in (
                amqp.QueueDeclare(queue=step.queue, passive=True),
                amqp.ExchangeDeclare(exchange="amq.direct", passive=True),
            ):
                line.send_method(step.channel, probe)
                self._expected[step.client, step.channel] += 1
                line.wait_for_answers(step.channel, self._expected[step.client, step.channel])
                line.hide_last_answer(step.channel)

    def _made(self, method: _Made) -> Method:
        return method if isinstance(method, Method) else method(self._kept)

    def _remember(self, method: Method) -> None:
        if isinstance(method, amqp.QueueDeclare) and method.queue:
            self._queues.add(method.queue)
        elif isinstance(method, amqp.ExchangeDeclare):
            self._exchanges.add(method.exchange)

    # Connections.

    def _line(self, client: str, channel: int) -> Line:
        """The client's connection with that channel open; unusual ones have been made by a step."""
        if client not in self._lines:
            self._connect(Connect(client), is_shown=False)
        line = self._lines[client]
        if channel and (client, channel) not in self._open:
            self._open.add((client, channel))
            line.send_method(channel, amqp.ChannelOpen())
            self._expected[client, channel] += 1
            line.wait_for_answers(channel, self._expected[client, channel])
            line.hide_last_answer(channel)
        return line

    def _connect(self, step: Connect, *, is_shown: bool) -> None:
        line = self._lines[step.client] = Line(self._address)
        line.frame_max = step.frame_max
        line.send(amqp.PROTOCOL_HEADER)
        line.wait_for_answers(0, 1)
        respond = amqplain_response if step.mechanism == "AMQPLAIN" else plain_response
        properties = Table.of({"capabilities": dict(_CAPABILITIES if not is_shown else step.capabilities)})
        response = respond(step.user, step.password)
        line.send_method(0, amqp.ConnectionStartOk(properties, step.mechanism, response, "en_US"))
        line.wait_for_answers(0, 2)
        if not line.is_ending:
            line.send_method(0, amqp.ConnectionTuneOk(step.channel_max, step.frame_max, 0))
            line.send_method(0, amqp.ConnectionOpen(self._vhost if step.vhost is None else step.vhost))
            line.wait_for_answers(0, 3)
            line.is_open = not line.is_ending
        self._expected[step.client, 0] = line.answers[0]
        if not is_shown:
            line.hide_all()

    def _close(self, line: Line) -> None:
        if line.is_ended:
            return
        if line.is_ending:
            line.send_method(0, amqp.ConnectionCloseOk())
            line.hang_up()
            return
        if line.is_open:
            answers = line.answers[0]
            line.send_method(0, amqp.ConnectionClose(200, "done"))
            line.wait_for_answers(0, answers + 1)
        line.hang_up()

    def _clean(self) -> None:
        """Delete all that was declared, as soon as clients that hung up have been missed."""
        line = self._line("cleaner", 1)
        for method in (
            *(amqp.QueueDelete(queue=name) for name in self._queues if "reply-to" not in name),
            *(amqp.ExchangeDelete(exchange=x) for x in self._exchanges if x and not x.startswith("amq.")),
        ):
            deadline = time.monotonic() + PATIENCE
            while isinstance(self._ask(line, method), amqp.ChannelClose):
                assert time.monotonic() < deadline, line.last_answer[1]
                line.send_method(1, amqp.ChannelCloseOk())
                self._ask(line, amqp.ChannelOpen())
                time.sleep(0.01)
        self._close(line)

    def _ask(self, line: Line, method: Method) -> Method:
        answers = line.answers[1]
        line.send_method(1, method)
        line.wait_for_answers(1, answers + 1)
        return line.last_answer[1]
