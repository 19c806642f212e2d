"""A Spark session: embedded in this process by default, or on any cluster."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Final
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark import java_gateway
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import SparkSession

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.java import find, make_home
from amqpgate.pipeline.masters import chosen as chosen_master
from amqpgate.pipeline.masters import is_connect, is_embedded, is_submitted

#: Wherever it runs.
SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    # The driver lists files: a job for that costs more than it saves.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Bodies of messages, and parts, are large: of these, 10,000 at once would be too many.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    "spark.ui.showConsoleProgress": "false",
}

#: Where it is embedded; a cluster has its own.
EMBEDDED_SETTINGS: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "16",
}

#: The start takes half the CPU with the first, and each million records twice as much
#: (spec/decisions/0020-pipeline.md).
_SHORT: Final = "-XX:TieredStopAtLevel=1"
_JVM: Final = "-XX:+UseSerialGC"
#: Of Spark Connect, where the address has none.
_CONNECT_PORT: Final = 15002
#: Seconds that a server has to answer.
_PATIENCE: Final = 60.0
_LOG: Final = Path(__file__).with_name("log4j2.properties")


def start(
    master: str | None = None, settings: Mapping[str, str] | None = None, *, is_long: bool = False
) -> SparkSession:
    """A session on that master; without one on spark-submit's if that started this process, else embedded.

    ``settings`` are Spark's own, and go before those of this module. ``is_long``: Java, if it is embedded, is
    to be fast after half a minute rather than at the start. Raises ``PipelineError`` where there is
    no Java, or no such master.
    """
    chosen = chosen_master(master)
    wanted = dict(SETTINGS)
    if is_embedded(master):
        wanted |= EMBEDDED_SETTINGS
        # Else Spark looks up the machine's own name, and does not start where nobody knows that.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if is_connect(chosen):
        return _connect(str(chosen), wanted | dict(settings or {}))
    if not is_submitted() and SparkSession.getActiveSession() is None:
        _prepare()
        options = (_JVM, *(() if is_long else (_SHORT,)), f"-Dlog4j2.configurationFile={_LOG.as_uri()}")
        wanted["spark.driver.extraJavaOptions"] = " ".join(options)
    builder = SparkSession.builder.appName("amqpgate audit")
    if chosen is not None:
        builder = builder.master(chosen)
    for name, value in (wanted | dict(settings or {})).items():
        builder = builder.config(name, value)
    try:
        with _left_alone():
            return builder.getOrCreate()
    except (PySparkException, Py4JError, RuntimeError) as error:
        raise PipelineError(
            f"Spark did not start on {chosen or 'its master'}: {first_line(error)}"
        ) from error


@contextmanager
def _left_alone() -> Iterator[None]:
    """Start Spark's Java so that SIGTERM does not end it.

    Service managers send the signal to the whole group. This process ends its queries then, and Java with
    itself, by the pipe between them; a Java that ended first would fail what is under way, and say so.
    PySpark keeps SIGINT away from it in the same place, and has no setting for another one.
    """
    module = vars(java_gateway)

    def popen(
        command: list[str], *, preexec_fn: Callable[[], None] | None = None, **how: object
    ) -> subprocess.Popen[bytes]:
        def deaf() -> None:
            if preexec_fn is not None:
                preexec_fn()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

        return subprocess.Popen(command, preexec_fn=deaf, **how)  # type: ignore[call-overload,no-any-return]  # noqa: S603

    module["Popen"] = popen
    try:
        yield
    finally:
        module["Popen"] = subprocess.Popen


def _connect(address: str, settings: Mapping[str, str]) -> SparkSession:
    """A session on a server, which has a Java of its own, and settings that only its start may choose."""
    where = _place(address)
    try:
        _ensure_answer(address, where)
        session = SparkSession.builder.remote(address).getOrCreate()
        for name, value in settings.items():
            if session.conf.isModifiable(name):
                session.conf.set(name, value)
    except ImportError as error:
        raise PipelineError(f"{error.name} is missing: pip install 'amqpgate[connect]'") from error
    except (PySparkException, RuntimeError) as error:
        raise PipelineError(f"Spark Connect at {where}: {first_line(error)}") from error
    return session


def _place(address: str) -> str:
    """Host and port: what is behind them may have a token."""
    parts = urlsplit(address)
    try:
        port = parts.port or _CONNECT_PORT
    except ValueError:
        port = 0
    if not parts.hostname or not port:
        raise PipelineError("Spark Connect: --master is not like sc://HOST:PORT")
    return f"{parts.hostname}:{port}"


def _ensure_answer(address: str, where: str) -> None:
    """Raise ``PipelineError`` where nobody answers. PySpark's client asks again for minutes, in silence."""
    from grpc import Channel, ChannelConnectivity
    from pyspark.sql.connect.client import DefaultChannelBuilder

    # With its own builder: a proxy and TLS are as the session's.
    channel: Channel = DefaultChannelBuilder(address).toChannel()
    states: Queue[ChannelConnectivity] = Queue()
    channel.subscribe(states.put, try_to_connect=True)
    try:
        while (state := states.get(timeout=_PATIENCE)) != ChannelConnectivity.READY:
            if state in (ChannelConnectivity.TRANSIENT_FAILURE, ChannelConnectivity.SHUTDOWN):
                raise PipelineError(f"Spark Connect: nobody answers at {where}")
    except Empty:
        raise PipelineError(f"Spark Connect: no answer from {where} in {_PATIENCE:.0f} s") from None
    finally:
        channel.close()


def _prepare() -> None:
    """Tell Spark's scripts which Java and which Python they start."""
    home = Path(tempfile.mkdtemp(prefix="amqpgate-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ["JAVA_HOME"] = str(make_home(find(), home))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn what Spark raises inside into a ``PipelineError``."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise PipelineError(f"{what}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Spark's own sentence, without the traces of two languages: that with the name of an error, if any; and
    of an error in Python the last."""
    text = str(error).strip()
    if isinstance(error, PythonException):
        return text.rpartition("\n")[2]
    named = re.search(r"\[[A-Z][A-Z_]+(\.[A-Z_]+)?\] .*", text)
    return named[0] if named else text.partition("\n")[0]
