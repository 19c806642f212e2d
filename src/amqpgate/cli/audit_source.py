"""Which records a verb of ``amqpgate audit`` reads: a folder, objects of a store, or tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from amqpgate.cli.failures import Failure

if TYPE_CHECKING:
    from amqpgate.pipeline.folders import RecordSource


@contextmanager
def needed(extra: str = "pipeline") -> Iterator[None]:
    """What is imported inside comes with an extra."""
    try:
        yield
    except ImportError as error:
        raise Failure(f"amqpgate: {error.name} is missing: pip install 'amqpgate[{extra}]'") from error


def source_of(
    folder: str, master: str | None, stack: ExitStack, tell: Callable[[str], None]
) -> str | RecordSource:
    """The records that somebody names. Copies of what is elsewhere are gone with the stack.

    Raises ``PipelineError``.
    """
    with needed():
        from amqpgate.pipeline.lake.address import address_of
        from amqpgate.pipeline.masters import is_embedded
        from amqpgate.pipeline.places import is_address

    def copies() -> Path:
        return Path(stack.enter_context(TemporaryDirectory(prefix="amqpgate-audit-")))

    if (address := address_of(folder)) is not None:
        from amqpgate.pipeline.lake.opening import open_lake
        from amqpgate.pipeline.lake.source import LakeSource

        is_far = address.folder is None
        return LakeSource(open_lake(address), copies() if is_far and is_embedded(master) else None, tell)
    if is_address(folder) and is_embedded(master):
        from amqpgate.pipeline.objects import Objects

        return Objects(folder, copies(), tell)
    return folder
