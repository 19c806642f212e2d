"""A new version of AMQP is one module that registers it: it is looked up from then on. Unknown ones raise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import get_args

import attrs
import pytest

from amqpgate.bridge import (
    VERSIONS,
    Interpreter,
    TranslatedVersion,
    Version,
    for_broker,
    interpreter_for,
)
from amqpgate.bridge.v0_9_1 import Interpreter091
from amqpgate.bridge.versions import VersionRegistry
from amqpgate.codegen.__main__ import project_root
from amqpgate.codegen.loader import sources
from amqpgate.config.clusters import AmqpVersion
from amqpgate.errors import UnsupportedVersionError
from amqpgate.wire.codec import methods
from amqpgate.wire.dialects import RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

#: A dialect of a version that has no module.
NEW = attrs.evolve(RABBITMQ_0_9_1, name="new", version=(0, 11, 0), header=b"AMQP\1\1\0\x0b")


class NewInterpreter(Interpreter091):
    """Of a peer that speaks the new version."""


def wire_module() -> ModuleType:
    """What codegen would make of the specification."""
    module = ModuleType("amqpgate.wire.generated.v0_11")
    names = ("METHODS", "PROPERTIES", "REPLY_CODES")
    vars(module).update({name: getattr(amqp, name) for name in names}, PROTOCOL_HEADER=NEW.header)
    return module


def make_version(**changes: object) -> Version:
    """What a module ``v0_11`` would register, with other parts; None: forgotten."""
    parts: dict[str, object] = {
        "name": "0-11",
        "numbers": (0, 11, 0),
        "header": NEW.header,
        "start": (0, 11),
        "wire": wire_module(),
        "interpreter": NewInterpreter,
        "client": lambda: NewInterpreter(NEW),
        "broker": NEW,
        "client_products": {},
        "broker_products": {"rabbit": RABBITMQ_0_9_1},
        **changes,
    }
    given = {name: part for name, part in parts.items() if part is not None}
    return Version(**given)  # type: ignore[arg-type]


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Version:
    """The new version, in the registry of the room until the test ends."""
    monkeypatch.setattr(VERSIONS, "_known", {name: VERSIONS.named(name) for name in VERSIONS.names})
    monkeypatch.setattr(VERSIONS, "_names", list(VERSIONS.names))
    version = make_version()
    monkeypatch.setitem(sys.modules, version.wire.__name__, version.wire)
    return VERSIONS.register(version)


def test_a_registered_version_is_found_in_every_way(registered: Version) -> None:
    assert VERSIONS.names == ("0-11", "0-10", "0-9-1", "0-9", "0-8")
    assert VERSIONS.named("0-11") is VERSIONS.numbered((0, 11, 0)) is registered
    assert VERSIONS.of_client(NEW.header) is VERSIONS.of_broker(NEW.header) is registered
    assert VERSIONS.started((0, 11), VERSIONS.named("0-9-1")) is registered
    client, broker = registered.client(), for_broker(VERSIONS.numbered((0, 11, 0)), amqp.ConnectionStart())
    assert (type(client), type(broker)) == (NewInterpreter, NewInterpreter)
    rabbit = amqp.ConnectionStart(0, 11, Table.of({"product": "RabbitMQ"}))
    assert for_broker(VERSIONS.numbered((0, 11, 0)), rabbit).is_native
    assert type(interpreter_for(NEW)) is NewInterpreter
    assert methods(attrs.evolve(NEW)).keys() == methods(RABBITMQ_0_9_1).keys()


@pytest.mark.parametrize(
    "find",
    [
        lambda: VERSIONS.named("0-11"),
        lambda: VERSIONS.numbered((0, 11, 0)),
        lambda: interpreter_for(NEW),
        lambda: methods(NEW),
    ],
)
def test_an_unknown_version_raises(find: Callable[[], object]) -> None:
    with pytest.raises(UnsupportedVersionError, match=r"AMQP 0-11"):
        find()


def test_no_version_has_an_unknown_header() -> None:
    assert VERSIONS.of_client(NEW.header) is None
    assert VERSIONS.of_broker(NEW.header) is None
    assert VERSIONS.started((0, 11), VERSIONS.named("0-9-1")) is None


@pytest.mark.parametrize(
    "part", [field.name for field in attrs.fields(Version) if field.default is attrs.NOTHING]
)
def test_a_version_that_forgets_a_part_fails(part: str) -> None:
    with pytest.raises(TypeError, match=part):
        make_version(**{part: None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "0-10"}, "numbers"),
        ({"numbers": (0, 10, 0)}, "numbers"),
        ({"header": b"AMQP\1\1\0\x0a"}, "header"),
        ({"wire": ModuleType("v0_11")}, "METHODS, PROPERTIES, REPLY_CODES"),
    ],
)
def test_parts_that_do_not_belong_together_fail(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_version(**changes)


def test_two_versions_share_no_name_and_no_header() -> None:
    registry = VersionRegistry([])
    registry.register(make_version())
    with pytest.raises(ValueError, match=r"AMQP 0-11"):
        registry.register(make_version())
    other = attrs.evolve(VERSIONS.named("0-8"), client_headers=frozenset({NEW.header}))
    with pytest.raises(ValueError, match=r"a header of AMQP 0-11"):
        registry.register(other)


def test_a_module_that_registers_nothing_is_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = VersionRegistry(["0-11"])
    monkeypatch.setitem(sys.modules, "amqpgate.bridge.v0_11", ModuleType("amqpgate.bridge.v0_11"))
    with pytest.raises(UnsupportedVersionError, match=r"AMQP 0-11"):
        registry.named("0-11")


def test_settings_name_every_version_and_no_other() -> None:
    assert get_args(AmqpVersion) == ("auto", *VERSIONS.names)


@pytest.mark.parametrize("name", VERSIONS.names)
def test_each_version_is_named_to_people(name: str) -> None:
    version = VERSIONS.named(name)
    assert for_broker(version, amqp.ConnectionStart()).version == f"AMQP {name}"


def test_a_translated_version_is_found_by_its_header_and_has_no_dialects() -> None:
    version = VERSIONS.named("0-10")
    assert isinstance(version, TranslatedVersion)
    assert VERSIONS.of_client(version.header) is VERSIONS.of_broker(version.header) is version
    # Its translator starts 0-9-1, whatever the broker has said.
    assert VERSIONS.started((0, 9), version) is version
    assert version.interpreter.is_native
    with pytest.raises(UnsupportedVersionError, match="is translated"):
        VERSIONS.numbered((0, 10, 0))


def test_the_translators_of_a_version_are_of_its_peers() -> None:
    version = VERSIONS.named("0-10")
    assert isinstance(version, TranslatedVersion)
    # A client is answered; of a broker the answer has come.
    assert (version.client().bytes_for_peer(), version.broker("n").bytes_for_peer()) == (version.header, b"")


def _interpreted() -> list[Version]:
    found = map(VERSIONS.named, VERSIONS.names)
    return [version for version in found if isinstance(version, Version)]


@pytest.mark.parametrize("name", [version.name for version in _interpreted()])
def test_each_version_speaks_what_it_registers(name: str) -> None:
    version = VERSIONS.named(name)
    assert isinstance(version, Version)
    interpreter = version.interpreter(version.broker)
    assert isinstance(interpreter, Interpreter)
    assert interpreter.version == f"AMQP {name}"
    assert version.broker.version == version.numbers
    assert version.broker.header == version.header
    assert VERSIONS.of_client(version.header) is VERSIONS.of_broker(version.header) is version
    assert VERSIONS.started(version.start, version) is version


def test_codegen_makes_the_methods_of_every_version() -> None:
    made = {source.module: (source.version, source.header) for source in sources(project_root())}
    versions = _interpreted()
    assert made == {"v" + each.name.replace("-", "_"): (each.numbers, each.header) for each in versions}
