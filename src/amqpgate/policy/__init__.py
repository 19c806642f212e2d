"""The judge: policy documents in, verdicts out.

In comes a folder of YAML documents (`loader`) and, per request of a client, an `Operation`; out comes
a `Verdict` that names the rule which decided. Per session, out come the limits that it shares with
others. Pure: nothing here waits, and only `loader` reads files.

- `operations`: who asks (`Principal`), for what (`Operation`), and which attributes each operation has.
- `matching`: literal, prefix and topic patterns, in time linear in the text.
- `documents`, `rates`: the frozen types of access and of rate policies; JSON Schemas are made from them.
- `kinds`: which kinds of documents there are.
- `engine`: `PolicySet` to `SessionPolicy` to `Verdict`.
- `denial`: the sentence that a refused client reads, as RabbitMQ writes it.
- `loader`: a folder to a `PolicySet`, all or nothing.

Neighbours: `amqpgate.gateway` asks; this room knows `amqpgate.yamldoc` and `amqpgate.errors` only.
"""

from amqpgate.policy.denial import refusal
from amqpgate.policy.engine import PolicySet, SessionPolicy, Verdict
from amqpgate.policy.loader import Source, build, load_folder
from amqpgate.policy.operations import OPERATIONS, Operation, Principal
from amqpgate.policy.rates import SharedLimit

__all__ = [
    "OPERATIONS",
    "Operation",
    "PolicySet",
    "Principal",
    "SessionPolicy",
    "SharedLimit",
    "Source",
    "Verdict",
    "build",
    "load_folder",
    "refusal",
]
