"""Metrics as text: Prometheus' format, version 0.0.4, written, and read again by the supervisor of workers.

https://github.com/prometheus/docs: "Exposition formats", text-based format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import inf
from typing import Final, cast

from amqpgate.telemetry.families import CollectorRegistry, Kind, Metric, Sample

_SUFFIX: Final[Mapping[Kind, str]] = {"counter": "_total", "gauge": "", "histogram": ""}
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\.)*)",?')
_ESCAPED: Final = re.compile(r"\\(.)")
_MEANT: Final[Mapping[str, str]] = {"n": "\n", "\\": "\\", '"': '"'}


def generate_latest(registry: CollectorRegistry) -> bytes:
    """The text of all metrics of a registry."""
    lines = []
    for metric in registry.collect():
        name = metric.name + _SUFFIX[metric.type]
        text = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
        lines += [f"# HELP {name} {text}\n", f"# TYPE {name} {metric.type}\n"]
        lines += map(_line, metric.samples)
    return "".join(lines).encode()


def _line(sample: Sample) -> str:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(sample.labels.items()))
    return (
        f"{sample.name}{{{labels}}} {_number(sample.value)}\n"
        if labels
        else (f"{sample.name} {_number(sample.value)}\n")
    )


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    if value in (inf, -inf):
        return "+Inf" if value > 0 else "-Inf"
    # Not a number is written as Python does it, but for the case of its letters.
    return "NaN" if value != value else repr(float(value))


def text_string_to_metric_families(text: str) -> Iterator[Metric]:
    """The families of a text that `generate_latest` has written. Raises ``ValueError`` for what it is not."""
    helps: dict[str, str] = {}
    metric: Metric | None = None
    for line in filter(None, text.split("\n")):
        if line.startswith("# HELP "):
            name, _, told = line.removeprefix("# HELP ").partition(" ")
            helps[name] = _unescaped(told)
        elif line.startswith("# TYPE "):
            if metric is not None:
                yield metric
            name, _, kind = line.removeprefix("# TYPE ").partition(" ")
            if kind not in _SUFFIX:
                raise ValueError(f"no type of a metric: {kind!r}")
            known = cast("Kind", kind)
            metric = Metric(name.removesuffix(_SUFFIX[known]), helps.get(name, ""), known)
        elif metric is None:
            raise ValueError("a sample of no family")
        else:
            metric.samples.append(_sample(line))
    if metric is not None:
        yield metric


def _sample(line: str) -> Sample:
    name, brace, rest = line.partition("{")
    if not brace:
        name, _, value = line.partition(" ")
        return Sample(name, {}, float(value))
    labels: dict[str, str] = {}
    at = 0
    while (label := _LABEL.match(rest, at)) is not None:
        labels[label[1]] = _unescaped(label[2])
        at = label.end()
    if rest[at : at + 2] != "} ":
        raise ValueError(f"no sample: {line!r}")
    return Sample(name, labels, float(rest[at + 2 :]))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: _MEANT.get(found[1], found[0]), text)
