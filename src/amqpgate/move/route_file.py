"""A route's cluster in the text of a policy: changed where it stands, so that comments and order stay."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from amqpgate.errors import ConfigError
from amqpgate.yamldoc.composed import at


def with_cluster(text: str, routes: frozenset[str], source: str, target: str, file: str) -> str:
    """The text with these routes leading to ``target`` where they led to ``source``.

    Raises `ConfigError` where a route is written so that it cannot be changed in one place: by ``clusters``,
    or from the environment.
    """
    edits: list[tuple[int, int]] = []
    for route, cluster in _routes(text):
        if route not in routes:
            continue
        if cluster is None or cluster.value not in (source, target):
            raise ConfigError(
                f"route '{route}' does not say `cluster: {source}`: change it by hand, with `switch: wait`",
                file=file,
            )
        if cluster.value == source:
            edits.append((cluster.start_mark.index, cluster.end_mark.index))
    # From the back, so that what is before stays where it is.
    for start, end in sorted(edits, reverse=True):
        text = text[:start] + _written(target) + text[end:]
    return text


def _written(name: str) -> str:
    """As YAML, quoted where it would be read as something else."""
    return yaml.safe_dump(name, default_style=None, width=10_000).splitlines()[0]


def _routes(text: str) -> Iterator[tuple[str, yaml.ScalarNode | None]]:
    """The ids of all routes, each with the place of its cluster."""
    for document in yaml.compose_all(text, Loader=yaml.SafeLoader):
        kind = at(document, "kind")
        listed = at(document, "spec", "routes")
        if not (isinstance(kind, yaml.ScalarNode) and kind.value == "RoutePolicy"):
            continue
        for route in listed.value if isinstance(listed, yaml.SequenceNode) else ():
            name = at(route, "id")
            cluster = at(route, "upstream", "cluster")
            if isinstance(name, yaml.ScalarNode):
                yield name.value, cluster if isinstance(cluster, yaml.ScalarNode) else None
