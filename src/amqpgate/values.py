"""Values: classes whose objects nobody changes.

The type checker holds that, and nothing else does. A class that holds it when it runs, as attrs's own frozen
ones do, has Python take a detour of 450 instructions for each field of each object that it makes: 163 fields
for a login, a twentieth of what it costs (callgrind). To make such a class takes 0.6 ms of the start; without
that, and with one ``__repr__`` for all, half of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrs import frozen
else:
    import linecache

    import attrs

    def frozen(cls=None, /, **options):
        """``attrs.frozen``, with its options, whose objects could be written to."""
        if cls is None:
            return lambda decorated: frozen(decorated, **options)
        if options.get("eq") is not False and "__hash__" not in cls.__dict__:
            options["unsafe_hash"] = True
        has_repr = options.pop("repr", True) and "__repr__" not in cls.__dict__
        linecache.clearcache()
        made = attrs.define(cls, on_setattr=attrs.setters.NO_OP, repr=False, **options)
        if has_repr:
            made.__repr__ = _repr
        return made

    def _repr(self):
        """As attrs writes it. Secrets say ``repr=False``, or how they are shown."""
        shown = []
        for field in self.__attrs_attrs__:
            if field.repr:
                show = repr if field.repr is True else field.repr
                shown.append(f"{field.name}={show(getattr(self, field.name, attrs.NOTHING))}")
        return f"{type(self).__qualname__.rpartition('>.')[2]}({', '.join(shown)})"


__all__ = ["frozen"]
