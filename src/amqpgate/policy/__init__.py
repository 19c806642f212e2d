"""Policies: who may do what, how much of it, where to, and what is written down of it.

In comes a folder of YAML documents (`loader`); out comes a `PolicySet`. It says what the documents mean for
one session: a `SessionPolicy` that answers each `Operation` with a `Verdict`, the session's limits and its
route, its audit and trace rules, and what is changed on the way. Nothing here waits, and only `loader` reads
files.

- `engine`: requests, patterns, rules and decisions. It knows no documents but the rules in them.
- `kinds`: each kind of policy in a module of its own, and the registry of kinds.
- `policy_set`: all documents of a folder, by kind, and what they mean for a session.
- `loader`: a folder to a `PolicySet`, all or nothing.
- `tools`: policies looked at without serving, for ``amqpgate policy``.

Imports go down: tools, policy_set and loader, kinds, engine. `amqpgate.gateway` asks; this room knows
`amqpgate.yamldoc` and `amqpgate.errors` only.
"""

from amqpgate.policy.engine.conditions import Peek
from amqpgate.policy.engine.operations import (
    OPERATIONS,
    Entries,
    MessageContent,
    Operation,
    Principal,
    TlsIdentity,
    TokenIdentity,
)
from amqpgate.policy.engine.rules import Verdict
from amqpgate.policy.engine.verdicts import (
    DENIED,
    DENIED_CONNECTIONS,
    Admission,
    SessionPolicy,
    denial_text,
)
from amqpgate.policy.engine.weights import by_weight
from amqpgate.policy.kinds.access import SessionAccess
from amqpgate.policy.kinds.compatibility import Compatibility
from amqpgate.policy.kinds.mirror import Mirror
from amqpgate.policy.kinds.rate import Quantity, SharedLimit
from amqpgate.policy.kinds.route_document import Route, RoutePolicy, Target
from amqpgate.policy.kinds.route_table import Choice, Chosen, RouteTable
from amqpgate.policy.kinds.trace import SessionTraces, TraceDecision
from amqpgate.policy.kinds.transform_set import SessionDeniedError, Transform
from amqpgate.policy.loader import Source, build, load_folder
from amqpgate.policy.policy_set import PolicySet, SelectedPolicies

__all__ = [
    "DENIED",
    "DENIED_CONNECTIONS",
    "OPERATIONS",
    "Admission",
    "Choice",
    "Chosen",
    "Compatibility",
    "Entries",
    "MessageContent",
    "Mirror",
    "Operation",
    "Peek",
    "PolicySet",
    "Principal",
    "Quantity",
    "Route",
    "RoutePolicy",
    "RouteTable",
    "SelectedPolicies",
    "SessionAccess",
    "SessionDeniedError",
    "SessionPolicy",
    "SessionTraces",
    "SharedLimit",
    "Source",
    "Target",
    "TlsIdentity",
    "TokenIdentity",
    "TraceDecision",
    "Transform",
    "Verdict",
    "build",
    "by_weight",
    "denial_text",
    "load_folder",
]
