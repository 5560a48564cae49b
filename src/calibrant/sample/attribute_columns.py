"""Attributes next to scores and labels, wherever these are: separate columns, or named columns of
the data.
"""

from collections.abc import Sequence
from typing import Any

from calibrant.errors import InvalidTypeError
from calibrant.params.attributes import AttributeColumn, read_attributes
from calibrant.sample.columns import table_of
from calibrant.sample.reader import rows_in
from calibrant.text.sentences import shown


def attribute_columns(
    data: object, attributes: Any, n_rows: int, names: Sequence[str] | None = None
) -> list[AttributeColumn]:
    """The attributes of the rows, in row order; `names` selects columns of a frame."""
    if isinstance(attributes, str):
        advice = "give a list of names, or a frame"
        raise InvalidTypeError(
            "attributes", "not be a single text", got=shown(attributes), advice=advice
        )
    is_named = isinstance(attributes, list | tuple) and all(
        isinstance(name, str) for name in attributes
    )
    if not is_named:
        return read_attributes(attributes, n_rows, names)
    if not attributes:
        return read_attributes({}, n_rows)
    rows = rows_in(data)
    if rows is None:
        rule = 'be a frame, or a mapping from names to columns, such as {"sex": sex}'
        raise InvalidTypeError("attributes", rule, got=shown(attributes))
    table = table_of(rows, dict.fromkeys(attributes, "attribute"))
    return read_attributes({name: table.column(name) for name in attributes}, n_rows)
