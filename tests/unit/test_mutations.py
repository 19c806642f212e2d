"""The text that each fault replaces stands in the source, once."""

from __future__ import annotations

import pytest

from tests.mutations.faults import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_text_stands_in_the_source(mutation: Mutation) -> None:
    text = (ROOT / mutation.path).read_text()
    assert mutation.apply(text) != text
    with pytest.raises(ValueError, match="0 times"):
        mutation.apply(text.replace(mutation.before, ""))
