"""The command as a whole: version, help, what it does not import, how it says no."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points, version
from typing import get_args

import click
import pytest
from click.testing import CliRunner

from amqpgate.cli import VERBS, main
from amqpgate.cli.run import FORMATS, LEVELS
from amqpgate.config import LogFormat, LogLevel


def amqpgate(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "amqpgate", *args], capture_output=True, text=True, check=False
    )


def test_version() -> None:
    done = amqpgate("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"amqpgate {version('amqpgate')}\n", "")


def test_the_installed_command_is_this_one() -> None:
    (script,) = entry_points(group="console_scripts", name="amqpgate")
    assert script.load() is main


def test_every_verb_is_listed_with_a_whole_sentence() -> None:
    text = CliRunner().invoke(main, ["--help"]).output
    for name in ("run", "check", "demo", "health"):
        (line,) = [line for line in text.splitlines() if line.strip().startswith(f"{name} ")]
        assert line.endswith(".")
        assert not line.endswith("...")


@pytest.mark.parametrize("name", sorted(VERBS))
def test_every_option_has_a_help_text(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    command = main.get_command(click.Context(main), name)
    assert command is not None
    for parameter in command.params:
        if not isinstance(parameter, click.Argument):
            assert isinstance(parameter, click.Option)
            assert parameter.help


@pytest.mark.parametrize("name", sorted(VERBS))
def test_help_tells_the_exit_codes(name: str) -> None:
    assert "Exit code" in CliRunner().invoke(main, [name, "--help"]).output


def test_the_front_door_imports_nothing_heavy() -> None:
    code = "import sys, amqpgate.cli; print(*(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"trio", "rich", "yaml", "attr", "cattrs", "hypercorn", "starlette", "prometheus_client", "ssl"}
    assert heavy & set(done.stdout.split()) == set()


def test_log_options_are_those_of_the_settings() -> None:
    assert get_args(LogFormat) == FORMATS
    assert get_args(LogLevel) == LEVELS


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["chekc"], "check"),
        (["run", "--lisen", "x"], "--listen"),
        (["run"], "say --config FILE, or --listen HOST:PORT and --upstream URL"),
        (["run", "--listen", "127.0.0.1:0"], "--upstream URL"),
        (
            ["run", "--config", "x.yaml", "--listen", "127.0.0.1:0"],
            "--config and --listen exclude each other",
        ),
        (
            ["run", "--config", "x.yaml", "--upstream", "amqp://x"],
            "--config and --upstream exclude each other",
        ),
        (["check"], "--config FILE, --policies DIR, or both"),
        (["demo", "--count", "0"], "--count"),
    ],
)
def test_a_wrong_command_line_is_2_and_says_what_to_write(args: list[str], said: str) -> None:
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 2
    assert said in result.stderr
