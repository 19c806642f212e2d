"""The end of one session: closes that the peers agree on, and the first reason counts."""

from __future__ import annotations

from amqpgate.datapath.engine import End
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.session_end import CloseState, SessionEnd, SessionOutcome


def test_a_close_is_agreed_once_everybody_has_an_answer() -> None:
    end = SessionEnd()
    assert end.state is CloseState.NO
    end.asked(Side.CLIENT)
    end.asked(Side.UPSTREAM)
    end.asked(Side.CLIENT)
    assert end.closers == (Side.CLIENT, Side.UPSTREAM)
    end.answered(Side.CLIENT)
    assert end.state is CloseState.ASKED
    end.answered(Side.UPSTREAM)
    assert end.state is CloseState.DONE


def test_why_it_failed_stays_when_it_leaves_the_data_path() -> None:
    end, why = SessionEnd(), ProtocolViolation(505, "unexpected")
    end.failed(Side.CLIENT, why)
    end.left(End.FINISHED, None, None)
    assert end.outcome == SessionOutcome(End.FAILED, Side.CLIENT, why)


def test_else_it_is_why_it_left() -> None:
    end = SessionEnd()
    assert end.outcome.end is End.FINISHED
    end.left(End.GONE, Side.UPSTREAM, None)
    assert end.outcome == SessionOutcome(End.GONE, Side.UPSTREAM, None)
