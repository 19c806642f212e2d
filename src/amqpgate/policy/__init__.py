"""The judge: policy documents in, verdicts out.

In comes a folder of YAML documents (`loader`) and, per request of a client, an `Operation`; out comes
a `Verdict` that names the rule which decided. Per session, out come the limits that it shares with
others. Pure: nothing here waits, and only `loader` reads files.

- `operations`: who asks (`Principal`), for what (`Operation`), and which attributes each operation has.
- `subjects`: whom a policy is about.
- `matching`, `words`, `exempting`: patterns for names and keys, in time linear in the text; their exceptions.
- `separators`: whether a variable in a pattern tells one session from another.
- `conditions`, `scalars`: what a rule asks of arguments and of content headers, and of one value in them.
- `documents`, `rates`, `audits`, `traces`: the frozen types of each kind of policy; JSON Schemas are made
  from them.
- `routes`, `routetable`: which upstream a connection is for.
- `mirrors`: where a copy of what it publishes goes.
- `transforms`, `naming`, `transformset`: their documents, names there and back, one session.
- `kinds`: which kinds of documents there are.
- `rules`, `engine`: rules compiled and indexed by operation; `SessionPolicy` to `Verdict`.
- `weights`: choosing by weight.
- `taps`: which operations a tap shows.
- `policyset`: all documents, and which of them hold for a session.
- `denial`: the sentence that a refused client reads, as RabbitMQ writes it.
- `loader`: a folder to a `PolicySet`, all or nothing.

Looked at without serving, for ``amqpgate policy``:

- `requests`, `policytests`: requests as people write them, and what is expected of them.
- `explain`, `explained`: which rule decides, and why each other one does not; that as JSON.
- `inclusion`, `overlaps`, `patterns`, `checks`: what cannot be meant so.
- `witnesses`, `differences`: what two sets answer differently, by example.
- `definitions`, `rabbitmq_import`: RabbitMQ's permissions to access policies.
- `writing`: values as documents have them.

Neighbours: `amqpgate.gateway` asks; this room knows `amqpgate.yamldoc` and `amqpgate.errors` only.
"""

from amqpgate.policy.engine.conditions import Peek
from amqpgate.policy.engine.denial import refusal
from amqpgate.policy.engine.operations import OPERATIONS, Content, Entries, Operation, Principal, TlsIdentity
from amqpgate.policy.engine.rules import Verdict
from amqpgate.policy.engine.verdicts import Admission, SessionPolicy
from amqpgate.policy.engine.weights import by_weight
from amqpgate.policy.kinds.mirror import Mirror
from amqpgate.policy.kinds.rate import Quantity, SharedLimit
from amqpgate.policy.kinds.route import Route, RoutePolicy, Target
from amqpgate.policy.kinds.route_table import Choice, Chosen, RouteTable
from amqpgate.policy.kinds.trace import SessionTraces, TraceDecision
from amqpgate.policy.kinds.transform_set import SessionRefusedError, Transform
from amqpgate.policy.loader import Source, build, load_folder
from amqpgate.policy.policy_set import Judges, PolicySet

__all__ = [
    "OPERATIONS",
    "Admission",
    "Choice",
    "Chosen",
    "Content",
    "Entries",
    "Judges",
    "Mirror",
    "Operation",
    "Peek",
    "PolicySet",
    "Principal",
    "Quantity",
    "Route",
    "RoutePolicy",
    "RouteTable",
    "SessionPolicy",
    "SessionRefusedError",
    "SessionTraces",
    "SharedLimit",
    "Source",
    "Target",
    "TlsIdentity",
    "TraceDecision",
    "Transform",
    "Verdict",
    "build",
    "by_weight",
    "load_folder",
    "refusal",
]
