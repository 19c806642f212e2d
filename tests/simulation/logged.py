"""What the gateway logs: what it takes for a failure of its own is one."""

from __future__ import annotations

import logging
import traceback


class Logged(logging.Handler):
    """Keeps the first exception that is logged, since what was begun then ends as if a client had left."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.failure = ""
        logging.disable(logging.INFO)
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None and not self.failure:
            told = "".join(traceback.format_exception(record.exc_info[1]))
            self.failure = f"the gateway logged: {record.getMessage()}\n{told}"
