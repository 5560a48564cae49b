"""A file of lines that could not be read, beside the store: nothing is lost, and nothing stops."""

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from calibrant.cli._line_source import Line


class Quarantine:
    """Lines with the reason why they were not taken, one JSON object per line.

    The field "text" is the line itself, so that it can be corrected and sent again.
    """

    def __init__(self, path: str, model: str, source: str) -> None:
        self.path = path
        self.n_lines = 0
        """The number of lines that were put into the file since it was opened here."""
        self.first = ""
        """The first of them, and its reason."""
        self._model = model
        self._source = source

    def keep(self, entries: Iterable[tuple[Line, str]]) -> None:
        """Add lines to the file; they are on disk when this returns."""
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        with Path(self.path).open("ab+") as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":  # a process was killed while it wrote
                    file.write(b"\n")
            for line, reason in entries:
                record = {
                    "at": now,
                    "model": self._model,
                    "source": self._source,
                    "line": line.number,
                    "reason": reason,
                    "text": line.text.decode("utf-8", "backslashreplace").rstrip("\r\n"),
                }
                file.write(json.dumps(record).encode() + b"\n")
                self.first = self.first or f"line {line.number:,} of {self._source!r}: {reason}"
                self.n_lines += 1
            file.flush()
            os.fsync(file.fileno())
