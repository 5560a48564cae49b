"""Count rows at the knots of curves on the GPU that holds them, as in `calibrant.cells.knots`."""

from __future__ import annotations

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels import device, device_draws
from calibrant.kernels.hash import GOLDEN, ROUNDS
from calibrant.kernels.libraries import DeviceArray, library_of, like, to_host


def count(
    scores: DeviceArray,
    codes: DeviceArray,
    key: int,
    cells: tuple[FloatArray, FloatArray],
    size: int,
    places: DeviceArray | None = None,
) -> IntArray:
    """Count rows by knot, half and code.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
        Finite.
    codes : device array of shape (n,), uint8 or bool
        0 or 1.
    key : int
        The key of the row hashes, from 0 to 2**64 - 1.
    cells : (array of shape (m,), array of shape (m + 1, 3))
        Cuts, strictly increasing; and of each cell its first knot, where it begins, and one over
        its width.
    size : int
        The number of knots.
    places : device array of shape (n,), optional
        The positions of the rows, if these are only some of the rows.

    Returns
    -------
    array of shape (size, 2, 2)

    Examples
    --------
    >>> import torch
    >>> cells = np.empty(0), np.array([[0.0, 0.0, 1.0]])
    >>> count(torch.full((4,), 0.5), torch.tensor([0, 1, 1, 1]), 7, cells, 2).tolist()
    [[[0, 2], [0, 0]], [[0, 1], [1, 0]]]
    """
    library = library_of(scores)
    cuts, table = cells
    ours = device.fused(scores)
    if ours is not None:
        own = device.tensor_of(scores)
        at = None if places is None else device.tensor_of(places)
        both = device.own_cuts(cuts, own), table
        codes = device.bytes_of(codes)
        found = ours.count_knots(own, codes, at, key + GOLDEN, ROUNDS, both, size)
        return np.asarray(to_host(found))
    total = like(np.zeros(4 * size, np.int64), scores)
    with device.working_on(scores):
        rows = like(np.arange(min(scores.shape[0], device.CHUNK_ROWS)), scores)
        for part in device.row_parts(scores.shape[0]):
            n_rows = part.stop - part.start
            position = rows[:n_rows] + part.start if places is None else places[part]
            bits = device_draws.hashes(position, key)
            found = device.look_up(scores[part], cuts, table)
            share = (library.asarray(scores[part], dtype=library.float64) - found[:, 1]) * found[
                :, 2
            ]
            first_bits = (bits >> 11) & ((1 << 53) - 1)
            uniform = library.asarray(first_bits, dtype=library.float64) * 2.0**-53
            first = library.asarray(found[:, 0], dtype=library.int64)
            knot = first + library.asarray(uniform < share, dtype=library.int64)
            group = 4 * knot + 2 * (bits & 1) + library.asarray(codes[part], dtype=library.int64)
            total = total + library.bincount(group, minlength=4 * size)
        return to_host(total).reshape(size, 2, 2)
