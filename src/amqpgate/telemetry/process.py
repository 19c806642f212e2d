"""The process in numbers, under the names that Prometheus' own clients use.

Theirs list all open files to count them, which takes tens of milliseconds for ten thousand connections: the
data path would stand still for as long. Linux tells the number by itself since 6.2.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_STATM: Final = Path("/proc/self/statm")
_OPEN: Final = Path("/proc/self/fd")
#: When this was imported, which is as good as when the process began: in seconds since 1970.
_STARTED: Final = time.time()


def resident() -> int:
    """Bytes of resident memory."""
    return int(_STATM.read_text().split()[1]) * _PAGE


class ProcessMetrics(Collector):
    """Registered beside the gateway's other metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("process_resident_memory_bytes", "Resident memory.", resident())
        yield CounterMetricFamily("process_cpu_seconds", "User and system CPU time.", time.process_time())
        yield GaugeMetricFamily(
            "process_start_time_seconds", "When the process began, in seconds since 1970.", _STARTED
        )
        yield GaugeMetricFamily(
            "process_max_fds",
            "Files that it may have open, sockets included.",
            resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        )
        opened = GaugeMetricFamily("process_open_fds", "Files that it has open; since Linux 6.2.")
        if count := _OPEN.stat().st_size:
            opened.add_metric([], count)
        yield opened
