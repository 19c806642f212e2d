"""Charts rendered by Helm's own SDK, without a cluster."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import helm_python
import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "helm/amqpgate"
APPLICATION = ROOT / "helm/application"
VALUES = Path(__file__).parent / "values"
GOLDENS = Path(__file__).parent / "goldens"

#: The version that goldens are made for, unless their values name one.
USUAL = "1.34.0"

Values: TypeAlias = "dict[str, object]"
Document: TypeAlias = "dict[str, object]"

#: Every file of values, by its name; those of the application are for the chart that includes this one.
CASES = tuple(sorted(path.stem for path in VALUES.glob("*.yaml")))


def values_of(case: str) -> Values:
    """What the case tells Helm."""
    return dict(yaml.safe_load((VALUES / f"{case}.yaml").read_text()) or {})


def is_application(case: str) -> bool:
    """Whether it is rendered by the application's chart."""
    return case.startswith("application")


def at_version(case: str, values: Values, version: str) -> Values:
    """The same values for a cluster of that version."""
    if not is_application(case):
        return values | {"kubeVersion": version}
    inner = values.get("amqpgate")
    assert isinstance(inner, dict)
    return values | {"amqpgate": inner | {"kubeVersion": version}}


def render(values: Mapping[str, object], *, application: bool = False) -> dict[str, str]:
    """Template to manifest, without those that came out empty. Raises ``helm_python.HelmError``."""
    chart = _application() if application else _chart()
    rendered = chart.render(dict(values), name="shop", namespace="mq")
    return {name: text for name, text in sorted(rendered.items()) if text.strip()}


def render_case(case: str, version: str | None = None) -> dict[str, str]:
    """Likewise for a case, at the version that its values name, or the usual one."""
    values = values_of(case)
    inner = values.get("amqpgate") if is_application(case) else values
    assert isinstance(inner, dict)
    chosen = version or str(inner.get("kubeVersion") or USUAL)
    return render(at_version(case, values, chosen), application=is_application(case))


def documents(manifests: Mapping[str, str]) -> list[Document]:
    """The objects in them; notes are none."""
    return [
        document
        for name, text in manifests.items()
        if not name.endswith("NOTES.txt")
        for document in yaml.safe_load_all(text)
        if document
    ]


def golden(manifests: Mapping[str, str]) -> str:
    """The text that is kept and compared."""
    parts = [f"# Source: {name}\n{text.strip()}\n" for name, text in manifests.items()]
    return "---\n".join(parts)


@cache
def _chart() -> helm_python.Chart:
    return helm_python.Chart.load(CHART)


@cache
def _application() -> helm_python.Chart:
    with assembled() as folder:
        return helm_python.Chart.load(folder)


@contextmanager
def assembled() -> Iterator[Path]:
    """The application's chart with this one in its ``charts``, as ``helm dependency build`` leaves it."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / APPLICATION.name
        shutil.copytree(APPLICATION, copy, ignore=shutil.ignore_patterns("charts"))
        shutil.copytree(CHART, copy / "charts" / CHART.name)
        yield copy
