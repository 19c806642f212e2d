"""What of Qpid's tests of AMQP 0-10 passes through the gateway to RabbitMQ (`expected_0_10.txt`), and why the
others do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.interop.qpid.expected import Why

WHY: Final[Mapping[str, Why]] = {
    "dtx": Why("540", "no broker of 0-9-1 has transactions that others coordinate"),
    "qmf exchange": Why(
        "no exchange 'qpid.management'",
        "Qpid's management (QMF) is done in messages to exchanges of qpidd's own",
    ),
    "qmf node": Why(": qmf.default.topic", "the same, by its newer protocol"),
    "qmf answer": Why("Timed out waiting for response", "the same: nobody answers"),
    "anonymous": Why("Anonymous connections disabled", "it logs in as nobody; and it needs QMF"),
    "browse": Why(
        "browsing",
        "0-9-1 cannot look at messages that stay where they are: not-acquired subscriptions are 540",
    ),
    "groups": Why("qpid.group_header_key", "RabbitMQ has no message groups"),
    "last value": Why("qpid.last_value_queue_key", "RabbitMQ has no last-value queues"),
    "sequence": Why("qpid.queue_msg_sequence", "RabbitMQ does not number the messages of a queue"),
    "fair share": Why("fairshare", "RabbitMQ always delivers the highest priority first"),
    "ring": Why(
        "a ring with priorities",
        "RabbitMQ drops what would be delivered first, which is the highest priority; Qpid the lowest",
    ),
    "levels": Why(
        "AssertionError",
        "with 5 levels Qpid takes priorities 0 to 2 for the same; to RabbitMQ they are three",
    ),
    "bound": Why(
        "True != False",
        "0-9-1 has no question for bindings: one that nobody knows counts as there",
    ),
    "others' orphans": Why(
        "AssertionError",
        "what another session has got and not accepted is lost with its queue",
    ),
    "no-local before": Why(
        "AssertionError",
        "what was published before the connection had a queue with no-local is not known to be its own",
    ),
    "empty body": Why("'' != None", "in 0-9-1 an empty body and none are the same"),
    "x-death": Why("x-death", "RabbitMQ adds headers to what is dead-lettered"),
    "redelivered": Why("redelivered=True", "to RabbitMQ what comes back is redelivered always"),
}

_LINES: Final = Path(__file__).with_suffix(".txt").read_text().splitlines()
_ROWS: Final = [[cell.strip() for cell in line.split("|")] for line in _LINES if not line.startswith("#")]

#: By the test's name: None where it passes, or the key of `WHY`.
OUTCOMES: Final[Mapping[str, str | None]] = {name: None if cell == "-" else cell for name, cell in _ROWS}


def reasons() -> str:
    """The table in `docs/amqp-0-10.md`: how many tests do not pass, and why."""
    counts = Counter(OUTCOMES.values())
    return "".join(f"| {counts[key]} | {why.reason} |\n" for key, why in WHY.items())


#: A few of each kind that take less than a second or two, for every run of the tests.
QUICK: Final = frozenset(
    {
        "broker_0_10.alternate_exchange.AlternateExchangeTests.test_delete_while_used_by_queue",
        "broker_0_10.broker.BrokerTests.test_simple_delivery_queued",
        "broker_0_10.exchange.HeadersExchangeTests.testMultipleBindings",
        "broker_0_10.extensions.ExtensionTests.test_policy_max_count_as_valid_string",
        "broker_0_10.message.MessageTests.test_consume_exclusive",
        "broker_0_10.message.MessageTests.test_release_order",
        "broker_0_10.message.MessageTests.test_subscribe_not_acquired",
        "broker_0_10.new_api.GeneralTests.test_next_receiver",
        "broker_0_10.priority.PriorityTests.test_prioritised_delivery_1",
        "broker_0_10.query.QueryTests.test_exchange_query",
        "broker_0_10.queue.QueueTests.test_declare_exclusive",
        "broker_0_10.queue.QueueTests.test_delete_ifunused",
        "messaging.endpoints.SessionTests.testCommitAck",
        "messaging.message.MessageEchoTests.testProperties",
    }
)

if __name__ == "__main__":
    print(reasons(), end="")
