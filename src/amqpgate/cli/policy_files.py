"""Folders of policies, read and written by verbs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amqpgate.cli.failures import PART, WRONG, Failure
from amqpgate.cli.telling import echo
from amqpgate.logs import on_one_line

if TYPE_CHECKING:
    from amqpgate.policy import PolicySet
    from amqpgate.policy.kinds.common import DefaultAccess
    from amqpgate.policy.kinds.kind import Document, Placed
    from amqpgate.policy.loader import Source
    from amqpgate.policy.tools.rabbitmq_import import Imported


#: For verbs that judge.
default_access_option = click.option(
    "--default-access",
    type=click.Choice(("allow", "deny")),
    default="allow",
    show_default=True,
    help="What those may do whom no access policy selects, as `defaultAccess` of the settings says.",
)


def read_policies(
    folder: Path, default_access: DefaultAccess = "allow"
) -> tuple[PolicySet, list[Placed[Document]]]:
    """The set, and its documents with their lines; a ``Failure`` or ``ConfigError`` if something is wrong."""
    from amqpgate.policy.loader import build, documents_of, read_folder

    if not folder.is_dir():
        raise Failure(f"amqpgate: no such folder: {folder}", WRONG)
    sources = read_folder(folder)
    return build(sources, default_access), list(documents_of(sources))


def tell_gaps(imported: Imported) -> None:
    """Say what policies cannot say. Raises ``SystemExit`` if there is something."""
    for gap in imported.gaps:
        echo(f"not imported: {on_one_line(gap)}", err=True)
    if imported.gaps:
        raise SystemExit(PART)


def write_new(folder: Path, files: Sequence[Source]) -> None:
    """Write files that are not there yet, and say so. A ``Failure`` if one is: then nothing is written."""
    paths = [folder / one.name for one in files]
    for path in paths:
        if path.exists():
            raise Failure(f"amqpgate: {path} exists already; remove it, or name another folder", WRONG)
    for path, one in zip(paths, files, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.data)
        echo(f"wrote {path}")
