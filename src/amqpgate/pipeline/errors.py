"""What a person can act on."""

from __future__ import annotations

from amqpgate.errors import AmqpgateError


class PipelineError(AmqpgateError):
    """A job cannot run on this machine or with these records; says what to do."""


class PassingError(PipelineError):
    """What passes by itself: who follows a folder looks again."""
