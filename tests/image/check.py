"""``make image``: build the image, look at it, run it, and send a message through it to a real RabbitMQ.

Each line that it prints is something that was seen. It ends with 1 at the first that was not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pika
import pika.exceptions

from amqpgate import __version__
from tests.support.ports import free_port
from tests.support.rabbitmq import RabbitMQ

from .jail import USER
from .standin import ROOT, Builder, ImpossibleError, missing

NAME = "amqpgate:check"
#: What must not be in any image: it lies where things lie that were not meant to be sent to a builder.
CANARY = "canary-5d1f0c7e-not-for-images"
SETTINGS = """
listeners: [{name: clients, bind: "127.0.0.1:%d"}]
upstreams: [{name: rabbit, url: "amqp://127.0.0.1:%d"}]
limits: {drainTimeout: 1s}
admin: {}
"""
#: As the chart has them.
RECORDS, TABLE = "/var/lib/amqpgate/audit", "/srv/audit"
AUDITED = f"audit: {{format: parquet, folder: {RECORDS}}}\n"
VOLUMES = {"records": RECORDS, "table": TABLE, "tmp": "/tmp"}
FOR_SPARK = {"TMPDIR": "/tmp", "SPARK_LOCAL_DIRS": "/tmp", "HOME": "/tmp"}


def say(text: str) -> None:
    print(f"image: {text}", flush=True)


def expect(true: bool, what: str) -> None:
    if not true:
        raise SystemExit(f"image: NOT SO: {what}")
    say(what)


def copied_context(folder: Path) -> Path:
    """The tree as a builder sees it, with things in it that must stay behind."""
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    for name in (".env", "amqpgate.yaml", "src/.env", "src/amqpgate/__pycache__/x.pyc", ".git/config"):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(CANARY)
    return folder


def look(builder: Builder, tree: Path) -> dict[str, Any]:
    """What the image says of itself, and what is in it. Returns its configuration."""
    docker = builder.inspect(NAME)["Docker"]
    config: dict[str, Any] = docker["config"]
    size = sum(file.lstat().st_size for file in tree.rglob("*") if not file.is_dir())
    own = sum(file.lstat().st_size for file in (tree / "opt").rglob("*") if not file.is_dir())
    say(f"{size / 1e6:.0f} MB with its base, {own / 1e6:.0f} MB of them amqpgate and its libraries")
    labels = config["Labels"]
    version, licence = (labels[f"org.opencontainers.image.{key}"] for key in ("version", "licenses"))
    expect(version == __version__, f"labels: version {version}, {licence}")
    expect(config["User"] == "10001:10001", "its user is 10001:10001")
    expect(config["Entrypoint"] == ["amqpgate"], "its entry point needs no shell")
    expect(config["Healthcheck"]["Test"][0] == "CMD", "nor does its health check")
    inside = [
        file
        for folder in ("opt", "etc", "src", "wheels", "mnt", "root", "home", "tmp")
        for file in (tree / folder).rglob("*")
        if file.is_file() and not file.is_symlink()
    ]
    found = [str(file) for file in inside if CANARY.encode() in file.read_bytes()]
    expect(not found and CANARY not in json.dumps(docker), "nothing of .env, .git and settings is in it")
    left = [name for name in ("src", "wheels", "etc/pip.conf") if (tree / name).exists()]
    expect(not left, "nothing of the first stage is in it but /opt/amqpgate")
    tools = [name for name in ("usr/bin/gcc", "usr/bin/cc", "opt/amqpgate/bin/pip") if (tree / name).exists()]
    expect(not tools, "neither a compiler nor pip is in it")
    return config


@attrs.define
class Jail:
    """The image's file system, and processes in it."""

    tree: Path
    environ: dict[str, str]
    settings: Path
    #: Folders that its user may write to: from, to.
    volumes: dict[Path, str] = attrs.field(factory=dict)

    def start(self, command: list[str], **more: Any) -> subprocess.Popen[str]:
        """Start ``command`` as the first process of a container."""
        # As `docker run -v FILE:/etc/amqpgate/amqpgate.yaml:ro` does.
        place = self.tree / "etc/amqpgate/amqpgate.yaml"
        place.parent.mkdir(exist_ok=True)
        place.touch()
        # As whoever runs containers writes it; but without the machine's own name, which may be unknown.
        (self.tree / "etc/hosts").write_text("127.0.0.1 localhost\n")
        for folder, seen in self.volumes.items():
            folder.mkdir(exist_ok=True)
            os.chown(folder, USER, USER)
            (self.tree / seen.lstrip("/")).mkdir(parents=True, exist_ok=True)
        jail = [sys.executable, str(Path(__file__).with_name("jail.py")), str(self.tree)]
        return subprocess.Popen(
            [
                *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
                *jail,
                f"{self.settings}:/etc/amqpgate/amqpgate.yaml",
                *(f"{folder}:{seen}:rw" for folder, seen in self.volumes.items()),
                "--",
                *command,
            ],
            env={**os.environ, "JAIL_ENVIRON": json.dumps(self.environ)},
            text=True,
            **more,
        )

    def run(self, *command: str, patience: float = 60) -> tuple[int, str]:
        """Exit code and output of a command."""
        process = self.start(list(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text, _ = process.communicate(timeout=patience)
        return process.returncode, text.strip()


@contextlib.contextmanager
def running(jail: Jail, config: dict[str, Any], log: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The container's own command: its parent, and the number that it has outside."""
    with log.open("w") as file:
        process = jail.start([*config["Entrypoint"], *config["Cmd"]], stderr=file)
    try:
        deadline = time.monotonic() + 30
        while jail.run("amqpgate", "health")[0]:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"image: it does not get ready:\n{log.read_text()}")
            time.sleep(0.2)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield process, int(children[0])
    finally:
        process.kill()
        process.wait()


def play(jail: Jail, config: dict[str, Any], broker: RabbitMQ, port: int, log: Path) -> None:
    """A message through the container, and the end of it."""
    code, text = jail.run("amqpgate", "--version")
    expect((code, text) == (0, f"amqpgate {__version__}"), text)
    code, text = jail.run("python", "-c", "open('/opt/amqpgate/x', 'w')")
    expect(code != 0 and "Read-only file system" in text, "its file system is read-only")
    if not (jail.tree / "usr/bin/sh").exists():
        expect(jail.run("sh", "-c", "true")[0] != 0, "there is no shell in it (taken out for this)")
    with running(jail, config, log) as (parent, number):
        status = status_of(number)
        expect(status["NSpid"].split()[-1] == "1", "it runs as process 1")
        expect(set(status["Uid"].split()) == {"10001"}, "as user 10001")
        expect(int(status["CapEff"], 16) == 0 == int(status["CapBnd"], 16), "without any capability")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        test = config["Healthcheck"]["Test"][1:]
        expect(jail.run(*test) == (0, "ready"), f"healthy: {' '.join(test)}")
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = now.ru_utime + now.ru_stime - before.ru_utime - before.ru_stime
        say(f"one health check takes {seconds:.2f} s of CPU, the set-up of its jail included")
        direct = pika.BlockingConnection(pika.URLParameters(broker.url))
        target = direct.channel()
        target.queue_declare("image", auto_delete=False)
        through = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
        channel = through.channel()
        channel.confirm_delivery()
        for index in range(100):
            channel.basic_publish("", "image", b"message %d" % index)
        bodies = [target.basic_get("image", auto_ack=True)[2] for _ in range(100)]
        sent = [b"message %d" % index for index in range(100)]
        expect(bodies == sent, "100 messages came through to RabbitMQ, confirmed and in order")
        direct.close()
        after = status_of(number)
        say(f"resident memory: {status['VmRSS'].strip()} idle, {after['VmRSS'].strip()} after that")
        os.kill(number, signal.SIGTERM)
        with contextlib.suppress(pika.exceptions.ConnectionClosedByBroker):
            through.process_data_events(10)
        expect(through.is_closed, "at SIGTERM it drains, and tells the client that stays")
        expect(parent.wait(30) == 0, "and ends with 0")
    expect('"level": "error"' not in log.read_text(), "without an error in its log")


def pipeline(jail: Jail) -> None:
    """What the chart's CronJob does, over the records of what was played."""
    jail = attrs.evolve(jail, environ={**jail.environ, **FOR_SPARK})
    code, text = jail.run("amqpgate", "audit", "compact", RECORDS, TABLE, patience=300)
    expect(code == 0, f"audit compact: {text.splitlines()[-1] if text else code}")
    words = "--per", "day", "--format", "json"
    code, text = jail.run("amqpgate", "audit", "usage", TABLE, *words, patience=300)
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    published = sum(row["published"] for row in rows)
    expect((code, published) == (0, 100), "audit usage: the 100 messages are in the table")


def status_of(number: int) -> dict[str, str]:
    """What the kernel says of a process."""
    lines = Path(f"/proc/{number}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def check(builder: Builder, extras: str) -> None:
    say("on a STAND-IN for python:3.11 and python:3.11-slim, of Debian's packages, not on the real ones")
    builder.stand_in("python:3.11", to_build=True)
    builder.stand_in("python:3.11-slim", to_build=False)
    builder.build(NAME, copied_context(builder.folder / "context"), extras)
    say(f"built, with EXTRAS={extras!r}")
    container = builder("from", "--pull-never", NAME)
    tree = Path(builder("mount", container))
    config = look(builder, tree)
    asked = set(extras.split(","))
    has_records = bool(asked & {"audit", "pipeline"})
    if "pipeline" in asked:
        say("with its shell, for Spark is started by scripts")
    else:
        for shell in ("sh", "dash", "bash"):
            (tree / "usr/bin" / shell).unlink(missing_ok=True)
    if has_records:
        script = "import pyarrow.parquet, pyarrow; print('pyarrow', pyarrow.__version__)"
        say("it has " + builder("run", container, "--", "python", "-c", script))
    if "oauth" in asked:
        script = "import cryptography, jwt; print('pyjwt', jwt.__version__, cryptography.__version__)"
        say("it has " + builder("run", container, "--", "python", "-c", script))
    port = free_port()
    broker = RabbitMQ()
    try:
        broker.start()
        settings = builder.folder / "amqpgate.yaml"
        settings.write_text(SETTINGS % (port, broker.port) + (AUDITED if has_records else ""))
        environ = dict(entry.split("=", 1) for entry in config["Env"])
        with tempfile.TemporaryDirectory(prefix="amqpgate-image-") as scratch:
            # The records' folder is the container's to write to, and /tmp is.
            volumes = {Path(scratch, name): at for name, at in VOLUMES.items()} if has_records else {}
            os.chmod(scratch, 0o755)
            jail = Jail(tree, environ, settings, volumes)
            play(jail, config, broker, port, builder.folder / "gateway.log")
            if "pipeline" in asked:
                pipeline(jail)
    finally:
        broker.destroy()


def main() -> None:
    """Exit code 1 where it cannot be done, or is not as it should be."""
    parser = argparse.ArgumentParser(
        prog="make image IMAGE=", description="Build the image and play through it."
    )
    parser.add_argument(
        "--extras", default="oauth", help="build argument EXTRAS, such as audit,oauth; of itself oauth"
    )
    extras = parser.parse_args().extras
    lacks = missing()
    if lacks:
        raise SystemExit(f"image: not built: this needs {lacks}")
    builder = Builder(ROOT / "build" / "image")
    try:
        check(builder, extras)
    except ImpossibleError as error:
        raise SystemExit(f"image: not built: {error}") from None
    finally:
        builder.remove()


if __name__ == "__main__":
    main()
