"""Everything about GPUs: kernels for torch and CuPy arrays, and rows that are such arrays."""
