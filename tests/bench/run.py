"""`python -m tests.bench.run`: measure amqpgate against HAProxy and others, in one interleaved run.

How to read the numbers:

- *CPU per message* is the CPU time of the proxy's process (all threads and children, user and system) from
  the start of the measured phase to the arrival of its last message, divided by the messages. It is given
  in ns for HAProxy, and for the others as a multiple of HAProxy's in the same round.
- Every figure is a median over the rounds with its quartiles. Within a round all targets have their turn at
  a case one after the other, in an order that rotates; so a ratio is of two runs that were seconds apart.
- Throughput says little where tools, proxy and broker share the machine's cores: in the cases with the sink
  CPU is what is compared, in those with RabbitMQ it is throughput against direct.
- Latency counts from when a message was *to be* sent (open loop), so a stall shows in all that it delayed.
- Figures taken while others had more than a few percent of the CPU are noise; the report says how much.
"""

from __future__ import annotations

import datetime
import fnmatch
import json
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import click
from rich.console import Console

from tests.support.ports import free_port
from tests.support.rabbitmq import RabbitMQ

from .accounting import describe_machine
from .build import BuildError, build
from .cases import BY_NAME, CASES, FULL, QUICK, Case
from .figures import OURS, Samples
from .measure import Bench
from .peers import peers
from .plot import plot
from .report import Report
from .rounds import Plan, Run
from .targets import Amqpgate, Certificates, Direct, HAProxy, Surroundings, Target
from .tools import Sink

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise click.BadParameter(f"'{text}' is not of the form name=value")
    return name, value


def _choose(names: str | None) -> list[Case]:
    if names is None:
        return list(CASES)
    chosen = []
    for name in names.split(","):
        found = [case for case in CASES if fnmatch.fnmatchcase(case.name, name.strip())]
        if not found:
            raise click.BadParameter(f"no case is named '{name}'; there are {', '.join(BY_NAME)}")
        chosen += [case for case in found if case not in chosen]
    # A mark that compares with another case needs that one in the same round.
    needed = {mark.against for case in chosen for mark in case.marks if mark.measure == "cpu-of-case"}
    return [case for case in CASES if case in chosen or case.name in needed]


# \b: click leaves the lines of that paragraph as they are.
@click.command(
    help=__doc__.replace("\n\n- ", "\n\n\b\n- "),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 112},
)
@click.option(
    "--rounds", type=click.IntRange(1), help=f"Rounds.  [default: {FULL.rounds}, quick: {QUICK.rounds}]"
)
@click.option("--cases", help="Comma separated names; `publish-*` for several.  [default: all]")
@click.option("--quick", is_flag=True, help="Short runs, to see whether it works; the figures mean nothing.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=ROOT / "build" / "bench", help="Folder of results."
)
@click.option(
    "--amqpgate-cmd",
    default=shlex.join([sys.executable, "-m", "amqpgate"]),
    help="Command of the amqpgate to measure; PYTHONPATH is honoured.  [default: this one]",
)
@click.option("--also", multiple=True, metavar="NAME=CMD", help="Another amqpgate, to compare two versions.")
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True),
    default=HERE / "amqpgate.yaml",
    help="Its configuration, with places to fill in as in tests/bench/amqpgate.yaml.",
)
@click.option(
    "--policies",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=HERE / "policies",
    help="Its policies.",
)
@click.option(
    "--peer",
    multiple=True,
    metavar="NAME[=COMMAND|=HOST:PORT]",
    help="Another proxy: amqproxy or amqpprox; a command with {port} and {sink} in it, which is started; or "
    "one that runs in front of --sink-port, with --peer-pid.",
)
@click.option(
    "--peer-pid",
    multiple=True,
    type=int,
    help="Its process; once per --peer with an address, in their order.",
)
@click.option("--sink-port", type=int, help="Where the sink listens.  [default: any free one]")
@click.option("--targets", help="Comma separated, to leave some out.  [default: all]")
@click.option("--pin", is_flag=True, help="Proxies on one core, everything else on the others.")
@click.option(
    "--profile",
    "profile_case",
    type=click.Choice(list(BY_NAME)),
    metavar="CASE",
    help="Profile one case instead.",
)
@click.option(
    "--profile-targets", default=OURS, help="Comma separated targets to profile.  [default: amqpgate]"
)
def main(
    rounds: int | None,
    cases: str | None,
    quick: bool,
    out: Path,
    amqpgate_cmd: str,
    also: tuple[str, ...],
    config: Path,
    policies: Path,
    peer: tuple[str, ...],
    peer_pid: tuple[int, ...],
    sink_port: int | None,
    targets: str | None,
    pin: bool,
    profile_case: str | None,
    profile_targets: str,
) -> None:
    console = Console(stderr=True)
    scale = QUICK if quick else FULL
    profiled = BY_NAME[profile_case] if profile_case else None
    plan = Plan(
        cases=[profiled] if profiled else _choose(cases),
        rounds=rounds or scale.rounds,
        quick=quick,
        out=out,
        profiled=profiled,
        profiled_targets=profile_targets.split(","),
        pin=pin,
    )
    out.mkdir(parents=True, exist_ok=True)
    # As Ctrl-C: end what was started, remove what was written.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    _raise_file_limit()
    try:
        tools = build()
    except BuildError as error:
        raise click.ClickException(str(error)) from error
    failures: list[str] = []
    rabbitmq = _rabbitmq(plan, failures)
    if not tools.tls:
        failures.append("the load tool was built without TLS (Debian: apt-get install libssl-dev)")
        plan = attrs.evolve(plan, cases=[case for case in plan.cases if case.way != "tls"])
    if rabbitmq is None:
        plan = attrs.evolve(plan, cases=[case for case in plan.cases if case.way != "rabbitmq"])
    with tempfile.TemporaryDirectory(prefix="amqpgate-bench-") as scratch:
        folder = Path(scratch)
        certificates = Certificates.make(folder)
        with Sink(tools.sink, sink_port or free_port()) as sink, Sink(tools.sink, free_port()) as calm:
            around = Surroundings(
                folder=folder,
                sink=f"127.0.0.1:{sink.port}",
                calm=f"127.0.0.1:{calm.port}",
                rabbitmq=rabbitmq.address if rabbitmq else "127.0.0.1:1",
                certificates=certificates,
                policies=policies,
                load=tools.load,
                max_connections=(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100) // 2,
            )
            every: list[Target] = [
                Direct(around),
                HAProxy(around),
                HAProxy(around, "haproxy-256k", 256 << 10),
                Amqpgate(around, OURS, shlex.split(amqpgate_cmd), config),
                *(Amqpgate(around, name, shlex.split(cmd), config) for name, cmd in map(_named, also)),
            ]
            try:
                every += peers(around, peer, peer_pid)
            except ValueError as error:
                raise click.UsageError(str(error)) from error
            chosen = set(targets.split(",")) if targets else {target.name for target in every}
            if unknown := chosen - {target.name for target in every}:
                raise click.BadParameter(f"no target is named {', '.join(unknown)}", param_hint="--targets")
            used = [target for target in every if target.name in chosen]
            bench = Bench(tools.load, sink, scale, certificates.ca)
            run = Run(plan, bench, used, rabbitmq, console, failures=failures)
            began = time.monotonic()
            try:
                run.start()
                if plan.profiled:
                    run.profile(plan.profiled)
                else:
                    run.measure()
                    described = {target.name: target.describe() for target in run.targets}
            finally:
                for target in used:
                    target.stop()
                if rabbitmq:
                    rabbitmq.destroy()
    if not plan.profiled:
        _write(run, described, time.monotonic() - began)
    if run.failures:
        sys.exit(1)


def _raise_file_limit() -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _rabbitmq(plan: Plan, failures: list[str]) -> RabbitMQ | None:
    """Not started yet; but its port is known."""
    if not any(case.way == "rabbitmq" for case in plan.cases):
        return None
    try:
        return RabbitMQ()
    except FileNotFoundError as error:
        failures.append(str(error))
        return None


def _write(run: Run, described: dict[str, str], seconds: float) -> None:
    machine = describe_machine()
    facts = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{machine['cores']} x {machine['cpu']}, {machine['memory_gib']} GiB, "
        f"Linux {machine['kernel']} (TCP {machine['congestion_control']}), Python {machine['python']}",
        "command": "`" + shlex.join(["python", "-m", "tests.bench.run", *_told(sys.argv[1:])]) + "`",
        "commit": _commit(),
        "rounds": f"{run.plan.rounds}, {seconds / 60:.0f} minutes in all",
    }
    report = Report(facts, described, Samples(run.samples), run.failures, run.plan.quick)
    out = run.plan.out
    raw = {
        "facts": facts,
        "machine": machine,
        "targets": described,
        "failures": run.failures,
        "quick": run.plan.quick,
        "samples": [attrs.asdict(sample) for sample in run.samples],
    }
    (out / "results.json").write_text(json.dumps(raw, indent=1) + "\n")
    text = report.markdown()
    (out / "bench.md").write_text(text)
    click.echo(text)
    try:
        plot(report, out)
    except ImportError:
        run.console.print("no plot: matplotlib is not installed (uv pip install matplotlib)", style="yellow")
    run.console.print(f"written to {out}", highlight=False)


def _told(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments but for `--out`, which says nothing of the figures."""
    skipped = False
    for argument in arguments:
        if skipped or argument == "--out":
            skipped = not skipped
        elif not argument.startswith("--out="):
            yield argument


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
