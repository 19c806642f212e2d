"""The library of a format is imported when a place of it is opened."""

from __future__ import annotations

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.lake.address import TableAddress
from amqpgate.pipeline.lake.table import Lake


def open_lake(address: TableAddress) -> Lake:
    """The place at an address. Raises ``PipelineError`` where the extra is missing."""
    try:
        if address.format == "delta":
            from amqpgate.pipeline.lake.delta import DeltaLake

            return DeltaLake(address)
        from amqpgate.pipeline.lake.iceberg import IcebergLake

        return IcebergLake(address)
    except ImportError as error:
        raise PipelineError(f"{error.name} is missing: pip install 'amqpgate[{address.format}]'") from error
