"""Builds a gateway from the settings and owns the root of the nursery tree."""

from __future__ import annotations

import gc
import linecache
import logging
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from amqpgate import __version__
from amqpgate.admin.http import LAST_WORDS, serve_admin
from amqpgate.app import descriptors
from amqpgate.app.waiting import any_of
from amqpgate.app.worker_queries import answer_supervisor
from amqpgate.app.worker_rpc import WorkerConfig
from amqpgate.config import Admin, Settings
from amqpgate.datapath import reserve
from amqpgate.datapath.build import COMPILED
from amqpgate.datapath.driver import run_hosted
from amqpgate.gateway.limits.shared_memory import SharedMemory
from amqpgate.gateway.server import assembly
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.server.policy_fit import check_policies, notes_on
from amqpgate.gateway.transport.tasks import contained, kept
from amqpgate.operator.single import SingleGateway
from amqpgate.policy import PolicySet, load_folder
from amqpgate.policy.loader import stamp
from amqpgate.telemetry.audit.arrow import import_arrow

log = logging.getLogger(__name__)

#: Seconds after which a thread that works (spans, records, policies) gives the interpreter to the data path,
#: if that waits for it. Python's own choice is 5 ms. See decision 0028.
SWITCH: Final = 0.5e-3


def build(settings: Settings, shared_memory: SharedMemory | None = None) -> Gateway:
    """The gateway that the settings describe, with its policies. Raises ``ConfigError``.

    ``shared_memory`` is what limits are counted in together with other workers.
    """
    # What changes after this look, the watch finds.
    seen = None if settings.policies is None else stamp(settings.policies)
    policies = load_policies(settings)
    gateway = assembly.build(settings, policies, __version__, seen=seen, shared_memory=shared_memory)
    for note in notes_on(settings, gateway.policies):
        log.warning("%s", note)
    return gateway


def load_policies(settings: Settings) -> PolicySet:
    """The policies that the settings name. Raises ``ConfigError``."""
    if settings.policies is None:
        return PolicySet.empty(settings.default_access)
    policies = load_folder(settings.policies, settings.default_access)
    check_policies(settings, policies, os.environ)
    return policies


def run(
    settings: Settings,
    *,
    on_started: Callable[[Gateway], None] | None = None,
    take_over: Callable[[], None] | None = None,
) -> int:
    """Run until SIGTERM or SIGINT, then drain; a second signal ends at once.

    The calling thread, the main one, drives the data path, with trio as its guest. Returns the exit
    code: 0 after a drain, 1 when a second signal cut it short. Raises ``ConfigError`` and ``OSError``
    where it cannot start. In a worker process, the admin interface is the supervisor's.

    ``take_over`` is called in a thread once it serves, to have another process give up the admin address.
    ``on_started`` is called when that is done.
    """
    reserve.install()
    worker = WorkerConfig.from_environment()
    shared_memory = None
    if worker is not None:
        settings = worker.settle(settings)
        if worker.limits is not None:
            shared_memory = SharedMemory(worker.limits, worker.workers, worker.number)
    descriptors.prepare(settings)
    if settings.audit is not None and settings.audit.format == "parquet":
        import_arrow()
    gateway = build(settings, shared_memory)
    if worker is not None and worker.paused:
        gateway.pause()
    sys.setswitchinterval(SWITCH)
    try:
        return run_hosted(gateway.pump, _serve, gateway, on_started, True, worker, take_over)
    finally:
        gateway.pump.close()


async def serve(settings: Settings, *, on_started: Callable[[Gateway], None] | None = None) -> int:
    """As ``run``, as a task of a trio program that does more than this."""
    return await _serve(build(settings), on_started, False, None, None)


async def _serve(
    gateway: Gateway,
    on_started: Callable[[Gateway], None] | None,
    hosted: bool,
    worker: WorkerConfig | None,
    take_over: Callable[[], None] | None,
) -> int:
    settings = gateway.settings
    if not COMPILED:
        log.warning(
            "the data path runs in plain Python, many times slower: "
            "install a C compiler and the Python headers, and install amqpgate again"
        )
    cut_short = False
    # A program that does more than this may mean something else by SIGHUP.
    watched = [signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hosted else [])]
    with trio.open_signal_receiver(*watched) as signals:
        async with trio.open_nursery() as root:

            async def watch_signals() -> None:
                nonlocal cut_short
                count = 0
                async for number in signals:
                    if number == signal.SIGHUP:
                        await contained("the policies", partial(_reload, gateway))
                        continue
                    count += 1
                    name = signal.Signals(number).name
                    if count == 1:
                        log.info("%s: draining; another signal ends at once", name)
                        gateway.drain()
                    else:
                        log.warning("%s again: ending at once", name)
                        cut_short = True
                        root.cancel_scope.cancel()

            root.start_soon(watch_signals)
            gateway_over = trio.Event()

            async def run_gateway(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
                try:
                    await gateway.run(hosted=hosted, task_status=task_status)
                finally:
                    gateway_over.set()

            # The admin listens first and says "not ready", so that a probe is never refused.
            admin_over = trio.Event()
            if settings.admin is None:
                admin_over.set()
            elif take_over is None:
                await root.start(_admin_task, settings.admin, gateway, gateway_over, admin_over)
            await root.start(run_gateway)
            if settings.watch_policies:
                root.start_soon(kept, "the policies", gateway.reloading.watch)
            if worker is not None:
                root.start_soon(answer_supervisor, worker, gateway)
            if hosted:
                # The source of what attrs has generated, for tracebacks: 1.6 MiB that sessions can use.
                linecache.clearcache()
                # What was loaded stays: full collections, for which all sessions wait, need not look at it.
                gc.collect()
                gc.freeze()
            if settings.admin is not None and take_over is not None:
                await trio.to_thread.run_sync(take_over)
                await root.start(_admin_task, settings.admin, gateway, gateway_over, admin_over)
            if on_started is not None:
                on_started(gateway)
            if hosted:
                gateway.collections.begin()
            await gateway_over.wait()
            with trio.move_on_after(LAST_WORDS):
                await admin_over.wait()
            root.cancel_scope.cancel()
    return 1 if cut_short else 0


async def _reload(gateway: Gateway) -> None:
    """A signal asks for it."""
    await gateway.reload_policies(by="signal")


async def _admin_task(
    admin: Admin,
    gateway: Gateway,
    over: trio.Event,
    ended: trio.Event,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    end = partial(any_of, over, gateway.lifecycle.handed_over)
    try:
        await serve_admin(admin, SingleGateway(gateway), shutdown=end, task_status=task_status)
    finally:
        ended.set()
