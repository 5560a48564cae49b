"""A fitted calibrator as SQL, as an ONNX model, or as plain Python."""

from calibrant.answers.onnx import to_onnx
from calibrant.answers.python import to_python
from calibrant.answers.sql import DIALECTS, to_sql
from calibrant.answers.table import export_table
from calibrant.calibrators.table import OUTPUTS, Steps, Table

__all__ = [
    "DIALECTS",
    "OUTPUTS",
    "Steps",
    "Table",
    "export_table",
    "to_onnx",
    "to_python",
    "to_sql",
]
