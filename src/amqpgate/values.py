"""Classes of attrs that cost little to make; and values, whose objects nobody changes.

Of a value the type checker holds that, and nothing else does. A class that holds it when it runs, as
attrs's own frozen ones do, has Python take a detour of 450 instructions for each field of each object that
it makes: 163 fields for a login, a twentieth of what it costs (callgrind).

Most of what a class takes of the start is to compile the methods that attrs writes. So all of these share
one ``__repr__``, and ``__eq__`` and ``__hash__`` are written when objects are first compared: of most classes
that is never (`python -m tests.bench.weight`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrs import define, frozen
else:
    import linecache
    from reprlib import recursive_repr

    import attrs

    def define(cls=None, /, **options):
        """``attrs.define``, with its options."""
        if cls is None:
            return lambda decorated: define(decorated, **options)
        if issubclass(cls, BaseException) or options.keys() & {"order", "cache_hash"}:
            return attrs.define(cls, **options)
        own = cls.__dict__
        has_repr = options.pop("repr", True) and "__repr__" not in own
        has_eq = options.pop("eq", True) and "__eq__" not in own
        has_hash = options.pop("unsafe_hash", False)
        linecache.clearcache()
        made = attrs.define(cls, repr=False, eq=False, **options)
        if has_repr:
            made.__repr__ = _repr
        if has_eq:
            if any(field.eq_key for field in made.__attrs_attrs__):
                raise TypeError(f"{cls.__qualname__}: who compares a field by a key says attrs.define")
            made.__eq__ = _eq
            if "__hash__" not in own or own["__hash__"] is None:
                made.__hash__ = _hash if has_hash else None
        return made

    def frozen(cls=None, /, **options):
        """``attrs.frozen``, with its options, whose objects could be written to."""
        if cls is None:
            return lambda decorated: frozen(decorated, **options)
        if options.get("eq") is not False and "__hash__" not in cls.__dict__:
            options["unsafe_hash"] = True
        return define(cls, on_setattr=attrs.setters.NO_OP, **options)

    @recursive_repr("...")
    def _repr(self):
        """As attrs writes it. Secrets say ``repr=False``, or how they are shown."""
        shown = []
        for field in self.__attrs_attrs__:
            if field.repr:
                show = repr if field.repr is True else field.repr
                shown.append(f"{field.name}={show(getattr(self, field.name, attrs.NOTHING))}")
        return f"{type(self).__qualname__.rpartition('>.')[2]}({', '.join(shown)})"

    def _eq(self, other):
        """Of a class whose objects were not compared yet."""
        return _written(type(self), "__eq__", _eq)(self, other)

    def _hash(self):
        """The same, of their hashes."""
        return _written(type(self), "__hash__", _hash)(self)

    def _written(cls, name, stub):
        """Write what attrs would into the class that has the stub."""
        owner = next((one for one in cls.__mro__ if one.__dict__.get(name) is stub), None)
        if owner is None:
            # Another thread has written it meanwhile.
            return getattr(cls, name)
        compared = [field.name for field in owner.__attrs_attrs__ if field.eq]
        hashed = [
            field.name for field in owner.__attrs_attrs__ if field.hash or (field.hash is None and field.eq)
        ]
        text = (
            "def __eq__(self, other):\n"
            " if other.__class__ is not self.__class__: return NotImplemented\n"
            f" return {_fields('self', compared)} == {_fields('other', compared)}\n"
            f"def __hash__(self): return hash({_fields('self', hashed)})"
        )
        methods = {}
        exec(compile(text, f"<values {owner.__qualname__}>", "exec"), methods)  # noqa: S102
        setattr(owner, name, methods[name])
        return methods[name]

    def _fields(of, names):
        """A tuple of them, as Python's text."""
        return f"({''.join(f'{of}.{name}, ' for name in names)})"


__all__ = ["define", "frozen"]
