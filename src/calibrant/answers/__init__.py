"""Exports of a fitted calibrator: as a table, SQL, ONNX, plain Python, or a model file."""
