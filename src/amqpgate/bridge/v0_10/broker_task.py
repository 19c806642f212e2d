"""A method that is answered: the commands that it comes to, one batch after the other."""

from __future__ import annotations

from amqpgate.bridge.v0_10.broker_link import ChannelLink, Steps, among
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.codec import decode_struct32
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Struct, Unknown


class Task:
    """See the module. Its results come before its commands are complete."""

    __slots__ = ("_ids", "_link", "_results", "_steps", "_undone", "method")

    def __init__(self, link: ChannelLink, method: Method, steps: Steps) -> None:
        self.method = method
        self._link = link
        self._steps = steps
        #: Ids of the commands of the last batch, and those of them that are not complete.
        self._ids: list[int] = []
        self._undone: set[int] = set()
        self._results: dict[int, Struct | Unknown] = {}

    def is_about(self, command_id: int | None) -> bool:
        """Whether an exception with that id is about one of its commands; one without is."""
        return command_id is None or command_id in self._ids

    def go_on(self) -> bool:
        """Send the next batch. True if there is none: the answer is said then.

        Violations are those of the method, or of a command that does not fit into a frame.
        """
        results = [self._results.get(command_id) for command_id in self._ids]
        try:
            commands = self._steps.send(results) if self._ids else next(self._steps)
        except StopIteration as done:
            answer: Method | None = done.value
        else:
            last = len(commands) - 1
            self._ids = [
                self._link.send(command, sync=number == last) for number, command in enumerate(commands)
            ]
            self._undone = set(self._ids)
            self._results = {}
            return False
        if answer is not None and not getattr(self.method, "no_wait", False):
            self._link.say(answer)
        return True

    def result(self, result: amqp10.ExecutionResult) -> None:
        """execution.result. Violation 503 if it is malformed."""
        if result.command_id in self._undone and result.value is not None:
            self._results[result.command_id] = decode_struct32(result.value)

    def completed(self, commands: SequenceSet) -> bool:
        """Commands are complete: whether all of the batch are."""
        self._undone.difference_update(among(self._undone, commands))
        return not self._undone
