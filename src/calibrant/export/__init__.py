"""A fitted calibrator as SQL, as an ONNX model, or as Python that needs nothing installed; each agrees with `predict`.

A calibrator on bins is a short table: cuts of the score, and what is predicted between them. So it can be evaluated
where the scores are, without calibrant, and every bit of the result is the same.
"""

from calibrant.export.onnx import to_onnx
from calibrant.export.python import to_python
from calibrant.export.sql import DIALECTS, to_sql
from calibrant.export.table import OUTPUTS, ExportTable, Steps, export_table

__all__ = ["DIALECTS", "OUTPUTS", "ExportTable", "Steps", "export_table", "to_onnx", "to_python", "to_sql"]
