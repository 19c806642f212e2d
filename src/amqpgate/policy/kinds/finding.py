"""What ``amqpgate policy check`` says.

A *problem* is certain and wants a change. A *note* is certain, too, and may be as it was meant.
"""

from __future__ import annotations

from typing import Literal

from amqpgate.values import frozen
from amqpgate.yamldoc import Mark


@frozen
class Finding:
    """One thing to look at."""

    level: Literal["problem", "note"]
    mark: Mark
    text: str
    remedy: str

    def __str__(self) -> str:
        where = f"{self.mark.file}:{self.mark.line}:{self.mark.column}"
        return f"{where}: {self.level}: {self.text}; {self.remedy}"
