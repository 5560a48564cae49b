"""What an error is about, by its fields: tests compare these, and no sentences."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class about:  # noqa: N801  read as a word: pytest.raises(InvalidValueError, check=about("n_bins"))
    """Whether an error names this parameter, what was found, and the column of the data."""

    parameter: str
    got: str | None = None
    column: str | None = None

    def __call__(self, error: Any) -> bool:
        fields = (error.parameter, error.got, error.column)
        return fields == (self.parameter, self.got, self.column)
