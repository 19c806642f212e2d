"""What documents of several kinds have in common."""

from __future__ import annotations

import pytest

from amqpgate.policy.kinds.common import Metadata, check_ids, check_mode
from amqpgate.yamldoc import Invalid


def test_ids_are_unique() -> None:
    check_ids(["a", "b"], "rule")
    with pytest.raises(Invalid, match="two rules of this policy have the id 'a'"):
        check_ids(["a", "b", "a"], "rule")


@pytest.mark.parametrize("mode", ["enforce", "off"])
def test_a_share_belongs_to_mode_shadow(mode: str) -> None:
    check_mode("shadow", 5)
    check_mode(mode, 0)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match=f"mode {mode} is the same for all sessions"):
        check_mode(mode, 5)  # type: ignore[arg-type]


def test_a_document_has_a_name() -> None:
    with pytest.raises(Invalid):
        Metadata(name="")
