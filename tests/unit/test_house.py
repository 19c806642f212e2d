"""The shape of the house, computed from the source. Floors between rooms are import-linter's (`make lint`).

What does not hold yet stands in `still_to_go.txt`, a line each. It is a ratchet: a new line fails, and so
does one that is no longer true. `python -m tests.unit.test_house` prints what that file has to say today.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.support.house import (
    House,
    cycles,
    foreign_writes,
    imports,
    never_used,
    polling,
    sizeless_tuples,
    sizes,
    twice,
)

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/amqpgate"
TESTS = ROOT / "tests/unit"
DECISIONS = ROOT / "spec/decisions"
STILL_TO_GO = Path(__file__).with_name("still_to_go.txt")

#: What a class may have before a decision has to say why it has more.
MOST_ATTRIBUTES, MOST_METHODS = 12, 20
#: What `gateway/` may have at its top.
MOST_NAMES = 12

#: What sessions and messages go through: tuples that nobody takes up again add up there (decision 0093).
PER_SESSION = (
    "amqpgate.bridge",
    "amqpgate.datapath",
    "amqpgate.gateway",
    "amqpgate.policy.engine",
    "amqpgate.policy.policy_set",
    "amqpgate.protocol",
    "amqpgate.wire",
)

#: What keeps the linter quiet about a loop that polls.
SILENCE = "noqa: " + "ASYNC110"

#: Larger classes, and the decision that says why. It names the class.
DECIDED = {
    "amqpgate.gateway.handshake.fast_handshake:FastHandshake": "0067",
    "amqpgate.gateway.observers.audit.columns:OperationKind": "0032",
    "amqpgate.gateway.observers.audit.session:AuditObserver": "0033",
    "amqpgate.gateway.observers.stats.decisions:Decision": "0032",
    "amqpgate.gateway.observers.trace.session:TraceObserver": "0033",
    "amqpgate.gateway.session.observer:SessionObserver": "0033",
    "amqpgate.gateway.session.upstream:SessionUpstream": "0032",
    "amqpgate.gateway.transport.fibers:Fibers": "0083",
    "amqpgate.gateway.transport.translation:PlainTranslation": "0036",
}

#: Loops that pause because time itself is what they wait for, and what they do.
PERIODIC = {
    "amqpgate.admin.door:_accept": "waits for the system to have memory, or file descriptors, again",
    "amqpgate.broker.server:_keep_alive": "sends heartbeats",
    "amqpgate.conformance.client.served:_beat": "sends heartbeats",
    "amqpgate.conformance.proxy.inner:_beat": "sends heartbeats",
    "amqpgate.conformance.proxy.run:_passes_at_all": "dials a proxy that may not have found its broker yet",
    "amqpgate.gateway.identity.issuer:run": "fetches keys again after a while",
    "amqpgate.gateway.limits.distributed:_keep_filled": "renews leases every interval",
    "amqpgate.gateway.limits.distributed:run": "dials Redis again after a pause",
    "amqpgate.gateway.objects.uploads:look_after": "looks who is late, while others wait for their turn",
    "amqpgate.gateway.server.pushing:run": "sends metrics every interval",
    "amqpgate.gateway.observers.audit.audit:run": "closes a window after the other",
    "amqpgate.gateway.observers.mirror.pipe:_read": "lets other tasks run while there is more to receive",
    "amqpgate.gateway.observers.tap.taps:run": "shares out what all taps may show in a slice of time",
    "amqpgate.gateway.pool.registry:run": "retires connections that have been idle for long",
    "amqpgate.gateway.server.housekeeping:run": "looks at all sessions every second",
    "amqpgate.gateway.server.lifecycle:part": "closes sessions in slices over the window",
    "amqpgate.gateway.server.reloading:watch": "looks for changed files: not every file system tells",
    "amqpgate.gateway.session.close_session:run": "closes sessions whose time is over",
    "amqpgate.gateway.transport.tasks:kept": "begins anew what has failed, a moment later",
    "amqpgate.gateway.transport.method_stream:_send_all": "lets other tasks run between a translator's turns",
    "amqpgate.gateway.upstream.health_check:_watch": "checks an endpoint every interval",
    "amqpgate.kubernetes.reconciling:_keep": "lets more changes come before all are judged, and tries again",
}

#: Records whose writers are others by contract, by why; the writes are those of the control plane.
SET_BY_OTHERS = {
    "a flow says what of its messages is shown, and where they are counted: observers agree on that": {
        "amqpgate.gateway.limits.sampler: flow.sample_every",
        "amqpgate.gateway.limits.sampler: flow.show",
        "amqpgate.gateway.limits.sampler: flow.unsampled",
        "amqpgate.gateway.observers.audit.session: flow.meter",
        "amqpgate.gateway.observers.audit.session: flow.show",
        "amqpgate.gateway.observers.tap.flows: flow.show",
        "amqpgate.gateway.observers.tap.flows: self.flow.sample_every",
        "amqpgate.gateway.observers.tap.sent: watched.flow.show",
    },
    "a lane of the data path stops, shows and bounds what the control plane wants": {
        "amqpgate.gateway.pool.pooled_upstream: self.relay.up.ready_at",
        "amqpgate.gateway.session.claim_delivery: self.session.relay.down.ready_at",
        "amqpgate.gateway.session.claim_publish: self.session.relay.up.ready_at",
        "amqpgate.gateway.session.claims: relay.up.most_body",
        "amqpgate.gateway.session.operation_limits: self.lane.ready_at",
        "amqpgate.gateway.session.registry: client_end.lane.most_body",
        "amqpgate.gateway.session.session: to_client.shows_content",
        "amqpgate.gateway.session.session: self.relay.up.shows_nacks",
        "amqpgate.gateway.session.upcalls: lane.ready_at",
        "amqpgate.gateway.session.version_bridge: self.relay.outgoing",
        "amqpgate.gateway.session.version_bridge: self.relay.up.shows_nacks",
    },
    "the end of a pooled session at its connection keeps as much of a message as it may": {
        "amqpgate.gateway.pool.pooled_upstream: member.endpoint.whole",
    },
    "a bucket of the data path is refilled by whoever knows the rate": {
        "amqpgate.gateway.limits.token_buckets: bucket.burst",
        "amqpgate.gateway.limits.token_buckets: bucket.rate",
        "amqpgate.gateway.limits.token_buckets: bucket.stamp",
        "amqpgate.gateway.limits.token_buckets: bucket.tokens",
    },
    "ssl takes settings as attributes": {
        "amqpgate.gateway.transport.tls: connection.context",
        "amqpgate.gateway.transport.tls: context.check_hostname",
        "amqpgate.gateway.transport.tls: context.sni_callback",
        "amqpgate.gateway.transport.tls: context.verify_mode",
    },
    "trio moves a deadline so": {
        "amqpgate.gateway.server.gateway: tasks.cancel_scope.deadline",
        "amqpgate.gateway.transport.waiting: self._scope.deadline",
    },
    "what runs is a variable of its thread": {"amqpgate.gateway.transport.fiber: RUNNING.fiber"},
    "a class wraps the methods of its heirs as they are defined": {
        "amqpgate.gateway.session.observer: setattr(cls, ...)",
    },
}

#: What is called from elsewhere, and by whom: libraries.
CALLED_BY_OTHERS = {
    "amqpgate.cli:format_commands": "click",
    "amqpgate.inject.manifests:ignore_aliases": "PyYAML",
    "amqpgate.resources.documents:ignore_aliases": "PyYAML",
}


@cache
def house() -> House:
    return House.read(SOURCE)


def _in_cycles(given: House) -> set[str]:
    # In the command line an import inside a function is there to start quickly; it is no part of the design.
    return {name for cycle in cycles(imports(given, lazy=("amqpgate.cli",))) for name in cycle}


def _too_large(given: House) -> set[str]:
    return {
        name
        for name, size in sizes(given, DECIDED).items()
        if name.startswith("amqpgate.gateway")
        and (len(size.attributes) > MOST_ATTRIBUTES or len(size.methods) > MOST_METHODS)
    } - set(DECIDED)


def _written_by_others(given: House) -> set[str]:
    return foreign_writes(given.within("amqpgate.gateway")) - set().union(*SET_BY_OTHERS.values())


def _defined_twice(given: House) -> set[str]:
    return {f"{name}: {' '.join(modules)}" for name, modules in twice(given).items()}


def _polled(given: House) -> set[str]:
    # What runs at a terminal shows the state of things every second.
    return {name for name in polling(given) if not name.startswith("amqpgate.cli.")} - set(PERIODIC)


def _without_length(given: House) -> set[str]:
    return sizeless_tuples(given.within(*PER_SESSION))


def _silenced(given: House) -> set[str]:
    return {name for name, text in given.within("amqpgate.gateway").texts.items() if SILENCE in text}


def _without_namesake(given: House, tests: Path = TESTS) -> set[str]:
    """Modules without a test of the same name in the same room of the tests."""
    missing = set()
    for name in given.within("amqpgate.gateway", "amqpgate.policy").modules:
        path = SOURCE / Path(*name.split(".")[1:])
        if path.is_dir() or path.name == "__main__":
            continue
        mirrored = tests / path.relative_to(SOURCE)
        if not mirrored.with_name(f"test_{mirrored.name}.py").exists():
            missing.add(name)
    return missing


def _for_tests_only(given: House) -> set[str]:
    others = [path for pattern in ("*.p[yx][xdi]", "generated/*.py") for path in SOURCE.rglob(pattern)]
    return never_used(given, [path.read_text() for path in others]) - set(CALLED_BY_OTHERS)


#: Each check, by what its lines are.
CHECKS: dict[str, Callable[[House], set[str]]] = {
    "modules in an import cycle, imports for type checkers included": _in_cycles,
    "classes of the gateway above 12 attributes or 20 methods": _too_large,
    "writes to another object's attribute in the gateway": _written_by_others,
    "names of classes that are defined more than once": _defined_twice,
    "loops that poll": _polled,
    "functions of a session or a message that make a tuple of what does not know its length": _without_length,
    "functions and classes that nobody uses, but tests perhaps": _for_tests_only,
    "modules of the gateway that silence the linter on polling": _silenced,
    "modules of the gateway and of the policies without a test namesake": _without_namesake,
}


def _lines() -> dict[str, set[str]]:
    """What is still to go, by check."""
    lines: dict[str, set[str]] = {}
    section: set[str] = set()
    for line in STILL_TO_GO.read_text().splitlines():
        if line.startswith("# "):
            section = lines.setdefault(line[2:], set())
        elif line:
            section.add(line)
    return lines


def _compare(now: Iterable[str], known: Iterable[str]) -> None:
    now, known = set(now), set(known)
    assert not now - known, "new: " + "; ".join(sorted(now - known))
    assert not known - now, f"gone, take it out of {STILL_TO_GO.name}: " + "; ".join(sorted(known - now))


@pytest.mark.parametrize("check", CHECKS)
def test_nothing_new_stands_against_the_plan(check: str) -> None:
    _compare(CHECKS[check](house()), _lines().get(check, set()))


def test_the_ratchet_turns_one_way() -> None:
    _compare(["a"], ["a"])
    with pytest.raises(AssertionError, match="new: b"):
        _compare(["a", "b"], ["a"])
    with pytest.raises(AssertionError, match=r"gone, take it out of still_to_go.txt: b"):
        _compare(["a"], ["a", "b"])


def test_what_is_still_to_go_belongs_to_a_check() -> None:
    assert set(_lines()) <= set(CHECKS)


def test_gateway_is_rooms_and_nothing_else() -> None:
    top = {path.name for path in (SOURCE / "gateway").iterdir() if path.name != "__pycache__"}
    assert len(top) <= MOST_NAMES, sorted(top)
    assert {name for name in top if name.endswith(".py")} == {"__init__.py"}


def test_a_decision_says_why_a_class_is_larger() -> None:
    measured = sizes(house())
    for name, number in DECIDED.items():
        size = measured[name]
        assert len(size.attributes) > MOST_ATTRIBUTES or len(size.methods) > MOST_METHODS, f"{name} is small"
        (decision,) = DECISIONS.glob(f"{number}-*.md")
        assert f"`{name.rpartition(':')[2]}`" in decision.read_text(), f"{decision.name} does not name {name}"


def test_what_is_periodic_is_still_there() -> None:
    assert set(PERIODIC) <= polling(house())


def test_what_others_set_is_still_set_by_them() -> None:
    assert set().union(*SET_BY_OTHERS.values()) <= foreign_writes(house().within("amqpgate.gateway"))


def test_what_others_call_is_still_there() -> None:
    assert set(CALLED_BY_OTHERS) <= never_used(house())


# -- each check can fail -------------------------------------------------------------------------------------


def test_it_sees_a_cycle_through_type_checking_and_functions() -> None:
    texts = {
        "amqpgate.gateway.a": "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from amqpgate.gateway import b\n",
        "amqpgate.gateway.b": "def f():\n    from amqpgate.gateway.c import x\n",
        "amqpgate.gateway.c": "import amqpgate.gateway.a\n",
        "amqpgate.gateway.d": "from amqpgate.gateway.a import y\n",
    }
    assert _in_cycles(House.of(texts)) == {f"amqpgate.gateway.{name}" for name in "abc"}
    # An import inside a function of the command line does not count.
    lazy = {name.replace("gateway", "cli"): text.replace("gateway", "cli") for name, text in texts.items()}
    assert _in_cycles(House.of(lazy)) == set()


def test_it_sees_large_classes_and_what_they_inherit(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = "".join(f"    a{number}: int\n" for number in range(8))
    more = "".join(f"        self.b{number} = 1\n" for number in range(5))
    methods = "".join(f"    def m{number}(self): ...\n" for number in range(21))
    text = f"""
class Base:
{fields}
class Large(Base):
    def __init__(self):
{more}
class Small(Base):
    c: ClassVar[int] = 1
    d: int
class Busy:
{methods}
class Word(Enum):
{fields}{methods}
"""
    assert _too_large(House.of({"amqpgate.gateway.a": text})) == {
        "amqpgate.gateway.a:Large",
        "amqpgate.gateway.a:Busy",
    }
    assert _too_large(House.of({"amqpgate.operator.a": text})) == set()
    # A class that a decision is about is not counted in its heirs again.
    monkeypatch.setitem(DECIDED, "amqpgate.gateway.a:Busy", "0032")
    heirs = f"{text}class Heir(Busy):\n    def m0(self): ...\n"
    assert _too_large(House.of({"amqpgate.gateway.a": heirs})) == {"amqpgate.gateway.a:Large"}


@pytest.mark.parametrize(
    ("statement", "seen"),
    [
        ("other.x = 1", "other.x"),
        ("other.x += 1", "other.x"),
        ("self.other.x = 1", "self.other.x"),
        ("del other.x", "other.x"),
        ("self.y, other.x = 1, 2", "other.x"),
        ("for other.x in (): ...", "other.x"),
        ("setattr(other, 'x', 1)", "setattr(other, ...)"),
        ("made = find(other); made.x = 1", "made.x"),
        ("self.x = 1", None),
        ("made = Other(); made.x = 1", None),
        ("made = module.Other(1); made.x = 1", None),
    ],
)
def test_it_sees_writes_to_others(statement: str, seen: str | None) -> None:
    text = f"class A:\n    def f(self, other):\n        {statement}\n"
    found = _written_by_others(House.of({"amqpgate.gateway.a": text}))
    assert found == ({f"amqpgate.gateway.a: {seen}"} if seen else set())


def test_who_made_an_object_writes_it_in_the_same_function_only() -> None:
    text = "def f():\n    made = Other()\n    def g():\n        made.x = 1\n"
    assert _written_by_others(House.of({"amqpgate.gateway.a": text})) == {"amqpgate.gateway.a: made.x"}


def test_it_sees_two_classes_of_one_name() -> None:
    texts = {"amqpgate.a": "class A: ...", "amqpgate.b": "def f():\n    class A: ...", "amqpgate.c": "A = 1"}
    assert _defined_twice(House.of(texts)) == {"A: amqpgate.a amqpgate.b"}


def test_it_sees_polling() -> None:
    text = """
async def polls(x):
    while not x.ready:
        await trio.sleep(0.1)
async def spins(x):
    while True:
        if x.ready:
            await trio.lowlevel.checkpoint()
async def waits(x):
    while not x.ready:
        await x.changed.wait()
    await trio.sleep(1)
async def defines(x):
    while True:
        async def f():
            await trio.sleep(1)
        await x(f)
"""
    assert _polled(House.of({"amqpgate.gateway.a": text})) == {
        "amqpgate.gateway.a:polls",
        "amqpgate.gateway.a:spins",
    }


def test_it_sees_tuples_of_what_does_not_know_its_length() -> None:
    text = """
def yields():
    yield 1
def of_expression(x):
    return tuple(each for each in x)
def of_generator():
    return tuple(yields())
def of_map(x):
    return tuple(map(int, x))
def passes(x):
    return max(*(each for each in x))
def knows(x):
    return tuple([each for each in x]), (*yields(),), tuple(x), max(*x), sum(each for each in x)
"""
    found = _without_length(House.of({"amqpgate.wire.a": text, "amqpgate.cli.a": text}))
    assert found == {
        f"amqpgate.wire.a:{name}" for name in ("of_expression", "of_generator", "of_map", "passes")
    }


def test_it_sees_what_nobody_uses() -> None:
    texts = {
        "amqpgate.a": "def used(): ...\ndef unused(): ...\ndef other(): ...\n"
        "class C:\n    def m(self): ...\n    def n(self): ...",
        "amqpgate.b": "from amqpgate.a import unused, used, other as o\n__all__ = ['unused']\nused(C().m)",
        "amqpgate.c": "@click.command()\ndef verb(): ...\ndef __getattr__(name): ...",
        "amqpgate.d": "from spark import R\nclass D(R):\n    def read(self): ...\nD()",
        "amqpgate.e": "from amqpgate.d import D\nclass E(D):\n    def write(self): ...\nE()",
        # A protocol calls nobody.
        "amqpgate.f": "from typing import Protocol\nclass P(Protocol): ...\nP()",
        "amqpgate.g": "from amqpgate.f import P\nclass G(P):\n    def idle(self): ...\nG()",
    }
    given = House.of(texts)
    assert never_used(given) == {"amqpgate.a:unused", "amqpgate.a:n", "amqpgate.g:idle"}
    assert never_used(given, ["cdef int n()"]) == {"amqpgate.a:unused", "amqpgate.g:idle"}


def test_it_sees_a_silenced_linter() -> None:
    given = House.of({"amqpgate.gateway.a": f"while x:  # {SILENCE}\n    pass", "amqpgate.gateway.b": ""})
    assert _silenced(given) == {"amqpgate.gateway.a"}


def test_it_sees_a_module_without_a_namesake(tmp_path: Path) -> None:
    given = House.of({"amqpgate.gateway.room.a": "", "amqpgate.policy.b": "", "amqpgate.operator.c": ""})
    assert _without_namesake(given, tmp_path) == {"amqpgate.gateway.room.a", "amqpgate.policy.b"}
    (tmp_path / "gateway/room").mkdir(parents=True)
    (tmp_path / "gateway/room/test_a.py").touch()
    assert _without_namesake(given, tmp_path) == {"amqpgate.policy.b"}


def _report(lines: Mapping[str, Iterable[str]]) -> str:
    sections = (f"# {check}\n" + "".join(f"{line}\n" for line in sorted(lines[check])) for check in lines)
    return "\n".join(sections)


if __name__ == "__main__":
    sys.stdout.write(_report({check: find(house()) for check, find in CHECKS.items()}))
