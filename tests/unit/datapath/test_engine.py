"""Both engines keep the contract in ``engine``: every member of it is there."""

from __future__ import annotations

import inspect

import pytest

from amqpgate.datapath import engine

from .rig import ENGINES

CONTRACT = ("Pump", "RelayEndpoint", "LinkEndpoint", "PooledEndpoint")


def members(protocol: type) -> set[str]:
    """What a protocol and those that it extends ask for."""
    own = [base for base in protocol.__mro__ if base.__module__ == engine.__name__]
    names = {name for base in own for name in (*vars(base), *inspect.get_annotations(base))}
    return {name for name in names if name == "__len__" or not name.startswith("_")}


@pytest.mark.parametrize("name", CONTRACT)
@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_has_what_the_contract_asks_for(kind: str, name: str) -> None:
    made = ENGINES[kind]
    cls = made.pump if name == "Pump" else made.endpoint(name)
    wanted = members(getattr(engine, name))
    assert len(wanted) > 8
    # The attributes of slotted and of compiled classes are descriptors of the class.
    assert {member for member in wanted if not hasattr(cls, member)} == set()
