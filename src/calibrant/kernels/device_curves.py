"""Values of a curve on the GPU that holds the scores: its lines are looked up there, and the sum is
done there.
"""

from __future__ import annotations

from calibrant._typing import FloatArray
from calibrant.kernels import device
from calibrant.kernels._curves import LINE, shape_along
from calibrant.kernels.libraries import DeviceArray, like


def follow(scores: DeviceArray, cuts: FloatArray, lines: FloatArray) -> DeviceArray:
    """Value of a curve that is straight in each cell, as `calibrant.kernels.follow`.

    Each step of the sum is an operation of its own, so that no compiler fuses two and rounds once.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
        Finite.
    cuts : numpy array of shape (m,)
        Strictly increasing.
    lines : numpy array of shape (m + 1, 3) or (m + 1, 3 + k)
        Of each cell where it begins, the value there, the slope, and k offsets.

    Returns
    -------
    device array of shape (n,) or (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> follow(torch.tensor([0.25, 0.5]), np.array([0.5]), np.array([[0.0, 0.0, 0.5], [0.5, 0.75,
    ...     0.0]]))
    tensor([0.1250, 0.7500], dtype=torch.float64)
    """
    rows = scores.shape[0]
    ours = device.fused(scores)
    if ours is not None:
        own = device.tensor_of(scores)
        table = like(lines, own)
        out = table.new_empty(shape_along(rows, lines))
        ours.follow(own, device.tensor_cuts(cuts, own), table, out)
        return device.back(out, scores)
    with device.working_on(scores):
        out = device.new_array(like(lines[:0], scores), shape_along(rows, lines))
        for part in device.row_parts(rows):
            found = device.look_up(scores[part], cuts, lines)
            curve = scores[part] - found[:, 0]
            curve *= found[:, 2]
            curve += found[:, 1]
            if out.ndim == 1:
                out[part] = curve
                continue
            for place in range(out.shape[1]):
                out[part, place] = (curve + found[:, LINE + place]).clip(0.0, 1.0)
    return out
