"""The table of prices of ``usage`` and ``report``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amqpgate.cli.audit_source import needed
from amqpgate.cli.failures import reported

if TYPE_CHECKING:
    from amqpgate.pipeline.jobs.prices import Prices

#: Each verb adds its ``help``.
price_option = partial(click.option, "--price", metavar="FILE", type=click.Path(path_type=Path))


def prices_of(path: Path) -> Prices:
    """The prices in a file that is right."""
    with needed():
        from amqpgate.pipeline.jobs.prices import load
    with reported():
        return load(path)
