"""Prometheus and its promtool: Debian's, from the packages installed or unpacked by `make test-tools`."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import attrs

from .missing import missing
from .ports import free_port
from .processes import Child

ROOT = Path(__file__).parents[2]
_UNPACKED = ROOT / ".tools/prometheus/usr/bin"

CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
- job_name: amqpgate
  static_configs: [{{targets: ["{target}"]}}]
"""


def program(name: str) -> str:
    """`prometheus` or `promtool`. Skips where there is none."""
    found = shutil.which(name) or shutil.which(name, path=str(_UNPACKED))
    if found is None:
        missing(f"{name} is not there (make test-tools unpacks it; Debian: apt-get install prometheus)")
    return found


def promtool(*words: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """What it says; its exit code is 0 where all is well."""
    command = [program("promtool"), *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)


@attrs.frozen
class Sample:
    """One element of an instant vector."""

    labels: dict[str, str]
    value: float


@attrs.define(eq=False)
class Prometheus:
    """A server of one's own: scrapes `target` (`host:port`) every second, and has the alerts of `rules`."""

    target: str
    rules: Path
    port: int = attrs.field(factory=free_port)
    _folder: Path = attrs.field(factory=lambda: Path(tempfile.mkdtemp(prefix="amqpgate-prometheus-")))
    _child: Child | None = None

    def start(self) -> None:
        config = self._folder / "prometheus.yml"
        config.write_text(CONFIG.format(rules=self.rules, target=self.target))
        self._child = Child(
            [
                program("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--enable-feature=exemplar-storage",
            ],
            log=self._folder / "prometheus.log",
        )
        self._child.wait_until(self._answers, timeout=60, what="prometheus")

    def _answers(self) -> bool:
        try:
            return bool(self._get("/api/v1/status/buildinfo"))
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False

    def query(self, promql: str) -> list[Sample]:
        """An instant vector, now. `HTTPError` where it is no query."""
        found = self._get("/api/v1/query?" + urllib.parse.urlencode({"query": promql}))
        assert isinstance(found, dict)
        return [Sample(one["metric"], float(one["value"][1])) for one in found["result"]]

    def exemplars(self, promql: str) -> list[dict[str, str]]:
        """The labels of the exemplars of the last minute."""
        now = time.time()
        asked = {"query": promql, "start": now - 60, "end": now + 60}
        found = self._get("/api/v1/query_exemplars?" + urllib.parse.urlencode(asked))
        assert isinstance(found, list)
        return [exemplar["labels"] for series in found for exemplar in series["exemplars"]]

    def alerts(self) -> Sequence[dict[str, object]]:
        """The rules, each with its state and, if it could not be evaluated, `lastError`."""
        found = self._get("/api/v1/rules")
        assert isinstance(found, dict)
        return [rule for group in found["groups"] for rule in group["rules"]]

    def _get(self, path: str) -> object:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return json.load(answer)["data"]

    def destroy(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None
        shutil.rmtree(self._folder, ignore_errors=True)
