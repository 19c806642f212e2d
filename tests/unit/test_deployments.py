"""What the gateway is run and published by: compose, the unit of systemd, the Debian package, workflows."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from amqpgate import __version__
from amqpgate.cli import main
from tests.support.missing import missing
from tests.support.prometheus import promtool

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/compose"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
UNIT = ROOT / "tools/debian/amqpgate.service"
HOME = "https://github.com/amqpgate/amqpgate"
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def steps_of(workflow: Path, uses: str = "") -> list[dict[str, Any]]:
    """Those of all its jobs that use such an action; without a name, all of them."""
    return [
        step
        for job in yaml.safe_load(workflow.read_text())["jobs"].values()
        for step in job.get("steps", ())
        if step.get("uses", "").startswith(uses)
    ]


def mounts() -> dict[str, dict[str, str]]:
    """What each container sees of this folder: its path there, and here."""
    return {
        name: {
            inside: here for here, inside in (volume.split(":")[:2] for volume in service.get("volumes", ()))
        }
        for name, service in COMPOSE["services"].items()
    }


def test_all_that_is_mounted_is_there() -> None:
    for inside in mounts().values():
        for here in inside.values():
            assert (ROOT / here).exists(), here


def test_nothing_is_published_beyond_loopback() -> None:
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_the_gateway_of_the_set_has_settings_and_policies_in_order(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "compose")
    path = tmp_path / "compose/amqpgate.yaml"
    (tmp_path / "audit").mkdir()
    path.write_text(path.read_text().replace("/var/lib/amqpgate/audit", str(tmp_path / "audit")))
    checked = CliRunner().invoke(main, ["check", "--config", str(path)])
    assert checked.exit_code == 0, checked.output
    checked = CliRunner().invoke(main, ["policy", "check", str(tmp_path / "compose/policies")])
    assert checked.exit_code == 0, checked.output


def test_prometheus_of_the_set_takes_its_configuration(tmp_path: Path) -> None:
    text = (EXAMPLE / "prometheus.yaml").read_text()
    for inside, here in mounts()["prometheus"].items():
        text = text.replace(f"{inside}/", f"{ROOT / here}/").replace(inside, str(ROOT / here))
    (tmp_path / "prometheus.yml").write_text(text)
    checked = promtool("check", "config", tmp_path / "prometheus.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "SUCCESS: 1 rule files found" in checked.stdout


def test_the_dashboards_of_the_set_find_their_sources() -> None:
    sources = yaml.safe_load((EXAMPLE / "grafana/datasources.yaml").read_text())["datasources"]
    hosts = {re.sub(r"https?://|:.*", "", source["url"]) for source in sources}
    assert hosts <= set(COMPOSE["services"])
    home = COMPOSE["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    folder = yaml.safe_load((EXAMPLE / "grafana/dashboards.yaml").read_text())["providers"][0]["options"][
        "path"
    ]
    assert (ROOT / mounts()["grafana"][folder] / Path(home).name).is_file()


def test_a_dot_on_the_plot_of_the_set_leads_to_its_trace() -> None:
    prometheus, tempo = yaml.safe_load((EXAMPLE / "grafana/datasources.yaml").read_text())["datasources"]
    # The label is the one that exemplars have.
    assert prometheus["jsonData"]["exemplarTraceIdDestinations"] == [
        {"name": "trace_id", "datasourceUid": tempo["uid"]}
    ]
    words = COMPOSE["services"]["prometheus"]["command"]
    assert "--enable-feature=exemplar-storage" in words
    # What is said replaces all that the image says.
    assert f"--config.file={next(iter(mounts()['prometheus']))}" in words
    assert "--storage.tsdb.path=/prometheus" in words
    # The trace is shown in Explore, which is an editor's, or a viewer's who may edit.
    assert COMPOSE["services"]["grafana"]["environment"]["GF_USERS_VIEWERS_CAN_EDIT"] == "true"


def test_rates_of_the_set_are_of_as_many_samples_as_grafana_thinks() -> None:
    prometheus, _ = yaml.safe_load((EXAMPLE / "grafana/datasources.yaml").read_text())["datasources"]
    asks = yaml.safe_load((EXAMPLE / "prometheus.yaml").read_text())["global"]["scrape_interval"]
    assert prometheus["jsonData"]["timeInterval"] == asks


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with a program in the place of a gateway that is not installed here."""
    if not shutil.which("systemd-analyze"):
        missing("systemd-analyze is not installed")
    path = tmp_path / UNIT.name
    path.write_text(UNIT.read_text().replace("/opt/amqpgate/bin/amqpgate", "/bin/true"))
    return path


def test_systemd_takes_the_unit(unit: Path) -> None:
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_unit_exposes_little(unit: Path) -> None:
    # In tenths of systemd's scale of 10: below 20 is what it calls OK.
    subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit],
        capture_output=True,
        check=True,
    )


def test_a_stop_waits_for_the_drain() -> None:
    """The default of limits.drainTimeout is 25 s."""
    (stop,) = re.findall(r"TimeoutStopSec=(\d+)s", UNIT.read_text())
    assert int(stop) > 25
    assert int(COMPOSE["services"]["gateway"]["stop_grace_period"].removesuffix("s")) > 25


def test_the_settings_of_the_package_are_in_order(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tools/debian/amqpgate.yaml", tmp_path)
    checked = CliRunner().invoke(main, ["check", "--config", str(tmp_path / "amqpgate.yaml")])
    assert checked.exit_code == 0, checked.output


def test_workflows_run_what_everybody_runs() -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    steps = [step for path in WORKFLOWS for step in steps_of(path)]
    run = " ".join(step.get("run", "") for step in steps)
    assert "bash .ci/run" in run
    assert set(re.findall(r"\bmake ([a-z][a-z-]*)", run.replace("gcc make python3-dev", ""))) <= targets
    # A branch's name may change what it means; a release's does not.
    used = [step["uses"] for step in steps if "uses" in step]
    assert [name for name in used if not re.search(r"@(v\d|release/v\d)", name)] == []


def test_the_release_pushes_the_images_that_the_chart_asks_for() -> None:
    image = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]["image"]
    (run,) = [step["run"] for step in image["steps"] if step.get("id") == "tag"]
    images = image["strategy"]["matrix"]["include"]
    environ = {"GITHUB_REF_NAME": "v1.2.3", "GITHUB_OUTPUT": "/dev/stdout"}
    pushed = {
        subprocess.run(
            ["sh", "-c", run],
            env=environ | {"SUFFIX": one["suffix"]},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for one in images
    }
    # The chart has tokens checked by whichever of them it takes.
    assert [one for one in images if "oauth" not in one["extras"].split(",")] == []
    templates = "".join(path.read_text() for path in (ROOT / "helm/amqpgate/templates").rglob("*.tpl"))
    suffixes = {
        "",
        *re.findall(r'ternary "(-\w+)"', templates),
        *re.findall(r'printf "%s(-\w+)" \.Chart\.AppVersion', templates),
    }
    assert pushed == {f"tag=1.2.3{suffix}\n" for suffix in suffixes}


def test_what_is_published_once_comes_after_what_can_be_pushed_again() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]

    def before(name: str) -> set[str]:
        needed = set(jobs[name].get("needs", ()))
        return needed.union(*map(before, needed))

    assert before("publish") == set(jobs) - {"publish"}
    assert {"test", "version", "wheels", "sdist", "deb"} <= before("image") < before("chart")


def test_what_is_published_is_what_the_release_builds_for_it() -> None:
    artifacts = {
        path.stem: {
            re.sub(r"\$\{\{.*?\}\}", "x", step["with"]["name"])
            for step in steps_of(path, "actions/upload-artifact@")
        }
        for path in WORKFLOWS
    }
    (download,) = steps_of(ROOT / ".github/workflows/release.yml", "actions/download-artifact@")
    wanted = download["with"]["pattern"].strip("{}").split(",")
    taken = {name for name in set().union(*artifacts.values()) if any(fnmatch(name, one) for one in wanted)}
    # Those of the tests are artifacts of the same run.
    assert taken == artifacts["release"]
    assert artifacts["test"]


def test_the_workflows_keep_no_token_in_the_checkout() -> None:
    checkouts = [step for path in WORKFLOWS for step in steps_of(path, "actions/checkout@")]
    assert checkouts
    assert [step for step in checkouts if step["with"] != {"persist-credentials": False}] == []


def test_the_release_pushes_the_chart_signed() -> None:
    chart = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]["chart"]
    run = "\n".join(step.get("run", "") for step in chart["steps"])
    for words in (
        "helm package helm/amqpgate",
        'helm push "dist/amqpgate-',
        "cosign sign --yes",
        "oras push",
    ):
        assert words in run
    assert (ROOT / "helm/artifacthub-repo.yml").is_file()


def test_a_release_says_what_is_new_in_it_and_nothing_else() -> None:
    def notes(version: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ROOT / "tools/release-notes.sh", version], capture_output=True, text=True, check=False
        )

    first = notes("0.1.0").stdout
    assert "- A transparent AMQP 0-9-1 gateway" in first
    assert not re.search(r"(?m)^## ", first)
    links = re.findall(r"\]\(([^)]+)\)", first)
    assert f"{HOME}/blob/v0.1.0/SECURITY.md" in links
    assert [link for link in links if not link.startswith("https://")] == []
    assert notes("0.1").returncode == 1
    # A release of GitHub takes 125,000 characters.
    assert 0 < len(notes(__version__).stdout) < 125_000


def test_wheels_are_built_for_each_python_that_is_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    supported = {
        name.rpartition(" ")[2].replace(".", "")
        for name in project["project"]["classifiers"]
        if re.fullmatch(r".*Python :: 3\.\d+", name)
    }
    assert set(re.findall(r"cp(\d+)-", project["tool"]["cibuildwheel"]["build"])) == supported
