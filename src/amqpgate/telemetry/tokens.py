"""Tokens that clients log in by, in numbers."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

#: What may become of a token.
OUTCOMES: Final = (
    "verified",
    "malformed",
    "algorithm",
    "key",
    "signature",
    "expired",
    "not-yet-valid",
    "issuer",
    "audience",
    "claims",
    "unavailable",
    "missing",
)


class TokenMetrics:
    """Part of a gateway's metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        tokens = Counter(
            "amqpgate_tokens",
            "Tokens of logins and renewals, by what has become of them; missing: logins without one.",
            ["outcome"],
            registry=registry,
        )
        self._outcomes = {name: tokens.labels(name) for name in OUTCOMES}
        self._unverified = Counter(
            "amqpgate_unverified_tokens",
            "Logins by what looks like a token where nobody verifies them: the user may be any.",
            registry=registry,
        )
        self._keys = Gauge(
            "amqpgate_issuer_keys_valid",
            "1 while there are keys of an issuer that hold; of several workers, the least.",
            ["issuer"],
            registry=registry,
        )

    def count(self, outcome: str) -> None:
        """A token has met this."""
        self._outcomes[outcome].inc()

    def unverified(self) -> None:
        """Somebody logs in by a token that nobody verifies."""
        self._unverified.inc()

    def keys(self, issuer: str, holds: bool) -> None:
        """Whether there are keys of an issuer that hold."""
        self._keys.labels(issuer).set(holds)
