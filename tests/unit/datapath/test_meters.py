"""Meters of both scanners: alone, and against what passed."""

from __future__ import annotations

from types import ModuleType

from hypothesis import given
from hypothesis import strategies as st

from amqpgate.datapath import reference
from amqpgate.datapath.tables import Side

from .test_scan import IMPLEMENTATIONS, drive, flow_key, lane, publish, scanner

__all__ = ["scanner"]


def test_a_meter_is_in_its_book_once_until_it_is_read(scanner: ModuleType) -> None:
    book: list[reference.Meter] = []
    meter = scanner.Meter("row", book)
    assert book == []
    meter.count(2, 30, 5.0, 20)
    meter.count(1, 4, 7.0, 4)
    assert book == [meter]
    assert (meter.row, meter.read()) == ("row", (3, 34, 5.0, 7.0, 20))
    assert (meter.messages, meter.body_bytes) == (0, 0)
    book.clear()
    meter.count(1, 1, 9.0)
    assert book == [meter]
    assert meter.read() == (1, 1, 9.0, 9.0, 0)


def test_flows_that_are_pushed_out_lose_nothing(scanner: ModuleType) -> None:
    book: list[reference.Meter] = []
    up = lane(scanner, flows=True)
    assert up.flows is not None
    flow = scanner.Flow()
    flow.meter = scanner.Meter("gone", book)
    up.flows.install(flow_key(), flow)
    drive(scanner, up, publish() * 3)
    up.flows.install(flow_key(), scanner.Flow())
    del flow
    drive(scanner, up, publish())
    [meter] = book
    assert (meter.row, meter.read()[:2]) == ("gone", (3, 15))


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.binary(max_size=9), st.booleans()), max_size=30), st.data()
)
def test_sums_are_what_passed_however_it_is_cut_and_read(
    messages: list[tuple[str, bytes, bool]], more: st.DataObject
) -> None:
    """Keys a and b share a meter. After some messages the meters are read."""
    cuts = more.draw(st.lists(st.integers(0, 2000), max_size=5))
    for module in IMPLEMENTATIONS:
        book: list[reference.Meter] = []
        meters = {"c": module.Meter("c", book)}
        meters["a"] = meters["b"] = module.Meter("ab", book)
        up = lane(module, flows=True)
        assert up.flows is not None
        for key, meter in meters.items():
            flow = module.Flow()
            flow.meter = meter
            up.flows.install(flow_key(key), flow)
        sums: dict[object, tuple[int, int]] = {}
        lengths: dict[object, int] = {}
        data = b""
        for at, (key, body, is_read) in enumerate(messages):
            data += publish(1, key, body)
            row = meters[key].row
            lengths[row] = max(lengths.get(row, 0), len(body))
            if not is_read and at + 1 < len(messages):
                continue
            seen = drive(module, up, data, [cut for cut in cuts if cut <= len(data)], now=float(at))
            assert seen.forwarded == data
            data = b""
            for meter in book:
                count, raw, first, last, largest = meter.read()
                assert first == last == at
                assert largest == lengths.pop(meter.row)
                was = sums.get(meter.row, (0, 0))
                sums[meter.row] = was[0] + count, was[1] + raw
            book.clear()
        for row in ("ab", "c"):
            bodies = [body for key, body, _ in messages if key in row]
            assert sums.get(row, (0, 0)) == (len(bodies), sum(map(len, bodies)))
        assert up.channels.messages(Side.CLIENT, 1) == len(messages)
