"""What may be asked, by name: `queries` answers it, and the supervisor of workers passes it on to them."""

from __future__ import annotations

from typing import Final

CALLS: Final = frozenset(
    {
        "routes",
        "pools",
        "policy_state",
        "reload",
        "lifecycle",
        "pause",
        "resume",
        "drain",
        "sessions",
        "session",
        "close_session",
        "policies",
        "upstreams",
        "decisions",
        "log_level",
        "untap",
        "overview",
        "graph",
        "limits",
        "explain",
    }
)
STREAMS: Final = frozenset({"events", "tap"})
