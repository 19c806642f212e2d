"""Policies that are read again: what counts as a change."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry

from amqpgate.gateway.server import reloading
from amqpgate.gateway.server.policy_state import PolicyState
from amqpgate.gateway.server.reloading import Reloading
from amqpgate.policy import PolicySet, load_folder
from amqpgate.policy.loader import stamp
from amqpgate.telemetry.policies import PolicyMetrics
from tests.support.metrics import sample_value

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: %s}
spec:
  subjects: [{user: guest}]
  rules: [{id: all, effect: allow, operations: ["*"]}]
"""


class Rig:
    """A folder like a mounted ConfigMap, and what reads it."""

    def __init__(self, mount: Path) -> None:
        self.mount = mount
        self.used: list[str] = []
        self._count = 0
        mount.mkdir()
        self.swap(POLICY % "first")
        (mount / "policy.yaml").symlink_to("..data/policy.yaml")
        first = load_folder(mount)
        self.registry = CollectorRegistry()
        state = PolicyState("done", first.digest, 0.0)
        self.reloading = Reloading(mount, self.use, PolicyMetrics(self.registry), state, stamp(mount))

    async def use(self, policies: PolicySet) -> None:
        self.used.append(policies.access[0].metadata.name)

    def swap(self, text: str) -> None:
        """As kubelet does it: a new hidden folder, then the link to it in one step; the old one goes."""
        self._count += 1
        hidden = self.mount / f"..2026_{self._count}"
        hidden.mkdir()
        (hidden / "policy.yaml").write_text(text)
        link = self.mount / "..data_tmp"
        link.symlink_to(hidden.name)
        link.rename(self.mount / "..data")
        old = self.mount / f"..2026_{self._count - 1}"
        if old.exists():
            (old / "policy.yaml").unlink()
            old.rmdir()

    async def until(self, done: Callable[[], bool]) -> None:
        with trio.fail_after(10):
            while not done():  # noqa: ASYNC110 - it is the gateway that is watched
                await trio.sleep(0.005)

    async def until_used(self, used: list[str]) -> None:
        await self.until(lambda: self.used == used)

    def reloads(self, outcome: str) -> float | None:
        return sample_value(self.registry, "amqpgate_policy_reloads_total", {"outcome": outcome})


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(reloading, "_EVERY", 0.01)
    monkeypatch.setattr(reloading, "_REST", 1)
    return Rig(tmp_path / "mount")


async def test_a_swapped_config_map_is_read(rig: Rig, nursery: trio.Nursery) -> None:
    nursery.start_soon(rig.reloading.watch)
    for count in range(2, 6):
        rig.swap(POLICY % f"number-{count}")
        await rig.until_used([f"number-{number}" for number in range(2, count + 1)])
    assert rig.reloading.state.digest == load_folder(rig.mount).digest
    assert rig.reloads("done") == 4


async def test_a_file_that_is_only_touched_changes_nothing(rig: Rig, nursery: trio.Nursery) -> None:
    nursery.start_soon(rig.reloading.watch)
    before = rig.reloading.seen
    os.utime(rig.mount / "policy.yaml")
    await rig.until(lambda: rig.reloading.seen != before)
    assert rig.used == []
    assert rig.reloads("done") == 0


async def test_what_is_wrong_is_told_once_and_what_is_right_again_clears_it(
    rig: Rig, nursery: trio.Nursery
) -> None:
    nursery.start_soon(rig.reloading.watch)
    rig.swap(POLICY % "first" + "  surplus: 1\n")
    await rig.until(lambda: rig.reloading.state.status == "refused")
    state = rig.reloading.state
    assert state.error is not None
    assert "surplus" in state.error
    assert (state.file, state.line) == (str(rig.mount / "policy.yaml"), 8)
    await trio.sleep(0.1)
    assert rig.reloads("refused") == 1
    assert sample_value(rig.registry, "amqpgate_policy_last_reload_successful") == 0
    rig.swap(POLICY % "first")  # what is in force anyway
    await rig.until_used(["first"])
    assert rig.reloading.state.error is None
    assert sample_value(rig.registry, "amqpgate_policy_last_reload_successful") == 1


async def test_a_folder_that_goes_and_comes_back(rig: Rig, nursery: trio.Nursery) -> None:
    nursery.start_soon(rig.reloading.watch)
    away = rig.mount.with_name("away")
    rig.mount.rename(away)
    await rig.until(lambda: rig.reloading.state.status == "refused")
    away.rename(rig.mount)
    await rig.until_used(["first"])


async def test_a_change_that_goes_on_is_not_read_yet(rig: Rig, nursery: trio.Nursery) -> None:
    file = rig.mount / "second.yaml"
    pause = trio.Event()
    looked = 0

    async def edit() -> None:
        nonlocal looked
        for number in range(30):
            file.write_text("# " + "x" * number + "\n" + POLICY % "zzz")
            await trio.sleep(0.004)
        looked = len(rig.used)
        pause.set()

    nursery.start_soon(rig.reloading.watch)
    nursery.start_soon(edit)
    await pause.wait()
    await rig.until_used([*rig.used[:looked], "first"])
    assert len(rig.used) < 10


async def test_a_defect_while_it_is_put_in_force_costs_nothing(rig: Rig) -> None:
    async def fails(policies: PolicySet) -> None:
        raise RuntimeError("defect")

    rig.reloading.use = fails
    state = await rig.reloading.reload()
    assert (state.status, state.digest) == ("refused", load_folder(rig.mount).digest)
    assert rig.reloads("refused") == 1


async def test_without_a_folder_there_is_nothing_to_read() -> None:
    async def use(policies: PolicySet) -> None:
        raise AssertionError("there is nothing to use")

    reloads = Reloading(None, use, PolicyMetrics(CollectorRegistry()), PolicyState("done", "", 0.0))
    assert (await reloads.reload()).status == "nothing"
    await reloads.watch()


def test_a_stamp_tells_files_apart(tmp_path: Path) -> None:
    seen = [stamp(tmp_path / "missing"), stamp(tmp_path)]
    file = tmp_path / "a.yaml"
    file.write_text("a")
    seen.append(stamp(tmp_path))
    file.write_text("bb")
    seen.append(stamp(tmp_path))
    (tmp_path / "other").write_text("bb")
    file.unlink()
    file.symlink_to("other")
    seen.append(stamp(tmp_path))
    assert len(set(seen)) == len(seen)
    assert stamp(tmp_path) == seen[-1]
    (tmp_path / ".hidden.yaml").write_text("")
    assert stamp(tmp_path) == seen[-1]
