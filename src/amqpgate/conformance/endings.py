"""How a conversation ends that does not come to its outcome by itself."""

from __future__ import annotations


class Untestable(Exception):
    """What the rule is about cannot be had; the text says why."""


class Unexpected(Exception):
    """The conversation came to another end than it was made for; the text says to which."""


class PeerGone(Exception):
    """Whoever is tested is not there, lets nobody in, or is no broker; the text says which."""
