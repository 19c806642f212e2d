"""The chart's ``values.schema.json``, which Helm reads: as `amqpgate.chart` makes it."""

from __future__ import annotations

import json

from amqpgate.chart.schema import schema
from tests.unit.chart.rendering import CHART

FILE = CHART / "values.schema.json"


def made() -> str:
    """The file as it should be."""
    return json.dumps(schema(), indent=2) + "\n"
