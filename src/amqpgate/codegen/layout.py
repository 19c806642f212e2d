"""How arguments lie side by side: which share one ``struct.Struct``, which bits share an octet.

AMQP 0-9-1, section 4.2.5.2 "Bits": consecutive bit fields are packed into bytes, the first one into the
lowest bit; anything else in between starts a new octet.
"""

from __future__ import annotations

from attrs import frozen

from amqpgate.codegen.model import FieldSpec

FORMATS: dict[str, str] = {"octet": "B", "short": "H", "long": "I", "longlong": "Q", "timestamp": "Q"}
SIZES: dict[str, int] = {"B": 1, "H": 2, "I": 4, "Q": 8}


@frozen
class Cell:
    """One fixed-size item of a run: a number field, or an octet of up to eight bits."""

    format: str
    fields: tuple[FieldSpec, ...]

    @property
    def is_bits(self) -> bool:
        """Whether this octet holds bits."""
        return self.fields[0].type == "bit"


@frozen
class Run:
    """Consecutive fixed-size items."""

    cells: tuple[Cell, ...]

    @property
    def format(self) -> str:
        """As for ``struct``, without the byte order."""
        return "".join(cell.format for cell in self.cells)

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(SIZES[cell.format] for cell in self.cells)


@frozen
class Single:
    """One field of variable size."""

    field: FieldSpec


def steps(fields: list[FieldSpec]) -> list[Run | Single]:
    """The fields in wire order, fixed-size neighbours together."""
    result: list[Run | Single] = []
    cells: list[Cell] = []
    bits: list[FieldSpec] = []

    def close_bits() -> None:
        while bits:
            cells.append(Cell("B", tuple(bits[:8])))
            del bits[:8]

    def close_run() -> None:
        close_bits()
        if cells:
            result.append(Run(tuple(cells)))
            cells.clear()

    for field in fields:
        if field.type == "bit":
            bits.append(field)
        elif field.type in FORMATS:
            close_bits()
            cells.append(Cell(FORMATS[field.type], (field,)))
        else:
            close_run()
            result.append(Single(field))
    close_run()
    return result
