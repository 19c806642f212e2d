"""pyarrow, without what it imports where it finds it and the audit log has no use for.

numpy and pandas are for those who compute with tables, the clients of object stores for those who read there:
together 65 of the 110 MiB that a process grows by where all is installed (`python -m tests.bench.weight`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Final

#: pyarrow does without each of them; files of this machine need none.
LEFT_OUT: Final = frozenset(
    {"numpy", "pandas", "pyarrow._azurefs", "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._s3fs"}
)


class _Absent(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname in LEFT_OUT:
            raise ModuleNotFoundError(f"{fullname} is left out", name=fullname)


def import_arrow() -> None:
    """Import pyarrow, which remembers what it has not found: for a process that is nothing but a gateway.

    Raises ``ImportError`` where it is not installed.
    """
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        import pyarrow
        import pyarrow.parquet

        # It looks for pandas with the first list.
        pyarrow.array([""])
    finally:
        sys.meta_path.remove(absent)
