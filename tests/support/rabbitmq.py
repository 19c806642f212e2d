"""A private RabbitMQ node, started from whatever RabbitMQ is installed and never touching one that runs.

Everything that makes a node is its own: AMQP port, distribution port, name server (epmd), node name, cookie,
home, data and logs, all on 127.0.0.1 and in one temporary directory. No root, no service, no `rabbitmq` user.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .erlang import ErlangShell
from .ports import free_port
from .processes import Child
from .rabbitmq_root import entering, named_config, named_root

#: Debian's layout first: its /usr/sbin wrappers insist on root or the user `rabbitmq`, these scripts do not.
_SCRIPT_FOLDERS = ("/usr/lib/rabbitmq/bin", "/usr/local/lib/rabbitmq/bin", "/opt/rabbitmq/sbin")

_FOLDER_PREFIX = "amqpgate-rabbitmq-"

_HEADER_0_9_1 = b"AMQP\x00\x00\x09\x01"


def script_folder() -> Path | None:
    """The folder of RabbitMQ's own scripts, or None when RabbitMQ (or Erlang) is not installed."""
    if shutil.which("erl") is None:
        return None
    for folder in map(Path, _SCRIPT_FOLDERS):
        if (folder / "rabbitmq-server").is_file():
            return folder
    found = shutil.which("rabbitmq-server")
    return Path(found).resolve().parent if found else None


def _is_stopped(thread: Path) -> bool:
    """Whether a thread, by its folder in /proc, is stopped by a signal, or gone."""
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return True


class CtlError(Exception):
    """rabbitmqctl ended with an error; the text is what it wrote."""


class RabbitMQ:
    """One node. `start` it, talk AMQP to `host`:`port` as guest/guest, and `destroy` it at the end."""

    host = "127.0.0.1"
    user = "guest"
    password = "guest"

    def __init__(
        self,
        *,
        plugins: Sequence[str] = (),
        config: Sequence[str] = (),
        root: Path | None = None,
        rabbit: Mapping[str, int] | None = None,
        beside: RabbitMQ | None = None,
    ) -> None:
        """`plugins` are enabled at start; `config` holds extra lines of rabbitmq.conf. With `root` it is the
        RabbitMQ of that folder (see `rabbitmq_root`). `rabbit` is what else advanced.config would say. It may
        join the cluster of the one that it is `beside`, which is started first, and destroyed last.
        """
        root = root or named_root()
        scripts = script_folder() if root is None else Path(_SCRIPT_FOLDERS[0])
        if scripts is None:
            raise FileNotFoundError("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
        self._scripts = scripts
        self._enter = [] if root is None else entering(root)
        self.port = free_port()
        self._epmd_port = free_port() if beside is None else beside._epmd_port
        self._dist_port = free_port()
        _sweep()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-"))
        self.node = f"amqpgate-{os.getpid()}-{self.port}@localhost"
        self.log = self._folder / "rabbit.log"
        self.cookie: str = secrets.token_hex(16) if beside is None else beside.cookie
        self._env = self._write_files(plugins, [*config, *named_config()])
        for name, value in (rabbit or {}).items():
            self._env["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"] += f" -rabbit {name} {value}"
        self._shell = ErlangShell(self.node, self._env, self._enter)
        self._has_epmd = beside is None
        self._epmd: Child | None = None
        self._server: Child | None = None
        atexit.register(self.destroy)

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """AMQP URL with guest's credentials and the default vhost."""
        return f"amqp://{self.user}:{self.password}@{self.address}/"

    @property
    def pid(self) -> int:
        """Process id of the Erlang machine."""
        assert self._server is not None, "not started"
        return self._server.pid

    @property
    def running(self) -> bool:
        return self._server is not None and self._server.running

    # -- life ------------------------------------------------------------------------------------------------

    def start(self, timeout: float = 90) -> None:
        """Start the node (on the data of last time, if any) and wait until it answers an AMQP handshake."""
        assert not self.running, "already running"
        if self._has_epmd and (self._epmd is None or not self._epmd.running):
            # An epmd of our own in the foreground: left alone, Erlang would start a daemon that outlives us.
            self._epmd = Child(
                [*self._enter, "epmd", "-address", self.host, "-port", str(self._epmd_port)],
                log=self._folder / "epmd.log",
                env=self._env,
            )
        self._server = Child(
            [*self._enter, self._scripts / "rabbitmq-server"],
            log=self._folder / "console.log",
            env=self._env,
            cwd=self._folder,
        )
        self._server.wait_until(self.answers, timeout=timeout, what="RabbitMQ")

    def stop(self, timeout: float = 60) -> None:
        """Stop in good order (SIGTERM): clients get connection.close 320, data stays for `start`."""
        if self._server is not None:
            self._server.stop(timeout)
            self._server = None

    def kill(self) -> None:
        """SIGKILL, as a power cut would: clients see their sockets end. Data stays for `start`."""
        if self._server is not None:
            self._server.kill()
            self._server = None

    def restart(self, *, graceful: bool = False) -> None:
        """`kill` (or `stop`) and `start` again on the same data and port."""
        if graceful:
            self.stop()
        else:
            self.kill()
        self.start()

    def destroy(self) -> None:
        """End the node, its epmd and its data."""
        self._shell.close()
        self.kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd = None
        shutil.rmtree(self._folder, ignore_errors=True)
        atexit.unregister(self.destroy)

    def pause(self) -> None:
        """SIGSTOP: sockets stay open, nothing is read or answered until `resume`."""
        os.kill(self.pid, signal.SIGSTOP)
        # The call returns before all threads have stopped; one that waits for a core may still answer.
        threads = Path(f"/proc/{self.pid}/task")
        while not all(map(_is_stopped, threads.iterdir())):
            time.sleep(0.001)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def answers(self) -> bool:
        """Whether the node answers a protocol header with connection.start: true once it has booted."""
        try:
            with socket.create_connection((self.host, self.port), timeout=5) as connection:
                connection.sendall(_HEADER_0_9_1)
                head = connection.recv(11, socket.MSG_WAITALL)
        except OSError:
            return False
        return len(head) == 11 and struct.unpack(">BHIHH", head)[3:] == (10, 10)

    # -- operator --------------------------------------------------------------------------------------------

    def ctl(self, *args: str, script: str = "rabbitmqctl", timeout: float = 60) -> str:
        """Output of rabbitmqctl (or a sister script: rabbitmq-queues, ...) run on this node: 0.5 s a call."""
        done = subprocess.run(
            [*self._enter, self._scripts / script, "--quiet", *args],
            env=self._env,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if done.returncode:
            raise CtlError(f"{script} {' '.join(args)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def eval(self, expression: str) -> str:
        """The value of an Erlang expression on the node, as Erlang prints it on one line."""
        return self._shell.eval(expression)

    def rows(self, command: str, *columns: str, vhost: str | None = None) -> list[dict[str, object]]:
        """Rows of a `list_*` command, e.g. `rows("list_queues", "name", "messages")`."""
        where = ["--vhost", vhost] if vhost is not None else []
        output = self.ctl(command, *where, "--formatter", "json", *columns)
        rows = json.loads(output) if output.strip() else []
        return [dict(row) for row in rows]

    def connections(self) -> list[dict[str, object]]:
        """Open connections: pid, user, vhost, state, client properties as a dictionary."""
        # Not by rabbitmqctl: clients that ask for this wait with a deadline, and where others keep all cores
        # busy it takes a minute to start.
        encoded = self.eval(
            "base64:encode(iolist_to_binary(rabbit_json:encode([#{"
            " pid => list_to_binary(pid_to_list(Pid)), user => User, vhost => Vhost, state => State,"
            " client_properties => rabbit_misc:amqp_table(Client)}"
            " || [{_, Pid}, {_, User}, {_, Vhost}, {_, State}, {_, Client}]"
            " <- rabbit_networking:connection_info_all([pid, user, vhost, state, client_properties]),"
            # One that has not logged in, or is about to go, has none.
            " is_list(Client)]))).",
        )
        rows = json.loads(base64.b64decode(encoded.removeprefix('<<"').removesuffix('">>')))
        return [dict(row) for row in rows]

    def close_connections(self, reason: str, *, vhost: str | None = None) -> None:
        """Close all connections, or one vhost's, as an operator does: clients get connection.close 320."""
        guard = f', Vhost =:= <<"{vhost}">>' if vhost is not None else ""
        every = "[{pid, Pid}, {vhost, Vhost}] <- rabbit_networking:connection_info_all([pid, vhost])"
        self.eval(f'[rabbit_networking:close_connection(Pid, <<"{reason}">>) || {every}{guard}].')

    def fresh_vhost(self, name: str) -> None:
        """An empty vhost in which guest may do everything; one of that name that exists is emptied first."""
        self.eval(
            f'Name = <<"{name}">>, Guest = <<"{self.user}">>, All = <<".*">>,'
            " case rabbit_vhost:exists(Name) of true -> rabbit_vhost:delete(Name, Guest); false -> ok end,"
            " rabbit_vhost:add(Name, Guest),"
            " rabbit_auth_backend_internal:set_permissions(Guest, Name, All, All, All, Guest)."
        )

    def add_user(
        self, name: str, password: str, *, vhost: str = "/", permissions: Sequence[str] = (".*", ".*", ".*")
    ) -> None:
        """A user with (configure, write, read) permissions on one vhost."""
        configure, write, read = permissions
        self.ctl("add_user", name, password)
        self.ctl("set_permissions", "-p", vhost, name, configure, write, read)

    def set_memory_alarm(self, on: bool) -> None:
        """Make the node believe that its memory is full (publishers get connection.blocked), or not."""
        self.eval(f"vm_memory_monitor:set_vm_memory_high_watermark({'0.00001' if on else '0.6'}).")
        deadline = time.monotonic() + 10
        # The call returns before the alarm is raised. Once it is, connections have been told.
        while on == (self.eval("rabbit_alarm:get_alarms().") == "[]"):
            assert time.monotonic() < deadline, "the memory alarm did not change"
            time.sleep(0.01)

    @contextlib.contextmanager
    def memory_alarm(self) -> Iterator[None]:
        """`set_memory_alarm` on while inside."""
        self.set_memory_alarm(True)
        try:
            yield
        finally:
            self.set_memory_alarm(False)

    # -- files -----------------------------------------------------------------------------------------------

    def _write_files(self, plugins: Sequence[str], config: Sequence[str]) -> Mapping[str, str]:
        folder = self._folder
        for name in ("home", "mnesia", "log", "plugins", "generated", "schema"):
            (folder / name).mkdir()
        cookie = folder / "home" / ".erlang.cookie"
        cookie.write_text(self.cookie)
        cookie.chmod(0o400)
        (folder / "enabled_plugins").write_text(f"[{','.join(plugins)}].\n")
        (folder / "rabbitmq-env.conf").write_text("")
        (folder / "advanced.config").write_text("[].\n")
        (folder / "rabbitmq.conf").write_text(
            "\n".join(
                [
                    f"listeners.tcp.default = {self.address}",
                    "loopback_users = none",
                    # A test machine's small disk or memory must not turn into connection.blocked.
                    "disk_free_limit.absolute = 1MB",
                    "vm_memory_high_watermark.relative = 0.6",
                    "log.file.level = info",
                    *config,
                    "",
                ]
            )
        )
        ctl_port = free_port()
        inherited = {
            key: value for key, value in os.environ.items() if not key.startswith(("RABBITMQ_", "ERL_"))
        }
        return inherited | {
            "HOME": str(folder / "home"),
            "ERL_EPMD_ADDRESS": self.host,
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_CTL_DIST_PORT_MIN": str(ctl_port),
            "RABBITMQ_CTL_DIST_PORT_MAX": str(ctl_port + 50),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
            "RABBITMQ_SCHEMA_DIR": str(folder / "schema"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": str(self.log),
            "RABBITMQ_PLUGINS_EXPAND_DIR": str(folder / "plugins"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            # "Allow input" makes the script exec the Erlang machine, so that our child is the node itself;
            # the arguments then take the input away again, and keep the distribution on loopback.
            "RABBITMQ_ALLOW_INPUT": "1",
            "RABBITMQ_SERVER_START_ARGS": "-noinput",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }


def _sweep() -> None:
    """Remove the folders of test runs that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        owner = folder.name.removeprefix(_FOLDER_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(folder, ignore_errors=True)
