"""Everything that the broker keeps, apart from its connections."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping

from attrs import define, field

from amqpgate.broker.agenda import Agenda
from amqpgate.broker.messages import BrokerMessage, Memory
from amqpgate.broker.replies import Replies
from amqpgate.broker.vhost import VirtualHost
from amqpgate.errors import ProtocolViolation


@define(eq=False, repr=False)
class BrokerState:
    """Users, virtual hosts, memory, and what is left to do."""

    memory: Memory
    agenda: Agenda = field(factory=Agenda)
    replies: Replies = field(factory=Replies)
    vhosts: dict[str, VirtualHost] = field(factory=dict)
    _users: dict[str, bytes] = field(factory=dict, repr=False)

    @classmethod
    def of(cls, users: Mapping[str, str], vhosts: Iterable[str], memory_limit: int) -> BrokerState:
        """A broker without queues. ``users`` are names with passwords; each may use every virtual host."""
        state = cls(Memory(memory_limit))
        state._users = {name: password.encode() for name, password in users.items()}
        for name in vhosts:
            state.vhosts[name] = VirtualHost(name, state.memory, state.agenda, state._deliver_reply)
        return state

    def knows(self, user: str, password: bytes) -> bool:
        """Whether this is a user's password."""
        # Compared with something even if there is no such user: the time must not tell.
        expected = self._users.get(user, b"")
        return hmac.compare_digest(expected, password) and user in self._users

    def vhost(self, name: str) -> VirtualHost:
        """The virtual host of that name; 530 if there is none."""
        found = self.vhosts.get(name)
        if found is None:
            raise ProtocolViolation(530, f"vhost {name} not found")
        return found

    def _deliver_reply(self, name: str, message: BrokerMessage) -> None:
        self.agenda.later(lambda: self.replies.deliver(name, message))
