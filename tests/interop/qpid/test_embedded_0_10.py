"""qpid-python on AMQP 0-10, at the embedded broker: both APIs, and those of Qpid's own tests that are quick.

They are of the translator that is in it, and of the gateway: how they fare with RabbitMQ stands elsewhere.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.qpid.test_talk_0_10 import SEEN
from tests.support.embedded import embedded_broker
from tests.support.gateway import Gateway
from tests.support.missing import missing

HERE = Path(__file__).parent
CACHE = HERE.parents[2] / ".cache" / "qpid"

#: Seconds. A client that hears nothing waits for ever.
PATIENCE = 60

#: By class, in `broker_0_10`. Each takes a fifth of a second: none waits for what must not come.
QUICK = {
    "alternate_exchange.AlternateExchangeTests": (
        "test_delete_while_used_by_exchange",
        "test_delete_while_used_by_queue",
        "test_modify_existing_exchange_alternate",
    ),
    "broker.BrokerTests": (
        "test_ack_and_no_ack",
        "test_simple_delivery_immediate",
        "test_simple_delivery_queued",
    ),
    "exchange.AutodeleteTests": ("testAutodeleteFanout",),
    "exchange.DeclareMethodPassiveFieldNotFoundRuleTests": ("test",),
    "exchange.DefaultExchangeRuleTests": ("testDefaultExchange",),
    "exchange.ExchangeTests": ("testHeadersBindNoMatchArg",),
    "exchange.MiscellaneousErrorsTests": (
        "testDefaultAccessBind",
        "testReservedExchangeRedeclaredDifferentType",
        "testReservedExchangeRedeclaredSameType",
        "testTypeNotKnown",
    ),
    "exchange.RecommendedTypesRuleTests": ("testFanout",),
    "exchange.RequiredInstancesRuleTests": ("testAmqFanOut", "testAmqTopic"),
    "extensions.ExtensionTests": (
        "test_policy_count_as_float",
        "test_policy_count_as_invalid_string",
        "test_policy_max_count_and_size_as_valid_strings",
        "test_policy_negative_size",
    ),
    "message.MessageTests": (
        "test_consume_queue_not_found",
        "test_consume_queue_not_specified",
        "test_consume_unique_consumers",
        "test_incoming_start",
        "test_release",
        "test_window_flush_ack_flow",
    ),
    "new_api.GeneralTests": ("test_next_receiver", "test_not_found"),
    "query.QueryTests": (
        "test_exchange_bound_direct",
        "test_exchange_bound_fanout",
        "test_exchange_bound_header",
        "test_exchange_bound_topic",
        "test_exchange_query",
        "test_queue_query",
        "test_queue_query_unknown",
    ),
    "queue.QueueTests": (
        "test_bind",
        "test_bind_queue_existence",
        "test_declare_exclusive",
        "test_declare_exclusive_alreadyinuse",
        "test_declare_passive",
        "test_delete_ifempty",
        "test_delete_queue_exists",
        "test_delete_simple",
        "test_purge",
        "test_purge_empty_name",
        "test_purge_queue_exists",
    ),
}
NAMES = [f"broker_0_10.{group}.{name}" for group, names in QUICK.items() for name in names]

#: What the gateway cannot answer: bindings may be others', too.
EXACT = {f"broker_0_10.query.QueryTests.test_exchange_bound_{kind}" for kind in ("direct", "header", "topic")}


@pytest.fixture
def broker() -> Iterator[str]:
    """The port of a broker that speaks nothing else."""
    with embedded_broker("/", "qpid", versions=["0-10"]) as (_, port):
        yield str(port)


def said(script: str, *arguments: str, sources: tuple[str, ...]) -> list[str]:
    """The lines that a program for Python 2.7 prints."""
    folders = [str(folder) for name in sources for folder in CACHE.glob(f"{name}-*/")]
    if len(folders) < len(sources):
        missing(f"{' and '.join(sources)}: tools/test-tools.sh gets them, with Python 2.7 and pip")
    python = (CACHE / "python").read_text().strip()
    done = subprocess.run(
        [python, str(HERE / script), *folders, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


@pytest.mark.parametrize("name", SEEN)
def test_conversation(broker: str, name: str) -> None:
    (line,) = filter(None, said("talk_0_10.py", broker, "qpid", name, sources=("qpid-python",)))
    assert json.loads(line) == SEEN[name]


def failed(port: str) -> dict[str, list[str]]:
    """Why those failed that did not pass."""
    lines = said("run_0_10.py", port, "qpid", *NAMES, sources=("qpid-python", "qpid-tools"))
    outcomes = [json.loads(line) for line in lines if line.startswith("[")]
    return {name: why for name, (outcome, *why) in zip(NAMES, outcomes, strict=True) if outcome != "passed"}


def test_quick_ones_of_qpids_own(broker: str) -> None:
    assert failed(broker) == {}


@pytest.mark.slow
def test_quick_ones_of_qpids_own_through_the_gateway() -> None:
    """They end as they do directly, but for what only this broker knows."""
    with embedded_broker("/", "qpid", versions=["0-9-1"]) as (_, port):
        gateway = Gateway(f"amqp://127.0.0.1:{port}")
        with gateway.serving():
            assert failed(str(gateway.port)).keys() == EXACT
