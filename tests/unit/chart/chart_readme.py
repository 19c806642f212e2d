"""The chart's README, made of ``Chart.yaml``, the comments of ``values.yaml``, and what is written here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import attrs
import yaml

from tests.unit.chart.rendering import CHART

FILE = CHART / "README.md"
Comments: TypeAlias = "dict[int, str]"

HEAD = """\
# {name}

{description} Version {version}, for Kubernetes {kubernetes}.

With no values at all it is a gateway to try, before a broker in its own pod:

```console
$ helm install gate helm/amqpgate --namespace mq --create-namespace
$ helm test gate --namespace mq
```

Before brokers of yours, as a sidecar, and as an injector of sidecars: [Kubernetes](../../docs/kubernetes.md).
Secrets from Vault and from the External Secrets operator: [examples](../../examples/helm). Values are
checked by [a schema](values.schema.json) before anything is installed, settings and policies as well; a
policy that is given as text (`a.yaml: |`) is read by `amqpgate check --values FILE` and the gateway, not by
Helm. An empty key (`service:`) takes a default away: where templates need it Helm says that it is missing.

## Values

Made of the comments in [values.yaml](values.yaml), by `python -m tests.unit.chart --update`."""


@attrs.frozen
class Row:
    """One value that can be given."""

    key: str
    default: str
    meaning: str


def made() -> str:
    """The file as it should be."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    parts = [
        HEAD.format(
            name=chart["name"],
            description=chart["description"],
            version=chart["version"],
            kubernetes=chart["kubeVersion"].removeprefix(">=").removesuffix("-0") + " or later",
        )
    ]
    text = (CHART / "values.yaml").read_text()
    root = yaml.compose(text, yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    rows = list(_rows(root, (), text.splitlines()))
    begun = ""
    for row in rows:
        section = _section(text, row.key.partition(".")[0])
        if section != begun:
            begun = section
            parts.append(f"\n### {section}\n\n| value | default | meaning |\n|---|---|---|")
        parts.append(f"| `{row.key}` | {row.default} | {row.meaning} |")
    return "\n".join(parts) + "\n"


def _section(text: str, key: str) -> str:
    """The heading (``# ---- NAME ----``) above the key."""
    before = text[: f"\n{text}".index(f"\n{key}:")]
    heads = [line[7:-5] for line in before.splitlines() if line.startswith("# ---- ")]
    return (heads[-1] if heads else "Any mode").capitalize()


def _rows(node: yaml.MappingNode, path: Sequence[str], lines: Sequence[str]) -> Iterator[Row]:
    for key, value in node.value:
        inner = (*path, key.value)
        meaning = _comment(lines, key.start_mark.line)
        if isinstance(value, yaml.MappingNode) and value.value and not value.flow_style:
            if meaning:
                yield Row(".".join(inner), "", meaning)
            yield from _rows(value, inner, lines)
        else:
            yield Row(".".join(inner), f"`{_shown(value)}`", meaning)


def _shown(node: yaml.Node) -> str:
    """The default in one line, as JSON."""
    loader = yaml.SafeLoader("")
    return json.dumps(loader.construct_document(node)).replace("|", "\\|")


def _comment(lines: Sequence[str], line: int) -> str:
    """What stands right above, indented as the key is, without headings and examples."""
    indent = lines[line][: len(lines[line]) - len(lines[line].lstrip())]
    found: list[str] = []
    begins = re.compile(f"{indent}# (?! |----)")
    while line and begins.match(lines[line - 1]):
        line -= 1
        found.insert(0, lines[line].strip().removeprefix("# "))
    return " ".join(found).replace("|", "\\|").replace("<", "&lt;")
