"""What is published: one version everywhere, an archive with all of the source, a wheel that works alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from amqpgate import __version__
from tests.support.missing import missing

ROOT = Path(__file__).parents[2]
UV = ROOT / ".tools/bin/uv"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
POLICY = ROOT / "policies/demo.yaml"


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("Dockerfile", r"amqpgate:([\w.]+)"),
        ("Dockerfile", r'image\.version="([\w.]+)"'),
        ("compose.yaml", r"amqpgate:([\w.]+)"),
        ("docs/kubernetes.md", r"(?:amqpgate:|amqpgate_|amqpgate, version: )(\d[\d.]+\d)"),
        ("helm/amqpgate/Chart.yaml", r'(?im)^(?:app)?version: "?([\w.]+)'),
        ("helm/application/Chart.yaml", r'(?m)^  version: ">=([\w.]+)-0"'),
        ("spec/schema/injector.json", r"amqpgate:([\w.]+)"),
    ],
)
def test_the_version_is_that_of_the_source(path: str, pattern: str) -> None:
    assert set(re.findall(pattern, (ROOT / path).read_text())) == {__version__}


def test_what_is_read_of_the_package_leads_home() -> None:
    assert PROJECT["authors"] == [{"name": "amqpgate contributors"}]
    home = PROJECT["urls"]["Homepage"]
    assert all(url.startswith(home) for url in PROJECT["urls"].values())
    targets = re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text())
    assert len([target for target in targets if target.startswith(f"{home}/blob/main/")]) > 20
    assert all(target.startswith("https://") for target in targets)


@pytest.fixture(scope="module")
def listed() -> list[str]:
    """The files that git has."""
    try:
        names = _run("git", "-C", ROOT, "ls-files").splitlines()
    except (OSError, subprocess.CalledProcessError):
        missing("this is no work tree of git")
    return [name for name in names if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def sdist(listed: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive of a fresh clone: setuptools adds whatever an earlier build had written down."""
    if not UV.exists():
        missing("uv is not in .tools: no package is built")
    folder, clone = tmp_path_factory.mktemp("sdist"), tmp_path_factory.mktemp("clone")
    for name in listed:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    _run(UV, "build", "--quiet", "--sdist", "--python", sys.executable, *PINNED, "--out-dir", folder, clone)
    (made,) = folder.glob("*.tar.gz")
    return made


PINNED = ("--build-constraints", ROOT / "constraints.txt", "--require-hashes")


def test_the_source_archive_has_all_that_git_has(sdist: Path, listed: list[str]) -> None:
    assert sdist.name == f"amqpgate-{__version__}.tar.gz"
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert set(listed) - packed == set()
    made = (".so", ".pyc", ".o")
    assert [name for name in packed if name.endswith(made) or name.startswith((".venv", "build/"))] == []


@pytest.mark.timeout(600)
def test_a_wheel_works_in_an_empty_environment(sdist: Path, tmp_path: Path) -> None:
    # Without a compiler it is plain Python, and made in seconds. `make wheels` tries compiled ones.
    no_compiler = {"CC": "/nonexistent/cc"}
    _run(
        *(
            UV,
            "build",
            "--quiet",
            "--wheel",
            "--python",
            sys.executable,
            *PINNED,
            "--out-dir",
            tmp_path,
            sdist,
        ),
        **no_compiler,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {Path(name).name for name in archive.namelist() if "/share/amqpgate/schema/" in name}
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(name).decode()
    assert inside == {path.name for path in (ROOT / "spec/schema").iterdir()}
    assert "Project-URL: Homepage, " in metadata

    venv = tmp_path / "venv"
    _run(UV, "venv", "--quiet", "--python", sys.executable, venv)
    try:
        _run(
            *(UV, "pip", "install", "--quiet", "--python", venv / "bin/python"),
            *("--constraints", ROOT / "constraints.txt", wheel),
        )
    except subprocess.CalledProcessError as error:
        missing(f"what the wheel needs cannot be had: {error.stderr.strip().splitlines()[-1:]}")
    amqpgate = venv / "bin/amqpgate"
    assert _run(amqpgate, "--version", cwd=tmp_path) == f"amqpgate {__version__}\n"
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/demo.yaml").write_text(POLICY.read_text())
    settings = {
        "listeners": [{"name": "a", "bind": "127.0.0.1:0"}],
        "upstreams": [{"name": "b", "url": "amqp://127.0.0.1:5672"}],
        "policies": "policies",
    }
    (tmp_path / "amqpgate.yaml").write_text(yaml.safe_dump(settings))
    _run(amqpgate, "check", "--config", "amqpgate.yaml", cwd=tmp_path)
    _run(amqpgate, "policy", "check", "policies", cwd=tmp_path)
    shown = _run(amqpgate, "demo", "--count", "6", "--interval", "0.01", cwd=tmp_path)
    assert "demo over: 3 allowed, 3 denied, 3 consumed" in shown
    assert (venv / "share/amqpgate/schema/config.json").is_file()


def _run(*command: object, cwd: Path | None = None, **environ: str) -> str:
    """What a command says, errors among it. Raises ``subprocess.CalledProcessError``."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=kept | environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=500,
    )
    return done.stdout + done.stderr
