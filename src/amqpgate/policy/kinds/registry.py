"""The kinds of documents that there are. A new kind is one line here."""

from __future__ import annotations

from typing import Final

from amqpgate.policy.kinds.access import ACCESS
from amqpgate.policy.kinds.audit import AUDIT
from amqpgate.policy.kinds.compatibility import COMPATIBILITY
from amqpgate.policy.kinds.kind import AnyDocumentKind, AnyPolicyKind
from amqpgate.policy.kinds.policy_test import POLICY_TEST
from amqpgate.policy.kinds.rate import RATE
from amqpgate.policy.kinds.route import ROUTE
from amqpgate.policy.kinds.trace import TRACE
from amqpgate.policy.kinds.transform import TRANSFORM
from amqpgate.policy.kinds.user_groups import USER_GROUPS

POLICY_KINDS: Final[tuple[AnyPolicyKind, ...]] = (ACCESS, RATE, ROUTE, TRANSFORM, COMPATIBILITY, AUDIT, TRACE)
DOCUMENT_KINDS: Final[tuple[AnyDocumentKind, ...]] = (*POLICY_KINDS, USER_GROUPS, POLICY_TEST)
