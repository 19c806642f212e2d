"""What is known of one of a client's channels: whether it is open, what content is due, what is unsettled."""

from __future__ import annotations

from typing import Final, Protocol

import attrs

from amqpgate.wire.method import Method

_SETTLES: Final = ("basic.ack", "basic.nack", "basic.reject")

#: So many deliveries with no-ack are known by their tags.
_MOST_KNOWN: Final = 10_000


class RuleCheck(Protocol):
    """As `ClientFindings.check`."""

    def __call__(self, rule: str, is_kept: bool, what: str = "") -> bool: ...


@attrs.define(eq=False)
class WatchedChannel:
    """From channel.open to close-ok."""

    is_closed: bool = False
    #: Who has said channel.close: the client, or the broker.
    closing: str = ""
    #: The class of the content that is due; None: none is.
    due: int | None = None
    #: Bytes of its body that are due; None: its header is.
    left: int | None = None
    #: Tags of deliveries that are not settled, of those that need not be, and the highest.
    unsettled: set[int] = attrs.field(factory=set)
    automatic: set[int] = attrs.field(factory=set)
    highest: int = 0
    consumers: set[str] = attrs.field(factory=set)
    #: "confirm.select" or "tx.select".
    mode: str = ""

    @property
    def passes_over(self) -> bool:
        """Whether a close is under way."""
        return bool(self.closing)

    def told(self, said: Method) -> None:
        """A method of the broker's."""
        if said.NAME == "channel.close":
            self.closing = self.closing or "broker"
        elif said.NAME == "channel.close-ok":
            self.is_closed = True
        elif said.NAME == "basic.cancel":
            self.consumers.discard(getattr(said, "consumer_tag", ""))

    def delivered(self, tag: int, *, no_ack: bool) -> None:
        """A delivery has gone out."""
        self.highest = max(self.highest, tag)
        if not no_ack:
            self.unsettled.add(tag)
        elif len(self.automatic) < _MOST_KNOWN:
            self.automatic.add(tag)

    def heard(self, check: RuleCheck, said: Method) -> bool:
        """A method of the client's; whether it counts."""
        if self.closing:
            if said.NAME == "channel.close-ok":
                self.is_closed = self.closing == "broker"
                return True
            if self.closing == "client":
                self.after_close(check, said.NAME)
            elif said.NAME == "channel.close":
                # Both closes cross.
                return True
            return False
        if self.due is not None:
            check("content.order", False, f"{said.NAME} where content is due")
            self.due = None
        if said.CONTENT:
            self.due, self.left = said.CLASS_ID, None
        elif said.NAME == "channel.close":
            self.closing = "client"
            check("channel.close.last", True)
        else:
            self._settles(check, said)
            self._others(check, said)
        return True

    def after_close(self, check: RuleCheck, what: str) -> None:
        """Something came after a close; it is the client's fault if it was the client's close."""
        if self.closing == "client":
            check("channel.close.last", False, what)

    def header(self, check: RuleCheck, class_id: int, size: int) -> bool:
        """A content header; whether one was due."""
        is_due = self.due is not None and self.left is None
        check("content.order", is_due, "a header where none is due")
        if is_due:
            check("content.header.class", class_id == self.due, f"{class_id} in the place of {self.due}")
            self.left = size
            if not size:
                self._whole(check)
        return is_due

    def body(self, check: RuleCheck, size: int) -> None:
        """A body frame."""
        if self.due is None or self.left is None:
            check("content.order", False, "a body where none is due")
            return
        self.left -= size
        if self.left < 0:
            check("content.body-size", False, f"{-self.left} bytes more than the header says")
            self.due = None
        elif not self.left:
            self._whole(check)

    def _whole(self, check: RuleCheck) -> None:
        self.due = None
        check("content.order", True)
        check("content.body-size", True)

    def _settles(self, check: RuleCheck, said: Method) -> None:
        if said.NAME == "basic.recover" or said.NAME == "basic.recover-async":
            self.unsettled.clear()
        if said.NAME not in _SETTLES:
            return
        tag: int = getattr(said, "delivery_tag", 0)
        is_multiple: bool = getattr(said, "multiple", False)
        if tag == 0 and is_multiple:
            self.unsettled.clear()
            return
        what = f"{said.NAME} of {tag}, where {self.highest} is the last"
        is_known = check("basic.ack.known", 0 < tag <= self.highest, what)
        is_automatic = tag in self.automatic
        check("basic.ack.no-ack", not is_automatic, f"{said.NAME} of {tag}")
        if is_known and not is_automatic and self.mode != "tx.select":
            # What a rollback takes back may be settled once more.
            check("basic.ack.once", tag in self.unsettled, f"{said.NAME} of {tag} again")
        if is_multiple:
            self.unsettled = {one for one in self.unsettled if one > tag}
        self.unsettled.discard(tag)

    def _others(self, check: RuleCheck, said: Method) -> None:
        if said.NAME in ("confirm.select", "tx.select"):
            check("confirm.select.tx", self.mode in ("", said.NAME), f"{said.NAME} after {self.mode}")
            self.mode = self.mode or said.NAME
        elif said.NAME == "basic.consume":
            tag = getattr(said, "consumer_tag", "")
            if tag:
                check("basic.consume.tag", tag not in self.consumers, repr(tag))
                self.consumers.add(tag)
        elif said.NAME == "basic.cancel":
            self.consumers.discard(getattr(said, "consumer_tag", ""))
        elif said.NAME in ("queue.declare", "exchange.declare"):
            self._declares(check, said)

    def _declares(self, check: RuleCheck, said: Method) -> None:
        kind = said.NAME.partition(".")[0]
        name = str(getattr(said, kind))
        if name and not getattr(said, "passive", False):
            # A name that the broker gave may be said again, and so may the exchanges that are there.
            is_given = name.startswith("amq.gen-") or name in _THERE
            check(f"{kind}.declare.reserved", not name.startswith("amq.") or is_given, repr(name))


_THERE: Final = ("amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match")
