"""An agreed close of a connection: over when every close is answered."""

from __future__ import annotations

from amqpgate.datapath.tables import Side
from amqpgate.gateway.session.agreed_close import AgreedClose, CloseState


def test_one_close_is_over_with_its_answer() -> None:
    close = AgreedClose()
    assert close.state is CloseState.NO
    close.asked(Side.CLIENT)
    assert close.state is CloseState.ASKED
    close.answered(Side.CLIENT)
    assert close.state is CloseState.DONE


def test_closes_that_cross_are_over_when_both_are_answered() -> None:
    close = AgreedClose()
    for side in (Side.CLIENT, Side.UPSTREAM, Side.CLIENT):
        close.asked(side)
    close.answered(Side.CLIENT)
    assert (close.state, close.closers) == (CloseState.ASKED, (Side.UPSTREAM,))
    close.answered(Side.UPSTREAM)
    assert close.state is CloseState.DONE
