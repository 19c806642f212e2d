"""How far the closes of one channel have come; `channel_close` says what each step sends."""

from __future__ import annotations

from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.values import define


@define(weakref_slot=False)
class ChannelClose:
    """The closes of one channel that wait for their answers, in both directions."""

    #: Who sent the broker a channel.close that it has not answered: a side, or None for nobody.
    #: UPSTREAM stands for the gateway itself, which speaks for nobody else there.
    up: Side | None = None
    #: How many closes of the client's the broker has not answered.
    answers_due: int = 0
    #: Who sent the client a channel.close that it has not answered; CLIENT stands for the gateway.
    down: Side | None = None
    #: What the client is told once the broker's side is closed.
    denial: ProtocolViolation | None = None
    #: The client sent a channel.close of its own while a refusal was under way.
    client_waits: bool = False

    @property
    def awaits_broker(self) -> bool:
        """Whether the broker owes an answer."""
        return self.up is not None or bool(self.answers_due)

    # -- the gateway -------------------------------------------------------------------------

    def left_to_client(self) -> None:
        """Only the client's answer is still due."""
        self.down = Side.CLIENT

    def release_client(self) -> bool:
        """Whether the client's own close has waited long enough for its answer; it is answered now."""
        is_released = self.client_waits and self.denial is None
        if is_released:
            self.client_waits = False
        return is_released

    # -- the client --------------------------------------------------------------------------

    def client_closes(self) -> None:
        """The client's close passes to the broker."""
        self.up = Side.CLIENT
        self.answers_due += 1

    def client_closes_again(self, *, is_one: bool) -> bool:
        """The client's close does not pass; whether its answer comes later.

        ``is_one``: the broker's answer to the first one is the answer to all.
        """
        if is_one and self.up is Side.CLIENT:
            self.answers_due += 1
        elif self.denial is not None:
            self.client_waits = True
        else:
            return False
        return True

    def client_answers(self) -> int:
        """The client has answered. How many answers of the broker's it does not wait for any more."""
        self.down = None
        if self.up is not Side.CLIENT:
            return 0
        self.up = None
        return self.answers_due

    # -- the broker --------------------------------------------------------------------------

    def broker_closes(self) -> bool:
        """The broker's close passes to the client; whether it met the gateway's own."""
        is_met = self.up is Side.UPSTREAM
        if is_met:
            self.denial = None
        self.down = Side.CLIENT if is_met else Side.UPSTREAM
        return is_met

    def broker_answers_denial(self) -> ProtocolViolation | None:
        """The broker's side is closed as the gateway wanted; what the client is told now, if anything."""
        denial, self.up, self.denial = self.denial, None, None
        if denial is not None:
            self.down = Side.CLIENT
        return denial

    def broker_answers(self, *, are_all: bool) -> int:
        """The broker has answered a close of the client's, or ``are_all`` of them. How many answers the
        client gets."""
        answers = self.answers_due if are_all else 1
        self.answers_due -= answers
        if self.answers_due <= 0:
            self.up = None
        return max(answers, 1)

    def broker_lost(self) -> bool:
        """The broker's channel is gone; whether the client is to be told."""
        is_told = self.down is None and self.up is not Side.CLIENT
        if is_told or self.down is Side.UPSTREAM:
            self.down = Side.CLIENT
        self.up = self.denial = None
        return is_told
