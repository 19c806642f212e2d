"""The arguments of bindings, as rules may ask for them.

What a headers exchange brings depends on them alone, so that a rule about exchange and key would let every
message of it out. A binding that was made with arguments is allowed with these names, all of them, and with
these values; where more than `TemplateBounds.values` values were seen under one name, with any.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import attrs

from amqpgate.pipeline.jobs.requests import told_in
from amqpgate.pipeline.jobs.templates import DEFAULT, TemplateBounds, Why
from amqpgate.policy.engine.matching import variables_in
from amqpgate.policy.engine.scalars import number_of, words_of

#: Texts that were perhaps none: records have the text of timestamps, decimals and bytes that are no text.
_DOUBTFUL: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d.*|.*\\.*", re.DOTALL)
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]*")


@attrs.frozen
class ProposedArguments:
    """What a rule may say of the arguments of a binding."""

    names: tuple[str, ...]
    #: Values by name, sorted; a name without one may have any.
    values: tuple[tuple[str, str], ...] = ()
    why: Why = "seen"

    @property
    def are_exact(self) -> bool:
        """Whether a rule can say that there are no others."""
        return not any("*" in name or variables_in(name) for name in self.names)


def arguments_of(text: str) -> ProposedArguments:
    """Those of a record; none where JSON in it is none."""
    table = told_in(text) or {}
    return ProposedArguments(tuple(sorted(table)), tuple(sorted(_values_of(table))))


def _values_of(table: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        is_doubtful = isinstance(value, str) and (
            _DOUBTFUL.fullmatch(value) or (number_of(value) is not None and not _WHOLE.fullmatch(value))
        )
        text = None if is_doubtful else words_of(value)
        if text is not None and not variables_in(text):
            yield name, text


def fold(
    found: Collection[ProposedArguments], bounds: TemplateBounds = DEFAULT
) -> dict[ProposedArguments, ProposedArguments]:
    """What is proposed for each of them."""
    groups: dict[tuple[str, ...], set[ProposedArguments]] = {}
    for one in found:
        groups.setdefault(one.names, set()).add(one)
    folded: dict[ProposedArguments, ProposedArguments] = {}
    for names, alike in groups.items():
        if len(alike) <= bounds.values:
            folded |= {one: one for one in alike}
            continue
        same = set.intersection(*(set(one.values) for one in alike))
        folded |= dict.fromkeys(alike, ProposedArguments(names, tuple(sorted(same)), "values"))
    return folded
