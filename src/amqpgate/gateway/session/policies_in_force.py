"""The policies in force, for all who ask now."""

from __future__ import annotations

from amqpgate.policy import PolicySet
from amqpgate.values import define


@define(eq=False)
class PoliciesInForce:
    """The policies in force in one gateway; `server.policy_control` puts others in their place."""

    now: PolicySet

    def replace(self, policies: PolicySet) -> None:
        """These are in force from now on."""
        self.now = policies
