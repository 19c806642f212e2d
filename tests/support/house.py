"""What the source says of its own shape, read by `ast`: imports, classes, writes, loops, uses.

Everything here takes a `House`, the modules of a package by their dotted name, so that a test can hand in a
house of three lines and see a check fail.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path

import attrs

Function = ast.FunctionDef | ast.AsyncFunctionDef


@attrs.frozen
class House:
    """The modules of a package, parsed. A package is under its own name, without `__init__`."""

    modules: Mapping[str, ast.Module]
    texts: Mapping[str, str]

    @classmethod
    def read(cls, folder: Path) -> House:
        """A package from its folder; what is generated is left out."""
        texts = {}
        for path in sorted(folder.rglob("*.py")):
            parts = (folder.name, *path.relative_to(folder).with_suffix("").parts)
            if "generated" not in parts:
                texts[".".join(parts).removesuffix(".__init__")] = path.read_text()
        return cls.of(texts)

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> House:
        """From the text of each module."""
        return cls({name: ast.parse(text) for name, text in texts.items()}, texts)

    def within(self, *rooms: str) -> House:
        """Only the modules of these packages."""

        def inside(name: str) -> bool:
            return any(name == room or name.startswith(room + ".") for room in rooms)

        return House(
            {name: tree for name, tree in self.modules.items() if inside(name)},
            {name: text for name, text in self.texts.items() if inside(name)},
        )


# -- imports -------------------------------------------------------------------------------------------------


def imports(house: House, *, lazy: Iterable[str] = ()) -> dict[str, set[str]]:
    """Which modules of the house each module names in an import, those for type checkers included.

    Imports inside functions count too, except in the packages of `lazy`. That importing a module runs the
    `__init__` of its packages does not count.
    """
    graph: dict[str, set[str]] = {}
    lazy = tuple(lazy)
    for name, tree in house.modules.items():
        skip = name.startswith(lazy) if lazy else False
        named = set()
        for node in _outside_functions(tree) if skip else ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}"
                    named.add(submodule if submodule in house.modules else node.module)
            elif isinstance(node, ast.Import):
                named.update(alias.name for alias in node.names)
        graph[name] = {target for target in named if target in house.modules} - {name}
    return graph


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The strongly connected components with more than one module (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for target in sorted(graph[name]):
            if target not in order:
                visit(target)
                lowest[name] = min(lowest[name], lowest[target])
            elif target in stack:
                lowest[name] = min(lowest[name], order[target])
        if lowest[name] == order[name]:
            at = stack.index(name)
            component = stack[at:]
            del stack[at:]
            if len(component) > 1:
                found.append(sorted(component))

    for name in graph:
        if name not in order:
            visit(name)
    return found


# -- classes -------------------------------------------------------------------------------------------------


@attrs.frozen
class Size:
    """How large a class is, with what it inherits from classes of the same house."""

    attributes: frozenset[str]
    methods: frozenset[str]


def classes(house: House) -> Iterator[tuple[str, ast.ClassDef]]:
    """All classes, with their module."""
    for name, tree in house.modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                yield name, node


def sizes(house: House, apart: Container[str] = ()) -> dict[str, Size]:
    """The size of each class, as `module:Class`; enums are left out, for their members are no attributes.

    What a class inherits from one that is ``apart`` does not count: there is a decision about that one.
    """
    every = {f"{module}:{node.name}": node for module, node in classes(house)}
    by_name: dict[str, list[str]] = defaultdict(list)
    for key in every:
        by_name[key.rpartition(":")[2]].append(key)

    def measured(key: str, seen: frozenset[str]) -> Size:
        attributes, methods = _own(every[key])
        for base in every[key].bases:
            candidates = by_name.get(_last_name(base), [])
            same_module = [other for other in candidates if other.partition(":")[0] == key.partition(":")[0]]
            for other in (same_module or candidates)[:1]:
                if other not in seen and other not in apart:
                    inherited = measured(other, seen | {other})
                    attributes |= inherited.attributes
                    methods |= inherited.methods
        return Size(frozenset(attributes), frozenset(methods))

    return {
        key: measured(key, frozenset({key}))
        for key, node in every.items()
        if not any(_last_name(base).endswith(("Enum", "Flag")) for base in node.bases)
    }


def _own(node: ast.ClassDef) -> tuple[set[str], set[str]]:
    attributes, methods = set(), set()
    for statement in node.body:
        if isinstance(statement, Function):
            methods.add(statement.name)
            for inner in ast.walk(statement):
                if (
                    isinstance(inner, ast.Attribute)
                    and isinstance(inner.ctx, ast.Store)
                    and isinstance(inner.value, ast.Name)
                    and inner.value.id == "self"
                ):
                    attributes.add(inner.attr)
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and "ClassVar" not in ast.unparse(statement.annotation)
        ):
            attributes.add(statement.target.id)
    # What a property sets is a method already.
    return attributes - methods, methods


def twice(house: House) -> dict[str, list[str]]:
    """Names of classes that are defined more than once, and where."""
    where: dict[str, list[str]] = defaultdict(list)
    for module, node in classes(house):
        where[node.name].append(module)
    return {name: sorted(modules) for name, modules in where.items() if len(modules) > 1}


# -- writes --------------------------------------------------------------------------------------------------


def foreign_writes(house: House) -> set[str]:
    """Assignments and deletions of another object's attribute, as `module: object.attribute`.

    The object itself (`self`, `cls`) may, and whoever made an object in the same function: the local was
    assigned the call of a class, known by its capital, or of `cls`.
    """
    found = set()
    for module, tree in house.modules.items():
        for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, Function))]:
            made = {
                target.id
                for node in _outside_functions(scope)
                if isinstance(node, ast.Assign) and _constructs(node.value)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for node in _outside_functions(scope):
                if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
                    continue
                owner = node.value
                if isinstance(owner, ast.Name) and (owner.id in ("self", "cls") or owner.id in made):
                    continue
                found.add(f"{module}: {ast.unparse(node)}")
            for node in _outside_functions(scope):
                if isinstance(node, ast.Call) and _last_name(node.func) in ("setattr", "delattr"):
                    found.add(f"{module}: {_last_name(node.func)}({ast.unparse(node.args[0])}, ...)")
    return found


def _constructs(value: ast.expr) -> bool:
    if isinstance(value, ast.Await):
        value = value.value
    if not isinstance(value, ast.Call):
        return False
    name = _last_name(value.func)
    return name in ("cls", "__new__") or name.lstrip("_")[:1].isupper()


# -- loops ---------------------------------------------------------------------------------------------------

#: Decorators that give what they decorate to somebody else.
#: Modules whose classes are no library's: our own, and what only says a shape.
_OWN = ("amqpgate", "typing", "enum", "abc", "collections", "attrs", "contextlib")
_HANDED_OVER = re.compile(r"\b(command|group|default|validator)\b")

#: Awaiting one of these lets time pass and learns nothing.
_PAUSES = frozenset({"sleep", "sleep_until", "checkpoint"})


def polling(house: House) -> set[str]:
    """Functions with a `while` that awaits trio.sleep, sleep_until or checkpoint, as `module:function`."""
    found = set()
    for module, tree in house.modules.items():
        for function in ast.walk(tree):
            if not isinstance(function, Function):
                continue
            for loop in _outside_functions(function):
                if isinstance(loop, ast.While) and any(map(_pauses, _outside_functions(loop))):
                    found.add(f"{module}:{function.name}")
    return found


def _pauses(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Await)
        and isinstance(node.value, ast.Call)
        and _last_name(node.value.func) in _PAUSES
    )


# -- tuples ------------------------------------------------------------------------------------------------


def sizeless_tuples(house: House) -> set[str]:
    """Functions that make a tuple of what does not know its length, as `module:function`: by `tuple(...)`, or
    as all arguments of a call. Python begins such a tuple with ten places and cuts it.
    """
    trees = house.modules.values()
    generators = {
        function.name
        for tree in trees
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and not function.decorator_list
        and any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _outside_functions(function))
    }
    lazy = generators | {"filter", "map", "zip"}

    def is_sizeless(node: ast.expr) -> bool:
        called = isinstance(node, ast.Call) and _last_name(node.func) in lazy
        return called or isinstance(node, ast.GeneratorExp)

    def makes_one(node: ast.AST) -> bool:
        if not isinstance(node, ast.Call) or len(node.args) != 1:
            return False
        (given,) = node.args
        if isinstance(given, ast.Starred):
            return is_sizeless(given.value)
        return isinstance(node.func, ast.Name) and node.func.id == "tuple" and is_sizeless(given)

    return {
        f"{module}:{function.name}"
        for module, tree in house.modules.items()
        for function in ast.walk(tree)
        if isinstance(function, Function) and any(map(makes_one, _outside_functions(function)))
    }


# -- uses ----------------------------------------------------------------------------------------------------


def never_used(house: House, elsewhere: Iterable[str] = ()) -> set[str]:
    """Functions, methods and classes whose names no code of the house says, as `module:name`.

    Imports and `__all__` do not count, but for imports under another name. What has a decorator that hands it
    to somebody (a click command, a default or a validator of attrs) is used by that, and so are methods of
    classes that extend one of another house. ``elsewhere`` are texts in other languages.
    """
    used = {word for text in elsewhere for word in re.findall(r"\w+", text)}
    for tree in house.modules.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                used.add(node.id)
            elif isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.ImportFrom):
                used.update(alias.name for alias in node.names if alias.asname)
    foreign = _extending_foreign(house)
    overriding = {method for tree in house.modules.values() for method in _called_by_others(tree, foreign)}
    return {
        f"{module}:{node.name}"
        for module, tree in house.modules.items()
        for node in ast.walk(tree)
        if isinstance(node, Function | ast.ClassDef)
        and node.name not in used
        and not node.name.startswith("__")
        and not any(_HANDED_OVER.search(ast.unparse(decorator)) for decorator in node.decorator_list)
        and node not in overriding
    }


def _extending_foreign(house: House) -> set[str]:
    """Names of classes whose base is of a foreign library, or extends one that is, in whichever module. What
    Python brings itself (a protocol, a tuple) calls nobody from afar."""
    found: set[str] = set()
    while True:
        before = len(found)
        for tree in house.modules.values():
            foreign = found.union(
                alias.asname or alias.name
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith(_OWN)
                if node.module.partition(".")[0] not in sys.stdlib_module_names
                for alias in node.names
            )
            found.update(
                node.name
                for node in ast.walk(tree)
                if isinstance(node, ast.ClassDef) and foreign.intersection(map(_last_name, node.bases))
            )
        if len(found) == before:
            return found


def _called_by_others(tree: ast.Module, foreign: set[str]) -> Iterator[ast.AST]:
    """Methods of classes whose base is of a library, which calls them; or extends one that is, be it of the
    ``foreign`` that other modules have."""
    libraries = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if not node.module.startswith(_OWN) or alias.name in foreign
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and libraries.intersection(map(_last_name, node.bases)):
            libraries.add(node.name)
            yield from (each for each in node.body if isinstance(each, Function))


# -- trees ---------------------------------------------------------------------------------------------------


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _outside_functions(scope: ast.AST) -> Iterator[ast.AST]:
    """What is below a node, without what the functions in it have inside."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, Function | ast.Lambda):
            yield from _outside_functions(child)
