"""The log: a line of JSON for each event, on standard error, without keys, images, ids or queries."""

from __future__ import annotations

import json
import logging
import time
from typing import final

NAMES = ("hedged", "uvicorn.error", "py.warnings")  # the loggers whose lines are written so: of all of the library
MULTIPART = "python_multipart"  # tells at length what is wrong with a form; the client is told in short
TOLD = "told"  # what a record has of its own, by the name of its attribute


def start_log() -> None:
    """Write what the service and the library say as lines of JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    for name in NAMES:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
    logging.captureWarnings(True)  # those of Pillow about images, say
    logging.getLogger(NAMES[0]).setLevel(logging.INFO)
    logging.getLogger(MULTIPART).setLevel(logging.CRITICAL)


@final
class Lines(logging.Formatter):
    """A record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line.

        Args:
            record: What happened.
        """
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        told = {"time": moment, "level": record.levelname.lower(), "event": record.getMessage()}
        told |= getattr(record, TOLD, {})
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=True)
