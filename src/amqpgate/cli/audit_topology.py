"""``amqpgate audit topology``, ``unused``, ``blast-radius`` and ``drift``: who sends what to whom."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import click

from amqpgate.cli.audit_answers import check_text
from amqpgate.cli.audit_job import Running, running
from amqpgate.cli.audit_options import chosen_options, job
from amqpgate.cli.audit_output import replaced
from amqpgate.cli.failures import WRONG, Failure
from amqpgate.cli.telling import echo
from amqpgate.logs import on_one_line

if TYPE_CHECKING:
    from attrs import AttrsInstance

    from amqpgate.pipeline.jobs.graph import DeniedEdge, Node, NodeKind, Topology


#: So many virtual hosts are named.
_NAMED = 5
_EDGES = ("source", "kind", "target", "messages", "bytes", "last", "keys")
_DRIFT = ("change", "what", "source", "target", "messages")
_UNUSED = ("kind", "vhost", "name", "target", "key", "declared", "why")


def topology_of(run: Running, since: datetime | None = None, until: datetime | None = None) -> Topology:
    """Of the records that the options choose; of traffic only what lies between."""
    from amqpgate.pipeline.folders import Span, within
    from amqpgate.pipeline.jobs.topology import topology

    usage, events = run.read("usage").frame, run.read("events").frame
    # What was declared before is still there.
    found = topology(
        within(usage, "usage", Span(since=since, until=until)), within(events, "events", Span(until=until))
    )
    if found.left_out:
        echo(f"{found.left_out:,} rows with the fewest messages are left out", err=True)
    return found


def _denied(run: Running) -> tuple[DeniedEdge, ...]:
    """Of the records that the options choose."""
    from amqpgate.pipeline.jobs.topology import refused

    found, left_out = refused(run.read("events").frame)
    if left_out:
        echo(f"{left_out:,} denials, those that were seldom, are left out", err=True)
    return found


def _rows(found: Sequence[AttrsInstance]) -> list[tuple[object, ...]]:
    import attrs

    return [attrs.astuple(one) for one in found]


@click.command(short_help="Who sends what to whom: a table, a graph or a picture.")
@job
@click.option(
    "--graph",
    type=click.Choice(["graphml", "mermaid", "html"]),
    help="GraphML for programs, Mermaid for documents, HTML with a picture for people.",
)
def topology(graph: Literal["graphml", "mermaid", "html"] | None) -> None:
    """Show principals, exchanges, bindings, queues and readers, as messages and declarations tell them.

    `*` stands for ids in names. What gateways did not see is not there: topology that was made before, and
    what the broker deletes by itself.

    \b
    amqpgate audit topology audit --graph html -o topology.html
    amqpgate audit topology audit --vhost shop --graph mermaid
    """
    if graph is not None:
        check_text(chosen_options(), f"--graph {graph}")
    with running() as run:
        from amqpgate.pipeline.jobs import picture, picture_page
        from amqpgate.pipeline.jobs.graph import graphml

        found = topology_of(run)
        if graph is None:
            rows: list[tuple[object, ...]] = [
                (
                    str(one.source),
                    one.kind,
                    str(one.target),
                    one.messages,
                    one.bytes,
                    one.last,
                    " ".join(one.keys),
                )
                for one in found.edges
            ]
            run.write_rows(rows, _EDGES)
            return
        title = f"Topology of {run.options.folder}"
        text = {
            "graphml": lambda: graphml(found),
            "mermaid": lambda: picture.mermaid(found),
            "html": lambda: picture_page.page(found, _denied(run), title),
        }[graph]()
        with replaced(run.options.output) as out:
            out.write(text)


@click.command(short_help="Exchanges, queues and bindings that nothing came by.")
@job
def unused() -> None:
    """Show what was declared and not used: exchanges without a publish, queues that nobody read, bindings
    that brought nothing.

    Judged by what passed the gateways. Give it a period in which everything that is needed was used.

    \b
    amqpgate audit unused audit --since 2026-08-01
    """
    with running() as run:
        from amqpgate.pipeline.jobs.graph import unused as unused_

        run.write_rows(_rows(unused_(topology_of(run))), _UNUSED)


@click.command("blast-radius", short_help="Who notices when a queue, an exchange or a user fails.")
@job
@click.option("--queue", metavar="NAME", help="The queue that fails.")
@click.option("--exchange", metavar="NAME", help="The exchange that fails.")
@click.option("--user", metavar="NAME", help="The user that fails.")
def blast_radius(queue: str | None, exchange: str | None, user: str | None) -> None:
    """Show who feeds it and who feels it when one queue, exchange or user fails; hop by hop.

    Hops are principals that get messages and send others: those beyond may notice later. Without --vhost it
    is the virtual host `/`.

    \b
    amqpgate audit blast-radius audit --queue orders.in --vhost shop
    """
    given: list[tuple[NodeKind, str | None]] = [("queue", queue), ("exchange", exchange), ("principal", user)]
    asked = [(kind, name) for kind, name in given if name is not None]
    if len(asked) != 1:
        raise click.UsageError("give one of --queue, --exchange and --user")
    with running() as run:
        from amqpgate.pipeline.jobs.graph import Node
        from amqpgate.pipeline.jobs.graph import blast_radius as radius
        from amqpgate.pipeline.jobs.topology import folded_name

        kind, name = asked[0]
        failing = Node(kind, run.options.vhost or "/", folded_name(name) if kind == "queue" else name)
        found = topology_of(run)
        if failing not in found.nodes:
            raise Failure(f"amqpgate: there is no {failing} in these records{_near(found, failing)}", WRONG)
        rows: list[tuple[object, ...]] = [
            (one.hops, one.touch, one.node.kind, one.node.name, one.node.vhost)
            for one in radius(found, failing)
        ]
        run.write_rows(rows, ("hops", "touch", "kind", "name", "vhost"))


def _near(found: Topology, failing: Node) -> str:
    from amqpgate.yamldoc import nearest

    alike = [node for node in found.nodes if node.kind == failing.kind]
    if there := sorted(node.vhost for node in alike if node.name == failing.name):
        return on_one_line(f"; there is one in {', '.join(there[:_NAMED])}: say --vhost")
    return on_one_line(nearest(failing.name, [node.name for node in alike]))


@click.command(short_help="What came and went between two days.")
@job
@click.option(
    "--before", required=True, metavar="DATE", type=click.DateTime(["%Y-%m-%d"]), help="One UTC day."
)
@click.option("--after", required=True, metavar="DATE", type=click.DateTime(["%Y-%m-%d"]), help="Another.")
def drift(before: datetime, after: datetime) -> None:
    """Show what is there on one day and not on the other: who sends to whom on that day, and what was
    declared by its end.

    \b
    amqpgate audit drift audit --before 2026-11-01 --after 2026-11-22
    """
    from datetime import timedelta

    with running() as run:
        from amqpgate.pipeline.jobs.graph import drift as drift_

        told = [
            topology_of(run, day, day + timedelta(days=1))
            for day in (before.replace(tzinfo=UTC), after.replace(tzinfo=UTC))
        ]
        run.write_rows(_rows(drift_(*told)), _DRIFT)
