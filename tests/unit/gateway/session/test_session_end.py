"""The end of one session: closes that the peers agree on, and the first reason counts."""

from __future__ import annotations

from amqpgate.datapath.engine import End
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.session_end import NOT_ENDED, CloseState, SessionEnd, SessionOutcome


def test_a_close_is_agreed_once_everybody_has_an_answer() -> None:
    assert NOT_ENDED.state is CloseState.NO
    end = NOT_ENDED.asked(Side.CLIENT).asked(Side.UPSTREAM).asked(Side.CLIENT)
    assert end.closers == (Side.CLIENT, Side.UPSTREAM)
    end = end.answered(Side.CLIENT)
    assert end.state is CloseState.ASKED
    assert end.answered(Side.UPSTREAM).state is CloseState.DONE


def test_why_it_failed_stays_when_it_leaves_the_data_path() -> None:
    why = ProtocolViolation(505, "unexpected")
    end = NOT_ENDED.failed(Side.CLIENT, why).left(End.FINISHED, None, None)
    assert end.outcome == SessionOutcome(End.FAILED, Side.CLIENT, why)


def test_else_it_is_why_it_left() -> None:
    assert NOT_ENDED.outcome.end is End.FINISHED
    end = NOT_ENDED.left(End.GONE, Side.UPSTREAM, None)
    assert end.outcome == SessionOutcome(End.GONE, Side.UPSTREAM, None)


def test_what_happens_in_one_session_is_not_told_of_others() -> None:
    NOT_ENDED.asked(Side.CLIENT).failed(Side.CLIENT, ProtocolViolation(505, "unexpected"))
    assert SessionEnd() == NOT_ENDED
