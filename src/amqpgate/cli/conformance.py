"""``amqpgate conformance``: which rules of AMQP a broker or a proxy obeys."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from amqpgate.cli.failures import Failure, cause_of, reported
from amqpgate.cli.telling import echo, echo_document
from amqpgate.logs import on_one_line

if TYPE_CHECKING:
    from amqpgate.conformance.case import CaseResult, RuleSection
    from amqpgate.conformance.dialling import PeerLogin
    from amqpgate.conformance.report.summary import ConformanceRun
    from amqpgate.conformance.versions import Name

#: What ``conformance.versions`` has, here so that ``--help`` is quick (a test compares).
VERSIONS: Final = ("0-9-1", "0-9", "0-8", "0-10")


@click.command(short_help="Test which rules of AMQP a broker or a proxy obeys.")
@click.argument("url", metavar="[HOST:PORT|URL]", required=False)
@click.option(
    "--serve",
    "served",
    metavar="[HOST:PORT]",
    is_flag=False,
    flag_value="127.0.0.1:5672",
    help="Listen as a broker, and judge the clients that connect. (127.0.0.1:5672)",
)
@click.option(
    "--upstream-probe",
    "probe",
    metavar="[HOST:PORT]",
    is_flag=False,
    flag_value="127.0.0.1:5673",
    help="Judge a proxy: listen as the broker behind it, and compare both ends. (127.0.0.1:5673)",
)
@click.option(
    "--run",
    "program",
    metavar="COMMAND",
    default="",
    help="With --serve: run a client, once for each scenario.",
)
@click.option(
    "--connections", metavar="NUMBER", type=click.IntRange(1), help="With --serve: end after so many."
)
@click.option(
    "--seconds", metavar="SECONDS", type=float, default=0, help="With --serve: end after this time."
)
@click.option(
    "--versions",
    metavar="LIST",
    default="0-9-1",
    show_default=True,
    help=f"The versions of AMQP to speak, of {', '.join(VERSIONS)}.",
)
@click.option(
    "--section",
    "sections",
    metavar="NAME",
    multiple=True,
    help="Only rules below this path, such as queue.declare, or of this section (--list shows them); may "
    "be given more than once.",
)
@click.option("--list", "is_list", is_flag=True, help="List the rules, and test nothing.")
@click.option(
    "--strict", is_flag=True, help="Count what RabbitMQ or Qpid does otherwise, and what is a should only."
)
@click.option(
    "--patience",
    metavar="SECONDS",
    type=float,
    help="For an answer (4), or with --run for a run of the program (30).",
)
@click.option("--json", "json_file", metavar="FILE", type=click.Path(path_type=Path), help="Write JSON.")
@click.option(
    "--junit", "junit_file", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit XML."
)
@click.option("--html", "html_file", metavar="FILE", type=click.Path(path_type=Path), help="Write a page.")
def conformance(
    url: str | None,
    served: str | None,
    probe: str | None,
    program: str,
    connections: int | None,
    seconds: float,
    versions: str,
    sections: tuple[str, ...],
    is_list: bool,
    strict: bool,
    patience: float | None,
    json_file: Path | None,
    junit_file: Path | None,
    html_file: Path | None,
) -> None:
    """Test which rules of AMQP whoever listens at HOST:PORT obeys: any broker or proxy.

    With --serve: which rules any client obeys. With --upstream-probe: what a proxy does to what passes.

    The login is guest with the password guest and the virtual host /, unless a URL says otherwise. Queues and
    exchanges have names of their own, and are deleted at the end; nothing else on the broker is touched.

    With --serve it listens as a broker that takes any login, and every connection gets the next of its
    scenarios: a body in frames of one byte, confirms in another order, and so on. --run starts a program for
    each scenario, which finds AMQP_URL, AMQP_HOST and AMQP_PORT in its environment; without it, start yours
    again and again until --connections or --seconds are over, or press Ctrl-C.

    With --upstream-probe it listens as the broker that the proxy at HOST:PORT is told to use, connects
    through the proxy, and compares both ends.

    \b
    amqpgate conformance localhost:5672
    amqpgate conformance amqp://user:secret@broker/test --versions 0-9-1,0-8 --html report.html
    amqpgate conformance localhost:5672 --section queue --section basic.ack
    amqpgate conformance --serve --run "python my_program.py"
    amqpgate conformance proxy:5672 --upstream-probe 0.0.0.0:5673

    \b
    obeys        as the rule says
    as RabbitMQ  otherwise, as RabbitMQ does it
    as Qpid      otherwise, as Qpid's broker does it
    deviates     otherwise
    untestable   this peer does not offer what the rule is about

    \b
    Exit codes:
      0  nothing counts against it
      1  something does, or nobody answers
      2  wrong command line
    """
    from amqpgate.conformance.report import machine, page, text

    rules = _rules(is_client=served is not None, is_proxy=probe is not None)
    if is_list:
        for section in rules:
            for case in section.cases:
                echo_document(f"{case.id}\t{case.section}\t{','.join(case.versions)}\t{case.title}\n")
        return
    with reported():
        if served is not None:
            from amqpgate.cli.conformance_client import ClientTest

            test = ClientTest(served, sections, program, connections or 0, seconds, patience or 30)
            run = test.run()
        elif url is not None and probe is not None:
            from amqpgate.cli.conformance_proxy import probed

            with _progress(0) as told:
                run = probed(_target(url), probe, _versions(versions), sections, patience or 4, told)
        elif url is not None:
            run = _run(url, _versions(versions), sections, patience or 4)
        else:
            raise click.UsageError("Name a HOST:PORT to test, or listen with --serve.")
    for line in text.lines(run, strict=strict):
        echo(line)
    if json_file is not None:
        _write(json_file, machine.as_json(run))
    if junit_file is not None:
        _write(junit_file, machine.as_junit(run, strict=strict))
    if html_file is not None:
        _write(html_file, page.page(run, rules, strict=strict))
    if run.failed(strict=strict):
        sys.exit(1)


def _rules(*, is_client: bool, is_proxy: bool) -> Sequence[RuleSection]:
    if is_proxy:
        from amqpgate.conformance.proxy.cases import PROXY_SECTIONS

        return PROXY_SECTIONS
    if is_client:
        from amqpgate.conformance.client.scenarios import CLIENT_SECTIONS

        return CLIENT_SECTIONS
    from amqpgate.conformance.cases import SECTIONS

    return SECTIONS


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"amqpgate: {file}: {error.strerror}") from None


def _versions(said: str) -> list[Name]:
    from amqpgate.conformance.versions import HEADERS as KNOWN

    found = [version for version in KNOWN if version in said.split(",")]
    if len(found) != len(set(said.split(","))):
        raise click.BadParameter(f"{said}: of {', '.join(VERSIONS)}", param_hint="--versions")
    return found


def _run(
    url: str,
    versions: list[Name],
    wanted: tuple[str, ...],
    patience: float,
) -> ConformanceRun:
    import trio

    from amqpgate.conformance.cases import SECTIONS
    from amqpgate.conformance.endings import PeerGone, Unexpected
    from amqpgate.conformance.report.summary import ConformanceRun
    from amqpgate.conformance.run import Plan, play, product, selected

    target = _target(url)
    plan = Plan(target=target, cases=selected(SECTIONS, versions, wanted), patience=patience)
    if not plan.cases:
        raise click.BadParameter("no such rule; --list shows all", param_hint="--section")
    try:
        who = trio.run(product, target, patience)
        with _progress(len(plan.cases)) as told:
            results, seconds = trio.run(play, plan, told)
    except OSError as error:
        raise Failure(f"amqpgate: {target.host}:{target.port}: {cause_of(error)}") from None
    except (trio.TooSlowError, Unexpected, PeerGone) as error:
        said = str(error) or "nobody answers"
        raise Failure(f"amqpgate: {target.host}:{target.port}: {on_one_line(said)}") from None
    return ConformanceRun(f"{target.host}:{target.port}", who, results, seconds)


@contextmanager
def _progress(count: int) -> Iterator[Callable[[CaseResult], None]]:
    """How far it is, on a terminal only."""
    with click.progressbar(
        length=count, label="cases", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        yield lambda _: bar.update(1)


def _target(said: str) -> PeerLogin:
    from amqpgate.config.address import AmqpUrl
    from amqpgate.conformance.dialling import PeerLogin

    try:
        url = AmqpUrl.parse(said if "://" in said else f"amqp://{said}")
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="HOST:PORT") from None
    return PeerLogin(
        host=url.host,
        port=url.port,
        user=url.user or "guest",
        password=url.password.reveal() if url.password is not None else "guest",
        vhost="/" if url.vhost is None else url.vhost,
        tls=ssl.create_default_context() if url.scheme == "amqps" else None,
    )
