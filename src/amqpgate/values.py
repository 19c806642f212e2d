"""Values: classes whose objects nobody changes.

The type checker holds that, and nothing else does. A class that holds it when it runs, as attrs's own frozen
ones do, has Python take a detour of 450 instructions for each field of each object that it makes: 163 fields
for a login, a twentieth of what it costs (callgrind).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrs import frozen
else:
    import attrs

    def frozen(cls=None, /, **options):
        """``attrs.frozen``, with its options, whose objects could be written to."""
        if cls is None:
            return lambda decorated: frozen(decorated, **options)
        if options.get("eq") is not False and "__hash__" not in cls.__dict__:
            options["unsafe_hash"] = True
        return attrs.define(cls, on_setattr=attrs.setters.NO_OP, **options)


__all__ = ["frozen"]
