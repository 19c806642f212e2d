"""Several who choose among the messages of the same flows: each gets its share, and few are shown."""

from __future__ import annotations

import random

import pytest

from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import Contexts, Show
from amqpgate.gateway.limits.sampler import Sampler, Sampling, stands_for
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table


@pytest.mark.parametrize(
    "shares", [(0.01,), (1.0, 0.01), (0.3, 0.07), (0.5, 0.5), (0.9, 0.35)], ids=lambda shares: str(shares)
)
@pytest.mark.parametrize("keys", [1, 40, 5000])
def test_each_gets_its_share(shares: tuple[float, ...], keys: int) -> None:
    """What the data path does with flows, as far as sampling goes."""
    rng = random.Random(7)
    samplers = [Sampler(share) for share in shares]
    sampling = Sampling()
    flows: dict[int, tuple[Flow, list[int]]] = {}
    chosen = [0] * len(shares)
    shown, messages = 0, 20_000
    for _ in range(messages):
        key = rng.randrange(keys)
        if key not in flows:
            flow = Flow()
            sampling.enlist(flow, samplers)
            assert flow.show == Show.HEADER
            flows[key] = flow, [flow.unsampled]
        flow, unsampled = flows[key]
        unsampled[0] += 1
        if unsampled[0] < flow.sample_every:
            continue
        unsampled[0] = 0
        shown += 1
        weight = sampling.weigh(flow, samplers)
        for index, sampler in enumerate(samplers):
            chosen[index] += sampler.count(weight)
    for share, count in zip(shares, chosen, strict=True):
        # Of a flow that is never shown again, up to N messages are counted or not: evenly, over many flows.
        assert abs(count - messages * share) <= 2 + 0.05 * messages * share
    assert shown <= messages / int(1 / max(shares)) * 1.05 + keys


def test_nothing_is_shown_for_a_share_of_nothing() -> None:
    assert Sampler(0).every == 0
    flow = Flow()
    Sampling().enlist(flow, [])
    assert (flow.sample_every, flow.show) == (0, Show.METHOD)
    assert Sampling().weigh(flow, []) == 0


def test_who_carries_a_trace_context_is_looked_at_where_others_choose_too() -> None:
    flow = Flow(show=Show.HEADER, peek_contexts=Contexts.SAMPLED)
    Sampling().enlist(flow, [Sampler(0.1)])
    assert flow.peek_contexts == Contexts.SAMPLED
    Sampling().enlist(flow, [Sampler(0.1), Sampler(0.5)])
    assert flow.peek_contexts == Contexts.ALL
    flow = Flow()
    Sampling().enlist(flow, [Sampler(0.1), Sampler(0.5)])
    assert flow.peek_contexts == Contexts.NONE


def test_what_is_shown_for_what_it_carries_stands_for_itself() -> None:
    flow = Flow(sample_every=10, show=Show.HEADER, peek_contexts=Contexts.SAMPLED)
    plain = ContentHeader(60, 1, amqp.BasicProperties())
    carrying = ContentHeader(60, 1, amqp.BasicProperties(headers=Table.of({"traceparent": "x"})))
    assert [stands_for(10, flow, header, 40) for header in (plain, carrying)] == [10, 1]
    assert stands_for(10, flow, plain, 5000) == 1
    assert stands_for(0, flow, carrying, 40) == 0
